// f32:iy_xs_os_xsv2_osv8__ao32:19x3x5x7
// digits, outermost first: i, y, x / 2, o / 8, x % 2, o % 8

// sizes
#define W_SIZE_O 19
#define W_SIZE_I 3
#define W_SIZE_Y 5
#define W_SIZE_X 7

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define W_EXTENT_O 32
#define W_BLOCK_O 8
#define W_BLOCKS_O 4
#define W_EXTENT_I 3
#define W_EXTENT_Y 5
#define W_EXTENT_X 8
#define W_BLOCK_X 2
#define W_BLOCKS_X 4
#define W_LENGTH 1995
#define W_PLACES 3840

// strides, of blocks where there are some, in elements; where the first element lies
#define W_PITCH_I 1280
#define W_PITCH_Y 256
#define W_PITCH_X 64
#define W_PITCH_O 16
#define W_OFFSET 0

// The offset of an element, in elements.
static inline uint W_INDEX(uint o, uint i, uint y, uint x)
{
    return (x >= W_SIZE_X - W_SIZE_X % 2 ? i * W_PITCH_I + y * W_PITCH_Y + x / 2 * W_PITCH_X
        + o / 32 * 64 + x % 2 * 32 + o % 32 : i * W_PITCH_I + y * W_PITCH_Y + x / 2 * W_PITCH_X
        + o / 8 * W_PITCH_O + x % 2 * 8 + o % 8);
}

// The same for coordinates of any value: each is taken modulo its size first.
static inline uint W_INDEX_SAFE(uint o, uint i, uint y, uint x)
{
    return W_INDEX(o % W_SIZE_O, i % W_SIZE_I, y % W_SIZE_Y, x % W_SIZE_X);
}

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool W_COORDS(uint offset, uint *o, uint *i, uint *y, uint *x)
{
    uint rest = offset;
    const uint i_1 = rest / W_PITCH_I;
    rest %= W_PITCH_I;
    const uint y_1 = rest / W_PITCH_Y;
    rest %= W_PITCH_Y;
    const uint x_2 = rest / W_PITCH_X;
    rest %= W_PITCH_X;
    const uint o_8 = rest / W_PITCH_O;
    rest %= W_PITCH_O;
    const uint x_1 = rest / 8;
    rest %= 8;
    const uint o_1 = rest;
    *o = o_8 * 8 + o_1;
    *i = i_1;
    *y = y_1;
    *x = x_2 * 2 + x_1;
    if (*x >= W_SIZE_X - W_SIZE_X % 2) {
        uint rest = offset;
        const uint i_1 = rest / W_PITCH_I;
        rest %= W_PITCH_I;
        const uint y_1 = rest / W_PITCH_Y;
        rest %= W_PITCH_Y;
        const uint x_2 = rest / W_PITCH_X;
        rest %= W_PITCH_X;
        const uint o_32 = rest / 64;
        rest %= 64;
        const uint x_1 = rest / 32;
        rest %= 32;
        const uint o_1 = rest;
        *o = o_32 * 32 + o_1;
        *i = i_1;
        *y = y_1;
        *x = x_2 * 2 + x_1;
    }
    return *o < W_SIZE_O && *i < W_SIZE_I && *y < W_SIZE_Y && *x < W_SIZE_X;
}

// 8 neighbours along o, from a multiple of 8 on. Lanes beyond the tensor are 0, and not stored.
static inline float8 W_LOAD_O8(__global const float *src, uint o, uint i, uint y, uint x)
{
    float lanes[8];
    for (uint lane = 0; lane < 8; ++lane) {
        lanes[lane] = o + lane < W_SIZE_O ? src[W_INDEX(o + lane, i, y, x)] : 0;
    }
    return vload8(0, lanes);
}

static inline void W_STORE_O8(float8 value, __global float *dst, uint o, uint i, uint y, uint x)
{
    float lanes[8];
    vstore8(value, 0, lanes);
    for (uint lane = 0; lane < 8 && o + lane < W_SIZE_O; ++lane) {
        dst[W_INDEX(o + lane, i, y, x)] = lanes[lane];
    }
}

// From here on compilers count the lines of what follows.
#line 1
