<%namespace file="prelude.mako" import="prelude, items_alone"/>\
<%namespace name="ahead" file="ahead.mako"/>\
<%namespace name="stage" file="stage.mako"/>\
<%!
from textwrap import indent
%>\
<%def name="gathered(row)">\
% if nontemporal:
% if turns > 1:
if (!(${row} & ${turns - 1})) {
% else:
{
% endif
% for at in asks:
    PREFETCH(from + ahead + ${at});
% endfor
}
% endif
% for at, value in moves:
% if words:
MOVE(from + ${at}, to + ${at});
% else:
STAGE(${value}, to + ${at});
% endif
% endfor
</%def>\
// ${title}
${prelude(types, wide, (width,), nontemporal)}\
% if nontemporal:
${ahead.asking(hint)}\
% else:
#define STORE_STREAM(value, pointer) (*(pointer) = (value))
% endif
${stage.functions(None, types, width)}\
% if words:
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
typedef uint${words if words > 1 else ""} any_words __attribute__((aligned(sizeof(${types.dst}))));
#define MOVE(from, to) (*(any_words *)(to) = *(__global const any_words *)(from))
#else
#define MOVE(from, to) for (int i = 0; i < ${moved}; ++i) { (to)[i] = (from)[i]; }
#endif
% endif

${items_alone()}\
__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
    idx rest = (idx)get_global_id(0);
    const idx parts = (total + chunk - 1) / chunk;
    const idx first = rest % parts * chunk, last = min(first + chunk, total);
    src += src0;
    dst += dst0;
% if outer:
    rest /= parts;
% for k in reversed(range(outer)):
    {
        const idx at = ${f"rest % size{k}" if k else "rest"};
        src += at * src_stride${k};
        dst += at * dst_stride${k};
% if k:
        rest /= size${k};
% endif
    }
% endfor
% endif

    uint16 stage[${lines}];
    ${types.dst} *const held_at = (${types.dst} *)stage;
    for (idx at = first; at < last;) {
        const idx ends = min(at + held, last);
        const bool begins = at == first;
        __global ${types.dst} *const begin = dst + at * size;
        ${types.dst} *const box = held_at + IN_LINE(begin) / sizeof(${types.dst});
        ${types.dst} *row = box;
        while (at < ends) {
% if images:
            const idx y = at % rows, count = min(ends - at, rows - y);
            __global const ${types.src} *const corner = src + (at / rows * image + y * ${piece});
% else:
            const idx y = at, count = ends - at;
            __global const ${types.src} *const corner = src + y * ${piece};
% endif
% if by_blocks:
            // What is too much of the last piece is overwritten by the first piece of the next row.
            for (idx n = pieces - 1; n >= 0; --n) {
                __global const ${types.src} *from = corner + n * step;
                ${types.dst} *to = row + n * ${piece};
                for (idx k = 0; k < count; ++k, from += ${piece}, to += size) {
${indent(capture(gathered, "(y + k)"), "                    ")}\
                }
            }
% else:
            for (idx k = 0; k < count; ++k) {
                __global const ${types.src} *from = corner + k * ${piece};
                ${types.dst} *to = row + k * size;
                for (idx n = 0; n < pieces; ++n, from += step, to += ${piece}) {
${indent(capture(gathered, "(y + k)"), "                    ")}\
                }
            }
% endif
            row += count * size;
            at += count;
        }
        send_run(box, begin, row - box, begins, at == last);
    }
}
