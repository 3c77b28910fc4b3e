// In front of a kernel that runs on the host: what run.c has instead of OpenCL's own.
__attribute__((overloadable)) uint mul_hi(uint x, uint y) { return (uint)((ulong)x * y >> 32); }
size_t host_group_id(uint d);
size_t host_local_id(uint d);
void host_barrier(uint flags);
#define get_group_id(d) host_group_id(d)
#define get_local_id(d) host_local_id(d)
#define barrier(flags) host_barrier(flags)
// libclc's take halves apart in software, for pointers of one kind of memory.
#define HALVES(n) \
    static inline float##n host_load##n(const half *p) { float##n x; for (int i = 0; i < n; ++i) x[i] = __builtin_load_halff(p + i); return x; } \
    static inline void host_store##n(float##n x, half *p) { for (int i = 0; i < n; ++i) __builtin_store_halff(x[i], p + i); }
HALVES(2) HALVES(4) HALVES(8) HALVES(16)
#define vload_half(o, p) __builtin_load_halff((const half *)(uintptr_t)(p) + (o))
#define vload_half2(o, p) host_load2((const half *)(uintptr_t)(p) + 2 * (o))
#define vload_half4(o, p) host_load4((const half *)(uintptr_t)(p) + 4 * (o))
#define vload_half8(o, p) host_load8((const half *)(uintptr_t)(p) + 8 * (o))
#define vload_half16(o, p) host_load16((const half *)(uintptr_t)(p) + 16 * (o))
#define vstore_half_rte(x, o, p) __builtin_store_halff(x, (half *)(p) + (o))
#define vstore_half2_rte(x, o, p) host_store2(x, (half *)(p) + 2 * (o))
#define vstore_half4_rte(x, o, p) host_store4(x, (half *)(p) + 4 * (o))
#define vstore_half8_rte(x, o, p) host_store8(x, (half *)(p) + 8 * (o))
#define vstore_half16_rte(x, o, p) host_store16(x, (half *)(p) + 16 * (o))
