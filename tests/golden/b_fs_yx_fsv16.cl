// f32:b_fs_yx_fsv16:2x17x5x4
// digits, outermost first: b, f / 16, y, x, f % 16

// sizes
#define SRC_SIZE_B 2
#define SRC_SIZE_F 17
#define SRC_SIZE_Y 5
#define SRC_SIZE_X 4

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define SRC_EXTENT_B 2
#define SRC_EXTENT_F 32
#define SRC_BLOCK_F 16
#define SRC_BLOCKS_F 2
#define SRC_EXTENT_Y 5
#define SRC_EXTENT_X 4
#define SRC_LENGTH 680
#define SRC_PLACES 1280

// strides, of blocks where there are some, in elements; where the first element lies
#define SRC_PITCH_B 640
#define SRC_PITCH_F 320
#define SRC_PITCH_Y 64
#define SRC_PITCH_X 16
#define SRC_OFFSET 0

// The offset of an element, in elements.
static inline uint SRC_INDEX(uint b, uint f, uint y, uint x)
{
    return b * SRC_PITCH_B + f / 16 * SRC_PITCH_F + y * SRC_PITCH_Y + x * SRC_PITCH_X + f % 16;
}

// The same for coordinates of any value: each is taken modulo its size first.
static inline uint SRC_INDEX_SAFE(uint b, uint f, uint y, uint x)
{
    return SRC_INDEX(b % SRC_SIZE_B, f % SRC_SIZE_F, y % SRC_SIZE_Y, x % SRC_SIZE_X);
}

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool SRC_COORDS(uint offset, uint *b, uint *f, uint *y, uint *x)
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

// 16 neighbours along f, from a multiple of 16 on. Lanes beyond the tensor are 0; stored as 0
//     they fill the block up.
static inline float16 SRC_LOAD_F16(__global const float *src, uint b, uint f, uint y, uint x)
{
    const int16 beyond = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        + f >= (uint)SRC_SIZE_F;
    return select(vload16(0, src + SRC_INDEX(b, f, y, x)), (float16)(0), beyond);
}

static inline void SRC_STORE_F16(float16 value, __global float *dst, uint b, uint f, uint y, uint x)
{
    const int16 beyond = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        + f >= (uint)SRC_SIZE_F;
    vstore16(select(value, (float16)(0), beyond), 0, dst + SRC_INDEX(b, f, y, x));
}

// From here on compilers count the lines of what follows.
#line 1
