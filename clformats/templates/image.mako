<%namespace file="prelude.mako" import="prelude"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<%
reads, writes = src_pixels, dst_pixels
kinds = {3: "image2d_t", 4: "image2d_array_t"}
%>\
// ${src} -> ${dst}: one work-item for each ${"pixel" if writes else "place"} of the destination.
${prelude(types, wide, computed=(1,))}
% if reads:
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;

% endif
__kernel void reorder(
    ${f"__read_only {kinds[reads.axes]} src" if reads else f"__global const {types.src} *restrict src"},
    ${f"__write_only {kinds[writes.axes]} dst" if writes else f"__global {types.dst} *restrict dst"},
    ${",\n    ".join(declarations)})
{
    const idx item = (idx)get_global_id(0);
    if (item >= items) {
        return;
    }
% if writes:
    ${types.dst} written[4] = {0, 0, 0, 0};
    for (int channel = 0; channel < ${writes.channels}; ++channel) {
${element("idx rest = item" + (f" * {writes.channels} + channel" if writes.channels > 1 else ""), "written + channel")}\
    }
    // The values are those of the channel's type already: nothing is rounded here.
${indent(writes.store("dst", "item", "written"), "    ")}
% else:
    {
${element("idx rest = item", f"dst + ({dst_offset})")}\
    }
% endif
}
<%def name="element(start, target)">\
        ${start};

${indent(capture(place.indices, digits, indices), "        ")}\
% if not writes:
${indent(capture(place.skip, bounds), "        ")}\
% endif
${indent(capture(place.inside, bounds), "        ")}\

        ${types.stored} result = 0;
        if (inside) {
${indent(capture(place.logical, bounds), "            ")}\
% if reads:
            const idx at = ${src_offset};
            const idx pixel = at${f" / {reads.channels}" if reads.channels > 1 else ""};
            ${reads.c_type} texel[4];
${indent(reads.load("src", "pixel", "texel"), "            ")}
            const ${types.work} value = ${types.load(f"(const {types.src} *)texel + {f'at % {reads.channels}' if reads.channels > 1 else '0'}", 1)};
% else:
            const ${types.work} value = ${types.load(f"src + ({src_offset})", 1)};
% endif
            result = ${stored or "value"};
        }
        ${types.store("result", target, 1)};
</%def>
