<%doc>
PREFETCH asks for a line, where the compiler can; a tile asks for rows, or, between its stores, for a
share of a piece.
</%doc>\
<%def name="functions(asks)">\
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE) && !defined(CLFORMATS_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(pointer) __builtin_prefetch((const void *)(uintptr_t)(pointer), 0, ${asks.hint})
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(pointer)
#endif
</%def>\
<%def name="statements(asks)">\
{
    const idx nth = ${asks.at} % box, share = (${asks.rows} + box - 1) / box;
    const idx next = ${asks.at} - nth + box < ${asks.count} ? ${asks.on} : ${asks.back};
    for (idx row = nth * share; row < min(nth * share + share, (idx)${asks.rows}); ++row) {
        for (idx k = 0; k < box * ${asks.steps}; k += ${asks.line}) {
            PREFETCH(from + next + ${asks.row} + k);
        }
    }
}
</%def>\
