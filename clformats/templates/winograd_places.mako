<%namespace file="prelude.mako" import="prelude"/>
<%namespace file="value.mako" import="functions, value"/>
// ${src} -> ${dst}: one work-item for each place of the destination.
${prelude(writes, wide, reads=reads)}
${functions(step)}
__kernel void reorder(
    __global const ${reads.src} *restrict src,
    __global ${writes.dst} *restrict dst,
    ${",\n    ".join(declarations)})
{
    idx rest = (idx)get_global_id(0);
    if (rest >= places) {
        return;
    }

    // The digits of the destination, innermost first.
% for variable, size in digits[:-1]:
    const idx ${variable} = rest % ${size};
    rest /= ${size};
% endfor
    const idx ${digits[-1][0]} = rest;

    // The physical index along each dimension, and whether an element lies there.
% for name, index in indices:
    const idx ${name} = ${index};
% endfor
    if (${" || ".join(f"{p} >= {end}" for p, lo, hi, end in bounds if end)}) {
        return;
    }
    {
${value(step, writes, reads, bounds, src_offset)}\
        dst[${dst_offset}] = value;
    }
}
