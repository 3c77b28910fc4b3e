<%doc>
Boxes that are collected: STAGE stores a vector of a tile, send_run sends a run of elements that has
been collected, in whole lines. collected goes through the boxes.
</%doc>\
<%! from textwrap import indent %>\
<%def name="functions(staging, types, width)">\

#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
#define STAGE(v, p) (*(any_${types.dst}${width} *)(p) = (v))
#else
#define STAGE(v, p) vstore${width}(v, 0, p)
#endif
#define IN_LINE(p) ((uintptr_t)(p) & 63)

static inline void send_part(const ${types.dst} *from, __global ${types.dst} *to, idx count)
{
    idx at = 0;
    for (; at + 16 <= count; at += 16) {
        vstore16(vload16(0, from + at), 0, to + at);
    }
    for (; at < count; ++at) {
        to[at] = from[at];
    }
}

// The run begins as far in a line of the stage as in one of the destination. The parts of lines at
// its ends are stored by the element, that at the end only if nothing follows it.
static inline void send_run(${types.dst} *from, __global ${types.dst} *to, idx count, bool begins, bool ends)
{
    const idx step = 64 / sizeof(${types.dst}), before = IN_LINE(to) / sizeof(${types.dst});
    idx at = -before;
    if (begins && before) {
        at = min(count, step - before);
        send_part(from, to, at);
    }
    for (; at + step <= count; at += step) {
        STORE_STREAM(*(uint16 *)(from + at), (__global uint16 *)(to + at));
    }
    if (ends) {
        send_part(from + at, to + at, count - at);
    } else {
        *(uint16 *)(from - before) = *(uint16 *)(from + at);
    }
}
</%def>\
<%def name="collected(test, bases, nest, visit)">\
<%
middle = next(level for level in loops if level.first == "begins")
inner = next(level for level in loops if level is not middle)
rows_first = middle.variable == staging.at
%>\
for (idx begins = first; begins < last; begins += held) {
    const idx ends = min(begins + held, last);
    __global ${types.dst} *begin;
    idx corner, row_begin, row_end, left;
    {
        const idx ${middle.variable} = begins, ${inner.variable} = 0;
${indent(capture(bases, None if rows_first else staging.along), "        ")}\
        begin = dst + (${dst_base});
        row_begin = row_end = ${staging.row};
        left = ${staging.along.name};
        corner = IN_LINE(begin) / sizeof(${types.dst}) - (${staging.to});
    }
${capture(nest, loops, capture(visit, test, loads, computed, passes, asks, True))}\
    // Rows of tiles at an edge are not collected: they come last, and go their own way.
    for (idx at = ${staging.first}; at < ${staging.last}; ++at) {
        const idx ${staging.at} = at, ${(inner if rows_first else middle).variable} = ${"0" if rows_first else "begins"};
${indent(capture(bases), "        ")}\
% if test:
% for g in guards:
        const idx ${g.name} = ${g.base};
% endfor
        if (${test})
% endif
        row_end = ${staging.row} + ${staging.height};
    }
% if staging.linked:
    send_run(held_at + (corner + row_begin * ${staging.pitch} + left), begin, (row_end - row_begin) * ${staging.pitch}, true, true);
% else:
    for (idx row = row_begin; row < row_end; ++row) {
        send_run(held_at + (corner + row * ${staging.pitch} + left), begin + (row - row_begin) * ${staging.stride}, ${staging.end} - left, begins == first, ends == last);
    }
% endif
}
</%def>\
