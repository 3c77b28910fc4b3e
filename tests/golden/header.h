// Where the elements of tensors lie, format by format; made by `clformats header`.
//
// For a format F with dimensions b, f, y, x, in their logical order:
//   uint cf_F(B, F, Y, X, b, f, y, x)                       the offset of an element, in elements
//   bool cf_F_coords(B, F, Y, X, offset, &b, &f, &y, &x)    the inverse; false for padding
//   uint cf_F_places(B, F, Y, X)                            the elements that a buffer must hold
//
// Capital letters are extents: sizes with the padding of both sides; indices count from the start
// of the padding. Offsets count elements, also where several share a byte, and in an image the
// channels of its pixels. OpenCL C 1.2, C99 and C++; for offsets of up to 32 bits.
#ifndef CLFORMATS_FORMATS_H
#define CLFORMATS_FORMATS_H

#ifndef __OPENCL_VERSION__
#include <stdbool.h>
#define uint unsigned int
#endif

// Macros of these names, such as I of complex.h, are set aside until the end.
#pragma push_macro("B")
#undef B
#pragma push_macro("F")
#undef F
#pragma push_macro("X")
#undef X
#pragma push_macro("Y")
#undef Y

// b_fs_yx_fsv16: b, f / 16, y, x, f % 16
static inline uint cf_b_fs_yx_fsv16(uint B, uint F, uint Y, uint X, uint b, uint f, uint y, uint x)
{
    (void)B;
    return (((b * ((F + 15) / 16) + f / 16) * Y + y) * X + x) * 16 + f % 16;
}
static inline bool cf_b_fs_yx_fsv16_coords(uint B, uint F, uint Y, uint X, uint offset, uint *b,
    uint *f, uint *y, uint *x)
{
    uint rest = offset;
    const uint f_1 = rest % 16;
    rest /= 16;
    const uint x_1 = rest % X;
    rest /= X;
    const uint y_1 = rest % Y;
    rest /= Y;
    const uint f_16 = rest % ((F + 15) / 16);
    rest /= (F + 15) / 16;
    const uint b_1 = rest;
    *b = b_1;
    *f = f_16 * 16 + f_1;
    *y = y_1;
    *x = x_1;
    return *b < B && *f < F && *y < Y && *x < X;
}
static inline uint cf_b_fs_yx_fsv16_places(uint B, uint F, uint Y, uint X)
{
    return B * ((F + 15) / 16) * Y * X * 16;
}
#define cf_nChw16c cf_b_fs_yx_fsv16
#define cf_nChw16c_coords cf_b_fs_yx_fsv16_coords
#define cf_nChw16c_places cf_b_fs_yx_fsv16_places

// bf8_xy16: b, f / 8, (y * X + x) / 16, f % 8, (y * X + x) % 16
static inline uint cf_bf8_xy16(uint B, uint F, uint Y, uint X, uint b, uint f, uint y, uint x)
{
    (void)B;
    return (((b * ((F + 7) / 8) + f / 8) * ((Y * X + 15) / 16) + (y * X + x) / 16) * 8
        + f % 8) * 16 + (y * X + x) % 16;
}
static inline bool cf_bf8_xy16_coords(uint B, uint F, uint Y, uint X, uint offset, uint *b,
    uint *f, uint *y, uint *x)
{
    uint rest = offset;
    const uint yx_1 = rest % 16;
    rest /= 16;
    const uint f_1 = rest % 8;
    rest /= 8;
    const uint yx_16 = rest % ((Y * X + 15) / 16);
    rest /= (Y * X + 15) / 16;
    const uint f_8 = rest % ((F + 7) / 8);
    rest /= (F + 7) / 8;
    const uint b_1 = rest;
    *b = b_1;
    *f = f_8 * 8 + f_1;
    *x = (yx_16 * 16 + yx_1) % X;
    *y = (yx_16 * 16 + yx_1) / X;
    return *b < B && *f < F && *y < Y && *x < X;
}
static inline uint cf_bf8_xy16_places(uint B, uint F, uint Y, uint X)
{
    return B * ((F + 7) / 8) * ((Y * X + 15) / 16) * 8 * 16;
}

#pragma pop_macro("B")
#pragma pop_macro("F")
#pragma pop_macro("X")
#pragma pop_macro("Y")

#ifndef __OPENCL_VERSION__
#undef uint
#endif

#endif
