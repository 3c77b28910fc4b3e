<%doc>
Tiles: vectors are loaded, shuffled and stored. The loops over tiles are an argument: a nest is counted
like an odometer, by one position for the tile and by another one that runs ahead of it to prefetch.
See clformats/kernels/scheduled.py.
</%doc>\
<%namespace file="prelude.mako" import="prelude, items_alone, nought, trades"/>\
<%
from textwrap import indent
from clformats.kernels.types import mask_type
from clformats.shuffles.pairs import doubled

def swizzled(a, b, pattern):
    taken = (f"{a}.s{k:x}" if k < lanes else f"{b}.s{k - lanes:x}" for k in pattern)
    return f"({vector})({', '.join(taken)})"

def before(left, kind, width):
    return f"({kind}{width})(0, {', '.join(map(str, range(1, width)))}) < ({kind})min({left}, (idx){width})"

half = lanes * types.moved.nbytes // 4
words = 2 * half
buffers, size = held or staged, types.dst_type.nbytes
# Vectors, which compilers take for views of any type.
parts = {32: "uint8", 16: "uint4", 8: "uint2", 4: "uchar4", 2: "uchar2", 1: "uchar"}
looked_up = "".join(f"{text}\n" for text in tables.statements)
waiting = 32
listed = edge and not staged
# What tiles count beside their places in memory: by name, where each of them begins.
counters = {"operand": [f"nest->operand{o}_0" for o in operands], "guard": ["0" for _ in guards],
            "table": [f"nest->first{k}" for k, _ in enumerate(tables.keys)]}
counters = {name: begins for name, begins in counters.items() if begins}
counted = {f"{name}[{k}]": begin for name, begins in counters.items() for k, begin in enumerate(begins)}
bytes_as = {16: "ulong2", 8: "ulong", 4: "uint", 2: "ushort"}
mask_widths = sorted({lanes, *(w for w in widths if w > 1)} - {1})
%>\
${prelude(types, wide, widths, streams, (lanes,) if operands or types.parameters or types.functions((1,)) else ())}\
% if patterns:
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
% if pairs:

// Two vectors side by side: the shuffles of both are the same.
#ifdef HAS_SHUFFLE
typedef ${vector.removesuffix(n)} pair __attribute__((ext_vector_type(${2 * lanes})));
<% both = [*range(2 * lanes)] %>\
#define PAIR(a, b) __builtin_shufflevector(a, b, ${", ".join(map(str, both))})
% for name, taken in (("LOW", both[:lanes]), ("HIGH", both[lanes:])):
#define ${name}(v) as_${vector}(__builtin_shufflevector(v, v, ${", ".join(map(str, taken))}))
% endfor
#define WORDS(v) __builtin_astype(v, uint${words})
% for name, pattern in patterns:
#define ${name}(a, b) __builtin_shufflevector(a, b, ${", ".join(map(str, doubled(pattern, lanes)))})
% endfor
#else
typedef struct { ${vector} low, high; } pair;
static inline pair PAIR(${vector} low, ${vector} high)
{
    pair both = {low, high};
    return both;
}
#define LOW(v) (v).low
#define HIGH(v) (v).high
#define WORDS(v) (uint${words})(as_uint${half if half > 1 else ""}((v).low), as_uint${half if half > 1 else ""}((v).high))
% for name, pattern in patterns:
static inline pair ${name}(pair a, pair b)
{
    return PAIR(${swizzled("a.low", "b.low", pattern)}, ${swizzled("a.high", "b.high", pattern)});
}
% endfor
#endif
% else:
#ifdef HAS_SHUFFLE
% for name, pattern in patterns:
#define ${name}(a, b) __builtin_shufflevector(a, b, ${", ".join(map(str, pattern))})
% endfor
#else
% for name, pattern in patterns:
#define ${name}(a, b) ${swizzled("(a)", "(b)", pattern)}
% endfor
#endif
% endif
% endif

% if cleared:
// Some lanes of a vector made zero, where a mask is 0 and not all ones.
${zeroing("CLEARED", vector, f"{narrow}{n}")}\
% endif
${trades(types, vector, exchanges, swaps)}\
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE) && !defined(CLFORMATS_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(pointer) __builtin_prefetch((const void *)(uintptr_t)(pointer), 0, 2)
% if claims or staged:
// A line that is stored to through the cache: the core must own it, and stores wait until it does.
#define CLAIM(pointer) __builtin_prefetch((const void *)(uintptr_t)(pointer), 1, 2)
% endif
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(pointer)
% if claims or staged:
#define CLAIM(pointer)
% endif
#endif

// What runs for every tile stays in registers.
#define INLINE static inline __attribute__((always_inline))

// The loops over tiles, the outermost first. Loop k goes along an axis of the tensor in steps of
// step[k]; where that is a block of the axis, outer is around the loop that goes on inside.
typedef struct {
    idx loops, spread, lead;
    idx src0, dst0${"".join(f", operand{o}_0" for o in operands)};
    idx step[${loops}], size[${loops}], extent[${loops}], outer[${loops}], count[${loops}];
    idx src[${loops}], dst[${loops}];
% for name, begins in counters.items():
    idx ${name}[${len(begins)}][${loops}];
% endfor
% for k in axes:
    idx s${k}, d${k}${"".join(f", o{o}_{k}" for o in operands)};
% endfor
% for g in guards:
    idx lo${g}, hi${g}, end${g}, top${g};
% endfor
    idx src_end, src_top;
% for o in operands:
    idx last${o};
% endfor
% for t, key in enumerate(tables.keys):
    idx first${t}${"".join(f", jump{t}_{k}" for k in range(len(key.every)))};
% endfor
% if staged:
    // How many loops are around a run; how many elements lie from a tile's first to its last, and at most in a run.
    idx around, reach, longest;
% endif
% if held:
    idx groups;
% endif
% if shared > 1:
    idx follows;  // whether the innermost loop goes on in the source's lines
% endif
} Nest;
% if fields:

// The same in half the bytes: some devices take no more than 1,024 of arguments.
typedef struct {
    int number[${fields}];
} Short;
% endif

// Where a tile's first element lies, and how many steps the innermost loop still goes on.
typedef struct {
    idx src, dst, left;
% for name, begins in counters.items():
    idx ${name}[${len(begins)}];
% endfor
} Tile;

// How far each loop is and may go; the tile is where the innermost loop begins.
typedef struct {
    idx at[${loops}], last[${loops}], bound[${loops}];
% if staged:
    idx run;  // how many runs came before
% endif
    Tile tile;
} Position;

INLINE void shift(const Nest *nest, Tile *tile, idx k, idx steps)
{
    tile->src += steps * nest->src[k];
    tile->dst += steps * nest->dst[k];
% for one in counted:
    tile->${one} += steps * nest->${one}[k];
% endfor
}
% for t, key in enumerate(tables.keys):

// Where steps of a dimension lie whose blocks in the source are no whole ones of the destination's.
INLINE idx place${t}(const Nest *nest, idx step)
{
    return ${tables.place(t)};
}
% if tables.left[t]:

// How many steps are in a block, from one of its steps on.
INLINE idx left${t}(idx step)
{
    return ${tables.rest(t)};
}
% endif
% endfor
% for w in tables.widths:
<% loaded = f"{types.loaded}{w}" %>\

// A vector that has its first elements in one block, and the others in the next one.
static inline ${loaded} crossed_${w}(${loaded} first, ${loaded} second, idx left)
{
    return ${before("left", mask_type(types.loaded), w)} ? first : second;
}
% endfor

static inline void move(const Nest *nest, Position *p, idx k, idx steps)
{
    p->at[k] += steps;
    shift(nest, &p->tile, k, steps);
}

// Begin the loops from number k on. The last tile of a block that tiles do not fill begins before it.
static __attribute__((noinline)) void enter(const Nest *nest, Position *p, idx k)
{
    for (; k < nest->loops; ++k) {
        const idx outer = nest->outer[k], step = nest->step[k];
        const idx bound = outer < 0 ? nest->size[k] : min(nest->step[outer], p->bound[outer] - p->at[outer]);
        p->bound[k] = bound;
        p->at[k] = 0;
        p->last[k] = nest->extent[k] ? bound - nest->extent[k] : (bound - 1) / step * step;
        if (p->last[k] < 0) {
            move(nest, p, k, p->last[k]);
        }
    }
    p->tile.left = p->last[nest->loops - 1] - p->at[nest->loops - 1];
}

// Where the loops of a work-item begin.
static __attribute__((noinline)) Position begin(const Nest *nest, idx item)
{
    Position p;
    p.tile.src = nest->src0;
    p.tile.dst = nest->dst0;
% for one, start in counted.items():
    p.tile.${one} = ${start};
% endfor
    enter(nest, &p, 0);
    for (idx k = nest->loops - 1; k >= nest->spread; --k) {
        move(nest, &p, k, -p.at[k]);
    }
% if staged:
    p.run = 0;
% endif
    for (idx k = nest->spread - 1; k >= 0; --k) {
        const idx at = min(item % nest->count[k] * nest->step[k], p.last[k]);
        item /= nest->count[k];
        move(nest, &p, k, at - p.at[k]);
    }
    enter(nest, &p, nest->spread);
    return p;
}

// The next round of the loops around the innermost one; false, and back to the first, after the last.
static __attribute__((noinline)) bool advance(const Nest *nest, Position *p)
{
    bool found = false;
    idx k = nest->loops - 1;
    move(nest, p, k, -p->at[k]);
    while (!found && --k >= nest->spread) {
        const idx left = p->last[k] - p->at[k];
        found = left > 0;
        move(nest, p, k, found ? min(nest->step[k], left) : -p->at[k]);
    }
    enter(nest, p, found ? k + 1 : nest->spread);
% if staged:
    p->run += k < nest->around;
% endif
    return found;
}

// By how much the innermost loop goes on: its steps are in left.
static inline Tile inner_step(const Nest *nest)
{
    const idx k = nest->loops - 1;
    Tile step = {.left = nest->step[k]};
    shift(nest, &step, k, nest->step[k]);
    return step;
}

// The next tile; false, and back to the first one, after the last.
INLINE bool next_tile(const Nest *nest, const Tile *step, Position *p, Tile *tile)
{
    if (tile->left >= step->left) {
        tile->left -= step->left;
        tile->src += step->src;
        tile->dst += step->dst;
% for one in counted:
        tile->${one} += step->${one};
% endfor
        return true;
    }
    if (tile->left > 0) {
        shift(nest, tile, nest->loops - 1, tile->left);
        tile->left = 0;
        return true;
    }
    const bool found = advance(nest, p);
    *tile = p->tile;
    return found;
}
% if edge:
% if masks.word > 1:
<% most, each = (1 << types.read_bits) - 1, types.read_bits // masks.word %>\
% for n_w in sorted({str(v.width) if v.width > 1 else "" for v in masks.layout.loads}):

// The bits of words that are elements, of which so many are left from the tile's first on.
static inline ${types.loaded}${n_w} elements_${n_w or 1}(idx left, int${n_w} lane)
{
    const int${n_w} all = min(max(convert_int_sat(left) - lane, 1), ${masks.word});
    return (${types.loaded}${n_w})(${f"{most:#x}u"}) >> convert_${types.loaded}${n_w}((${masks.word} - all) * ${each});
}
% endfor
% endif
% for w in mask_widths:

// Which lanes are elements: their indices are not below lo, and below hi.
static inline int${w} between_${w}(idx at, int${w} lane, idx lo, idx hi)
{
    return (lane >= convert_int_sat(lo - at)) & (lane < convert_int_sat(hi - at));
}
<% together = bytes_as[w] %>\

// Whether no lane is -1, where the others are 0: PoCL's any() and all() look at lane after lane.
static inline bool none_${w}(int${w} inside)
{
    const ${together} lanes = as_${together}(convert_char${w}(inside));
    return !${"(lanes.s0 | lanes.s1)" if w == 16 else "lanes"};
}
% endfor
<% mask = mask_type(types.loaded) %>\
% for w in sorted(masked):

// A vector whose lanes that are no elements are zero.
static inline ${types.loaded}${w} masked_${w}(${types.loaded}${w} v, int${w} inside)
{
    return as_${types.loaded}${w}(as_${mask}${w}(v) & convert_${mask}${w}(inside));
}
% if masks.outside:

// Such a vector, of which nothing is read outside of the tensor.
static inline ${types.loaded}${w} load_edge_${w}(__global const ${types.buffers[0]} *src, idx at, int${w} inside, idx end)
{
    if (at >= 0 && at + ${w} <= end) {
        return masked_${w}(${types.load(types.place("at"), w)}, inside);
    }
${lane_by_lane(types.loaded, w, types.load(types.place("at + l"), 1))}\
}
% endif
% if w in tables.widths:
<% loaded = f"{types.loaded}{w}" %>\

// The same of parts in two blocks.
static inline ${loaded} crossed_edge_${w}(
    __global const ${types.buffers[0]} *src, idx first, idx second, idx left, int${w} inside, idx end)
{
    const int${w} kept = ${before("left", "int", w)};
    if (none_${w}(inside)) {
        return (${loaded})(0);
    }
    return crossed_${w}(
        load_edge_${w}(src, first, inside & kept, end), load_edge_${w}(src, second, inside & ~kept, end), left);
}
% endif
% endfor
% if lanes > 1:

// The lanes of a vector that have a place.
static inline void store_edge(${stored} v, int${lanes} inside, ${types.there})
{
    if (none_${lanes}(inside)) {
        return;
    }
    if (none_${lanes}(~inside)) {
        ${types.store("v", "to", lanes)};
        return;
    }
    int has_place[${lanes}];
    ${types.stored} lane[${lanes}];
    vstore${lanes}(inside, 0, has_place);
    vstore${lanes}(v, 0, lane);
<% unit = types.target.elements if types.target else 1 %>\
    ${f"for (int l = 0; l < {lanes}; {f'l += {unit}' if unit > 1 else '++l'})"} {
        if (has_place[l]) {
            ${types.store(f"vload{unit}(0, lane + l)" if unit > 1 else "lane[l]", "(to + l)", unit)};
        }
    }
}
% endif
<% old = types.functions((1,)) and types.computation.old %>\
% if old and masks.spills and lanes > 1:

// The old values of such a vector.
static inline ${types.real}${lanes} old_edge(__global const ${types.buffers[1]} *dst, idx at, int${lanes} inside)
{
    if (none_${lanes}(~inside)) {
        return ${types.load_operand(old, "at", lanes)};
    }
${lane_by_lane(types.real, lanes, types.load_operand(old, "at + l", 1))}\
}
% endif
% endif
% if types.functions((1,)):
% if n:
${zeroing("KEEP_STORED", f"{types.dst}{n}", f"{mask_type(types.dst)}{n}")}\
% else:
#define KEEP_STORED(v, mask) ((mask) ? (v) : (${types.dst})(0))
% endif
% endif
% if buffers:

#define LINE ${line}
#define IN_LINE(at) ((at) & (LINE - 1))
% for w in sorted(widths):
<% n_w = w if w > 1 else "" %>\
typedef ${types.dst}${n_w} kept${n_w} __attribute__((aligned(sizeof(${types.dst}))));
#define KEEP${n_w}(v, place) (*(kept${n_w} *)(place) = (v))
% endfor

// Write less than a line: two vectors, which overlap, of the widest kind that fits.
% for part in (p for p in parts if p >= size):
typedef ${parts[part]} part${part} __attribute__((aligned(${size})));
% endfor
static inline void store_part(const ${types.dst} *part, __global ${types.dst} *dst, idx count)
{
    const uchar *from = (const uchar *)part;
    __global uchar *to = (__global uchar *)dst;
    const idx nbytes = count * ${size};
% for part in (p for p in parts if p >= size):
    if (nbytes >= ${part}) {
        *(__global part${part} *)to = *(const part${part} *)from;
        *(__global part${part} *)(to + nbytes - ${part}) = *(const part${part} *)(from + nbytes - ${part});
        return;
    }
% endfor
}
% endif
% if held:
<% count = line_buffer.count %>\

// Rows that start anywhere in a line wait here, until they have some whole lines. All begin at the same place, so that
// a tile stores at constant distances; their lines begin anywhere. The first BACK elements are from before: a line that
// was begun, which is not sent yet, and room for what the last tile of a loop stores again. No row is shorter than a
// line.
#define WIDTH ${line_buffer.width}
#define BACK ${line_buffer.back}
#define FULL ${line_buffer.full}
#define ROOM ${line_buffer.row}
#define ROW(r) ((r) / ${line_buffer.each} * ${line_buffer.page} + (r) % ${line_buffer.each} * ROOM)
#define ROWS(n) ((n) / ${line_buffer.together} * ${line_buffer.step} + (n) % ${line_buffer.together} * ${count} * ROOM)
typedef uint16 waiting16 __attribute__((aligned(${size})));
typedef struct {
    // Where the first row began, where it ended when lines were last sent, and its end: negative without any.
    idx start, first, end;
} Rows;

// Send the lines that are full.
static inline void send_lines(Rows *rows, ${types.dst} *here, const idx *apart, __global ${types.dst} *dst)
{
    const idx first = rows->first, count = rows->end - first;
    for (int r = 0; r < ${count}; ++r) {
        const idx at = first + apart[r];
        ${types.dst} *row = here + ROW(r) + BACK;
        idx line = -IN_LINE(at);  // where the begun line begins, counted from first
        if (line && first == rows->start) {
            store_part(row, dst + at, line + LINE);
            line += LINE;
        }
        for (; line + LINE <= count; line += LINE) {
            STORE_STREAM((uint16)(*(const waiting16 *)(row + line)), (__global uint16 *)(dst + at + line));
        }
        *(waiting16 *)(row - LINE) = *(const waiting16 *)(row + count - LINE);
    }
    rows->first = rows->end;
}

// Send all that is left of the rows.
static inline void end_rows(Rows *rows, ${types.dst} *here, const idx *apart, __global ${types.dst} *dst)
{
    send_lines(rows, here, apart, dst);
    for (int r = 0; r < ${count}; ++r) {
        const idx end = rows->end + apart[r], left = IN_LINE(end);
        store_part(here + ROW(r) + BACK - left, dst + end - left, left);
    }
}
% endif
% if staged:

// Tiles that are one run together wait here until it is whole: it begins as far behind a line as in
// memory.
static inline void send_run(const ${types.dst} *stage, __global ${types.dst} *dst, idx start, idx end)
{
    const idx first = IN_LINE(start), stop = first + end - start;
    __global ${types.dst} *line = dst + (start - first);
    idx at = first;
    if (first) {
        at = min((idx)LINE, stop);
        store_part(stage + first, line + first, at - first);
    }
    for (; at + LINE <= stop; at += LINE) {
        STORE_STREAM(*(const uint16 *)(stage + at), (__global uint16 *)(line + at));
    }
    store_part(stage + at, line + at, stop - at);
}
% endif

${items_alone()}\
__kernel void reorder(
    __global const ${types.buffers[0]} *restrict src, __global ${types.buffers[1]} *restrict dst${"" if constants else ", const Short given" if fields else ", const Nest nest"}${"".join(f",\n    {p}" for p in types.parameters)})
{
% if fields:
    Nest nest;
    for (int n = 0; n < ${fields}; ++n) {
        ((idx *)&nest)[n] = given.number[n];
    }
% endif
% if constants:
    const Nest nest = {${", ".join(map(str, constants))}};
% endif
% if streams:
${nought()}\
% endif
% for k in axes:
    const idx s${k} = nest.s${k}, d${k} = nest.d${k}${"".join(f", o{o}_{k} = nest.o{o}_{k}" for o in operands)};
% endfor
    Position p = begin(&nest, get_global_id(0)), q = p;
    Tile now = p.tile, next = now;
    const Tile step = inner_step(&nest);
    bool asks = nest.lead > 0;
% if staged:
    idx coming = 0;  // the run of the tile before next
% endif
    for (idx n = 0; asks && n < nest.lead; ++n) {
% if staged:
        coming = q.run;
% endif
        asks = next_tile(&nest, &step, &q, &next);
    }
% if held:
    const idx apart[${len(held)}] = {${", ".join(held)}};
    ${types.dst} held[${line_buffer.size}] __attribute__((aligned(${page_bytes})));
    Rows waits[${line_buffer.tiles}];  // of the tiles that go by until the rows of the first one go on
    const idx groups = clamp(nest.groups, (idx)1, (idx)${line_buffer.tiles});
    for (idx n = 0; n < groups; ++n) {
        waits[n].end = -1;
    }
    idx group = 0, left = 0;
% endif
% if staged:
    ${types.dst} stage[${stage} + LINE] __attribute__((aligned(${page_bytes})));
    idx run = -1, start = 0, end = 0;  // the run in the stage, which is filled from start to end
% endif
% if listed:
    // Tiles at the edges wait for a loop of their own: a compiler that sees both merges their stores. To find
    // them again would take as long as many tiles.
    Tile at_edges[${waiting}];
    int count = 0;
    bool more = true;
    do {
% elif edge:
    // A run may have tiles at edges and others, and is sent as a whole: those are found again after it.
    bool has_edges = false;
% endif
    do {
${indent(looked_up, "        ")}\
% if held:
        group = now.left < left && group + 1 < groups ? group + 1 : 0;
        left = now.left;
        Rows *rows = &waits[group];
        ${types.dst} *here = held + ROWS(group);
% endif
% if staged:
        if (p.run != run) {
            send_run(stage, dst, start, end);
            run = p.run;
            start = end = now.dst;
        }
% endif
        // A tile asks for some lines between its statements, when next is another tile.
        const bool asked = asks;
        ${types.begin("ahead", "src", "next.src")}
% if claims:
        ${types.begin("to_ahead", "dst", "next.dst")}
% endif
% if shared > 1:
        // Tiles share lines. Each asks for those of other rows, if they follow each other; else the first one.
        const idx turn = next.src / ${read_run} % ${shared};
% endif
        if (asked) {
${indent(first_asked, "            ")}
% for text in read_too:
            ${text}
% endfor
% if staged:
            // Lines of a run pass by the cache, but not the part of one at its end: that store waits for it.
            if (q.run != coming) {
                const idx stop = next.dst + nest.longest;
                if (IN_LINE(stop)) {
                    CLAIM(dst + stop);
                }
            }
            coming = q.run;
% endif
            asks = next_tile(&nest, &step, &q, &next);
        }
% if edge:
        if (!(${masks.inside})) {
% if later_asked:
            if (asked) {
${indent("\n".join(later_asked), "                ")}
            }
% endif
            ${"at_edges[count++] = now" if listed else "has_edges = true"};
            continue;
        }
% endif
        ${types.begin("from", "src", "now.src")}
% if held:
        if (now.dst > rows->end || now.dst < rows->end - WIDTH) {
            if (rows->end >= 0) {
                end_rows(rows, here, apart, dst);
            }
            rows->start = rows->first = rows->end = now.dst;
        }
        // Not as soon as lines are full: loads wait long for what was just stored in parts.
        if (rows->end - rows->first > FULL) {
            send_lines(rows, here, apart, dst);
        }
        ${types.dst} *to = here + BACK + (now.dst - rows->first);
% elif staged:
        ${types.dst} *to = stage + IN_LINE(start) + (now.dst - start);
% else:
        ${types.begin("to", "dst", "now.dst")}
% endif
${indent("\n".join(whole), "        ")}
% if held:
        rows->end = now.dst + WIDTH;
% endif
% if staged:
        end = max(end, now.dst + nest.reach);
% endif
    } while (${f"(more = next_tile(&nest, &step, &p, &now)) && count < {waiting}" if listed else "next_tile(&nest, &step, &p, &now)"});
% if listed:
    const Tile after = now;
    while (count > 0) {
        now = at_edges[--count];
${indent(looked_up, "        ")}\
${at_edge()}\
    }
    now = after;
    } while (more);
% endif
% if held:
    for (idx n = 0; n < groups; ++n) {
        if (waits[n].end >= 0) {
            end_rows(&waits[n], held + ROWS(n), apart, dst);
        }
    }
% endif
% if staged:
    send_run(stage, dst, start, end);
% endif
% if edge and staged:
    if (has_edges) {
        do {
${indent(looked_up, "            ")}\
            if (${masks.inside}) {
                continue;
            }
${at_edge()}\
        } while (next_tile(&nest, &step, &p, &now));
    }
% endif
}
<%def name="zeroing(macro, vector, bits)">\
// Intel's compiler for CPUs makes one instruction of shuffles of two vectors and a mask, if there are 16
// lanes of one or two bytes, to which it joins shorter ones. It may fail to emit that, and ends the process.
// It does not look through the smaller value.
#ifdef cl_intel_vec_len_hint
#define ${macro}(v, mask) as_${vector}(min(as_u${bits}(v), as_u${bits}(mask)))
#else
#define ${macro}(v, mask) as_${vector}(as_${bits}(v) & (mask))
#endif
</%def>\
<%def name="lane_by_lane(kind, w, load)">\
    if (none_${w}(inside)) {
        return (${kind}${w})(0);
    }
    int is_element[${w}];
    ${kind} lane[${w}];
    vstore${w}(inside, 0, is_element);
    for (int l = 0; l < ${w}; ++l) {
        lane[l] = 0;
        if (is_element[l]) {
            lane[l] = ${load};
        }
    }
    return vload${w}(0, lane);
</%def>\
<%def name="at_edge()">\
            ${types.begin("from", "src", "now.src")}
            ${types.begin("to", "dst", "now.dst")}
${indent("\n".join(edge), "            ")}
</%def>\
