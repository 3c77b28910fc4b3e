// f32:b_fs_yx_fsv16:2x*x5x*
// digits, outermost first: b, f / 16, y, x, f % 16

// the parameters of a kernel or function that uses what follows, and how they are passed on
#define SRC_PARAMETERS const uint SRC_SIZE_F, const uint SRC_SIZE_X
#define SRC_ARGUMENTS SRC_SIZE_F, SRC_SIZE_X

// sizes
#define SRC_SIZE_B 2
#define SRC_SIZE_Y 5

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define SRC_EXTENT_B 2
#define SRC_EXTENT_F ((SRC_SIZE_F + 15) / 16 * 16)
#define SRC_BLOCK_F 16
#define SRC_BLOCKS_F (SRC_EXTENT_F / 16)
#define SRC_EXTENT_Y 5
#define SRC_EXTENT_X SRC_SIZE_X
#define SRC_LENGTH (2 * SRC_SIZE_F * 5 * SRC_SIZE_X)
#define SRC_PLACES (SRC_PITCH_B * 2)

// strides, of blocks where there are some, in elements; where the first element lies
#define SRC_PITCH_B (SRC_PITCH_F * SRC_BLOCKS_F)
#define SRC_PITCH_F (SRC_PITCH_Y * 5)
#define SRC_PITCH_Y (16 * SRC_EXTENT_X)
#define SRC_PITCH_X 16
#define SRC_OFFSET 0

// The offset of an element, in elements.
static inline uint SRC_index(SRC_PARAMETERS, uint b, uint f, uint y, uint x)
{
    return b * SRC_PITCH_B + f / 16 * SRC_PITCH_F + y * SRC_PITCH_Y + x * SRC_PITCH_X + f % 16;
}
#define SRC_INDEX(b, f, y, x) SRC_index(SRC_ARGUMENTS, b, f, y, x)

// The same for coordinates of any value: each is taken modulo its size first.
static inline uint SRC_index_safe(SRC_PARAMETERS, uint b, uint f, uint y, uint x)
{
    return SRC_INDEX(b % SRC_SIZE_B, f % SRC_SIZE_F, y % SRC_SIZE_Y, x % SRC_SIZE_X);
}
#define SRC_INDEX_SAFE(b, f, y, x) SRC_index_safe(SRC_ARGUMENTS, b, f, y, x)

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool SRC_coords(SRC_PARAMETERS, uint offset, uint *b, uint *f, uint *y, uint *x)
{
    uint rest = offset;
    const uint b_1 = rest / SRC_PITCH_B;
    rest %= SRC_PITCH_B;
    const uint f_16 = rest / SRC_PITCH_F;
    rest %= SRC_PITCH_F;
    const uint y_1 = rest / SRC_PITCH_Y;
    rest %= SRC_PITCH_Y;
    const uint x_1 = rest / SRC_PITCH_X;
    rest %= SRC_PITCH_X;
    const uint f_1 = rest;
    *b = b_1;
    *f = f_16 * 16 + f_1;
    *y = y_1;
    *x = x_1;
    return *b < SRC_SIZE_B && *f < SRC_SIZE_F && *y < SRC_SIZE_Y && *x < SRC_SIZE_X;
}
#define SRC_COORDS(offset, b, f, y, x) SRC_coords(SRC_ARGUMENTS, offset, b, f, y, x)

// 16 neighbours along f, from a multiple of 16 on. Lanes beyond the tensor are 0; stored as 0
//     they fill the block up.
static inline float16 SRC_load_f16(SRC_PARAMETERS, __global const float *src, uint b, uint f,
    uint y, uint x)
{
    const int16 beyond = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        + f >= (uint)SRC_SIZE_F;
    return select(vload16(0, src + SRC_INDEX(b, f, y, x)), (float16)(0), beyond);
}
#define SRC_LOAD_F16(src, b, f, y, x) SRC_load_f16(SRC_ARGUMENTS, src, b, f, y, x)

static inline void SRC_store_f16(SRC_PARAMETERS, float16 value, __global float *dst, uint b,
    uint f, uint y, uint x)
{
    const int16 beyond = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        + f >= (uint)SRC_SIZE_F;
    vstore16(select(value, (float16)(0), beyond), 0, dst + SRC_INDEX(b, f, y, x));
}
#define SRC_STORE_F16(value, dst, b, f, y, x) SRC_store_f16(SRC_ARGUMENTS, value, dst, b, f, y, x)

// From here on compilers count the lines of what follows.
#line 1
