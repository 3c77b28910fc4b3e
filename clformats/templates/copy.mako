<%namespace file="prelude.mako" import="prelude"/>
// A contiguous run of count elements, ${per_item} for each work-item.
${prelude(types, wide, (1, width), nontemporal)}
__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst,
    ${",\n    ".join(declarations)})
{
    const idx first = (idx)get_global_id(0) * ${per_item};
    const idx last = min(first + ${per_item}, count);
    src += src0;
    dst += dst0;
% if width > 1:
    idx i = first;
    for (; i + ${width} <= last; i += ${width}) {
% if nontemporal:
        ${types.store_nontemporal(types.load("src + i", width), "dst + i", width)};
% else:
        ${types.store(types.load("src + i", width), "dst + i", width)};
% endif
    }
    for (; i < last; ++i) {
        ${types.store(types.load("src + i", 1), "dst + i", 1)};
    }
% else:
    for (idx i = first; i < last; ++i) {
        ${types.store(types.load("src + i", 1), "dst + i", 1)};
    }
% endif
}
