// os_is_yx_isv16_osv16
// digits, outermost first: o / 16, i / 16, y, x, i % 16, o % 16

// the parameters of a kernel or function that uses what follows, and how they are passed on
#define WEIGHTS_PARAMETERS const uint WEIGHTS_SIZE_O, const uint WEIGHTS_SIZE_I, \
    const uint WEIGHTS_SIZE_Y, const uint WEIGHTS_SIZE_X
#define WEIGHTS_ARGUMENTS WEIGHTS_SIZE_O, WEIGHTS_SIZE_I, WEIGHTS_SIZE_Y, WEIGHTS_SIZE_X

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define WEIGHTS_EXTENT_O ((WEIGHTS_SIZE_O + 15) / 16 * 16)
#define WEIGHTS_BLOCK_O 16
#define WEIGHTS_BLOCKS_O (WEIGHTS_EXTENT_O / 16)
#define WEIGHTS_EXTENT_I ((WEIGHTS_SIZE_I + 15) / 16 * 16)
#define WEIGHTS_BLOCK_I 16
#define WEIGHTS_BLOCKS_I (WEIGHTS_EXTENT_I / 16)
#define WEIGHTS_EXTENT_Y WEIGHTS_SIZE_Y
#define WEIGHTS_EXTENT_X WEIGHTS_SIZE_X
#define WEIGHTS_LENGTH (WEIGHTS_SIZE_O * WEIGHTS_SIZE_I * WEIGHTS_SIZE_Y * WEIGHTS_SIZE_X)
#define WEIGHTS_PLACES (WEIGHTS_PITCH_O * WEIGHTS_BLOCKS_O)

// strides, of blocks where there are some, in elements; where the first element lies
#define WEIGHTS_PITCH_O (WEIGHTS_PITCH_I * WEIGHTS_BLOCKS_I)
#define WEIGHTS_PITCH_I (WEIGHTS_PITCH_Y * WEIGHTS_EXTENT_Y)
#define WEIGHTS_PITCH_Y (256 * WEIGHTS_EXTENT_X)
#define WEIGHTS_PITCH_X 256
#define WEIGHTS_OFFSET 0

// The offset of an element, in elements.
static inline uint WEIGHTS_index(WEIGHTS_PARAMETERS, uint o, uint i, uint y, uint x)
{
    return o / 16 * WEIGHTS_PITCH_O + i / 16 * WEIGHTS_PITCH_I + y * WEIGHTS_PITCH_Y
        + x * WEIGHTS_PITCH_X + i % 16 * 16 + o % 16;
}
#define WEIGHTS_INDEX(o, i, y, x) WEIGHTS_index(WEIGHTS_ARGUMENTS, o, i, y, x)

// The same for coordinates of any value: each is taken modulo its size first.
static inline uint WEIGHTS_index_safe(WEIGHTS_PARAMETERS, uint o, uint i, uint y, uint x)
{
    return WEIGHTS_INDEX(o % WEIGHTS_SIZE_O, i % WEIGHTS_SIZE_I, y % WEIGHTS_SIZE_Y,
        x % WEIGHTS_SIZE_X);
}
#define WEIGHTS_INDEX_SAFE(o, i, y, x) WEIGHTS_index_safe(WEIGHTS_ARGUMENTS, o, i, y, x)

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool WEIGHTS_coords(WEIGHTS_PARAMETERS, uint offset, uint *o, uint *i, uint *y,
    uint *x)
{
    uint rest = offset;
    const uint o_16 = rest / WEIGHTS_PITCH_O;
    rest %= WEIGHTS_PITCH_O;
    const uint i_16 = rest / WEIGHTS_PITCH_I;
    rest %= WEIGHTS_PITCH_I;
    const uint y_1 = rest / WEIGHTS_PITCH_Y;
    rest %= WEIGHTS_PITCH_Y;
    const uint x_1 = rest / WEIGHTS_PITCH_X;
    rest %= WEIGHTS_PITCH_X;
    const uint i_1 = rest / 16;
    rest %= 16;
    const uint o_1 = rest;
    *o = o_16 * 16 + o_1;
    *i = i_16 * 16 + i_1;
    *y = y_1;
    *x = x_1;
    return *o < WEIGHTS_SIZE_O && *i < WEIGHTS_SIZE_I && *y < WEIGHTS_SIZE_Y && *x < WEIGHTS_SIZE_X;
}
#define WEIGHTS_COORDS(offset, o, i, y, x) WEIGHTS_coords(WEIGHTS_ARGUMENTS, offset, o, i, y, x)

// From here on compilers count the lines of what follows.
#line 1
