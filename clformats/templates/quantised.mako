<%doc>
Kernels and functions over quantised tensors: what their generated lines use, then those lines.
</%doc>\
#ifndef CLF_QUANTISED
#define CLF_QUANTISED
#pragma OPENCL FP_CONTRACT OFF
% if fp16_lanes:
#if defined(__clang__) && defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_convertvector)
#define HAS_F16 1
typedef _Float16 clf_h16 __attribute__((ext_vector_type(16)));
#endif
#endif
% endif
// Vectors that may begin anywhere. Some compilers take vstore apart into short pieces.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
% for kind, nbytes in (("uchar", 1), ("ushort", 2), ("uint", 4), ("float", 4)):
% for width in (2, 4, 8, 16):
typedef ${kind}${width} any_${kind}${width} __attribute__((aligned(1)));
% endfor
% endfor
#define PUT(v, kind, width, p) (*(global any_##kind##width *)(p) = (v))
#define GET(kind, width, p) (*(global const any_##kind##width *)(p))
#define SHUFFLE(kind, chosen, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define STREAM(v, p) __builtin_nontemporal_store(v, (global uint16 *)(p))
#else
#define PUT(v, kind, width, p) vstore##width(v, 0, (global kind *)(p))
#define GET(kind, width, p) get_##kind##width(p)
#define SHUFFLE(kind, chosen, ...) ((kind)chosen)
#define STREAM(v, p) vstore16(v, 0, (global uint *)(p))
% for kind, nbytes in (("uchar", 1), ("ushort", 2), ("uint", 4)):
% for width in (2, 4, 8, 16):
<%
total = nbytes * width
part, count = min(total, 16), max(1, total // 16)
own = f"{kind}{part // nbytes}"
parts = ", ".join(f"as_{own}(vload{part}({k}, p))" for k in range(count))
%>\
static inline ${kind}${width} get_${kind}${width}(global const uchar *p) { return (${kind}${width})(${parts}); }
% endfor
% endfor
#endif
// words that may begin at any byte
#define LOAD_USHORT(p) ((ushort)((p)[0] | (p)[1] << 8))
#define LOAD_UINT(p) ((uint)(p)[0] | (uint)(p)[1] << 8 | (uint)(p)[2] << 16 | (uint)(p)[3] << 24)
static inline void store_ushort(ushort x, global uchar *p) { p[0] = x; p[1] = x >> 8; }
static inline void store_uint(uint x, global uchar *p) { store_ushort(x, p); store_ushort(x >> 16, p + 2); }
#define STORE_USHORT(x, p) store_ushort(x, p)
#define STORE_UINT(x, p) store_uint(x, p)
% for width in (2, 4, 8, 16):
<%
half = width // 2
kind = f"uchar{half}" if half > 1 else "uchar"
lanes = ", ".join(f"a{'.s' + '0123456789abcdef'[i] if half > 1 else ''}, b{'.s' + '0123456789abcdef'[i] if half > 1 else ''}" for i in range(half))
%>\
static inline uchar${width} zip${width}(${kind} a, ${kind} b) { return (uchar${width})(${lanes}); }
#define ZIP${width}(a, b) zip${width}(a, b)
% endfor
#ifdef HAS_F16
static inline float half_of(ushort bits) { return (float)__builtin_astype(bits, _Float16); }
static inline float16 halves_of(ushort16 bits) { return __builtin_convertvector(__builtin_astype(bits, clf_h16), float16); }
#define HALVES(x) __builtin_astype(__builtin_convertvector(x, clf_h16), ushort16)
#define STORE_HALF16(x, p) PUT(HALVES(x), ushort, 16, p)
#define STREAM_HALF32(x, y, p) STREAM(((uint16)(as_uint8(HALVES(x)), as_uint8(HALVES(y)))), p)
#else
static inline float half_of(ushort bits) { return vload_half(0, (const half *)&bits); }
static inline float16 halves_of(ushort16 bits) { return vload_half16(0, (const half *)&bits); }
#define STORE_HALF16(x, p) vstore_half16_rte(x, 0, (global half *)(p))
#define STREAM_HALF32(x, y, p) (STORE_HALF16(x, p), STORE_HALF16(y, (p) + 32))
#endif
// twice e2m1: its magnitudes are convex in the code
static inline char16 doubled16(uchar16 q) {
  char16 m = as_char16(q & (uchar)7), f = max(max(m, m + m - (char)4), m * (char)4 - (char)16);
  char16 s = as_char16(q << (uchar)4) >> (char)7;
  return (f ^ s) - s;
}
static inline int doubled(uint q) {
  int m = q & 7, f = max(max(m, m + m - 4), m * 4 - 16);
  return q & 8 ? -f : f;
}
static inline float e2m1(uint q) { return as_float(as_uint(doubled(q & 7) * 0.5f) | (q & 8) << 28); }
static inline float16 e2m116(uchar16 q) {
  return as_float16(as_uint16(convert_float16(convert_int16(doubled16(q & (uchar)7))) * 0.5f) | convert_uint16(q & (uchar)8) << 28);
}
static inline float e8m0(uint e) { return as_float(e == 255 ? 0x7fc00000u : e ? e << 23 : 0x00400000u); }
static inline float e8m0_half(uint e) { return as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23); }
// a code of up to 32 bits, from a bit on
static inline uint code_at(global const uchar *w, ulong at, uint bits) {
  const uint shift = at & 7;
  global const uchar *p = w + (at >> 3);
  ulong found = p[0];
  for (uint byte = 1; 8 * byte < shift + bits; byte++)
    found |= (ulong)p[byte] << (8 * byte);
  return (uint)(found >> shift) & (bits == 32 ? 0xffffffffu : (1u << bits) - 1);
}
#endif
% for name, kind, numbers in tables:
constant ${kind} ${name}[] = {
% for row in numbers:
  ${row},
% endfor
};
% endfor

${body}
