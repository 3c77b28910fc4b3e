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
static inline float ue4m3_half(uint d) {
  const int e = d >> 3 & 15, m = d & 7;
  return d == 127 ? 0.0f : e ? as_float((uint)(e + 119) << 23 | (uint)m << 20) : m * 0.0009765625f;
}
// a code of up to 32 bits, from a bit on
static inline uint code_at(global const uchar *w, ulong at, uint bits) {
  const uint shift = at & 7;
  global const uchar *p = w + (at >> 3);
  ulong found = p[0];
  for (uint byte = 1; 8 * byte < shift + bits; byte++)
    found |= (ulong)p[byte] << (8 * byte);
  return (uint)(found >> shift) & (bits == 32 ? 0xffffffffu : (1u << bits) - 1);
}
% if rules:
static inline ushort half_bits(float x) {
#ifdef HAS_F16
  return __builtin_astype((_Float16)x, ushort);
#else
  ushort16 bits;
  vstore_half16_rte((float16)x, 0, (half *)&bits);
  return bits.s0;
#endif
}
static inline ushort bf16_bits(float x) {
  const uint b = as_uint(x);
  return isnan(x) ? (b >> 16 & 0x8000u) | 0x7fc0u : (b + 0x7fffu + (b >> 16 & 1u)) >> 16;
}
// Some compilers call a function for each lane of fmin, fmax, rint and select.
#define LEAST(a, b) ((b) < (a) ? (b) : (a))
#define MOST(a, b) ((b) > (a) ? (b) : (a))
% for name, kind, function in (("most_uint", "uint", "MOST"), ("least_uint", "uint", "LEAST"), ("most_float", "float", "MOST"), ("least_float", "float", "LEAST")):
static inline ${kind} ${name}(${kind}16 v) {
  const ${kind}8 a = ${function}(v.lo, v.hi);
  const ${kind}4 b = ${function}(a.lo, a.hi);
  const ${kind}2 c = ${function}(b.lo, b.hi);
  return ${function}(c.x, c.y);
}
% endfor
// For values of the largest magnitude twice the place and the sign, for others more.
static inline uint16 first_of(float16 x, uint most, uint first) {
  const uint16 place = (uint16)(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) + 2 * first;
  return (as_uint16(x) & 0x7fffffffu) == most ? place | as_uint16(x) >> 31 : (uint16)0x7ffffffeu;
}
// Cut off to whole numbers from 0 to most; NaN is 0.
static inline uchar16 cut(float16 x, float most) {
  return convert_uchar16(convert_int16(x > 0.0f ? (x < most ? x : (float16)most) : (float16)0));
}
// To nearest, ties to even, where magnitudes are below 2**22; larger ones stay about as large.
static inline float16 near(float16 x) { return (x + 12582912.0f) - 12582912.0f; }
// The same, cut off at low and high; NaN is low.
static inline char16 whole(float16 x, float low, float high) {
  x = near(x);
  return convert_char16(convert_int16(x > low ? (x < high ? x : (float16)high) : (float16)low));
}
// To nearest, halves away from zero; where that is no number, ``other``.
static inline char16 away(float16 x, int other) {
  const float16 moved = x + as_float16((as_uint16(x) & 0x80000000u) | 0x3effffffu);
  const int16 sound = (as_int16(x) & 0x7f800000) != 0x7f800000;
  const int16 found = sound ? convert_int16(sound ? moved : (float16)0) : (int16)other;
  return convert_char16(MOST(LEAST(found, (int16)127), (int16)-128));
}
// The codes of doubled e2m1 times d that are nearest: ties to the smaller, never -0.
static inline uchar16 doubled_codes(float16 x, float d) {
  const float16 a = fabs(x);
  int16 code = 0;
% for mid in rules["midpoints"]:
  code -= a > ${mid}f * d;
% endfor
  code = d == 0 ? (int16)0 : code;
  return convert_uchar16(code | ((x < 0.0f) & (code > 0) & 8));
}
static inline uchar ue4m3_bits(float x) {
  x = fmin(fmax(x, 0.0f), 448.0f);
  const uint b = as_uint(x);
  const int exponent = (int)(b >> 23) - 120, code = (exponent << 3) + (int)(b >> 20 & 7) + (int)(b >> 19 & 1);
  const int low = (int)fmin(x * 512.0f + 0.5f, 7.0f);
  return x > 0 ? (exponent <= 0 ? low : code >= 0x78 ? 0x7e : code) : 0;
}
// Codes of a narrow float: clamped, to nearest, ties to even; NaN is 0.
static inline uchar16 narrowed(float16 x, float largest, uint mantissa, uint bias, uint bits) {
  x = x > largest ? (float16)largest : x < -largest ? (float16)-largest : x == x ? x : (float16)0;
  const uint16 b = as_uint16(x), a = b & 0x7fffffffu;
  const uint16 normal = ((a + ((1u << (22 - mantissa)) - 1) + (a >> (23 - mantissa) & 1u)) >> (23 - mantissa)) - ((127 - bias) << mantissa);
  const uint16 low = convert_uint16(near(as_float16(a) * as_float((126 + bias + mantissa) << 23)));
  return convert_uchar16(((a >> 23) >= 128 - bias ? normal : low) | b >> 31 << (bits - 1));
}
// The whole part of log2 as the host computes it, which rounds what is just below a power of two up.
constant uint log2_begins[] = {
% for row in rules["log2_begins"]:
  ${row},
% endfor
};
static inline int log2_of(uint bits) {
  const int e = bits >> 23 ? (int)(bits >> 23) - 127 : -118 - (int)clz(bits);
  return e + (bits >= log2_begins[e + 150]);
}
% endif
#endif
% for name, kind, numbers in tables:
constant ${kind} ${name}[] = {
% for row in numbers:
  ${row},
% endfor
};
% endfor

${body}
