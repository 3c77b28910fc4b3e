typedef long idx;
#ifdef POCL_DEVICE_ADDRESS_BITS
// Half values may begin anywhere, but pocl's vload_half promises 16 bytes to the compiler, which may
// rely on it where it needs a part of a vector.
typedef ushort16 any_bits16 __attribute__((aligned(2)));
static inline float16 load_half16(__global const half *from)
{
    const ushort16 bits = *(__global const any_bits16 *)from;
    return vload_half16(0, (const half *)&bits);
}
#undef vload_half16
#define vload_half16(offset, from) load_half16(from)
#endif

// Some compilers take vload and vstore apart into short pieces; a plain access through a vector type
// that promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
typedef float16 any_float16 __attribute__((aligned(sizeof(float))));
#define STORE16(v, p) (*(__global any_float16 *)(p) = (v))
#else
#define STORE16(v, p) vstore16(v, 0, p)
#endif
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
#define PATTERN0(a, b) __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define PATTERN1(a, b) __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#define PATTERN2(a, b) __builtin_shufflevector(a, b, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29)
#define PATTERN3(a, b) __builtin_shufflevector(a, b, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31)
#else
#define PATTERN0(a, b) (float16)((a).s0, (b).s0, (a).s2, (b).s2, (a).s4, (b).s4, (a).s6, (b).s6, (a).s8, (b).s8, (a).sa, (b).sa, (a).sc, (b).sc, (a).se, (b).se)
#define PATTERN1(a, b) (float16)((a).s1, (b).s1, (a).s3, (b).s3, (a).s5, (b).s5, (a).s7, (b).s7, (a).s9, (b).s9, (a).sb, (b).sb, (a).sd, (b).sd, (a).sf, (b).sf)
#define PATTERN2(a, b) (float16)((a).s0, (a).s4, (a).s8, (a).sc, (b).s0, (b).s4, (b).s8, (b).sc, (a).s1, (a).s5, (a).s9, (a).sd, (b).s1, (b).s5, (b).s9, (b).sd)
#define PATTERN3(a, b) (float16)((a).s2, (a).s6, (a).sa, (a).se, (b).s2, (b).s6, (b).sa, (b).se, (a).s3, (a).s7, (a).sb, (a).sf, (b).s3, (b).s7, (b).sb, (b).sf)
#endif

#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE) && !defined(CLFORMATS_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(pointer) __builtin_prefetch((const void *)(uintptr_t)(pointer), 0, 2)
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(pointer)
#endif

// What runs for every tile stays in registers.
#define INLINE static inline __attribute__((always_inline))

// The loops over tiles, the outermost first. Loop k goes along an axis of the tensor in steps of
// step[k]; where that is a block of the axis, outer is around the loop that goes on inside.
typedef struct {
    idx loops, spread, lead;
    idx src0, dst0;
    idx step[13], size[13], extent[13], outer[13], count[13];
    idx src[13], dst[13];
    idx guard[1][13];
    idx s0, d0;
    idx s1, d1;
    idx lo0, hi0, end0, top0;
    idx src_end, src_top;
} Nest;

// Where a tile's first element lies, and how many steps the innermost loop still goes on.
typedef struct {
    idx src, dst, left;
    idx guard[1];
} Tile;

// How far each loop is and may go; the tile is where the innermost loop begins.
typedef struct {
    idx at[13], last[13], bound[13];
    Tile tile;
} Position;

INLINE void shift(const Nest *nest, Tile *tile, idx k, idx steps)
{
    tile->src += steps * nest->src[k];
    tile->dst += steps * nest->dst[k];
    tile->guard[0] += steps * nest->guard[0][k];
}

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
    p.tile.guard[0] = 0;
    enter(nest, &p, 0);
    for (idx k = nest->loops - 1; k >= nest->spread; --k) {
        move(nest, &p, k, -p.at[k]);
    }
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
        tile->guard[0] += step->guard[0];
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

// Which lanes are elements: their indices are not below lo, and below hi.
static inline int16 between_16(idx at, int16 lane, idx lo, idx hi)
{
    return (lane >= convert_int_sat(lo - at)) & (lane < convert_int_sat(hi - at));
}

// A vector whose lanes that are no elements read as zero; nothing is read outside of the tensor.
static inline float16 load_edge_16(__global const half *src, idx at, int16 inside, idx end)
{
    if (at >= 0 && at + 16 <= end) {
        const float16 v = vload_half16(0, (src + at));
        return as_float16(as_int16(v) & convert_int16(inside));
    }
    int is_element[16];
    float lane[16];
    vstore16(inside, 0, is_element);
    for (int l = 0; l < 16; ++l) {
        lane[l] = 0;
        if (is_element[l]) {
            lane[l] = vload_half(0, (src + at + l));
        }
    }
    return vload16(0, lane);
}

// The lanes of a vector that have a place.
static inline void store_edge(float16 v, int16 inside, __global float *to)
{
    if (all(inside)) {
        STORE16(v, to);
        return;
    }
    int has_place[16];
    float lane[16];
    vstore16(inside, 0, has_place);
    vstore16(v, 0, lane);
    for (int l = 0; l < 16; ++l) {
        if (has_place[l]) {
            *((to + l)) = lane[l];
        }
    }
}

#ifdef cl_intel_vec_len_hint
// A work-item fills vectors alone: to join several takes the compiler up to half a minute.
__attribute__((intel_vec_len_hint(1)))
#endif
__kernel void reorder(
    __global const half *restrict src, __global float *restrict dst, const Nest nest)
{
    const idx s0 = nest.s0, d0 = nest.d0;
    const idx s1 = nest.s1, d1 = nest.d1;
    Position p = begin(&nest, get_global_id(0)), q = p;
    Tile now = p.tile, next = now;
    const Tile step = inner_step(&nest);
    bool asks = nest.lead > 0;
    for (idx n = 0; asks && n < nest.lead; ++n) {
        asks = next_tile(&nest, &step, &q, &next);
    }
    bool has_edges = false;
    do {
        if (asks) {
            __global const half *ahead = src + next.src;
            PREFETCH(ahead);
            PREFETCH(ahead + 32);
            asks = next_tile(&nest, &step, &q, &next);
        }
        if (!(now.guard[0] >= nest.lo0 && now.guard[0] <= nest.top0)) {
            has_edges = true;
            continue;
        }
        __global const half *from = src + now.src;
        __global float *to = dst + now.dst;
        const float16 v0 = vload_half16(0, from);
        const float16 v2 = vload_half16(0, from + 32);
        const float16 v4 = PATTERN0(v0, v2);
        const float16 v5 = PATTERN1(v0, v2);
        const float16 v1 = vload_half16(0, from + 16);
        const float16 v3 = vload_half16(0, from + 48);
        const float16 v6 = PATTERN0(v1, v3);
        const float16 v7 = PATTERN1(v1, v3);
        const float16 v8 = PATTERN2(v4, v6);
        STORE16(v8, to);
        const float16 v9 = PATTERN3(v4, v6);
        STORE16(v9, to + 2 * d0);
        const float16 v10 = PATTERN2(v5, v7);
        STORE16(v10, to + d0);
        const float16 v11 = PATTERN3(v5, v7);
        STORE16(v11, to + 3 * d0);
    } while (next_tile(&nest, &step, &p, &now));

    // The tiles at the edges, in a loop of their own: a compiler that sees both merges their stores.
    if (has_edges) {
        do {
            if (now.guard[0] >= nest.lo0 && now.guard[0] <= nest.top0) {
                continue;
            }
            __global const half *from = src + now.src;
            __global float *to = dst + now.dst;
            const float16 v0 = load_edge_16(src, now.src, between_16(now.guard[0], (int16)(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3), nest.lo0, nest.hi0), nest.src_end);
            const float16 v2 = load_edge_16(src, now.src + 32, between_16(now.guard[0], (int16)(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3), nest.lo0, nest.hi0), nest.src_end);
            const float16 v4 = PATTERN0(v0, v2);
            const float16 v5 = PATTERN1(v0, v2);
            const float16 v1 = load_edge_16(src, now.src + 16, between_16(now.guard[0], (int16)(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3), nest.lo0, nest.hi0), nest.src_end);
            const float16 v3 = load_edge_16(src, now.src + 48, between_16(now.guard[0], (int16)(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3), nest.lo0, nest.hi0), nest.src_end);
            const float16 v6 = PATTERN0(v1, v3);
            const float16 v7 = PATTERN1(v1, v3);
            const float16 v8 = PATTERN2(v4, v6);
            if (now.guard[0] < nest.end0) { STORE16(v8, to); }
            const float16 v9 = PATTERN3(v4, v6);
            if (now.guard[0] + 2 < nest.end0) { STORE16(v9, to + 2 * d0); }
            const float16 v10 = PATTERN2(v5, v7);
            if (now.guard[0] + 1 < nest.end0) { STORE16(v10, to + d0); }
            const float16 v11 = PATTERN3(v5, v7);
            if (now.guard[0] + 3 < nest.end0) { STORE16(v11, to + 3 * d0); }
        } while (next_tile(&nest, &step, &p, &now));
    }
}
