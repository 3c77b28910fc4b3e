<%doc>
Numbers from the codes of a coded type (f8, f6, f4, tables), and back, by operations on integers: nothing
here depends on how a device treats f32 subnormals. A code lies in the low bits of a byte of its own; the
bits above it are 0. The numbers come from the row of the type, `t`, see clformats/tensors/rows.py; codes
are rounded to by the rules of clformats/tensors/codes.py, to the bit.
</%doc>\
<%!
from clformats.tensors.codes import F32_BIAS, F32_MANTISSA, f32_bits, rounding_table, values_of_codes

def literal(value):
    """A finite f32 as a constant of OpenCL C."""
    return f"{float(value)!r}f"

def facts(dtype, width):
    """What the texts of a type's functions for vectors of a width need."""
    t = dtype.floating
    shift, rebias, sign = (F32_MANTISSA - t.mantissa, F32_BIAS - t.bias << F32_MANTISSA, 1 << dtype.bits - 1) if t else (0, 0, 0)
    return str(width) if width > 1 else "", dtype.name, t, shift, rebias, sign, [f"x.s{k:x}" for k in range(width)]
%>\
<%def name="decode(dtype, width)">\
<% n, name, t, shift, rebias, sign, lanes = facts(dtype, width) %>\
% if t is None:
#ifndef VALUES_OF_${name}
#define VALUES_OF_${name}
__constant float values_of_${name}[${1 << dtype.bits}] = {${", ".join(map(literal, values_of_codes(dtype)))}};
#endif
static inline float${n} from_${name}_${width}(uchar${n} x)
{
% if n:
    return (float${n})(${", ".join(f"values_of_{name}[{x}]" for x in lanes)});
% else:
    return values_of_${name}[x];
% endif
}
% elif not t.signed:
// Powers of two; the smallest is a subnormal number of f32.
static inline float${n} from_${name}_${width}(uchar${n} x)
{
    uint${n} bits = convert_uint${n}(x) << ${shift}u;
    bits = select(bits, (uint${n})(0x00400000u), bits == 0u);
    bits = select(bits, (uint${n})(0x7fc00000u), bits == 0x7f800000u);
    return as_float${n}(bits);
}
% else:
// Exact; NaN keeps its sign and becomes quiet.
static inline float${n} from_${name}_${width}(uchar${n} x)
{
    const uint${n} code = convert_uint${n}(x) & ${hex(sign - 1)}u;
    const float${n} subnormal = convert_float${n}(as_int${n}(code)) * ${2.0**t.step}f;
    uint${n} bits = (code << ${shift}u) + ${hex(rebias)}u;
    bits = select(bits, as_uint${n}(subnormal), code < ${t.first_normal}u);
% if t.infinity is not None:
    bits = select(bits, (uint${n})(0x7f800000u), code == ${hex(t.infinity)}u);
    bits = select(bits, (uint${n})(0x7fc00000u), code > ${hex(t.infinity)}u);
% elif t.nan == sign - 1:
    bits = select(bits, (uint${n})(0x7fc00000u), code == ${hex(t.nan)}u);
% elif t.nan is not None:
    bits = select(bits, (uint${n})(0x7fc00000u), code >= ${hex(t.nan)}u);
% endif
    return as_float${n}(bits | (convert_uint${n}(x) & ${hex(sign)}u) << ${32 - dtype.bits}u);
}
% endif
</%def>\
<%def name="encode(dtype, width)">\
<% n, name, t, shift, rebias, sign, lanes = facts(dtype, width) %>\
% if t is None:
<% bounds, codes = rounding_table(dtype) %>\
// The nearest value of a table: how many of the bounds between values are below x. NaN counts as 0.
#ifndef BOUNDS_OF_${name}
#define BOUNDS_OF_${name}
__constant float bounds_of_${name}[${len(bounds)}] = {
    ${", ".join(map(literal, bounds))}};
__constant uchar codes_of_${name}[${len(codes)}] = {${", ".join(map(str, codes))}};
static inline uchar code_of_${name}(float x)
{
    const float y = isnan(x) ? 0.0f : x;
    uint below = 0;
% for k in reversed(range(dtype.bits)):
    below += y > bounds_of_${name}[below + ${(1 << k) - 1}] ? ${1 << k}u : 0u;
% endfor
    return codes_of_${name}[below];
}
#endif
static inline uchar${n} to_${name}_${width}(float${n} x)
{
% if n:
    return (uchar${n})(${", ".join(f"code_of_{name}({x})" for x in lanes)});
% else:
    return code_of_${name}(x);
% endif
}
% elif not t.signed:
// The nearest power of two, ties up: 0 becomes the smallest, negative numbers and NaN become NaN.
static inline uchar${n} to_${name}_${width}(float${n} x)
{
    const uint${n} bits = as_uint${n}(x);
    uint${n} code = (bits + 0x00400000u) >> ${shift}u;
    code = select(code, (uint${n})(0u), bits < 0x00600000u);
    code = select(code, (uint${n})(${hex(t.of_nan)}u), bits > 0x7f800000u);
    code = select(code, (uint${n})(0u), bits == 0x80000000u);
    return convert_uchar${n}(code);
}
% else:
<% shifter = t.step + F32_MANTISSA %>\
// Round to nearest even; what is too large becomes ${"infinity" if t.infinity is not None else "the largest number" if t.nan is None else "NaN"}. Below the
// normal numbers, adding a power of two leaves the rounded code in the low bits.
static inline uchar${n} to_${name}_${width}(float${n} x)
{
    const uint${n} bits = as_uint${n}(x) & 0x7fffffffu;
    const uint${n} reach = min(bits, (uint${n})(${hex(f32_bits(t, t.overflow))}u));
    const uint${n} normal =
        (reach + ${hex((1 << shift - 1) - 1)}u + ((reach >> ${shift}u) & 1u) - ${hex(rebias)}u) >> ${shift}u;
    const uint${n} subnormal =
        as_uint${n}(as_float${n}(bits) + ${2.0**shifter}f) - ${hex(shifter + F32_BIAS << F32_MANTISSA)}u;
    uint${n} code = select(normal, subnormal, bits < ${hex(f32_bits(t, t.first_normal))}u);
    code = select(code, (uint${n})(${hex(t.of_nan)}u), bits > 0x7f800000u);
    return convert_uchar${n}(code | (as_uint${n}(x) >> ${32 - dtype.bits}u & ${hex(sign)}u));
}
% endif
</%def>\
