<%namespace file="prelude.mako" import="prelude"/>
// ${src} -> ${dst}: one work-item for each place in the destination.
${prelude(types, wide, computed=(1,))}
__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst,
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
% for name, value in indices:
    const idx ${name} = ${value};
% endfor
    if (${" || ".join(f"{p} >= {end}" for p, lo, hi, end in bounds if end)}) {
        return;
    }
    const bool inside = ${" && ".join(f"{p} >= {lo} && {p} < {hi}" if lo != "0" else f"{p} < {hi}" for p, lo, hi, end in bounds)};

    ${types.stored} written = 0;
    if (inside) {
% for d, (p, lo, hi, end) in enumerate(bounds):
        const idx i${d} = ${p}${"" if lo == "0" else f" - {lo}"};
% endfor
% if stored:
        const ${types.work} value = ${types.load(f"src + ({src_offset})", 1)};
        written = ${stored};
% else:
        written = ${types.load(f"src + ({src_offset})", 1)};
% endif
    }
    ${types.store("written", f"dst + ({dst_offset})", 1)};
}
