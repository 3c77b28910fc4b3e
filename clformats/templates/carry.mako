<%doc>
Lines that one tile begins and the next one ends: BEGIN_LINE says where a row starts in its line,
END_LINE stores the line across what was left of it and what is new. carried goes along one row,
linked_rows along rows of which each begins in the line where the one before has ended.
</%doc>\
<%! from textwrap import indent %>\
<%def name="stores(carry, types, width)">\

static inline void store_line(uint16 line, __global ${types.dst} *to)
{
% for k, part in enumerate(carry.parts):
    STORE${width}(as_${types.dst}${width}(line${part}), to${f" + {k * width}" if k else ""});
% endfor
}

// A line of memory lies across those of two tiles. To put lanes in an order known at run time only
// is one instruction; the order is read again for each use, because a compiler that sees it stay the
// same takes it apart.
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define CARRY
#endif
#endif
#ifdef CARRY
typedef ${carry.unit} ${carry.unit}_line __attribute__((ext_vector_type(${carry.units})));
#define UNITS (${carry.unit}_line)(${", ".join(map(str, range(carry.units)))})
</%def>\
<%def name="functions(carry, types, width)">\
<% unit = carry.unit %>\
${stores(carry, types, width)}\
#define LINES_BEGUN(n) volatile ${unit}_line turn[n]; ${unit} before[n]

static inline uint16 across(uint16 left, uint16 right, ${unit} before, ${unit}_line turn)
{
    const ${unit}_line ends = __builtin_astype(UNITS >= before, ${unit}_line);
    const ${unit}_line mixed = __builtin_astype(left, ${unit}_line) & ends | __builtin_astype(right, ${unit}_line) & ~ends;
    return __builtin_astype(__builtin_shufflevector(mixed, turn), uint16);
}
#define BEGIN_LINE(to, k) (before[k] = ${carry.units} - ((uintptr_t)(to) & 63) / sizeof(${unit}), turn[k] = UNITS + before[k])
#define END_LINE(left, right, to, k) STORE_STREAM(across(left, right, before[k], turn[k]), (__global uint16 *)((uintptr_t)(to) & ~(uintptr_t)63))
% if carry.size:
${linked(carry, types, unit)}\
% endif
#else
#define LINES_BEGUN(n)
#define BEGIN_LINE(to, k)
#define END_LINE(left, right, to, k) store_line(right, to)
% if carry.size:
#define ROWS_BEGUN(n, size)
#define BEGIN_ROWS(row)
#define KEEP_LINE(line, to, k) store_line(line, to)
#define LAST_LINE(left, right, to, k) store_line(right, to)
#define LINK_LINE(row)
#define LINK_ROW(left, to, k)
#define LEAVE_LINE(line, to)
#define END_RUN
% endif
#endif
</%def>\
<%def name="linked(carry, types, unit)">\

// What the run before leaves of its last line ends in the first line of this one, where it follows;
// else both are written in units. The order of lanes stays the same as long as runs start at the
// same place of a line.
#define LINE_STEPS ${carry.units // carry.unit_steps}
#define IN_LINE(p) ((uintptr_t)(p) & 63)
#define ROWS_BEGUN(n, size) LINES_BEGUN(n); uint16 first_lines[n], left_line; __global ${types.dst} *run_end = 0; uintptr_t started = 64; volatile ${unit}_line over_turn = UNITS + (${unit})(${carry.units} - (size) % LINE_STEPS * ${carry.unit_steps})
#define BEGIN_ROWS(row) if (IN_LINE(row) != started && (started = IN_LINE(row), true))
#define KEEP_LINE(line, to, k) first_lines[k] = line
#define LAST_LINE(left, right, to, k) if (over * ${carry.unit_steps} >= before[k]) END_LINE(left, turned(right, over_turn), to + (LINE_STEPS - over), k)

static inline uint16 turned(uint16 line, ${unit}_line turn)
{
    return __builtin_astype(__builtin_shufflevector(__builtin_astype(line, ${unit}_line), turn), uint16);
}

static inline void begin_run(__global ${types.dst} *to, uint16 line, int count)
{
    const ${unit}_line units = __builtin_astype(line, ${unit}_line);
    for (int k = 0; k < count; ++k) {
        ((__global ${unit} *)to)[k] = units[k];
    }
}

static inline void end_run(__global ${types.dst} *to, uint16 line)
{
    const ${unit}_line units = __builtin_astype(line, ${unit}_line);
    for (int k = 1; k <= (int)(IN_LINE(to) / sizeof(${unit})); ++k) {
        ((__global ${unit} *)to)[-k] = units[${carry.units} - k];
    }
}
#define LINK_LINE(row) if (run_end == (row)) { END_LINE(left_line, first_lines[0], row, 0); } else { END_RUN; begin_run(row, first_lines[0], before[0]); }
#define LINK_ROW(left, to, k) END_LINE(left, first_lines[k], to, k)
#define LEAVE_LINE(line, to) (left_line = line, run_end = (to))
#define END_RUN if (run_end) end_run(run_end, left_line)
</%def>\
<%def name="carried(test, bases, tile)">\
<%
along = loops[-1]
at = along.variable
%>\
const idx begin = ${along.first}, end = ${along.last};
const idx whole = min(end, (idx)(${carry.whole}));
const idx ${at} = begin;
${bases()}\
% if test:
% for g in guards:
const idx ${g.name} = ${g.base};
% endfor
if (${test})
% endif
{
    uint16 ${", ".join(f"c{line.number}" for line in carry.lines)};
    LINES_BEGUN(${len(carry.lines)});
    {
        __global ${types.dst} *to = dst + (${dst_base});
% for line in carry.lines:
        BEGIN_LINE(${line.at}, ${line.number});
% endfor
    }
    // The tile that overlaps the one before, where there is one, and the first one.
    for (int first_tile = end <= whole; first_tile < 2; ++first_tile) {
        const idx ${at} = first_tile ? begin : end - 1;
${indent(capture(bases), "        ")}\
${indent(capture(tile, loads, computed, carry.begun), "        ")}\
    }
    for (idx ${at} = begin + 1; ${at} < whole; ++${at}) {
${indent(capture(bases), "        ")}\
${indent(capture(tile, loads, computed, carry.ended, asks), "        ")}\
    }
    {
        const idx ${at} = max(begin, whole - 1);
${indent(capture(bases), "        ")}\
        __global ${types.dst} *to = dst + (${dst_base});
% for line in carry.lines:
        store_line(c${line.number}, ${line.at});
% endfor
    }
}
</%def>\
<%def name="linked_rows(test, bases, tile)">\
<%
at = loops[-1].variable
rows = [line.at for line in carry.lines]
count = len(rows)
%>\
const idx whole = ${carry.whole}, over = ${carry.size} - whole * ${carry.units // carry.unit_steps};
const idx ${at} = 0;
${bases()}\
% if test:
% for g in guards:
const idx ${g.name} = ${g.base};
% endfor
if (${test})
% endif
{
    uint16 ${", ".join(f"c{k}" for k in range(count))};
    __global ${types.dst} *const row = dst + (${dst_base});
    {
        __global ${types.dst} *to = row;
        BEGIN_ROWS(row) {
% for k, row in enumerate(rows):
            BEGIN_LINE(${row}, ${k});
% endfor
        }
    }
    {
${indent(capture(tile, loads, computed, carry.kept, asks), "        ")}\
    }
    for (idx ${at} = 1; ${at} < whole; ++${at}) {
${indent(capture(bases), "        ")}\
${indent(capture(tile, loads, computed, carry.ended, asks), "        ")}\
    }
    if (over) {
        const idx ${at} = whole;
${indent(capture(bases), "        ")}\
${indent(capture(tile, loads, computed, carry.last, asks), "        ")}\
    }
    {
        __global ${types.dst} *to = row;
        LINK_LINE(row);
% for k, row in enumerate(rows[1:], 1):
        LINK_ROW(c${k - 1}, ${row}, ${k});
% endfor
        LEAVE_LINE(c${count - 1}, ${rows[-1]} + ${carry.size});
    }
}
</%def>\
