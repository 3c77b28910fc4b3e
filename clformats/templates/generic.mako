<%doc>
One element after the other, in the order of the destination's digits. A work-item that counts goes
on from the digits of its first place: each digit is a loop, which begins where the one before has
ended and then at 0. One that writes a pixel makes all its channels.
</%doc>\
<%namespace file="prelude.mako" import="prelude, items_alone"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<% to = f"dst + ({dst_offset})" %>\
<%def name="element(leave, target)">\
${place.physical(indices)}\
${place.skip(bounds, leave)}\
const bool inside = ${place.holds(bounds)};

${types.stored} written = 0;
if (inside) {
${indent(capture(place.logical, bounds), "    ")}\
% for statement in before:
    ${statement}
% endfor
% if stored:
    const ${types.work} value = ${loaded};
    written = ${stored};
% else:
    written = ${loaded};
% endif
}
${types.store("written", target, 1)};
</%def>\
<%def name="counted()">\
<%
(v, size), *around = digits
end = f"min((idx)({size}), {v} + left)" if around else f"{v} + left"
text = f"const idx end = {end};\nleft -= end - {v};\nfor (; {v} < end; ++{v}) {{\n"
text += indent(capture(element, "continue", to), "    ") + "}\n"
for w, size in around:
    more = "" if w == digits[-1][0] else f"{w} < {size} && "
    text = f"for (; {more}left > 0; ++{w}) {{\n{indent(f'{text}{v} = 0;', '    ')}\n}}\n"
    v = w
%>\
${text}\
</%def>\
// ${src} -> ${dst}: one element after the other.
${prelude(types, wide, computed=(1,))}
% if before:
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
% endif
% if counts:
${items_alone()}\
% endif
__kernel void reorder(
    ${source}, ${target}${"".join(f",\n    {d}" for d in declarations)})
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
% elif pixels:
    const idx item = rest;
    ${types.dst} made[4] = {0, 0, 0, 0};
    for (int channel = 0; channel < ${pixels.channels}; ++channel) {
        idx rest = item${f" * {pixels.channels} + channel" if pixels.channels > 1 else ""};
${indent(capture(place.numbers, digits), "        ")}\

${indent(capture(element, "continue", "made + channel"), "        ")}\
    }
    // The values are those of the channel's type already: nothing is rounded here.
${indent(pixels.store("dst", "item", "made"), "    ")}
% else:
${indent(capture(place.numbers, digits), "    ")}\

${indent(capture(element, "return", to), "    ")}\
% endif
}
