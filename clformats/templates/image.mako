<%namespace file="prelude.mako" import="prelude"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<%
reads, writes = channels["src"], channels["dst"]
src_type, dst_type = types.src_type.name, types.dst_type.name
%>\
// ${src} -> ${dst}: one work-item for each ${"pixel" if writes else "place"} of the destination.
${prelude(types, wide)}
% if reads:
__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;

% endif
__kernel void reorder(
    ${"__read_only image2d_t src" if reads else f"__global const {types.src} *restrict src"},
    ${"__write_only image2d_t dst" if writes else f"__global {types.dst} *restrict dst"},
    ${",\n    ".join(declarations)})
{
    const idx item = (idx)get_global_id(0);
    if (item >= items) {
        return;
    }
% if writes:
    ${types.dst} written[4] = {0, 0, 0, 0};
    for (int channel = 0; channel < ${writes}; ++channel) {
${element("idx rest = item" + (f" * {writes} + channel" if writes > 1 else ""), "written + channel")}\
    }
    // The values are those of the channel's type already: nothing is rounded here.
% if dst_type == "f16":
    const float4 shown = vload_half4(0, (const half *)written);
% elif dst_type == "u8":
    const float4 shown = convert_float4(vload4(0, written)) / 255.0f;
% else:
    const float4 shown = as_float4(vload4(0, written));
% endif
    write_imagef(dst, (int2)((int)(item % dst_width), (int)(item / dst_width)), shown);
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

        ${types.work} value = 0;
        if (inside) {
${indent(capture(place.logical, bounds), "            ")}\
% if reads:
            const idx at = ${src_offset};
            const idx pixel = at${f" / {reads}" if reads > 1 else ""};
            const float4 seen =
                read_imagef(src, exact, (int2)((int)(pixel % src_width), (int)(pixel / src_width)));
% if src_type == "f16":
            ushort texel[4];
            vstore_half4_rte(seen, 0, (half *)texel);
% elif src_type == "u8":
            uchar texel[4];
            vstore4(convert_uchar4_sat_rte(seen * 255.0f), 0, texel);
% else:
            ${types.src} texel[4];
            vstore4(as_${types.src}4(seen), 0, texel);
% endif
            value = ${types.load(f"(const {types.src} *)texel + at % {reads}" if reads > 1 else f"(const {types.src} *)texel + 0", 1)};
% else:
            value = ${types.load(f"src + ({src_offset})", 1)};
% endif
        }
        ${types.store("value", target, 1)};
</%def>
