<%doc>What every kernel starts with: the index type, and the conversions that OpenCL C lacks.</%doc>\
<%!
from textwrap import indent
from clformats.kernels.types import as_bits, packed, upper_half
%>\
<%namespace name="codec" file="codec.mako"/>\
<%namespace name="coded" file="coded.mako"/>\
<%def name="halves(widths)">\
% if widths:
#ifdef POCL_DEVICE_ADDRESS_BITS
// Half values may begin anywhere, but pocl's vload_half promises 16 bytes to the compiler, which may
// rely on it where it needs a part of a vector.
% for n in sorted(widths):
typedef ushort${n} any_bits${n} __attribute__((aligned(2)));
static inline float${n} load_half${n}(__global const half *from)
{
    const ushort${n} bits = *(__global const any_bits${n} *)from;
% if n == 16:
#ifdef HALVES16
    return __builtin_convertvector(__builtin_astype(bits, halves16), float16);
#endif
% endif
    return vload_half${n}(0, (const half *)&bits);
}
#undef vload_half${n}
#define vload_half${n}(offset, from) load_half${n}(from)
% endfor
#endif
% endif
</%def>\
<%def name="rounding(dtype, loaded, width, small=False, exact=False, halves=False)">\
<%
n, name = str(width) if width > 1 else "", dtype.name
# PoCL's isnan takes four instructions, a comparison two. But LLVM would compare halves before their conversion.
is_nan = "isnan(x)" if halves else "x != x"
%>\
% if name == "bf16":
% if exact:
// The upper half of a float: the lower one is 0.
% else:
// Round to nearest even; NaN keeps its sign and becomes quiet.
% endif
static inline ushort${n} to_bf16_${width}(float${n} x)
{
    const uint${n} bits = as_uint${n}(x);
% if exact:
    return ${upper_half("bits", n)};
% else:
    const uint${n} nan = (bits & 0x80000000u) | 0x7fc00000u, above = bits + 0x7fffu + ((bits >> 16) & 1u);
    const uint${n} rounded = ${f"select(above, nan, {is_nan})" if n else f"{is_nan} ? nan : above"};
    return ${upper_half("rounded", n)};
% endif
}
% elif dtype.is_coded:
${coded.encode(dtype, width)}\
% elif name == "f16":
// Round to nearest even; half values exist in memory alone.
static inline ushort${n} to_f16_${width}(${loaded}${n} x)
{
% if n == "16" and loaded == "float":
#if defined(HALVES16) && defined(__AVX512F__)
    // As an instruction: LLVM would join a conversion with that of small integers to floats, element by element.
    return __builtin_astype(__builtin_ia32_vcvtps2ph512_mask(x, 0, (short16)0, (ushort)0xffff), ushort16);
#endif
% endif
    ushort${n or 2} bits;
    vstore_half${n}_rte(x, 0, (half *)&bits);
% if n:
    return bits;
% else:
<% word, sign, payload = ("ulong", 48, 42) if loaded == "double" else ("uint", 16, 13) %>\
    // pocl makes any NaN 0x7fff where it stores one value, and keeps its bits where it stores several.
    const ${word} nan = as_${word}(x);
    return isnan(x) ? (ushort)(((nan >> ${sign}) & 0x8000u) | 0x7e00u | ((nan >> ${payload}) & 0x1ffu)) : bits.s0;
% endif
}
% else:
<% (lo, hi), to = dtype.limits, dtype.opencl %>\
// Round to nearest even, saturate; NaN becomes 0. Adding 1.5 * 2**23 to what is above -2**22 leaves the rounded
// value in the low bits; convert_${to}${n}_sat_rte does the same at half the speed on some compilers.
static inline ${to}${n} to_${name}_${width}(float${n} x)
{
% if small:
% if n == "16":
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__AVX512F__) && !defined(CLFORMATS_PORTABLE)
    // One instruction instead of two: OpenCL's function for it converts lane by lane.
    return convert_${to}16(clamp(__builtin_astype(__builtin_ia32_cvtps2dq512_mask(x, (int16)0, (ushort)0xffff, 4), int16), ${lo}, ${hi}));
#endif
% endif
    const float${n} above = x;  // it is: values and types say so, or a factor is clamped
% elif lo:
    const float${n} number = select(x, (float${n})(0.0f), ${is_nan}), above = max(number, -4194304.0f);
% else:
    // NaN is not above -0.3 either, which becomes 0. No half is -0.3: LLVM would compare halves, one by one.
    const float${n} least = -0.3f, above = x > least ? x : least;
% endif
    return convert_${to}${n}(clamp(as_int${n}(above + 12582912.0f) - 0x4b400000, ${lo}, ${hi}));
}
% endif
</%def>\
<%def name="prelude(types, wide, widths=(1,), streams=False, computed=(), reads=None, aligned=False, kept=False, anywhere=None)">\
<%
# The types of what is read, where they are not those of what is written.
reads = reads or types
vectors = sorted(set(widths) - {1})
loads = {f"LOAD_{name}": name for name in sorted(types.operand_types)}
loads |= {"LOAD": types.declared} if types.declared != "half" and not types.source else {}
plain = set(loads.values()) | ({types.dst} if not types.target else set())
functions = types.functions(computed)
h = types.helpers
%>\
% if h.fp64 or reads.helpers.fp64:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
% if functions:
#pragma OPENCL FP_CONTRACT OFF
% endif
typedef ${"long" if wide else "int"} idx;
% if 16 in {*widths, *computed} and not aligned and (h.reads_halves or (h.rounds and h.rounds.name, h.rounded_from) == ("f16", "float")):
// pocl converts 16 half values by two instructions and a third that joins them, where one does it. Clang has
// the type there from version 15 on.
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__F16C__) && !defined(CLFORMATS_PORTABLE) && __clang_major__ >= 15
#define HALVES16
typedef _Float16 halves16 __attribute__((ext_vector_type(16)));
#endif
% endif
${halves({8, 16} & {*widths}) if h.reads_halves else ""}\
% for dtype in sorted(h.widens | reads.helpers.widens, key=str):
% for width in sorted({*widths, *computed}):
${coded.decode(dtype, width)}\
% endfor
% endfor
% if h.rounds:
% for width in sorted(set(widths)):
${rounding(h.rounds, h.rounded_from, width, h.small, h.exact, h.reads_halves)}\
% endfor
% endif
% if vectors and aligned:

// Whole vectors at multiples of their size: one access each, where vload promises less.
% if h.reads_halves:
#ifndef POCL_DEVICE_ADDRESS_BITS
// NVIDIA's compiler takes vloada_half apart into halves.
% for width in vectors:
<% bits = as_bits("ushort", width) %>\
static inline float${width} loada_half${width}(__global const half *from)
{
    const ${bits} bits = *(__global const ${bits} *)from;
    return vload_half${width}(0, (const half *)&bits);
}
#undef vloada_half${width}
#define vloada_half${width}(offset, from) loada_half${width}(from)
% endfor
#endif
% endif
% if anywhere:
<%
count, each, wide = anywhere.words, anywhere.each, anywhere.wide
words = f"uint{count}" if count > 1 else "uint"
joined = ", ".join(f"(uint)(((ulong)found[{k + 1}] << 32 | found[{k}]) >> shift)" for k in range(count))
value = "words_at((__global const uint *)src, place, src_words, src_rest)"
kind, piece = f"float{wide}", min(wide, 4)
pieces = ", ".join(f"vload_half{piece}({k}, (const half *)&bits)" for k in range(wide // piece))
%>\
// A vector that begins at any element of the source. What follows its whole words is the rest.
static inline ${words} words_at(__global const uint *from, idx place, idx whole, uint rest)
{
    const idx at = place >> ${each.bit_length() - 1};
    const uint shift = (uint)(place & ${each - 1}) * ${anywhere.bits};
    uint found[${count + 1}];
    #pragma unroll
    for (int k = 0; k <= ${count}; ++k) {
        const uint word = from[min(at + k, whole - 1)];
        found[k] = at + k < whole ? word : rest;
    }
    return ${f"({words})({joined})" if count > 1 else joined};
}
% if types.declared == "half" and not types.moves_bits:
static inline float${wide} halves_of(${words} bits)
{
    ${f"return ({kind})({pieces});" if wide > 4 else f"return {pieces};"}
}
#define LOAD_ANY${wide}(place) halves_of(${value})
% else:
#define LOAD_ANY${wide}(place) as_${types.declared}${wide}(${value})
% endif
% endif
% for width in vectors:
% for load, name in loads.items():
<% bits = as_bits(name, width) %>\
#define ${load}${width}(p) as_${name}${width}(*(__global const ${bits} *)(p))
% endfor
<% bits, words = as_bits(types.dst, width), packed(types.dst, width) %>\
% if types.target:
<% continue %>
% elif words:
// By arithmetic: NVIDIA's compiler would store a vector of short elements by pieces of four.
static inline ${bits} packed${width}(${words[0]} v)
{
    return ${words[1]};
}
#define STORE${width}(v, p) (*(__global ${bits} *)(p) = packed${width}(as_${words[0]}(v)))
% else:
#define STORE${width}(v, p) (*(__global ${bits} *)(p) = as_${bits}(v))
% endif
% endfor
% elif vectors:

// Some compilers take vload and vstore apart into short pieces; a plain access through a vector type
// that promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
% for width in vectors:
% for name in sorted(plain):
typedef ${name}${width} any_${name}${width} __attribute__((aligned(sizeof(${name}))));
% endfor
% for load, name in loads.items():
#define ${load}${width}(p) (*(__global const any_${name}${width} *)(p))
% endfor
% if not types.target:
#define STORE${width}(v, p) (*(__global any_${types.dst}${width} *)(p) = (v))
% endif
% endfor
#else
% for width in vectors:
% for load in loads:
#define ${load}${width}(p) vload${width}(0, p)
% endfor
% if not types.target:
#define STORE${width}(v, p) vstore${width}(v, 0, p)
% endif
% endfor
#endif
% endif
% if streams:
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_nontemporal_store)
#define STORE_STREAM(value, pointer) __builtin_nontemporal_store(value, pointer)
#endif
#endif
// LLVM truncates some vectors as it stores them, and forgets to pass by the cache: the rest of the line
// then takes twenty times as long. It does not look through this.
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__AVX__) && !defined(CLFORMATS_PORTABLE)
% for word, register in (("ulong", "r"), ("uint4", "x"), ("uint8", "x")):
static inline ${word} __attribute__((overloadable)) HIDDEN(${word} value)
{
    __asm__("" : "+${register}"(value));
    return value;
}
% endfor
#else
#define HIDDEN(value) ((value) ^ nought)
#endif
#ifndef STORE_STREAM
#define STORE_STREAM(value, pointer) (*(pointer) = (value))
#endif
% endif
${codec.all(types, {*widths, *computed}, streams, aligned, kept) if types.codecs or types.target else ""}\
% if functions:

${functions}\
% endif
</%def>\
<%def name="trades(types, vector, exchanges, swaps)">\
% for distance, mask in exchanges:
// The words of the first elements of a and b, of two that are so many bits apart, and of the second ones.
#define LOW${distance}(a, b) (((a) & (${types.work})${mask}) | (((b) << (${types.work})${distance}) & (${types.work})~${mask}))
#define HIGH${distance}(a, b) ((((a) >> (${types.work})${distance}) & (${types.work})${mask}) | ((b) & (${types.work})~${mask}))
% endfor
% for k, (distance, mask) in enumerate(swaps):
// Elements of the mask trade places with those that lie so many bits further on.
static inline ${vector} SWAP${k}(${vector} x)
{
    const ${vector} differs = ((x >> (${types.work})${distance}) ^ x) & (${types.work})${mask};
    return x ^ differs ^ (differs << (${types.work})${distance});
}
% endfor
</%def>\
<%def name="when(condition, statements)">\
% if condition:
if (${condition}) {
${indent(statements, "    ")}\
}
% else:
${statements}\
% endif
</%def>\
<%def name="items_alone()">\
#ifdef cl_intel_vec_len_hint
// A work-item fills vectors alone: to join several takes the compiler up to half a minute.
__attribute__((intel_vec_len_hint(1)))
#endif
</%def>\
<%def name="nought()">\
    // A zero that the compiler does not know.
    volatile uint hidden = 0;
    const uint nought = hidden;
</%def>\
