<%doc>
PREFETCH asks for a line, where the compiler can; a tile asks for rows, or, between its stores, for a
share of a piece or for the next lines of rows or of a box.
</%doc>\
<%!
from clformats.kernels.ahead import Box, Rows
%>\
<%def name="asking(hint)">\
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE) && !defined(CLFORMATS_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(pointer) __builtin_prefetch((const void *)(uintptr_t)(pointer), 0, ${hint})
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(pointer)
#endif
</%def>\
<%def name="functions(asks)">\
${asking(asks.hint)}\
% if isinstance(asks, Rows):
% if asks.lines:
// Asks for the next line of the rows of the next box.
#define ASK_NEXT { PREFETCH(next + ${asks.row} + line * ${asks.line}); if (++line == of_row) { line = 0; ++row; } }
% endif
% elif isinstance(asks, Box):
<%
def moved_on(k):
    if k == asks.skips:
        return ""
    return f"if (++line{k} == lines{k}) {{ line{k} = 0; next += skip{k}; {moved_on(k + 1)}}} "
%>
// Asks for the next line of the next box.
#define ASK_NEXT { PREFETCH(next); next += ${asks.line}; ${moved_on(0)}}
% endif
</%def>\
<%def name="statements(asks)">\
{
    const idx nth = ${asks.at} % box, share = (${asks.rows} + box - 1) / box;
    const bool goes_on = ${asks.at} - nth + box < ${asks.count};
    const idx next = goes_on ? ${asks.on} : ${asks.back};
    for (idx row = nth * share; row < min(nth * share + share, (idx)${asks.rows}); ++row) {
        for (idx k = 0; k < box * ${asks.steps}; k += ${asks.line}) {
            PREFETCH(from + next + ${asks.row} + k);
        }
    }
}
</%def>\
<%def name="rows_begun(asks, type)">\
const idx nth = ${asks.at} % box, of_row = (box * ${asks.steps} + ${asks.line - 1}) / ${asks.line};
const bool goes_on = ${asks.at} - nth + box < ${asks.count};
__global const ${type} *const next = from + (goes_on ? ${asks.on} : ${asks.back});
idx row = nth * ${asks.lines} / of_row, line = nth * ${asks.lines} % of_row;
</%def>\
<%def name="begun(asks, type)">\
__global const ${type} *next = src + (${asks.begin});
% for k in range(asks.skips):
idx line${k} = 0;
% endfor
% if asks.turns > 1:
uint turn = 0;
% endif
</%def>\
