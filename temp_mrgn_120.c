typedef long idx;

// Some compilers take vload and vstore apart into short pieces; a plain access through a vector type
// that promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
typedef uint16 any_uint16 __attribute__((aligned(sizeof(uint))));
#define LOAD16(p) (*(__global const any_uint16 *)(p))
#define STORE16(v, p) (*(__global any_uint16 *)(p) = (v))
#else
#define LOAD16(p) vload16(0, p)
#define STORE16(v, p) vstore16(v, 0, p)
#endif
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
#define PATTERN0(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define PATTERN1(a, b) __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define PATTERN2(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define PATTERN3(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define PATTERN4(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define PATTERN5(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#else
#define PATTERN0(a, b) (uint16)((a).s0, (a).s1, (a).s2, (a).s3, (a).s4, (a).s5, (a).s6, (a).s7, (b).s0, (b).s1, (b).s2, (b).s3, (b).s4, (b).s5, (b).s6, (b).s7)
#define PATTERN1(a, b) (uint16)((a).s8, (a).s9, (a).sa, (a).sb, (a).sc, (a).sd, (a).se, (a).sf, (b).s8, (b).s9, (b).sa, (b).sb, (b).sc, (b).sd, (b).se, (b).sf)
#define PATTERN2(a, b) (uint16)((a).s0, (a).s1, (a).s2, (a).s3, (b).s0, (b).s1, (b).s2, (b).s3, (a).s8, (a).s9, (a).sa, (a).sb, (b).s8, (b).s9, (b).sa, (b).sb)
#define PATTERN3(a, b) (uint16)((a).s4, (a).s5, (a).s6, (a).s7, (b).s4, (b).s5, (b).s6, (b).s7, (a).sc, (a).sd, (a).se, (a).sf, (b).sc, (b).sd, (b).se, (b).sf)
#define PATTERN4(a, b) (uint16)((a).s0, (b).s0, (a).s1, (b).s1, (a).s4, (b).s4, (a).s5, (b).s5, (a).s8, (b).s8, (a).s9, (b).s9, (a).sc, (b).sc, (a).sd, (b).sd)
#define PATTERN5(a, b) (uint16)((a).s2, (b).s2, (a).s3, (b).s3, (a).s6, (b).s6, (a).s7, (b).s7, (a).sa, (b).sa, (a).sb, (b).sb, (a).se, (b).se, (a).sf, (b).sf)
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
            PREFETCH(ahead + 16);
            PREFETCH(ahead + s1);
            PREFETCH(ahead + s1 + 16);
            PREFETCH(ahead + 2 * s1);
            PREFETCH(ahead + 2 * s1 + 16);
            PREFETCH(ahead + 3 * s1);
            PREFETCH(ahead + 3 * s1 + 16);
            PREFETCH(ahead + 4 * s1);
            PREFETCH(ahead + 4 * s1 + 16);
            PREFETCH(ahead + 5 * s1);
            PREFETCH(ahead + 5 * s1 + 16);
            PREFETCH(ahead + 6 * s1);
            PREFETCH(ahead + 6 * s1 + 16);
            PREFETCH(ahead + 7 * s1);
            PREFETCH(ahead + 7 * s1 + 16);
            PREFETCH(ahead + 8 * s1);
            PREFETCH(ahead + 8 * s1 + 16);
            PREFETCH(ahead + 9 * s1);
            PREFETCH(ahead + 9 * s1 + 16);
            PREFETCH(ahead + 10 * s1);
            PREFETCH(ahead + 10 * s1 + 16);
            PREFETCH(ahead + 11 * s1);
            PREFETCH(ahead + 11 * s1 + 16);
            PREFETCH(ahead + 12 * s1);
            PREFETCH(ahead + 12 * s1 + 16);
            PREFETCH(ahead + 13 * s1);
            PREFETCH(ahead + 13 * s1 + 16);
            PREFETCH(ahead + 14 * s1);
            PREFETCH(ahead + 14 * s1 + 16);
            PREFETCH(ahead + 15 * s1);
            PREFETCH(ahead + 15 * s1 + 16);
            asks = next_tile(&nest, &q, &next);
        }
        __global const uint *from = src + now.src;
        __global uint *to = dst + now.dst;
        const uint16 v0 = LOAD16(from);
        const uint16 v16 = LOAD16(from + 8 * s1);
        const uint16 v32 = PATTERN0(v0, v16);
        const uint16 v33 = PATTERN1(v0, v16);
        const uint16 v8 = LOAD16(from + 4 * s1);
        const uint16 v24 = LOAD16(from + 12 * s1);
        const uint16 v34 = PATTERN0(v8, v24);
        const uint16 v35 = PATTERN1(v8, v24);
        const uint16 v36 = PATTERN2(v32, v34);
        const uint16 v37 = PATTERN3(v32, v34);
        const uint16 v4 = LOAD16(from + 2 * s1);
        const uint16 v20 = LOAD16(from + 10 * s1);
        const uint16 v38 = PATTERN0(v4, v20);
        const uint16 v39 = PATTERN1(v4, v20);
        const uint16 v12 = LOAD16(from + 6 * s1);
        const uint16 v28 = LOAD16(from + 14 * s1);
        const uint16 v40 = PATTERN0(v12, v28);
        const uint16 v41 = PATTERN1(v12, v28);
        const uint16 v42 = PATTERN2(v38, v40);
        const uint16 v43 = PATTERN3(v38, v40);
        const uint16 v44 = PATTERN4(v36, v42);
        const uint16 v45 = PATTERN5(v36, v42);
        const uint16 v2 = LOAD16(from + s1);
        const uint16 v18 = LOAD16(from + 9 * s1);
        const uint16 v46 = PATTERN0(v2, v18);
        const uint16 v47 = PATTERN1(v2, v18);
        const uint16 v10 = LOAD16(from + 5 * s1);
        const uint16 v26 = LOAD16(from + 13 * s1);
        const uint16 v48 = PATTERN0(v10, v26);
        const uint16 v49 = PATTERN1(v10, v26);
        const uint16 v50 = PATTERN2(v46, v48);
        const uint16 v51 = PATTERN3(v46, v48);
        const uint16 v6 = LOAD16(from + 3 * s1);
        const uint16 v22 = LOAD16(from + 11 * s1);
        const uint16 v52 = PATTERN0(v6, v22);
        const uint16 v53 = PATTERN1(v6, v22);
        const uint16 v14 = LOAD16(from + 7 * s1);
        const uint16 v30 = LOAD16(from + 15 * s1);
        const uint16 v54 = PATTERN0(v14, v30);
        const uint16 v55 = PATTERN1(v14, v30);
        const uint16 v56 = PATTERN2(v52, v54);
        const uint16 v57 = PATTERN3(v52, v54);
        const uint16 v58 = PATTERN4(v50, v56);
        const uint16 v59 = PATTERN5(v50, v56);
        const uint16 v60 = PATTERN4(v44, v58);
        STORE16(v60, to);
        const uint16 v61 = PATTERN5(v44, v58);
        STORE16(v61, to + d0);
        const uint16 v62 = PATTERN4(v45, v59);
        STORE16(v62, to + 2 * d0);
        const uint16 v63 = PATTERN5(v45, v59);
        STORE16(v63, to + 3 * d0);
        const uint16 v64 = PATTERN4(v37, v43);
        const uint16 v65 = PATTERN5(v37, v43);
        const uint16 v66 = PATTERN4(v51, v57);
        const uint16 v67 = PATTERN5(v51, v57);
        const uint16 v68 = PATTERN4(v64, v66);
        STORE16(v68, to + 4 * d0);
        const uint16 v69 = PATTERN5(v64, v66);
        STORE16(v69, to + 5 * d0);
        const uint16 v70 = PATTERN4(v65, v67);
        STORE16(v70, to + 6 * d0);
        const uint16 v71 = PATTERN5(v65, v67);
        STORE16(v71, to + 7 * d0);
        const uint16 v72 = PATTERN2(v33, v35);
        const uint16 v73 = PATTERN3(v33, v35);
        const uint16 v74 = PATTERN2(v39, v41);
        const uint16 v75 = PATTERN3(v39, v41);
        const uint16 v76 = PATTERN4(v72, v74);
        const uint16 v77 = PATTERN5(v72, v74);
        const uint16 v78 = PATTERN2(v47, v49);
        const uint16 v79 = PATTERN3(v47, v49);
        const uint16 v80 = PATTERN2(v53, v55);
        const uint16 v81 = PATTERN3(v53, v55);
        const uint16 v82 = PATTERN4(v78, v80);
        const uint16 v83 = PATTERN5(v78, v80);
        const uint16 v84 = PATTERN4(v76, v82);
        STORE16(v84, to + 8 * d0);
        const uint16 v85 = PATTERN5(v76, v82);
        STORE16(v85, to + 9 * d0);
        const uint16 v86 = PATTERN4(v77, v83);
        STORE16(v86, to + 10 * d0);
        const uint16 v87 = PATTERN5(v77, v83);
        STORE16(v87, to + 11 * d0);
        const uint16 v88 = PATTERN4(v73, v75);
        const uint16 v89 = PATTERN5(v73, v75);
        const uint16 v90 = PATTERN4(v79, v81);
        const uint16 v91 = PATTERN5(v79, v81);
        const uint16 v92 = PATTERN4(v88, v90);
        STORE16(v92, to + 12 * d0);
        const uint16 v93 = PATTERN5(v88, v90);
        STORE16(v93, to + 13 * d0);
        const uint16 v94 = PATTERN4(v89, v91);
        STORE16(v94, to + 14 * d0);
        const uint16 v95 = PATTERN5(v89, v91);
        STORE16(v95, to + 15 * d0);
        const uint16 v1 = LOAD16(from + 16);
        const uint16 v17 = LOAD16(from + 8 * s1 + 16);
        const uint16 v96 = PATTERN0(v1, v17);
        const uint16 v97 = PATTERN1(v1, v17);
        const uint16 v9 = LOAD16(from + 4 * s1 + 16);
        const uint16 v25 = LOAD16(from + 12 * s1 + 16);
        const uint16 v98 = PATTERN0(v9, v25);
        const uint16 v99 = PATTERN1(v9, v25);
        const uint16 v100 = PATTERN2(v96, v98);
        const uint16 v101 = PATTERN3(v96, v98);
        const uint16 v5 = LOAD16(from + 2 * s1 + 16);
        const uint16 v21 = LOAD16(from + 10 * s1 + 16);
        const uint16 v102 = PATTERN0(v5, v21);
        const uint16 v103 = PATTERN1(v5, v21);
        const uint16 v13 = LOAD16(from + 6 * s1 + 16);
        const uint16 v29 = LOAD16(from + 14 * s1 + 16);
        const uint16 v104 = PATTERN0(v13, v29);
        const uint16 v105 = PATTERN1(v13, v29);
        const uint16 v106 = PATTERN2(v102, v104);
        const uint16 v107 = PATTERN3(v102, v104);
        const uint16 v108 = PATTERN4(v100, v106);
        const uint16 v109 = PATTERN5(v100, v106);
        const uint16 v3 = LOAD16(from + s1 + 16);
        const uint16 v19 = LOAD16(from + 9 * s1 + 16);
        const uint16 v110 = PATTERN0(v3, v19);
        const uint16 v111 = PATTERN1(v3, v19);
        const uint16 v11 = LOAD16(from + 5 * s1 + 16);
        const uint16 v27 = LOAD16(from + 13 * s1 + 16);
        const uint16 v112 = PATTERN0(v11, v27);
        const uint16 v113 = PATTERN1(v11, v27);
        const uint16 v114 = PATTERN2(v110, v112);
        const uint16 v115 = PATTERN3(v110, v112);
        const uint16 v7 = LOAD16(from + 3 * s1 + 16);
        const uint16 v23 = LOAD16(from + 11 * s1 + 16);
        const uint16 v116 = PATTERN0(v7, v23);
        const uint16 v117 = PATTERN1(v7, v23);
        const uint16 v15 = LOAD16(from + 7 * s1 + 16);
        const uint16 v31 = LOAD16(from + 15 * s1 + 16);
        const uint16 v118 = PATTERN0(v15, v31);
        const uint16 v119 = PATTERN1(v15, v31);
        const uint16 v120 = PATTERN2(v116, v118);
        const uint16 v121 = PATTERN3(v116, v118);
        const uint16 v122 = PATTERN4(v114, v120);
        const uint16 v123 = PATTERN5(v114, v120);
        const uint16 v124 = PATTERN4(v108, v122);
        STORE16(v124, to + 16 * d0);
        const uint16 v125 = PATTERN5(v108, v122);
        STORE16(v125, to + 17 * d0);
        const uint16 v126 = PATTERN4(v109, v123);
        STORE16(v126, to + 18 * d0);
        const uint16 v127 = PATTERN5(v109, v123);
        STORE16(v127, to + 19 * d0);
        const uint16 v128 = PATTERN4(v101, v107);
        const uint16 v129 = PATTERN5(v101, v107);
        const uint16 v130 = PATTERN4(v115, v121);
        const uint16 v131 = PATTERN5(v115, v121);
        const uint16 v132 = PATTERN4(v128, v130);
        STORE16(v132, to + 20 * d0);
        const uint16 v133 = PATTERN5(v128, v130);
        STORE16(v133, to + 21 * d0);
        const uint16 v134 = PATTERN4(v129, v131);
        STORE16(v134, to + 22 * d0);
        const uint16 v135 = PATTERN5(v129, v131);
        STORE16(v135, to + 23 * d0);
        const uint16 v136 = PATTERN2(v97, v99);
        const uint16 v137 = PATTERN3(v97, v99);
        const uint16 v138 = PATTERN2(v103, v105);
        const uint16 v139 = PATTERN3(v103, v105);
        const uint16 v140 = PATTERN4(v136, v138);
        const uint16 v141 = PATTERN5(v136, v138);
        const uint16 v142 = PATTERN2(v111, v113);
        const uint16 v143 = PATTERN3(v111, v113);
        const uint16 v144 = PATTERN2(v117, v119);
        const uint16 v145 = PATTERN3(v117, v119);
        const uint16 v146 = PATTERN4(v142, v144);
        const uint16 v147 = PATTERN5(v142, v144);
        const uint16 v148 = PATTERN4(v140, v146);
        STORE16(v148, to + 24 * d0);
        const uint16 v149 = PATTERN5(v140, v146);
        STORE16(v149, to + 25 * d0);
        const uint16 v150 = PATTERN4(v141, v147);
        STORE16(v150, to + 26 * d0);
        const uint16 v151 = PATTERN5(v141, v147);
        STORE16(v151, to + 27 * d0);
        const uint16 v152 = PATTERN4(v137, v139);
        const uint16 v153 = PATTERN5(v137, v139);
        const uint16 v154 = PATTERN4(v143, v145);
        const uint16 v155 = PATTERN5(v143, v145);
        const uint16 v156 = PATTERN4(v152, v154);
        STORE16(v156, to + 28 * d0);
        const uint16 v157 = PATTERN5(v152, v154);
        STORE16(v157, to + 29 * d0);
        const uint16 v158 = PATTERN4(v153, v155);
        STORE16(v158, to + 30 * d0);
        const uint16 v159 = PATTERN5(v153, v155);
        STORE16(v159, to + 31 * d0);
    } while (next_tile(&nest, &p, &now));
}
