// bf8_xy16
// digits, outermost first: b, f / 8, (y * X + x) / 16, f % 8, (y * X + x) % 16
// define before: SRC_SIZE_B, SRC_SIZE_F, SRC_SIZE_Y, SRC_SIZE_X

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define SRC_EXTENT_B SRC_SIZE_B
#define SRC_EXTENT_F ((SRC_SIZE_F + 7) / 8 * 8)
#define SRC_BLOCK_F 8
#define SRC_BLOCKS_F (SRC_EXTENT_F / 8)
#define SRC_EXTENT_Y SRC_SIZE_Y
#define SRC_EXTENT_X SRC_SIZE_X
#define SRC_LENGTH (SRC_SIZE_B * SRC_SIZE_F * SRC_SIZE_Y * SRC_SIZE_X)
#define SRC_PLACES (SRC_PITCH_B * SRC_EXTENT_B)

// strides, of blocks where there are some, in elements; where the first element lies
#define SRC_PITCH_B (SRC_PITCH_F * SRC_BLOCKS_F)
#define SRC_PITCH_F (128 * ((SRC_EXTENT_Y * SRC_EXTENT_X + 15) / 16))
#define SRC_PITCH_YX 128
#define SRC_OFFSET 0

// The offset of an element, in elements.
static inline uint SRC_INDEX(uint b, uint f, uint y, uint x)
{
    return b * SRC_PITCH_B + f / 8 * SRC_PITCH_F + (y * SRC_EXTENT_X + x) / 16 * SRC_PITCH_YX
        + f % 8 * 16 + (y * SRC_EXTENT_X + x) % 16;
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
    const uint f_8 = rest / SRC_PITCH_F;
    rest %= SRC_PITCH_F;
    const uint yx_16 = rest / SRC_PITCH_YX;
    rest %= SRC_PITCH_YX;
    const uint f_1 = rest / 16;
    rest %= 16;
    const uint yx_1 = rest;
    *b = b_1;
    *f = f_8 * 8 + f_1;
    *y = (yx_16 * 16 + yx_1) / SRC_EXTENT_X;
    *x = (yx_16 * 16 + yx_1) % SRC_EXTENT_X;
    return *b < SRC_SIZE_B && *f < SRC_SIZE_F && *y < SRC_SIZE_Y && *x < SRC_SIZE_X;
}

// From here on compilers count the lines of what follows.
#line 1
