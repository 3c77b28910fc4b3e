<%namespace file="prelude.mako" import="prelude, when"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
// ${src} -> ${dst}: one work-item for each window of the source, and of the padding.
${prelude(writes, wide, reads=reads)}
// Each step is rounded, in this order: what the host computes, to the bit.
#pragma OPENCL FP_CONTRACT OFF

__kernel void reorder(
    __global const ${reads.src} *restrict src,
    ${pixels.declared if pixels else f"__global {writes.dst} *restrict dst"},
    ${",\n    ".join(declarations)})
{
    idx rest = (idx)get_global_id(0);
    if (rest >= items) {
        return;
    }

    // A run along the innermost digit, where a window counts as one.
    const idx run = rest % runs * ${run};
    rest /= runs;
${indent(capture(place.numbers, digits[1:]), "    ") if digits[1:] else ""}\
    for (idx ${digits[0][0]} = run; ${digits[0][0]} < min(run + ${run}, (idx)${digits[0][1]}); ++${digits[0][0]}) {
${indent(capture(place.physical, indices), "        ")}\
% if not pixels:
${indent(capture(place.skip, bounds, "continue"), "        ")}\
% endif
        ${writes.dst} ${", ".join(f"{name} = 0" for name, _ in results)};
        if (${place.holds(bounds)}) {
${indent(capture(place.logical, bounds, ("i0", "i1", "y", "x")), "            ")}\
% for name, y, x in taps:
            float ${name}${" = 0.0f" if reach else ""};
            {
                const idx i2 = ${y};
                const idx i3 = ${x};
${indent(capture(when, reach, f"{name} = {reads.read(f'src + ({src_offset})')};\n"), " " * 16)}\
            }
% endfor
% for name, text in middle:
            const float ${name} = ${text};
% endfor
% for name, text in results:
            ${name} = ${writes.converted(text, "")};
% endfor
        }
        const idx to = ${dst_offset};
% for (name, _), (offset, condition) in zip(results, places):
% if pixels:
        {
            const ${writes.dst} made[4] = {${name}, 0, 0, 0};
            ${pixels.store("dst", f"(to{offset})", "made")}
        }
% else:
${indent(capture(when, condition, f"dst[to{offset}] = {name};\n"), "        ")}\
% endif
% endfor
    }
}
