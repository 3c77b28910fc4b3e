<%namespace file="prelude.mako" import="nought, prelude"/>
// A contiguous run of count elements, ${per_item} for each work-item.
${prelude(types, wide, (1, width), nontemporal, computed=(1, width))}
__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% if nontemporal:
${nought()}\
% endif
% for constant in constants:
    ${constant}
% endfor
    const idx first = (idx)get_global_id(0) * ${per_item};
    const idx last = first + min((idx)${per_item}, count - first);
    src += src0;
    dst += dst0;
% if width > 1:
    idx i = first;
    for (; i + ${width} <= last; i += ${width}) {
        ${steps[width]};
    }
    for (; i < last; ++i) {
        ${steps[1]};
    }
% else:
    for (idx i = first; i < last; ++i) {
        ${steps[1]};
    }
% endif
}
