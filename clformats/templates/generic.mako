<%namespace file="prelude.mako" import="prelude"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
// ${src} -> ${dst}: one work-item for each place in the destination.
${prelude(types, wide, computed=(1,))}
__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
    idx rest = (idx)get_global_id(0);
    if (rest >= places) {
        return;
    }

${indent(capture(place.indices, digits, indices), "    ")}\
${indent(capture(place.skip, bounds), "    ")}\
${indent(capture(place.inside, bounds), "    ")}\

    ${types.stored} written = 0;
    if (inside) {
${indent(capture(place.logical, bounds), "        ")}\
% if stored:
        const ${types.work} value = ${types.load(f"src + ({src_offset})", 1)};
        written = ${stored};
% else:
        written = ${types.load(f"src + ({src_offset})", 1)};
% endif
    }
    ${types.store("written", f"dst + ({dst_offset})", 1)};
}
