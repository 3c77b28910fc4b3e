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
            PREFETCH(ahead + 8 * s1);
            PREFETCH(ahead + 9 * s1);
            PREFETCH(ahead + 10 * s1);
            PREFETCH(ahead + 11 * s1);
            PREFETCH(ahead + 12 * s1);
            PREFETCH(ahead + 13 * s1);
            PREFETCH(ahead + 14 * s1);
            PREFETCH(ahead + 15 * s1);
            asks = next_tile(&nest, &q, &next);
        }
        __global const uint *from = src + now.src;
        __global uint *to = dst + now.dst;
        const uint8 v0 = LOAD8(from);
        const uint8 v8 = LOAD8(from + 4 * s1);
        const uint8 v32 = PATTERN0(v0, v8);
        const uint8 v33 = PATTERN1(v0, v8);
        const uint8 v4 = LOAD8(from + 2 * s1);
        const uint8 v12 = LOAD8(from + 6 * s1);
        const uint8 v34 = PATTERN0(v4, v12);
        const uint8 v35 = PATTERN1(v4, v12);
        const uint8 v36 = PATTERN2(v32, v34);
        const uint8 v37 = PATTERN3(v32, v34);
        const uint8 v2 = LOAD8(from + s1);
        const uint8 v10 = LOAD8(from + 5 * s1);
        const uint8 v38 = PATTERN0(v2, v10);
        const uint8 v39 = PATTERN1(v2, v10);
        const uint8 v6 = LOAD8(from + 3 * s1);
        const uint8 v14 = LOAD8(from + 7 * s1);
        const uint8 v40 = PATTERN0(v6, v14);
        const uint8 v41 = PATTERN1(v6, v14);
        const uint8 v42 = PATTERN2(v38, v40);
        const uint8 v43 = PATTERN3(v38, v40);
        const uint8 v44 = PATTERN2(v36, v42);
        const uint8 v45 = PATTERN3(v36, v42);
        const uint8 v16 = LOAD8(from + 8 * s1);
        const uint8 v24 = LOAD8(from + 12 * s1);
        const uint8 v46 = PATTERN0(v16, v24);
        const uint8 v47 = PATTERN1(v16, v24);
        const uint8 v20 = LOAD8(from + 10 * s1);
        const uint8 v28 = LOAD8(from + 14 * s1);
        const uint8 v48 = PATTERN0(v20, v28);
        const uint8 v49 = PATTERN1(v20, v28);
        const uint8 v50 = PATTERN2(v46, v48);
        const uint8 v51 = PATTERN3(v46, v48);
        const uint8 v18 = LOAD8(from + 9 * s1);
        const uint8 v26 = LOAD8(from + 13 * s1);
        const uint8 v52 = PATTERN0(v18, v26);
        const uint8 v53 = PATTERN1(v18, v26);
        const uint8 v22 = LOAD8(from + 11 * s1);
        const uint8 v30 = LOAD8(from + 15 * s1);
        const uint8 v54 = PATTERN0(v22, v30);
        const uint8 v55 = PATTERN1(v22, v30);
        const uint8 v56 = PATTERN2(v52, v54);
        const uint8 v57 = PATTERN3(v52, v54);
        const uint8 v58 = PATTERN2(v50, v56);
        STORE8(v44, to);
        STORE8(v58, to + 8);
        const uint8 v59 = PATTERN3(v50, v56);
        STORE8(v45, to + d0);
        STORE8(v59, to + d0 + 8);
        const uint8 v60 = PATTERN2(v37, v43);
        const uint8 v61 = PATTERN3(v37, v43);
        const uint8 v62 = PATTERN2(v51, v57);
        STORE8(v60, to + 2 * d0);
        STORE8(v62, to + 2 * d0 + 8);
        const uint8 v63 = PATTERN3(v51, v57);
        STORE8(v61, to + 3 * d0);
        STORE8(v63, to + 3 * d0 + 8);
        const uint8 v64 = PATTERN2(v33, v35);
        const uint8 v65 = PATTERN3(v33, v35);
        const uint8 v66 = PATTERN2(v39, v41);
        const uint8 v67 = PATTERN3(v39, v41);
        const uint8 v68 = PATTERN2(v64, v66);
        const uint8 v69 = PATTERN3(v64, v66);
        const uint8 v70 = PATTERN2(v47, v49);
        const uint8 v71 = PATTERN3(v47, v49);
        const uint8 v72 = PATTERN2(v53, v55);
        const uint8 v73 = PATTERN3(v53, v55);
        const uint8 v74 = PATTERN2(v70, v72);
        STORE8(v68, to + 4 * d0);
        STORE8(v74, to + 4 * d0 + 8);
        const uint8 v75 = PATTERN3(v70, v72);
        STORE8(v69, to + 5 * d0);
        STORE8(v75, to + 5 * d0 + 8);
        const uint8 v76 = PATTERN2(v65, v67);
        const uint8 v77 = PATTERN3(v65, v67);
        const uint8 v78 = PATTERN2(v71, v73);
        STORE8(v76, to + 6 * d0);
        STORE8(v78, to + 6 * d0 + 8);
        const uint8 v79 = PATTERN3(v71, v73);
        STORE8(v77, to + 7 * d0);
        STORE8(v79, to + 7 * d0 + 8);
        const uint8 v1 = LOAD8(from + 8);
        const uint8 v9 = LOAD8(from + 4 * s1 + 8);
        const uint8 v80 = PATTERN0(v1, v9);
        const uint8 v81 = PATTERN1(v1, v9);
        const uint8 v5 = LOAD8(from + 2 * s1 + 8);
        const uint8 v13 = LOAD8(from + 6 * s1 + 8);
        const uint8 v82 = PATTERN0(v5, v13);
        const uint8 v83 = PATTERN1(v5, v13);
        const uint8 v84 = PATTERN2(v80, v82);
        const uint8 v85 = PATTERN3(v80, v82);
        const uint8 v3 = LOAD8(from + s1 + 8);
        const uint8 v11 = LOAD8(from + 5 * s1 + 8);
        const uint8 v86 = PATTERN0(v3, v11);
        const uint8 v87 = PATTERN1(v3, v11);
        const uint8 v7 = LOAD8(from + 3 * s1 + 8);
        const uint8 v15 = LOAD8(from + 7 * s1 + 8);
        const uint8 v88 = PATTERN0(v7, v15);
        const uint8 v89 = PATTERN1(v7, v15);
        const uint8 v90 = PATTERN2(v86, v88);
        const uint8 v91 = PATTERN3(v86, v88);
        const uint8 v92 = PATTERN2(v84, v90);
        const uint8 v93 = PATTERN3(v84, v90);
        const uint8 v17 = LOAD8(from + 8 * s1 + 8);
        const uint8 v25 = LOAD8(from + 12 * s1 + 8);
        const uint8 v94 = PATTERN0(v17, v25);
        const uint8 v95 = PATTERN1(v17, v25);
        const uint8 v21 = LOAD8(from + 10 * s1 + 8);
        const uint8 v29 = LOAD8(from + 14 * s1 + 8);
        const uint8 v96 = PATTERN0(v21, v29);
        const uint8 v97 = PATTERN1(v21, v29);
        const uint8 v98 = PATTERN2(v94, v96);
        const uint8 v99 = PATTERN3(v94, v96);
        const uint8 v19 = LOAD8(from + 9 * s1 + 8);
        const uint8 v27 = LOAD8(from + 13 * s1 + 8);
        const uint8 v100 = PATTERN0(v19, v27);
        const uint8 v101 = PATTERN1(v19, v27);
        const uint8 v23 = LOAD8(from + 11 * s1 + 8);
        const uint8 v31 = LOAD8(from + 15 * s1 + 8);
        const uint8 v102 = PATTERN0(v23, v31);
        const uint8 v103 = PATTERN1(v23, v31);
        const uint8 v104 = PATTERN2(v100, v102);
        const uint8 v105 = PATTERN3(v100, v102);
        const uint8 v106 = PATTERN2(v98, v104);
        STORE8(v92, to + 8 * d0);
        STORE8(v106, to + 8 * d0 + 8);
        const uint8 v107 = PATTERN3(v98, v104);
        STORE8(v93, to + 9 * d0);
        STORE8(v107, to + 9 * d0 + 8);
        const uint8 v108 = PATTERN2(v85, v91);
        const uint8 v109 = PATTERN3(v85, v91);
        const uint8 v110 = PATTERN2(v99, v105);
        STORE8(v108, to + 10 * d0);
        STORE8(v110, to + 10 * d0 + 8);
        const uint8 v111 = PATTERN3(v99, v105);
        STORE8(v109, to + 11 * d0);
        STORE8(v111, to + 11 * d0 + 8);
        const uint8 v112 = PATTERN2(v81, v83);
        const uint8 v113 = PATTERN3(v81, v83);
        const uint8 v114 = PATTERN2(v87, v89);
        const uint8 v115 = PATTERN3(v87, v89);
        const uint8 v116 = PATTERN2(v112, v114);
        const uint8 v117 = PATTERN3(v112, v114);
        const uint8 v118 = PATTERN2(v95, v97);
        const uint8 v119 = PATTERN3(v95, v97);
        const uint8 v120 = PATTERN2(v101, v103);
        const uint8 v121 = PATTERN3(v101, v103);
        const uint8 v122 = PATTERN2(v118, v120);
        STORE8(v116, to + 12 * d0);
        STORE8(v122, to + 12 * d0 + 8);
        const uint8 v123 = PATTERN3(v118, v120);
        STORE8(v117, to + 13 * d0);
        STORE8(v123, to + 13 * d0 + 8);
        const uint8 v124 = PATTERN2(v113, v115);
        const uint8 v125 = PATTERN3(v113, v115);
        const uint8 v126 = PATTERN2(v119, v121);
        STORE8(v124, to + 14 * d0);
        STORE8(v126, to + 14 * d0 + 8);
        const uint8 v127 = PATTERN3(v119, v121);
        STORE8(v125, to + 15 * d0);
        STORE8(v127, to + 15 * d0 + 8);
    } while (next_tile(&nest, &p, &now));
}
