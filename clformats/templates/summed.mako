<%namespace file="prelude.mako" import="prelude"/>
<%namespace file="value.mako" import="functions, value"/>
// ${src} -> ${dst}: one work-item for each sum behind the elements.
${prelude(writes, wide)}
${functions(step)}
__kernel void reorder(
    __global const ${reads.src} *restrict src, __global ${writes.dst} *restrict dst,
    ${",\n    ".join(declarations)})
{
    idx rest = (idx)get_global_id(0);
    if (rest >= rows) {
        return;
    }

    // The index of the sum, innermost first.
% for d, extent in kept[:-1]:
    const idx p${d} = rest % ${extent};
    rest /= ${extent};
% endfor
    const idx p${kept[-1][0]} = rest;

    int sum = 0;
    for (idx p${over} = 0; p${over} < over_end; ++p${over}) {
${value(step, writes, reads, bounds, src_offset)}\
        dst[${dst_offset}] = value;
        sum += as_char(value);
    }
% if counted:
    if (${counted}) {
        return;
    }
% endif
% if none_at:
    if (${none_at}) {
        sum = 0;
    }
% endif
    // The elements before may leave it at any byte.
    const ${number} stored = ${factor} * sum;
    vstore4(as_char4(stored), ${sum_index}, (__global char *)dst + sums_at);
}
