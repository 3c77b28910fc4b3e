// u8:byxf:2x17x5x4
// digits, outermost first: b, y, x, f

// sizes
#define SRC_SIZE_B 2
#define SRC_SIZE_F 17
#define SRC_SIZE_Y 5
#define SRC_SIZE_X 4

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define SRC_EXTENT_B 2
#define SRC_EXTENT_F 17
#define SRC_EXTENT_Y 5
#define SRC_EXTENT_X 4
#define SRC_LENGTH 680
#define SRC_PLACES 680

// strides, of blocks where there are some, in elements; where the first element lies
#define SRC_PITCH_B 340
#define SRC_PITCH_Y 68
#define SRC_PITCH_X 17
#define SRC_PITCH_F 1
#define SRC_OFFSET 0

// The offset of an element, in elements.
static inline uint SRC_INDEX(uint b, uint f, uint y, uint x)
{
    return b * SRC_PITCH_B + y * SRC_PITCH_Y + x * SRC_PITCH_X + f * SRC_PITCH_F;
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
    const uint y_1 = rest / SRC_PITCH_Y;
    rest %= SRC_PITCH_Y;
    const uint x_1 = rest / SRC_PITCH_X;
    rest %= SRC_PITCH_X;
    const uint f_1 = rest;
    *b = b_1;
    *f = f_1;
    *y = y_1;
    *x = x_1;
    return *b < SRC_SIZE_B && *f < SRC_SIZE_F && *y < SRC_SIZE_Y && *x < SRC_SIZE_X;
}

// 16 neighbours along f, from a multiple of 16 on. Lanes beyond the tensor are 0, and not stored.
static inline uchar16 SRC_LOAD_F16(__global const uchar *src, uint b, uint f, uint y, uint x)
{
    if (f + 16 <= SRC_SIZE_F) {
        return vload16(0, src + SRC_INDEX(b, f, y, x));
    }
    uchar lanes[16];
    for (uint lane = 0; lane < 16; ++lane) {
        lanes[lane] = f + lane < SRC_SIZE_F ? src[SRC_INDEX(b, f + lane, y, x)] : 0;
    }
    return vload16(0, lanes);
}

static inline void SRC_STORE_F16(uchar16 value, __global uchar *dst, uint b, uint f, uint y, uint x)
{
    if (f + 16 <= SRC_SIZE_F) {
        vstore16(value, 0, dst + SRC_INDEX(b, f, y, x));
        return;
    }
    uchar lanes[16];
    vstore16(value, 0, lanes);
    for (uint lane = 0; lane < 16 && f + lane < SRC_SIZE_F; ++lane) {
        dst[SRC_INDEX(b, f + lane, y, x)] = lanes[lane];
    }
}

// From here on compilers count the lines of what follows.
#line 1
