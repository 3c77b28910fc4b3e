<%doc>
One element after the other, in the order of the destination's digits. A work-item that counts goes
on from the digits of its first place: each digit is a loop, which begins where the one before has
ended and then at 0.
</%doc>\
<%namespace file="prelude.mako" import="prelude, items_alone"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<%def name="element(leave)">\
${place.physical(indices)}\
${place.skip(bounds, leave)}\
${place.inside(bounds)}\

${types.stored} written = 0;
if (inside) {
${indent(capture(place.logical, bounds), "    ")}\
% if stored:
    const ${types.work} value = ${loaded};
    written = ${stored};
% else:
    written = ${loaded};
% endif
}
${types.store("written", f"dst + ({dst_offset})", 1)};
</%def>\
<%def name="counted()">\
<%
(v, size), *around = digits
end = f"min((idx)({size}), {v} + left)" if around else f"{v} + left"
text = f"const idx end = {end};\nleft -= end - {v};\nfor (; {v} < end; ++{v}) {{\n"
text += indent(capture(element, "continue"), "    ") + "}\n"
for w, size in around:
    more = "" if w == digits[-1][0] else f"{w} < {size} && "
    text = f"for (; {more}left > 0; ++{w}) {{\n{indent(f'{text}{v} = 0;', '    ')}\n}}\n"
    v = w
%>\
${text}\
</%def>\
// ${src} -> ${dst}: one element after the other.
${prelude(types, wide, computed=(1,))}
% if counts:
${items_alone()}\
% endif
__kernel void reorder(
    __global const ${types.buffers[0]} *restrict src, __global ${types.dst} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
    idx rest = (idx)get_global_id(0);
    if (rest >= items) {
        return;
    }

% if counts:
    rest *= run;
    idx left = min(run, places - rest);
${indent(capture(place.numbers, digits, "idx"), "    ")}\
${indent(capture(counted), "    ")}\
% else:
${indent(capture(place.numbers, digits), "    ")}\

${indent(capture(element, "return"), "    ")}\
% endif
}
