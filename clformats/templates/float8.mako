<%doc>
The eight-bit floats, by operations on integers: nothing here depends on how a device treats f32
subnormals. The numbers come from clformats/kernels/float8.py.
</%doc>\
<%!
from clformats.kernels.float8 import F32_BIAS, F32_MANTISSA, FLOAT8
%>\
<%def name="widen(name, width)">\
<% n, t = str(width) if width > 1 else "", FLOAT8[name] %>\
// Exact; NaN keeps its sign and becomes quiet.
static inline float${n} from_${name}_${width}(uchar${n} x)
{
    const uint${n} code = convert_uint${n}(x) & 0x7fu;
    const float${n} subnormal = convert_float${n}(as_int${n}(code)) * ${2.0**t.step}f;
    uint${n} bits = (code << ${t.shift}u) + ${hex(t.rebias)}u;
    bits = select(bits, as_uint${n}(subnormal), code < ${t.first_normal}u);
% if t.has_infinity:
    bits = select(bits, (uint${n})(0x7f800000u), code == ${hex(t.special)}u);
    bits = select(bits, (uint${n})(0x7fc00000u), code > ${hex(t.special)}u);
% else:
    bits = select(bits, (uint${n})(0x7fc00000u), code == ${hex(t.nan)}u);
% endif
    return as_float${n}(bits | (convert_uint${n}(x) & 0x80u) << 24u);
}
</%def>\
<%def name="narrow(name, width)">\
<% n, t = str(width) if width > 1 else "", FLOAT8[name] %>\
// Round to nearest even; what is too large becomes ${"infinity" if t.has_infinity else "NaN"}, NaN stays NaN. Below the
// normal numbers, adding a power of two leaves the rounded code in the low bits.
static inline uchar${n} to_${name}_${width}(float${n} x)
{
    const uint${n} bits = as_uint${n}(x) & 0x7fffffffu;
    const uint${n} reach = min(bits, (uint${n})(${hex(t.f32_bits(t.special))}u));
    const uint${n} normal =
        (reach + ${hex((1 << t.shift - 1) - 1)}u + ((reach >> ${t.shift}u) & 1u) - ${hex(t.rebias)}u) >> ${t.shift}u;
    const uint${n} subnormal =
        as_uint${n}(as_float${n}(bits) + ${2.0**t.shifter}f) - ${hex(t.shifter + F32_BIAS << F32_MANTISSA)}u;
    uint${n} code = select(normal, subnormal, bits < ${hex(t.f32_bits(t.first_normal))}u);
    code = select(code, (uint${n})(${hex(t.nan)}u), bits > 0x7f800000u);
    return convert_uchar${n}(code | (as_uint${n}(x) >> 24u & 0x80u));
}
</%def>\
