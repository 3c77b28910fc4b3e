#pragma OPENCL FP_CONTRACT OFF
typedef long idx;
// Round to nearest even; half values exist in memory alone.
static inline ushort to_f16_1(float x)
{
    ushort2 bits;
    vstore_half_rte(x, 0, (half *)&bits);
    // pocl makes any NaN 0x7fff where it stores one value, and keeps its bits where it stores several.
    const uint nan = as_uint(x);
    return isnan(x) ? (ushort)(((nan >> 16) & 0x8000u) | 0x7e00u | ((nan >> 13) & 0x1ffu)) : bits.s0;
}
// Round to nearest even; half values exist in memory alone.
static inline ushort16 to_f16_16(float16 x)
{
    ushort16 bits;
    vstore_half16_rte(x, 0, (half *)&bits);
    return bits;
}

// Some compilers take vload and vstore apart into short pieces; a plain access through a vector type
// that promises no more than the element's alignment stays one instruction.
#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
typedef float16 any_float16 __attribute__((aligned(sizeof(float))));
typedef uchar16 any_uchar16 __attribute__((aligned(sizeof(uchar))));
typedef ushort16 any_ushort16 __attribute__((aligned(sizeof(ushort))));
#define LOAD_float16(p) (*(__global const any_float16 *)(p))
#define LOAD16(p) (*(__global const any_uchar16 *)(p))
#define STORE16(v, p) (*(__global any_ushort16 *)(p) = (v))
#else
#define LOAD_float16(p) vload16(0, p)
#define LOAD16(p) vload16(0, p)
#define STORE16(v, p) vstore16(v, 0, p)
#endif

static inline ushort16 computed_16(uchar16 value, float16 src_scale, float16 dst_scale)
{
    const float16 x = convert_float16(value);
    return to_f16_16(x * src_scale * (1.0f / dst_scale));
}
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
#define PATTERN0(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 28, 29, 30)
#define PATTERN1(a, b) __builtin_shufflevector(a, b, 4, 1, 2, 3, 9, 5, 6, 7, 14, 9, 10, 11, 31, 13, 14, 15)
#else
#define PATTERN0(a, b) (uchar16)((a).s0, (a).s1, (a).s2, (a).s3, (a).s5, (a).s6, (a).s7, (a).s8, (a).sa, (a).sb, (a).sc, (a).sd, (a).sf, (b).sc, (b).sd, (b).se)
#define PATTERN1(a, b) (uchar16)((a).s4, (a).s1, (a).s2, (a).s3, (a).s9, (a).s5, (a).s6, (a).s7, (a).se, (a).s9, (a).sa, (a).sb, (b).sf, (a).sd, (a).se, (a).sf)
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
    idx src0, dst0, operand0_0;
    idx step[13], size[13], extent[13], outer[13], count[13];
    idx src[13], dst[13];
    idx operand[1][13];
    idx s0, d0, o0_0;
    idx s1, d1, o0_1;
    idx s2, d2, o0_2;
    idx src_end, src_top;
    idx last0;
} Nest;

// Where a tile's first element lies, and how many steps the innermost loop still goes on.
typedef struct {
    idx src, dst, left;
    idx operand[1];
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
    tile->operand[0] += steps * nest->operand[0][k];
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
    p.tile.operand[0] = nest->operand0_0;
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
        tile->operand[0] += step->operand[0];
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
#define KEEP_STORED(v, mask) as_ushort16(as_short16(v) & (mask))

#ifdef cl_intel_vec_len_hint
// A work-item fills vectors alone: to join several takes the compiler up to half a minute.
__attribute__((intel_vec_len_hint(1)))
#endif
__kernel void reorder(
    __global const uchar *restrict src, __global ushort *restrict dst, const Nest nest,
    __global const float *restrict src_scale_values,
    const float dst_scale)
{
    const idx s0 = nest.s0, d0 = nest.d0, o0_0 = nest.o0_0;
    const idx s1 = nest.s1, d1 = nest.d1, o0_1 = nest.o0_1;
    const idx s2 = nest.s2, d2 = nest.d2, o0_2 = nest.o0_2;
    Position p = begin(&nest, get_global_id(0)), q = p;
    Tile now = p.tile, next = now;
    const Tile step = inner_step(&nest);
    bool asks = nest.lead > 0;
    for (idx n = 0; asks && n < nest.lead; ++n) {
        asks = next_tile(&nest, &step, &q, &next);
    }
    do {
        if (asks) {
            __global const uchar *ahead = src + next.src;
            PREFETCH(ahead);
            asks = next_tile(&nest, &step, &q, &next);
        }
        __global const uchar *from = src + now.src;
        __global ushort *to = dst + now.dst;
        const uchar16 v0 = LOAD16(from);
        const uchar16 v1 = LOAD16(from + 4);
        const uchar16 v2 = PATTERN0(v0, v1);
        const uchar16 v3 = PATTERN1(v0, v1);
        const uchar16 v4 = as_uchar16(as_char16(v3) & (char16)(-1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0));
        const ushort16 w0 = computed_16(v2, (float16)(src_scale_values[now.operand[0]], src_scale_values[now.operand[0] + o0_0], src_scale_values[now.operand[0] + 2 * o0_0], src_scale_values[now.operand[0] + 3 * o0_0], src_scale_values[now.operand[0]], src_scale_values[now.operand[0] + o0_0], src_scale_values[now.operand[0] + 2 * o0_0], src_scale_values[now.operand[0] + 3 * o0_0], src_scale_values[now.operand[0]], src_scale_values[now.operand[0] + o0_0], src_scale_values[now.operand[0] + 2 * o0_0], src_scale_values[now.operand[0] + 3 * o0_0], src_scale_values[now.operand[0]], src_scale_values[now.operand[0] + o0_0], src_scale_values[now.operand[0] + 2 * o0_0], src_scale_values[now.operand[0] + 3 * o0_0]), (float16)(dst_scale));
        STORE16(w0, to);
        const ushort16 w1 = KEEP_STORED(computed_16(v4, (float16)(src_scale_values[now.operand[0] + o0_1]), (float16)(dst_scale)), convert_short16((int16)(-1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0)));
        STORE16(w1, to + d1);
    } while (next_tile(&nest, &step, &p, &now));
}
