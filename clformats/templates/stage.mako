<%doc>
Boxes that are collected: STAGE stores a vector of a tile, send_run sends a run of elements that has
been collected, in whole lines.
</%doc>\
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
