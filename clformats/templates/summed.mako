<%namespace file="prelude.mako" import="prelude"/>
<%namespace file="value.mako" import="functions, value"/>
// ${src} -> ${dst}: one work-item for each sum behind the elements.
${prelude(writes, wide, computed=(1,), reads=reads)}
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
% for d, end in over:
    for (idx p${d} = 0; p${d} < ${end}; ++p${d})
% endfor
    {
${value(step, writes, reads, bounds, src_offset, moved)}\
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
    // The elements before may leave them at any byte.
% for factor, start in stores:
    vstore4(as_char4((${number})(${factor} * sum)), ${sum_index}, (__global char *)dst + ${start});
% endfor
}
