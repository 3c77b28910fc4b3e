// In front of a kernel that clang compiles for NVIDIA: libclc rounds to half in software, where the
// device has an instruction.
#define HALVES(n) \
    static inline void rounded##n(float##n x, half *p) { for (int i = 0; i < n; ++i) __builtin_store_halff(x[i], p + i); }
HALVES(2) HALVES(4) HALVES(8) HALVES(16)
#define vstore_half_rte(x, o, p) __builtin_store_halff(x, (p) + (o))
#define vstore_half2_rte(x, o, p) rounded2(x, (p) + 2 * (o))
#define vstore_half4_rte(x, o, p) rounded4(x, (p) + 4 * (o))
#define vstore_half8_rte(x, o, p) rounded8(x, (p) + 8 * (o))
#define vstore_half16_rte(x, o, p) rounded16(x, (p) + 16 * (o))
