<%doc>
Kernels and functions over quantised tensors: what their generated lines use, then those lines.
</%doc>\
#ifndef CLF_QUANTISED
#define CLF_QUANTISED
#pragma OPENCL FP_CONTRACT OFF
% if fp16_lanes:
// Clang has the type for x86 from version 15 on.
#if defined(__clang__) && defined(__has_builtin) && !defined(CLFORMATS_PORTABLE) && __clang_major__ >= 15
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
#if __has_builtin(__builtin_prefetch) && !defined(CLFORMATS_NO_PREFETCH)
#define PREFETCH(p) __builtin_prefetch((const void *)(uintptr_t)(p), 0, 2)
#endif
// words that may begin at any byte
typedef ushort any_ushort __attribute__((aligned(1)));
typedef uint any_uint __attribute__((aligned(1)));
#define STORE_USHORT(x, p) (*(global any_ushort *)(p) = (x))
#define STORE_UINT(x, p) (*(global any_uint *)(p) = (x))
% if fp16_lanes:
#define LOAD_USHORT(p) (*(global const any_ushort *)(p))
#define LOAD_UINT(p) (*(global const any_uint *)(p))
% endif
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
static inline void store_ushort(ushort x, global uchar *p) { p[0] = x; p[1] = x >> 8; }
static inline void store_uint(uint x, global uchar *p) { store_ushort(x, p); store_ushort(x >> 16, p + 2); }
#define STORE_USHORT(x, p) store_ushort(x, p)
#define STORE_UINT(x, p) store_uint(x, p)
#endif
#ifndef PREFETCH
#define PREFETCH(p)
#endif
#ifndef LOAD_USHORT
#define LOAD_USHORT(p) ((ushort)((p)[0] | (p)[1] << 8))
#define LOAD_UINT(p) ((uint)(p)[0] | (uint)(p)[1] << 8 | (uint)(p)[2] << 16 | (uint)(p)[3] << 24)
#endif
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
#ifdef __AVX512F__
// As an instruction: LLVM would join a conversion with that of small integers to floats, element by element.
#define HALVES(x) __builtin_astype(__builtin_ia32_vcvtps2ph512_mask(x, 0, (short16)0, (ushort)0xffff), ushort16)
#else
#define HALVES(x) __builtin_astype(__builtin_convertvector(x, clf_h16), ushort16)
#endif
#define STORE_HALF16(x, p) PUT(HALVES(x), ushort, 16, p)
#define STREAM_HALF32(x, y, p) STREAM(((uint16)(as_uint8(HALVES(x)), as_uint8(HALVES(y)))), p)
#else
static inline float half_of(ushort bits) { return vload_half(0, (const half *)&bits); }
static inline float16 halves_of(ushort16 bits) { return vload_half16(0, (const half *)&bits); }
#define STORE_HALF16(x, p) vstore_half16_rte(x, 0, (global half *)(p))
#define STREAM_HALF32(x, y, p) (STORE_HALF16(x, p), STORE_HALF16(y, (p) + 32))
#endif
// twice e2m1: its magnitudes are convex in the code, and grow by 1, from 4 on by 2, from 6 on by 4
static inline char16 doubled16(uchar16 q) {
  const uchar16 m = q & (uchar)7, over = sub_sat(m, (uchar16)6);
  const char16 f = as_char16(m + sub_sat(m, (uchar16)4) + over + over);
  return q > (uchar)7 ? -f : f;
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
// Some compilers call a function for each lane of fmin, fmax, fabs, rint and select, and compare floats that
// were f16 lane by lane as such.
#define LEAST(a, b) ((b) < (a) ? (b) : (a))
#define MOST(a, b) ((b) > (a) ? (b) : (a))
// Whether all lanes are true; some compilers ask each for all().
static inline int every(int16 x) {
  const int8 a = x.lo & x.hi;
  const int4 b = a.lo & a.hi;
  return b.x & b.y & b.z & b.w;
}
static inline float16 magnitude(float16 x) { return as_float16(as_uint16(x) & 0x7fffffffu); }
// One number of each of 16 blocks.
% for kind in ("uchar", "ushort", "uint", "int", "float"):
typedef union { ${kind}16 v; ${kind} s[16]; } lanes_${kind};
% endfor
#define FILL(v, n) for (uint i = n; i < 16; i++) v[i] = v[i - (n)];
% for kind in ("ushort", "uint", "int"):
// The greatest lane of each of 16 vectors, in the lane of the vector's number.
static inline ${kind}16 most_${kind}(const ${kind}16 *v) {
<% names = [f"v[{n}]" for n in range(16)] %>\
% for stage in (1, 2, 4, 8):
<%
made = []
low = [n - stage + 16 if n & stage else n for n in range(16)]
high = [n + 16 if n & stage else n + stage for n in range(16)]
%>\
% for number, (a, b) in enumerate(zip(names[::2], names[1::2])):
<%
made.append(f"m{stage}_{number}")
both = [(", ".join(f"({a}).s{n:x}" if n < 16 else f"({b}).s{n - 16:x}" for n in lanes), ", ".join(map(str, lanes))) for lanes in (low, high)]
%>\
  const ${kind}16 l${stage}_${number} = SHUFFLE(${kind}16, (${both[0][0]}), ${a}, ${b}, ${both[0][1]});
  const ${kind}16 h${stage}_${number} = SHUFFLE(${kind}16, (${both[1][0]}), ${a}, ${b}, ${both[1][1]});
  const ${kind}16 ${made[-1]} = MOST(l${stage}_${number}, h${stage}_${number});
% endfor
<% names = made %>\
% endfor
  return ${names[0]};
}
% endfor
static inline ushort16 half_bits(float16 x) {
#ifdef HAS_F16
  return HALVES(x);
#else
  ushort16 bits;
  vstore_half16_rte(x, 0, (half *)&bits);
  return bits;
#endif
}
static inline ushort16 bf16_bits(float16 x) {
  const uint16 b = as_uint16(x);
  return convert_ushort16((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 & 0x8000u) | 0x7fc0u : (b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}
// The sign of values whose magnitude has the bits most, with their place, 0 of others.
static inline uint16 first_of(float16 x, uint most, uint16 place) {
  return (as_uint16(x) & 0x7fffffffu) == most ? place | as_uint16(x) >> 31 : (uint16)0;
}
// Integers in the order of the values: NaN is before and after all. Values of them, where none of both is NaN.
static inline int16 ordered(float16 x) { return as_int16(x) ^ (as_int16(x) >> 31 & 0x7fffffff); }
// The same of the bits of halves, from 0 on, and such integers as those of their values.
static inline ushort16 ordered_half(ushort16 h) { return h ^ as_ushort16(as_short16(h) >> (short)15 | (short)-0x8000); }
static inline int16 ordered_of(ushort16 o) {
  return ordered(halves_of(o ^ as_ushort16(~(as_short16(o) >> (short)15) | (short)-0x8000)));
}
static inline float16 limit(int16 x, int16 low, int16 high) {
  low = low >= 0 ? low : (int16)0;  // the magnitude of what is negative
  high = high >= 0 ? high : (int16)0;
  return as_float16(MOST(low, high) > 0x7f800000 ? MOST(low, high) : x ^ (x >> 31 & 0x7fffffff));
}
// NaN is low.
static inline float16 within(float16 x, float low, float high) {
  x = x > low ? x : (float16)low;
  return x < high ? x : (float16)high;
}
// Cut off to whole numbers from 0 to most; NaN is 0.
static inline uchar16 cut(float16 x, float most) { return convert_uchar16(convert_int16(within(x, 0.0f, most))); }
// To nearest, ties to even, where magnitudes are below 2**22; larger ones stay about as large.
static inline float16 near(float16 x) { return (x + 12582912.0f) - 12582912.0f; }
// The same, cut off at low and high; NaN is low.
static inline char16 whole(float16 x, float low, float high) { return convert_char16(convert_int16(within(near(x), low, high))); }
// The same as integers plus ``base``, less what a float of 0 has there; magnitudes of x are below 2**22.
static inline int16 nearest(float16 x, int base, int low, int high) {
  const int16 found = as_int16(x + 12582912.0f) + (base - 0x4b400000), most = LEAST(found, (int16)high);
  return MOST(most, (int16)low);
}
// What is to be cut off to be x to nearest, halves away from zero.
static inline float16 moved_away(float16 x) {
  return x + as_float16((as_uint16(x) & 0x80000000u) | 0x3effffffu);
}
// To nearest, halves away from zero; where that is no number, ``other``.
static inline char16 away(float16 x, int other) {
  const float16 moved = moved_away(x);
  const int16 sound = (as_int16(x) & 0x7f800000) != 0x7f800000;
  const int16 found = sound ? convert_int16(sound ? moved : (float16)0) : (int16)other;
  return convert_char16(MOST(LEAST(found, (int16)127), (int16)-128));
}
// The codes of doubled e2m1 that are nearest to a, the magnitudes of x by some scale: ties to the smaller, never
// -0. From 2 on they are floats of one mantissa bit.
static inline uchar16 doubled_codes(float16 x, float16 a) {
  a = a > 0.0f ? a : (float16)0;
  const int16 low = -((a > 0.5f) + (a > 1.5f)), high = as_int16((as_uint16(a) + 0x1fffffu) >> 22) - 254;
  const int16 code = LEAST(MOST(low, high), (int16)7);
  return convert_uchar16(code | (as_int16(x) >> 28 & 8 & (code > 0)));
}
// The codes of e2m1 that are nearest to magnitudes of f16, ties to the smaller, never -0; zero is what a quarter is
// by their scale, a power of two. From there on the bits of f16 grow by 512 from code to code, but for those of
// 0, 1 and 2. What exceeds the largest code saturates.
static inline ushort16 e2m1_halves(ushort16 h, ushort zero) {
  const short16 over = as_short16(sub_sat(h & (ushort)0x7fff, (ushort16)zero));
  const short16 low = over > (short)0x600 ? (short16)0x7400 : (short16)0x7200, high = add_sat(over, (short16)0x6cff);
  const ushort16 code = as_ushort16(MOST(low, high)) >> (ushort)9 & (ushort)7;
  return over > (short)0 ? code | (h >> (ushort)12 & (ushort)8) : (ushort16)0;
}
// The codes of e2m1 that are nearest to such magnitudes, ties to the even one, with their signs.
static inline ushort16 e2m1_even(ushort16 h, ushort zero) {
  const short16 over = as_short16(sub_sat(h & (ushort)0x7fff, (ushort16)zero)), odd = over >> (short)9 & (short)1;
  const short16 low = over >= (short)0x600 ? (short16)0x7400 : (short16)0x7200, high = add_sat(over + odd, (short16)0x6cff);
  const ushort16 code = as_ushort16(MOST(low, high)) >> (ushort)9 & (ushort)7;
  return (over > (short)0 ? code : (ushort16)0) | (h >> (ushort)12 & (ushort)8);
}
// Those of doubled e2m1 for finite values that were f16, ties to the smaller, never -0. As floats of one mantissa bit
// they grow by 1 from code to code, from 2 on once doubled, below once they are brought there: 0 is 256. Those that
// are no tie are no nearer to one than 2**-12 of it, so a sum with a little less than a half decides.
static inline int16 doubled_halves(float16 x, float16 a) {
  const float16 up = a + a, low = a + 2.0f;
  const uint16 code = (as_uint16(LEAST(MOST(up, low), (float16)24.0f)) + 0x1fff00u) >> 22;
  return as_int16(code | (as_uint16(x) >> 28 & 8u & (code + 7u)));
}
static inline uint16 ue4m3_bits(float16 x) {
  x = within(x, 0.0f, 448.0f);
  const uint16 b = as_uint16(x);
  const int16 exponent = as_int16(b >> 23) - 120, code = (exponent << 3) + as_int16((b >> 20 & 7u) + (b >> 19 & 1u));
  const int16 low = convert_int16(within(x * 512.0f + 0.5f, 0.0f, 7.0f));
  return as_uint16(x > 0.0f ? (exponent <= 0 ? low : code >= 0x78 ? (int16)0x7e : code) : (int16)0);
}
static inline float16 ue4m3_halves(uint16 d) {
  const uint16 e = d >> 3 & 15, m = d & 7;
  return e > 0 ? as_float16((e + 119) << 23 | m << 20) : convert_float16(as_int16(m)) * 0.0009765625f;
}
// Codes of a narrow float: clamped, to nearest, ties to even; NaN is 0.
static inline uchar16 narrowed(float16 x, float largest, uint mantissa, uint bias, uint bits) {
  x = x == x ? x : (float16)0;
  const float16 m = LEAST(magnitude(x), (float16)largest);
  // A sum with what is 2 ** (23 - mantissa) times as large has the code in its last bits: in steps of this exponent.
  const uint least_exponent = (128 - bias) << 23;
  const uint16 exponent = MOST((uint16)least_exponent, as_uint16(m) & 0x7f800000u);
  const uint16 far = exponent + ((23 - mantissa) << 23);
  const uint16 code = as_uint16(m + as_float16(far)) - far + ((exponent - least_exponent) >> (23 - mantissa));
  return convert_uchar16(code | as_uint16(x) >> 31 << (bits - 1));
}
// The whole part of log2 as the host computes it, which rounds what is just below a power of two up.
constant uint log2_begins[] = {
% for row in rules["log2_begins"]:
  ${row},
% endfor
};
static inline int log2_begun(uint bits) {
  const int e = bits >> 23 ? (int)(bits >> 23) - 127 : -118 - (int)clz(bits);
  return e + (bits >= log2_begins[e + 150]);
}
static inline int16 log2_of(uint16 a) {
  if (!every((a & 0x7fffffu) < 0x7fff00u & a >= 0x800000u))
    return (int16)(${", ".join(f"log2_begun(a.s{n:x})" for n in range(16))});
  return as_int16(a >> 23) - 127;
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
