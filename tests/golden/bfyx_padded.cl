// f16:bfyx:2x17x5x4:pad=1+0x3+2x0+1x2+2
// digits, outermost first: b, f, y, x

// sizes
#define INPUT_SIZE_B 2
#define INPUT_SIZE_F 17
#define INPUT_SIZE_Y 5
#define INPUT_SIZE_X 4

// padding
#define INPUT_PAD_BEFORE_B 1
#define INPUT_PAD_AFTER_B 0
#define INPUT_PAD_BEFORE_F 3
#define INPUT_PAD_AFTER_F 2
#define INPUT_PAD_BEFORE_Y 0
#define INPUT_PAD_AFTER_Y 1
#define INPUT_PAD_BEFORE_X 2
#define INPUT_PAD_AFTER_X 2

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define INPUT_EXTENT_B 3
#define INPUT_EXTENT_F 22
#define INPUT_EXTENT_Y 6
#define INPUT_EXTENT_X 8
#define INPUT_LENGTH 680
#define INPUT_PLACES 3168

// strides, of blocks where there are some, in elements; where the first element lies
#define INPUT_PITCH_B 1056
#define INPUT_PITCH_F 48
#define INPUT_PITCH_Y 8
#define INPUT_PITCH_X 1
#define INPUT_OFFSET 0

// The offset of an element, in elements.
static inline uint INPUT_INDEX(uint b, uint f, uint y, uint x)
{
    return (b + INPUT_PAD_BEFORE_B) * INPUT_PITCH_B + (f + INPUT_PAD_BEFORE_F) * INPUT_PITCH_F
        + y * INPUT_PITCH_Y + (x + INPUT_PAD_BEFORE_X) * INPUT_PITCH_X;
}

// The same for coordinates of any value: each is taken modulo its size first.
static inline uint INPUT_INDEX_SAFE(uint b, uint f, uint y, uint x)
{
    return INPUT_INDEX(b % INPUT_SIZE_B, f % INPUT_SIZE_F, y % INPUT_SIZE_Y, x % INPUT_SIZE_X);
}

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool INPUT_COORDS(uint offset, uint *b, uint *f, uint *y, uint *x)
{
    uint rest = offset;
    const uint b_1 = rest / INPUT_PITCH_B;
    rest %= INPUT_PITCH_B;
    const uint f_1 = rest / INPUT_PITCH_F;
    rest %= INPUT_PITCH_F;
    const uint y_1 = rest / INPUT_PITCH_Y;
    rest %= INPUT_PITCH_Y;
    const uint x_1 = rest;
    *b = b_1 - INPUT_PAD_BEFORE_B;
    *f = f_1 - INPUT_PAD_BEFORE_F;
    *y = y_1;
    *x = x_1 - INPUT_PAD_BEFORE_X;
    return *b < INPUT_SIZE_B && *f < INPUT_SIZE_F && *y < INPUT_SIZE_Y && *x < INPUT_SIZE_X;
}

// 8 neighbours along f, from a multiple of 8 on. Lanes beyond the tensor are 0, and not stored.
static inline float8 INPUT_LOAD_F8(__global const half *src, uint b, uint f, uint y, uint x)
{
    float lanes[8];
    for (uint lane = 0; lane < 8; ++lane) {
        lanes[lane] = f + lane < INPUT_SIZE_F ? vload_half(INPUT_INDEX(b, f + lane, y, x), src) : 0;
    }
    return vload8(0, lanes);
}

static inline void INPUT_STORE_F8(float8 value, __global half *dst, uint b, uint f, uint y, uint x)
{
    float lanes[8];
    vstore8(value, 0, lanes);
    for (uint lane = 0; lane < 8 && f + lane < INPUT_SIZE_F; ++lane) {
        vstore_half_rte(lanes[lane], INPUT_INDEX(b, f + lane, y, x), dst);
    }
}

// From here on compilers count the lines of what follows.
#line 1
