<%namespace file="prelude.mako" import="prelude"/>
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<%def name="matrix(name, rows)">\
static inline float ${name}(const idx row, const float *v)
{
    switch (row) {
% for k, text in enumerate(rows):
    ${f"case {k}" if k + 1 < len(rows) else "default"}: return ${text};
% endfor
    }
}
</%def>\
// ${src} -> ${dst}: one work-item for each place of the destination.
${prelude(writes, wide, reads=reads)}
// Each step is rounded, in this order: what the host computes, to the bit.
#pragma OPENCL FP_CONTRACT OFF

// One row of the transform times a window.
${matrix("inner_row", step.inner)}\
% if step.outer and step.outer != step.inner:

// The same across the windows.
${matrix("outer_row", step.outer)}\
% endif

__kernel void reorder(
    __global const ${reads.src} *restrict src,
    __global ${writes.dst} *restrict dst,
    ${",\n    ".join(declarations)})
{
    idx rest = (idx)get_global_id(0);
    if (rest >= places) {
        return;
    }

${indent(capture(place.indices, digits, indices), "    ")}\
${indent(capture(place.skip, bounds), "    ")}\
    {
        ${writes.dst} value = 0;
        if (${" && ".join(f"{p} >= {lo} && {p} < {hi}" if lo != "0" else f"{p} < {hi}" for p, lo, hi, end in bounds)}) {
% for d, (p, lo, hi, end) in enumerate(bounds):
            const idx ${f"i{d}" if d < 2 else "yx"[d - 2]} = ${p}${"" if lo == "0" else f" - {lo}"};
% endfor
% if step.outer:
            float rows[${step.outer_taps}];
            for (int across = 0; across < ${step.outer_taps}; ++across) {
% else:
            const idx across = ${step.across};
            {
% endif
                float window[${step.taps}];
                for (int tap = 0; tap < ${step.taps}; ++tap) {
                    const idx i2 = ${step.y};
                    const idx i3 = ${step.x};
% if step.reach:
                    const bool is_data = ${step.reach};
                    window[tap] = is_data ? ${reads.read(f"src + ({src_offset})")} : 0.0f;
% else:
                    window[tap] = ${reads.read(f"src + ({src_offset})")};
% endif
                }
% if step.outer:
                rows[across] = inner_row(${step.row}, window);
            }
            const float result = ${"inner_row" if step.outer == step.inner else "outer_row"}(${step.across}, rows)${step.scale};
% else:
                const float result = inner_row(${step.row}, window)${step.scale};
                value = ${writes.converted("result", "")};
            }
% endif
% if step.outer:
            value = ${writes.converted("result", "")};
% endif
        }
        dst[${dst_offset}] = value;
    }
}
