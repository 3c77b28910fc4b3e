<%doc>What every kernel starts with: the index type, and the conversions that OpenCL C lacks.</%doc>
<%def name="prelude(types, wide, widths=(1,), streams=False)">
% if types.needs_fp64:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
typedef ${"long" if wide else "int"} idx;
% if types.uses_bf16:
% for width in sorted(set(widths)):
<% n = str(width) if width > 1 else "" %>
// Round to nearest even; NaN keeps its sign and becomes quiet.
static inline ushort${n} to_bf16_${width}(float${n} x)
{
    const uint${n} bits = as_uint${n}(x);
    const uint${n} rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
% if width > 1:
    return convert_ushort${n}(select(rounded, ((bits >> 16) & 0x8000u) | 0x7fc0u, isnan(x)));
% else:
    return (ushort)(isnan(x) ? (((bits >> 16) & 0x8000u) | 0x7fc0u) : rounded);
% endif
}
% endfor
% endif
% for width in sorted(set(widths) - {1}) if types.dst != "half" else ():
<% vector = f"{types.dst}{width}" %>
// Some compilers take vstore${width} apart into single elements; a plain store of a vector type that
// promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION)
typedef ${vector} unaligned_${vector} __attribute__((aligned(sizeof(${types.dst}))));
#define STORE${width}(value, pointer) (*(__global unaligned_${vector} *)(pointer) = (value))
#else
#define STORE${width}(value, pointer) vstore${width}(value, 0, pointer)
#endif
% endfor
% if streams:
#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STORE_STREAM(value, pointer) __builtin_nontemporal_store(value, pointer)
#endif
#endif
#ifndef STORE_STREAM
#define STORE_STREAM(value, pointer) (*(pointer) = (value))
#endif
% endif
</%def>
