typedef long idx;
// Round to nearest even; half values exist in memory alone.
static inline ushort to_f16_1(float x)
{
    ushort2 bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits.s0;
}
// Round to nearest even; half values exist in memory alone.
static inline ushort8 to_f16_8(float8 x)
{
    ushort8 bits;
    vstore_half8_rte(x, 0, (half *)&bits);
    return bits;
}

// Some compilers take vload and vstore apart into short pieces; a plain access through a vector type
// that promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
typedef float8 any_float8 __attribute__((aligned(sizeof(float))));
typedef ushort8 any_ushort8 __attribute__((aligned(sizeof(ushort))));
#define LOAD8(p) (*(__global const any_float8 *)(p))
#define STORE8(v, p) (*(__global any_ushort8 *)(p) = (v))
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
#define PATTERN0(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define PATTERN1(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define PATTERN0(a, b) (ushort8)((a).s0, (b).s0, (a).s1, (b).s1, (a).s2, (b).s2, (a).s3, (b).s3)
#define PATTERN1(a, b) (ushort8)((a).s4, (b).s4, (a).s5, (b).s5, (a).s6, (b).s6, (a).s7, (b).s7)
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
    __global const float *restrict src, __global ushort *restrict dst, const Nest nest)
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
            __global const float *ahead = src + next.src;
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
        __global const float *from = src + now.src;
        __global ushort *to = dst + now.dst;
        const ushort8 v0 = to_f16_8(LOAD8(from));
        const ushort8 v8 = to_f16_8(LOAD8(from + 4 * s1));
        const ushort8 v32 = PATTERN0(v0, v8);
        const ushort8 v33 = PATTERN1(v0, v8);
        const ushort8 v4 = to_f16_8(LOAD8(from + 2 * s1));
        const ushort8 v12 = to_f16_8(LOAD8(from + 6 * s1));
        const ushort8 v34 = PATTERN0(v4, v12);
        const ushort8 v35 = PATTERN1(v4, v12);
        const ushort8 v36 = PATTERN0(v32, v34);
        const ushort8 v37 = PATTERN1(v32, v34);
        const ushort8 v2 = to_f16_8(LOAD8(from + s1));
        const ushort8 v10 = to_f16_8(LOAD8(from + 5 * s1));
        const ushort8 v38 = PATTERN0(v2, v10);
        const ushort8 v39 = PATTERN1(v2, v10);
        const ushort8 v6 = to_f16_8(LOAD8(from + 3 * s1));
        const ushort8 v14 = to_f16_8(LOAD8(from + 7 * s1));
        const ushort8 v40 = PATTERN0(v6, v14);
        const ushort8 v41 = PATTERN1(v6, v14);
        const ushort8 v42 = PATTERN0(v38, v40);
        const ushort8 v43 = PATTERN1(v38, v40);
        const ushort8 v44 = PATTERN0(v36, v42);
        const ushort8 v45 = PATTERN1(v36, v42);
        const ushort8 v16 = to_f16_8(LOAD8(from + 8 * s1));
        const ushort8 v24 = to_f16_8(LOAD8(from + 12 * s1));
        const ushort8 v46 = PATTERN0(v16, v24);
        const ushort8 v47 = PATTERN1(v16, v24);
        const ushort8 v20 = to_f16_8(LOAD8(from + 10 * s1));
        const ushort8 v28 = to_f16_8(LOAD8(from + 14 * s1));
        const ushort8 v48 = PATTERN0(v20, v28);
        const ushort8 v49 = PATTERN1(v20, v28);
        const ushort8 v50 = PATTERN0(v46, v48);
        const ushort8 v51 = PATTERN1(v46, v48);
        const ushort8 v18 = to_f16_8(LOAD8(from + 9 * s1));
        const ushort8 v26 = to_f16_8(LOAD8(from + 13 * s1));
        const ushort8 v52 = PATTERN0(v18, v26);
        const ushort8 v53 = PATTERN1(v18, v26);
        const ushort8 v22 = to_f16_8(LOAD8(from + 11 * s1));
        const ushort8 v30 = to_f16_8(LOAD8(from + 15 * s1));
        const ushort8 v54 = PATTERN0(v22, v30);
        const ushort8 v55 = PATTERN1(v22, v30);
        const ushort8 v56 = PATTERN0(v52, v54);
        const ushort8 v57 = PATTERN1(v52, v54);
        const ushort8 v58 = PATTERN0(v50, v56);
        const ushort8 v59 = PATTERN1(v50, v56);
        STORE8(v44, to);
        STORE8(v58, to + 8);
        STORE8(v45, to + d0);
        STORE8(v59, to + d0 + 8);
        const ushort8 v60 = PATTERN0(v37, v43);
        const ushort8 v61 = PATTERN1(v37, v43);
        const ushort8 v62 = PATTERN0(v51, v57);
        const ushort8 v63 = PATTERN1(v51, v57);
        STORE8(v60, to + 2 * d0);
        STORE8(v62, to + 2 * d0 + 8);
        STORE8(v61, to + 3 * d0);
        STORE8(v63, to + 3 * d0 + 8);
        const ushort8 v64 = PATTERN0(v33, v35);
        const ushort8 v65 = PATTERN1(v33, v35);
        const ushort8 v66 = PATTERN0(v39, v41);
        const ushort8 v67 = PATTERN1(v39, v41);
        const ushort8 v68 = PATTERN0(v64, v66);
        const ushort8 v69 = PATTERN1(v64, v66);
        const ushort8 v70 = PATTERN0(v47, v49);
        const ushort8 v71 = PATTERN1(v47, v49);
        const ushort8 v72 = PATTERN0(v53, v55);
        const ushort8 v73 = PATTERN1(v53, v55);
        const ushort8 v74 = PATTERN0(v70, v72);
        const ushort8 v75 = PATTERN1(v70, v72);
        STORE8(v68, to + 4 * d0);
        STORE8(v74, to + 4 * d0 + 8);
        STORE8(v69, to + 5 * d0);
        STORE8(v75, to + 5 * d0 + 8);
        const ushort8 v76 = PATTERN0(v65, v67);
        const ushort8 v77 = PATTERN1(v65, v67);
        const ushort8 v78 = PATTERN0(v71, v73);
        const ushort8 v79 = PATTERN1(v71, v73);
        STORE8(v76, to + 6 * d0);
        STORE8(v78, to + 6 * d0 + 8);
        STORE8(v77, to + 7 * d0);
        STORE8(v79, to + 7 * d0 + 8);
        const ushort8 v1 = to_f16_8(LOAD8(from + 8));
        const ushort8 v9 = to_f16_8(LOAD8(from + 4 * s1 + 8));
        const ushort8 v80 = PATTERN0(v1, v9);
        const ushort8 v81 = PATTERN1(v1, v9);
        const ushort8 v5 = to_f16_8(LOAD8(from + 2 * s1 + 8));
        const ushort8 v13 = to_f16_8(LOAD8(from + 6 * s1 + 8));
        const ushort8 v82 = PATTERN0(v5, v13);
        const ushort8 v83 = PATTERN1(v5, v13);
        const ushort8 v84 = PATTERN0(v80, v82);
        const ushort8 v85 = PATTERN1(v80, v82);
        const ushort8 v3 = to_f16_8(LOAD8(from + s1 + 8));
        const ushort8 v11 = to_f16_8(LOAD8(from + 5 * s1 + 8));
        const ushort8 v86 = PATTERN0(v3, v11);
        const ushort8 v87 = PATTERN1(v3, v11);
        const ushort8 v7 = to_f16_8(LOAD8(from + 3 * s1 + 8));
        const ushort8 v15 = to_f16_8(LOAD8(from + 7 * s1 + 8));
        const ushort8 v88 = PATTERN0(v7, v15);
        const ushort8 v89 = PATTERN1(v7, v15);
        const ushort8 v90 = PATTERN0(v86, v88);
        const ushort8 v91 = PATTERN1(v86, v88);
        const ushort8 v92 = PATTERN0(v84, v90);
        const ushort8 v93 = PATTERN1(v84, v90);
        const ushort8 v17 = to_f16_8(LOAD8(from + 8 * s1 + 8));
        const ushort8 v25 = to_f16_8(LOAD8(from + 12 * s1 + 8));
        const ushort8 v94 = PATTERN0(v17, v25);
        const ushort8 v95 = PATTERN1(v17, v25);
        const ushort8 v21 = to_f16_8(LOAD8(from + 10 * s1 + 8));
        const ushort8 v29 = to_f16_8(LOAD8(from + 14 * s1 + 8));
        const ushort8 v96 = PATTERN0(v21, v29);
        const ushort8 v97 = PATTERN1(v21, v29);
        const ushort8 v98 = PATTERN0(v94, v96);
        const ushort8 v99 = PATTERN1(v94, v96);
        const ushort8 v19 = to_f16_8(LOAD8(from + 9 * s1 + 8));
        const ushort8 v27 = to_f16_8(LOAD8(from + 13 * s1 + 8));
        const ushort8 v100 = PATTERN0(v19, v27);
        const ushort8 v101 = PATTERN1(v19, v27);
        const ushort8 v23 = to_f16_8(LOAD8(from + 11 * s1 + 8));
        const ushort8 v31 = to_f16_8(LOAD8(from + 15 * s1 + 8));
        const ushort8 v102 = PATTERN0(v23, v31);
        const ushort8 v103 = PATTERN1(v23, v31);
        const ushort8 v104 = PATTERN0(v100, v102);
        const ushort8 v105 = PATTERN1(v100, v102);
        const ushort8 v106 = PATTERN0(v98, v104);
        const ushort8 v107 = PATTERN1(v98, v104);
        STORE8(v92, to + 8 * d0);
        STORE8(v106, to + 8 * d0 + 8);
        STORE8(v93, to + 9 * d0);
        STORE8(v107, to + 9 * d0 + 8);
        const ushort8 v108 = PATTERN0(v85, v91);
        const ushort8 v109 = PATTERN1(v85, v91);
        const ushort8 v110 = PATTERN0(v99, v105);
        const ushort8 v111 = PATTERN1(v99, v105);
        STORE8(v108, to + 10 * d0);
        STORE8(v110, to + 10 * d0 + 8);
        STORE8(v109, to + 11 * d0);
        STORE8(v111, to + 11 * d0 + 8);
        const ushort8 v112 = PATTERN0(v81, v83);
        const ushort8 v113 = PATTERN1(v81, v83);
        const ushort8 v114 = PATTERN0(v87, v89);
        const ushort8 v115 = PATTERN1(v87, v89);
        const ushort8 v116 = PATTERN0(v112, v114);
        const ushort8 v117 = PATTERN1(v112, v114);
        const ushort8 v118 = PATTERN0(v95, v97);
        const ushort8 v119 = PATTERN1(v95, v97);
        const ushort8 v120 = PATTERN0(v101, v103);
        const ushort8 v121 = PATTERN1(v101, v103);
        const ushort8 v122 = PATTERN0(v118, v120);
        const ushort8 v123 = PATTERN1(v118, v120);
        STORE8(v116, to + 12 * d0);
        STORE8(v122, to + 12 * d0 + 8);
        STORE8(v117, to + 13 * d0);
        STORE8(v123, to + 13 * d0 + 8);
        const ushort8 v124 = PATTERN0(v113, v115);
        const ushort8 v125 = PATTERN1(v113, v115);
        const ushort8 v126 = PATTERN0(v119, v121);
        const ushort8 v127 = PATTERN1(v119, v121);
        STORE8(v124, to + 14 * d0);
        STORE8(v126, to + 14 * d0 + 8);
        STORE8(v125, to + 15 * d0);
        STORE8(v127, to + 15 * d0 + 8);
    } while (next_tile(&nest, &p, &now));
}
