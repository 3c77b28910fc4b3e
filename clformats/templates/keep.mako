<%doc>
Lines that wait in private memory for the next tile of their row, turned: what ends the line of memory
lies in front, where it belongs, and what begins the next one behind it. kept goes through the rows.
</%doc>\
<%!
from textwrap import indent
from clformats.kernels.source import moved
%>\
<%namespace name="lines" file="carry.mako"/>\
<%def name="functions(carry, types, width)">\
<%
unit = carry.unit
place, places = (unit, "UNITS") if carry.unit_steps else ("uchar", "BYTES")
%>\
${lines.stores(carry, types, width)}\
#define IN_LINE(p) ((uint)(uintptr_t)(p) & 63)
#define LINE_OF(p) ((uintptr_t)(p) & ~(uintptr_t)63)
#define BEGIN_LINE(left, line, to) (left = turned(line, IN_LINE(to)))
% if not carry.unit_steps:
typedef uchar uchar_line __attribute__((ext_vector_type(64)));
#define BYTES (uchar_line)(${", ".join(map(str, range(64)))})
% endif

// Where in its line a row has come to is reckoned for each line: rows are many.
static inline uint16 turned(uint16 line, uint in_line)
{
% if carry.unit_steps:
    const ${unit}_line turn = UNITS + (${unit})(${carry.units} - in_line / sizeof(${unit}));
    return __builtin_astype(__builtin_shufflevector(__builtin_astype(line, ${unit}_line), turn), uint16);
% else:
    // First the words are put in order, and then the bytes of each two.
    const uint16 low = __builtin_shufflevector(line, UNITS + (64 - in_line) / 4);
    const uint shift = (64 - in_line) % 4 * 8;
    return low >> shift | low.s123456789abcdef0 << 1 << (31 - shift);
% endif
}

static inline void END_LINE(uint16 *left, uint16 line, __global ${types.dst} *to)
{
    const uint16 right = turned(line, IN_LINE(to));
    const ${place}_line ends = __builtin_astype(${places} < (${place})(IN_LINE(to) / sizeof(${place})), ${place}_line);
    const ${place}_line mixed = __builtin_astype(*left, ${place}_line) & ends | __builtin_astype(right, ${place}_line) & ~ends;
    *left = right;
    STORE_STREAM(__builtin_astype(mixed, uint16), (__global uint16 *)LINE_OF(to));
}

// The end of a row, in a line that is not all its own.
static inline void END_ROW(uint16 left, __global ${types.dst} *to)
{
    ${types.dst} part[64 / sizeof(${types.dst})];
    *(uint16 *)part = left;
    for (uint k = 0; k < IN_LINE(to) / sizeof(${types.dst}); ++k) {
        ((__global ${types.dst} *)LINE_OF(to))[k] = part[k];
    }
}
#else
#define BEGIN_LINE(left, line, to)
#define END_LINE(left, line, to) store_line(line, to)
#define END_ROW(left, to)
#endif
</%def>\
<%def name="across(level, count, text)">\
for (idx ${level.variable} = 0; ${level.variable} < ${level.last}; ++${level.variable}) {
    uint16 *const c = kept + ${level.variable} * ${count};
${indent(text, "    ")}\
}
</%def>\
<%def name="kept(test, visit)">\
<%
along, inner = loops
at, count = along.variable, len(carry.lines)
line = 64 // types.dst_type.nbytes
ends = [f"END_ROW(c[{one.number}], {moved(one.at, line)})" for one in carry.lines]
moves = (loads, computed)
def through(parts, given_ahead=None, texts=moves):
    text = capture(visit, test, *texts, parts, given_ahead)
    return indent(capture(across, inner, count, text), "        ")
%>\
const idx whole = ${carry.whole};
const bool begins = !first;
// The tile that overlaps the one before is at the end of the rows alone.
if (last > whole) {
    const idx ${at} = whole;
${through(carry.alone)}\
}
if (first < whole) {
    {
        const idx ${at} = first;
${through(carry.waits, asks)}\
    }
    // One tile more than are its own: the lines that it ends the last one has begun.
    for (idx ${at} = first + 1; ${at} < min(last + 1, whole); ++${at}) {
${through(carry.goes_on, asks)}\
    }
    if (last >= whole) {
        const idx ${at} = whole - 1;
${through([((), [((), ends)])], None, ((), ()))}\
    }
}
</%def>\
