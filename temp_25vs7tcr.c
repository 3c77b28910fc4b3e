typedef long idx;

// Some compilers take vload and vstore apart into short pieces; a plain access through a vector type
// that promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
typedef uint8 any_uint8 __attribute__((aligned(sizeof(uint))));
#define LOAD8(p) (*(__global const any_uint8 *)(p))
#define STORE8(v, p) (*(__global any_uint8 *)(p) = (v))
#else
#define LOAD8(p) vload8(0, p)
#define STORE8(v, p) vstore8(v, 0, p)
#endif
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
#define PATTERN0(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define PATTERN1(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define PATTERN2(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define PATTERN3(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#else
#define PATTERN0(a, b) (uint8)((a).s0, (a).s1, (a).s2, (a).s3, (b).s0, (b).s1, (b).s2, (b).s3)
#define PATTERN1(a, b) (uint8)((a).s4, (a).s5, (a).s6, (a).s7, (b).s4, (b).s5, (b).s6, (b).s7)
#define PATTERN2(a, b) (uint8)((a).s0, (b).s0, (a).s1, (b).s1, (a).s4, (b).s4, (a).s5, (b).s5)
#define PATTERN3(a, b) (uint8)((a).s2, (b).s2, (a).s3, (b).s3, (a).s6, (b).s6, (a).s7, (b).s7)
#endif

#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE) && !defined(CLFORMATS_NO_PREFETCH)
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(pointer) __builtin_prefetch((const void *)(uintptr_t)(pointer), 0, 2)
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(pointer)
#endif

// The loops over tiles, the outermost first. Loop k goes along an axis of the tensor in steps of
// step[k]; where that is a block of the axis, outer is around the loop that goes on inside.
typedef struct {
    idx loops, spread, lead;
    idx src0, dst0;
    idx step[13], size[13], extent[13], outer[13], count[13];
    idx src[13], dst[13];
    idx s0, d0;
    idx s1, d1;
    idx src_end, src_top;
} Nest;

// Where a tile's first element lies, and how many steps the innermost loop still goes on.
typedef struct {
    idx src, dst, left;
} Tile;

// How far each loop is and may go; the tile is where the innermost loop begins.
typedef struct {
    idx at[13], last[13], bound[13];
    Tile tile;
} Position;

static inline void shift(const Nest *nest, Tile *tile, idx k, idx steps)
{
    tile->src += steps * nest->src[k];
    tile->dst += steps * nest->dst[k];
}

static inline void move(const Nest *nest, Position *p, idx k, idx steps)
{
    p->at[k] += steps;
    shift(nest, &p->tile, k, steps);
}

// Begin the loops from number k on. The last tile of a block that tiles do not fill begins before it.
static inline void enter(const Nest *nest, Position *p, idx k)
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
static inline Position begin(const Nest *nest, idx item)
{
    Position p;
    p.tile.src = nest->src0;
    p.tile.dst = nest->dst0;
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
static inline bool advance(const Nest *nest, Position *p)
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

// The next tile; false, and back to the first one, after the last.
static inline bool next_tile(const Nest *nest, Position *p, Tile *tile)
{
    if (tile->left > 0) {
        const idx k = nest->loops - 1, steps = min(nest->step[k], tile->left);
        tile->left -= steps;
        shift(nest, tile, k, steps);
        return true;
    }
    const bool found = advance(nest, p);
    *tile = p->tile;
    return found;
}

#ifdef cl_intel_vec_len_hint
// A work-item fills vectors alone: to join several takes the compiler up to half a minute.
__attribute__((intel_vec_len_hint(1)))
#endif
__kernel void reorder(
    __global const uint *restrict src, __global uint *restrict dst, const Nest nest)
{
    const idx s0 = nest.s0, d0 = nest.d0;
    const idx s1 = nest.s1, d1 = nest.d1;
    Position p = begin(&nest, get_global_id(0)), q = p;
    Tile now = p.tile, next = now;
    bool asks = nest.lead > 0;
    for (idx n = 0; asks && n < nest.lead; ++n) {
        asks = next_tile(&nest, &q, &next);
    }
    do {
        if (asks) {
            __global const uint *ahead = src + next.src;
            PREFETCH(ahead);
            PREFETCH(ahead + s1);
            PREFETCH(ahead + 2 * s1);
            PREFETCH(ahead + 3 * s1);
            PREFETCH(ahead + 4 * s1);
            PREFETCH(ahead + 5 * s1);
            PREFETCH(ahead + 6 * s1);
            PREFETCH(ahead + 7 * s1);
            asks = next_tile(&nest, &q, &next);
        }
        __global const uint *from = src + now.src;
        __global uint *to = dst + now.dst;
        const uint8 v0 = LOAD8(from);
        const uint8 v8 = LOAD8(from + 4 * s1);
        const uint8 v16 = PATTERN0(v0, v8);
        const uint8 v17 = PATTERN1(v0, v8);
        const uint8 v4 = LOAD8(from + 2 * s1);
        const uint8 v12 = LOAD8(from + 6 * s1);
        const uint8 v18 = PATTERN0(v4, v12);
        const uint8 v19 = PATTERN1(v4, v12);
        const uint8 v20 = PATTERN2(v16, v18);
        const uint8 v21 = PATTERN3(v16, v18);
        const uint8 v2 = LOAD8(from + s1);
        const uint8 v10 = LOAD8(from + 5 * s1);
        const uint8 v22 = PATTERN0(v2, v10);
        const uint8 v23 = PATTERN1(v2, v10);
        const uint8 v6 = LOAD8(from + 3 * s1);
        const uint8 v14 = LOAD8(from + 7 * s1);
        const uint8 v24 = PATTERN0(v6, v14);
        const uint8 v25 = PATTERN1(v6, v14);
        const uint8 v26 = PATTERN2(v22, v24);
        const uint8 v27 = PATTERN3(v22, v24);
        const uint8 v28 = PATTERN2(v20, v26);
        const uint8 v29 = PATTERN3(v20, v26);
        STORE8(v28, to);
        STORE8(v29, to + d0);
        const uint8 v30 = PATTERN2(v21, v27);
        const uint8 v31 = PATTERN3(v21, v27);
        STORE8(v30, to + 2 * d0);
        STORE8(v31, to + 3 * d0);
        const uint8 v32 = PATTERN2(v17, v19);
        const uint8 v33 = PATTERN3(v17, v19);
        const uint8 v34 = PATTERN2(v23, v25);
        const uint8 v35 = PATTERN3(v23, v25);
        const uint8 v36 = PATTERN2(v32, v34);
        const uint8 v37 = PATTERN3(v32, v34);
        STORE8(v36, to + 4 * d0);
        STORE8(v37, to + 5 * d0);
        const uint8 v38 = PATTERN2(v33, v35);
        const uint8 v39 = PATTERN3(v33, v35);
        STORE8(v38, to + 6 * d0);
        STORE8(v39, to + 7 * d0);
        const uint8 v1 = LOAD8(from + 8);
        const uint8 v9 = LOAD8(from + 4 * s1 + 8);
        const uint8 v40 = PATTERN0(v1, v9);
        const uint8 v41 = PATTERN1(v1, v9);
        const uint8 v5 = LOAD8(from + 2 * s1 + 8);
        const uint8 v13 = LOAD8(from + 6 * s1 + 8);
        const uint8 v42 = PATTERN0(v5, v13);
        const uint8 v43 = PATTERN1(v5, v13);
        const uint8 v44 = PATTERN2(v40, v42);
        const uint8 v45 = PATTERN3(v40, v42);
        const uint8 v3 = LOAD8(from + s1 + 8);
        const uint8 v11 = LOAD8(from + 5 * s1 + 8);
        const uint8 v46 = PATTERN0(v3, v11);
        const uint8 v47 = PATTERN1(v3, v11);
        const uint8 v7 = LOAD8(from + 3 * s1 + 8);
        const uint8 v15 = LOAD8(from + 7 * s1 + 8);
        const uint8 v48 = PATTERN0(v7, v15);
        const uint8 v49 = PATTERN1(v7, v15);
        const uint8 v50 = PATTERN2(v46, v48);
        const uint8 v51 = PATTERN3(v46, v48);
        const uint8 v52 = PATTERN2(v44, v50);
        const uint8 v53 = PATTERN3(v44, v50);
        STORE8(v52, to + 8 * d0);
        STORE8(v53, to + 9 * d0);
        const uint8 v54 = PATTERN2(v45, v51);
        const uint8 v55 = PATTERN3(v45, v51);
        STORE8(v54, to + 10 * d0);
        STORE8(v55, to + 11 * d0);
        const uint8 v56 = PATTERN2(v41, v43);
        const uint8 v57 = PATTERN3(v41, v43);
        const uint8 v58 = PATTERN2(v47, v49);
        const uint8 v59 = PATTERN3(v47, v49);
        const uint8 v60 = PATTERN2(v56, v58);
        const uint8 v61 = PATTERN3(v56, v58);
        STORE8(v60, to + 12 * d0);
        STORE8(v61, to + 13 * d0);
        const uint8 v62 = PATTERN2(v57, v59);
        const uint8 v63 = PATTERN3(v57, v59);
        STORE8(v62, to + 14 * d0);
        STORE8(v63, to + 15 * d0);
    } while (next_tile(&nest, &p, &now));
}
