<%doc>
A destination whose elements share bytes, unit by unit: the fewest whole bytes that hold whole
elements. What lies at each place of a unit follows from its offset. Bits that are neither an element
nor padding of the destination stay.
</%doc>\
<%namespace file="prelude.mako" import="prelude, items_alone"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<%
c = types.target
word = "ulong" if c.elements * c.bits > 32 else "uint"
%>\
<%def name="lookup(order)">\
idx rest = place;
% for variable, stride, size in order.digits:
% if not size:
const idx ${variable} = 0;
% elif stride == "0":
const idx ${variable} = ${size} - 1;
% else:
const idx ${variable} = rest / ${stride};
rest %= ${stride};
mine &= ${variable} < ${size};
% endif
% endfor
mine &= rest == 0;
% for name, value in order.indices:
${name} = ${value};
% endfor
</%def>\
<%def name="put()">\
const idx place = unit * ${c.elements} + k - dst0;
if (place < 0) {
    continue;
}
bool mine = true;
idx ${", ".join(name for name, value in orders[0].indices)};
{
${indent(capture(lookup, orders[0]), "    ")}\
}
% if begins:
if (mine && ${begins[0]} >= ${begins[1]}) {
${indent(capture(lookup, orders[1]), "    ")}\
}
% endif
if (!mine${"".join(f" || {p} >= {end}" for p, lo, hi, end in bounds if end)}) {
    continue;
}
const ${word} ones = (${word})${(1 << c.bits) - 1} << (k * ${c.bits});
owned |= ones;
if (${place.holds(bounds)}) {
${indent(capture(place.logical, bounds), "    ")}\
    const ${types.work} value = ${value};
    const ${types.dst} written = ${stored or types.value_to_store("value", 1)};
    bits |= (${word})as_uchar(written) << (k * ${c.bits}) & ones;
}
</%def>\
// ${src} -> ${dst}: elements of ${c.bits} bits, one after the other.
${prelude(types, wide, computed=(1,))}
${items_alone()}\
__kernel void reorder(
    __global const ${types.buffers[0]} *restrict src, __global uchar *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
    const idx start = (idx)get_global_id(0) * run, end = min(start + run, places);
    for (idx unit = first + start; unit < first + end; ++unit) {
        ${word} bits = 0, owned = 0;
        for (int k = 0; k < ${c.elements}; ++k) {
${indent(capture(put), "            ")}\
        }
        __global uchar *to = dst + unit * ${c.nbytes};
        for (int b = 0; b < ${c.nbytes}; ++b) {
            const uchar mask = owned >> (8 * b), made = bits >> (8 * b);
            if (mask) {
                to[b] = mask == 255 ? made : (uchar)((to[b] & ~mask) | made);
            }
        }
    }
}
