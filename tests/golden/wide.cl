// os_iyx_osv16_rotate_180
// digits, outermost first: o / 16, i, Y - 1 - y, X - 1 - x, o % 16

// the parameters of a kernel or function that uses what follows, and how they are passed on
#define W_PARAMETERS const ulong W_SIZE_O, const ulong W_SIZE_I, const ulong W_SIZE_Y, \
    const ulong W_SIZE_X
#define W_ARGUMENTS W_SIZE_O, W_SIZE_I, W_SIZE_Y, W_SIZE_X

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define W_EXTENT_O ((W_SIZE_O + 15) / 16 * 16)
#define W_BLOCK_O 16
#define W_BLOCKS_O (W_EXTENT_O / 16)
#define W_EXTENT_I W_SIZE_I
#define W_EXTENT_Y W_SIZE_Y
#define W_EXTENT_X W_SIZE_X
#define W_LENGTH (1ul * W_SIZE_O * W_SIZE_I * W_SIZE_Y * W_SIZE_X)
#define W_PLACES (W_PITCH_O * W_BLOCKS_O)

// strides, of blocks where there are some, in elements; where the first element lies
#define W_PITCH_O (W_PITCH_I * W_EXTENT_I)
#define W_PITCH_I (W_PITCH_Y * W_EXTENT_Y)
#define W_PITCH_Y (W_PITCH_X * W_EXTENT_X)
#define W_PITCH_X 16ul
#define W_OFFSET 0

// The offset of an element, in elements.
static inline ulong W_index(W_PARAMETERS, ulong o, ulong i, ulong y, ulong x)
{
    return o / 16 * W_PITCH_O + i * W_PITCH_I + (W_EXTENT_Y - 1 - y) * W_PITCH_Y
        + (W_EXTENT_X - 1 - x) * W_PITCH_X + o % 16;
}
#define W_INDEX(o, i, y, x) W_index(W_ARGUMENTS, o, i, y, x)

// The same for coordinates of any value: each is taken modulo its size first.
static inline ulong W_index_safe(W_PARAMETERS, ulong o, ulong i, ulong y, ulong x)
{
    return W_INDEX(o % W_SIZE_O, i % W_SIZE_I, y % W_SIZE_Y, x % W_SIZE_X);
}
#define W_INDEX_SAFE(o, i, y, x) W_index_safe(W_ARGUMENTS, o, i, y, x)

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool W_coords(W_PARAMETERS, ulong offset, ulong *o, ulong *i, ulong *y, ulong *x)
{
    ulong rest = offset;
    const ulong o_16 = rest / W_PITCH_O;
    rest %= W_PITCH_O;
    const ulong i_1 = rest / W_PITCH_I;
    rest %= W_PITCH_I;
    const ulong y_1 = rest / W_PITCH_Y;
    rest %= W_PITCH_Y;
    const ulong x_1 = rest / W_PITCH_X;
    rest %= W_PITCH_X;
    const ulong o_1 = rest;
    *o = o_16 * 16 + o_1;
    *i = i_1;
    *y = W_EXTENT_Y - 1 - y_1;
    *x = W_EXTENT_X - 1 - x_1;
    return *o < W_SIZE_O && *i < W_SIZE_I && *y < W_SIZE_Y && *x < W_SIZE_X;
}
#define W_COORDS(offset, o, i, y, x) W_coords(W_ARGUMENTS, offset, o, i, y, x)

// From here on compilers count the lines of what follows.
#line 1
