<%doc>
One program for all moves between tensors: the loops, and which types, are arguments.
See clformats/kernels/universal.py.
</%doc>\
<%namespace file="prelude.mako" import="rounding, items_alone"/>\
// Any tensor to any other, element by element.
typedef long idx;

% for dtype in rounded:
${rounding(dtype, "float", 1)}\
% endfor

// The loops over the destination, the outermost first. What guard g counts moves by unit[k] with each
// step of loop k whose guard is g. Between lo and hi there are elements; below end there is padding.
typedef struct {
    idx types, rows, each, loops, guards;
    idx src0, dst0;
    idx size[${loops}], src[${loops}], dst[${loops}], guard[${loops}], unit[${loops}];
    idx lo[${guards}], hi[${guards}], end[${guards}];
} Nest;

// The number of steps until x is reached, n at most.
static inline idx steps(idx x, idx unit, idx n)
{
    return clamp((x + unit - 1) / unit, (idx)0, n);
}

#define MOVE(SRC, DST, value) { \
    __global const SRC *p = (__global const SRC *)src + from; \
    __global DST *q = (__global DST *)dst + to; \
    for (idx n = count; n > 0; --n, p += s, q += d) { *q = value; } \
    break; }
#define ZERO(DST) { \
    __global DST *q = (__global DST *)dst + to; \
    for (idx n = count; n > 0; --n, q += d) { *q = 0; } \
    break; }

static __attribute__((noinline)) void move(
    idx types, __global const uchar *src, idx from, idx s, __global uchar *dst, idx to, idx d, idx count)
{
    switch (types) {
% for number, pair in pairs:
    case ${number}: MOVE(${pair.src}, ${pair.dst}, ${pair.read("p")})
% endfor
    }
}

static __attribute__((noinline)) void zero(idx types, __global uchar *dst, idx to, idx d, idx count)
{
    switch (types % ${zero}) {
% for number, pair in pairs[:moved]:
    case ${number}: ZERO(${pair.dst})
% endfor
    }
}

${items_alone()}\
__kernel void reorder(__global const uchar *restrict src, __global uchar *restrict dst, const Nest nest)
{
    const idx inner = nest.loops - 1, size = nest.size[inner], s = nest.src[inner], d = nest.dst[inner];
    const idx g = nest.guard[inner], unit = nest.unit[inner];
    idx row = get_global_id(0) * nest.each, left = min(nest.each, nest.rows - row);
    idx at[${loops}], index[${guards}], from = nest.src0, to = nest.dst0;
    for (idx k = 0; k < nest.guards; ++k) {
        index[k] = 0;
    }
    for (idx k = inner - 1; k >= 0; --k) {
        at[k] = row % nest.size[k];
        row /= nest.size[k];
        from += at[k] * nest.src[k];
        to += at[k] * nest.dst[k];
        if (nest.guard[k] >= 0) {
            index[nest.guard[k]] += at[k] * nest.unit[k];
        }
    }
    for (; left > 0; --left) {
        // Of the innermost loop, steps up to begin are padding, then elements up to end, then padding.
        idx begin = 0, end = size, places = size;
        for (idx k = 0; k < nest.guards; ++k) {
            const idx x = index[k];
            if (k == g) {
                begin = steps(nest.lo[k] - x, unit, size);
                end = min(end, steps(nest.hi[k] - x, unit, size));
                places = min(places, steps(nest.end[k] - x, unit, size));
            } else {
                end = x >= nest.lo[k] && x < nest.hi[k] ? end : 0;
                places = x < nest.end[k] ? places : 0;
            }
        }
        begin = min(begin, places);
        end = clamp(end, begin, places);
        zero(nest.types, dst, to, d, begin);
        move(nest.types, src, from + begin * s, s, dst, to + begin * d, d, end - begin);
        zero(nest.types, dst, to + end * d, d, places - end);
        for (idx k = inner - 1; k >= 0; --k) {
            const idx by = ++at[k] < nest.size[k] ? 1 : 1 - nest.size[k];
            from += by * nest.src[k];
            to += by * nest.dst[k];
            if (nest.guard[k] >= 0) {
                index[nest.guard[k]] += by * nest.unit[k];
            }
            if (by == 1) {
                break;
            }
            at[k] = 0;
        }
    }
}
