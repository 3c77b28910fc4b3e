// f32:abc:2x3x5:strides=100x2x17:offset=7
// digits, outermost first: a, b, c

// sizes
#define T_SIZE_A 2
#define T_SIZE_B 3
#define T_SIZE_C 5

// in memory: sizes with padding, in whole blocks; elements, and places for them
#define T_EXTENT_A 2
#define T_EXTENT_B 3
#define T_EXTENT_C 5
#define T_LENGTH 30
#define T_PLACES 180

// strides, of blocks where there are some, in elements; where the first element lies
#define T_PITCH_A 100
#define T_PITCH_B 2
#define T_PITCH_C 17
#define T_OFFSET 7

// The offset of an element, in elements.
static inline uint T_INDEX(uint a, uint b, uint c)
{
    return a * T_PITCH_A + b * T_PITCH_B + c * T_PITCH_C + T_OFFSET;
}

// The same for coordinates of any value: each is taken modulo its size first.
static inline uint T_INDEX_SAFE(uint a, uint b, uint c)
{
    return T_INDEX(a % T_SIZE_A, b % T_SIZE_B, c % T_SIZE_C);
}

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
static inline bool T_COORDS(uint offset, uint *a, uint *b, uint *c)
{
    uint rest = offset - T_OFFSET;
    const uint a_1 = rest / T_PITCH_A;
    rest %= T_PITCH_A;
    const uint c_1 = rest / T_PITCH_C;
    rest %= T_PITCH_C;
    const uint b_1 = rest / T_PITCH_B;
    rest %= T_PITCH_B;
    *a = a_1;
    *b = b_1;
    *c = c_1;
    return rest == 0 && *a < T_SIZE_A && *b < T_SIZE_B && *c < T_SIZE_C;
}

// From here on compilers count the lines of what follows.
#line 1
