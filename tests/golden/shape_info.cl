// bs_fs_yx_bsv16_fsv16
// digits, outermost first: b / 16, f / 16, y, x, b % 16, f % 16

// the parameters of a kernel or function that uses what follows, and how they are passed on
#define SRC_PARAMETERS __global const int *shape_info
#define SRC_ARGUMENTS shape_info

// sizes
#define SRC_SIZE_B ((uint)shape_info[0])
#define SRC_SIZE_F ((uint)shape_info[1])
#define SRC_SIZE_Y ((uint)shape_info[6])
#define SRC_SIZE_X ((uint)shape_info[7])

// padding
#define SRC_PAD_BEFORE_Y ((uint)shape_info[8])
#define SRC_PAD_AFTER_Y ((uint)shape_info[9])
#define SRC_PAD_BEFORE_X ((uint)shape_info[10])
#define SRC_PAD_AFTER_X ((uint)shape_info[11])

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define SRC_EXTENT_B ((SRC_SIZE_B + 15) / 16 * 16)
#define SRC_BLOCK_B 16
#define SRC_BLOCKS_B (SRC_EXTENT_B / 16)
#define SRC_EXTENT_F ((SRC_SIZE_F + 15) / 16 * 16)
#define SRC_BLOCK_F 16
#define SRC_BLOCKS_F (SRC_EXTENT_F / 16)
#define SRC_EXTENT_Y (SRC_PAD_BEFORE_Y + SRC_SIZE_Y + SRC_PAD_AFTER_Y)
#define SRC_EXTENT_X (SRC_PAD_BEFORE_X + SRC_SIZE_X + SRC_PAD_AFTER_X)
#define SRC_LENGTH (SRC_SIZE_B * SRC_SIZE_F * SRC_SIZE_Y * SRC_SIZE_X)
#define SRC_PLACES (SRC_PITCH_B * SRC_BLOCKS_B)

// strides, of blocks where there are some, in elements; where the first element lies
#define SRC_PITCH_B (SRC_PITCH_F * SRC_BLOCKS_F)
#define SRC_PITCH_F (SRC_PITCH_Y * SRC_EXTENT_Y)
#define SRC_PITCH_Y (256 * SRC_EXTENT_X)
#define SRC_PITCH_X 256
#define SRC_OFFSET 0

// The offset of an element, in elements.
static inline uint SRC_index(SRC_PARAMETERS, uint b, uint f, uint y, uint x)
{
    return b / 16 * SRC_PITCH_B + f / 16 * SRC_PITCH_F + (y + SRC_PAD_BEFORE_Y) * SRC_PITCH_Y
        + (x + SRC_PAD_BEFORE_X) * SRC_PITCH_X + b % 16 * 16 + f % 16;
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
    const uint b_16 = rest / SRC_PITCH_B;
    rest %= SRC_PITCH_B;
    const uint f_16 = rest / SRC_PITCH_F;
    rest %= SRC_PITCH_F;
    const uint y_1 = rest / SRC_PITCH_Y;
    rest %= SRC_PITCH_Y;
    const uint x_1 = rest / SRC_PITCH_X;
    rest %= SRC_PITCH_X;
    const uint b_1 = rest / 16;
    rest %= 16;
    const uint f_1 = rest;
    *b = b_16 * 16 + b_1;
    *f = f_16 * 16 + f_1;
    *y = y_1 - SRC_PAD_BEFORE_Y;
    *x = x_1 - SRC_PAD_BEFORE_X;
    return *b < SRC_SIZE_B && *f < SRC_SIZE_F && *y < SRC_SIZE_Y && *x < SRC_SIZE_X;
}
#define SRC_COORDS(offset, b, f, y, x) SRC_coords(SRC_ARGUMENTS, offset, b, f, y, x)

// From here on compilers count the lines of what follows.
#line 1
