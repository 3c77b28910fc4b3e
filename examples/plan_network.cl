// Kernels of a network, each written once over index sources: SRC, DST, WEIGHTS and SRC2 say where
// elements lie, in whatever formats the plan chose. Eight neighbouring channels to a work-item.
#define CHANNELS 8

#ifdef CONVOLUTION
// WIDTH neighbouring pixels to a work-item, so that weights are loaded once for all of them. What the
// eight results read: input channel i of their group, one value where they are of one group.
#if OF_ONE_GROUP
#define VALUE(b, f, i, y, x) src[SRC_INDEX(b, (f) / PER_GROUP * WEIGHTS_SIZE_I + i, y, x)]
#else
#define GROUP(f) (min((uint)(f), (uint)(DST_SIZE_F - 1)) / PER_GROUP)
#define OF(b, f, i, y, x) src[SRC_INDEX(b, GROUP(f) * WEIGHTS_SIZE_I + i, y, x)]
#define VALUE(b, f, i, y, x)                                              \
    (float8)(OF(b, f, i, y, x), OF(b, f + 1, i, y, x),                    \
             OF(b, f + 2, i, y, x), OF(b, f + 3, i, y, x),                \
             OF(b, f + 4, i, y, x), OF(b, f + 5, i, y, x),                \
             OF(b, f + 6, i, y, x), OF(b, f + 7, i, y, x))
#endif
__kernel void convolution(__global const float *src, __global const float *weights,
                          __global const float *bias, __global float *dst)
{
    const uint x = get_global_id(0) * WIDTH, y = get_global_id(1);
    if (x >= DST_SIZE_X)
        return;
    const uint blocks = (DST_SIZE_F + CHANNELS - 1) / CHANNELS;
    const uint f = get_global_id(2) % blocks * CHANNELS, b = get_global_id(2) / blocks;
    float first[CHANNELS];
    for (uint k = 0; k < CHANNELS; ++k)
        first[k] = f + k < DST_SIZE_F ? bias[f + k] : 0;
    float8 sum[WIDTH];
    for (uint k = 0; k < WIDTH; ++k)
        sum[k] = vload8(0, first);
    for (uint ky = 0; ky < WEIGHTS_SIZE_Y; ++ky) {
        // Above the border the unsigned difference is huge, so one test is for both sides.
        const uint sy = y * STRIDE + ky - BORDER;
        if (sy >= SRC_SIZE_Y)
            continue;
        for (uint kx = 0; kx < WEIGHTS_SIZE_X; ++kx)
            for (uint i = 0; i < WEIGHTS_SIZE_I; ++i) {
                const float8 weight = WEIGHTS_LOAD_O8(weights, f, i, ky, kx);
                for (uint k = 0; k < WIDTH; ++k) {
                    const uint sx = (x + k) * STRIDE + kx - BORDER;
                    if (sx < SRC_SIZE_X)
                        sum[k] += VALUE(b, f, i, sy, sx) * weight;
                }
            }
    }
    for (uint k = 0; k < WIDTH && x + k < DST_SIZE_X; ++k) {
#ifdef RELU
        sum[k] = fmax(sum[k], 0.0f);
#endif
        DST_STORE_F8(sum[k], dst, b, f, y, x + k);
    }
}
#endif

#ifdef POOL
// The mean leaves the border out; GLOBAL pools over the whole image.
__kernel void pool(__global const float *src, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint f = get_global_id(2) % DST_SIZE_F, b = get_global_id(2) / DST_SIZE_F;
    float most = -INFINITY, sum = 0;
    uint count = 0;
    for (uint ky = 0; ky < WINDOW_Y; ++ky)
        for (uint kx = 0; kx < WINDOW_X; ++kx) {
            const uint sy = y * STRIDE + ky - BORDER, sx = x * STRIDE + kx - BORDER;
            if (sy >= SRC_SIZE_Y || sx >= SRC_SIZE_X)
                continue;
            const float value = src[SRC_INDEX(b, f, sy, sx)];
            most = fmax(most, value);
            sum += value;
            ++count;
        }
    dst[DST_INDEX(b, f, y, x)] = MEAN ? sum / count : most;
}
#endif

#ifdef ADD
__kernel void add(__global const float *src, __global const float *src2, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint f = get_global_id(2) % DST_SIZE_F, b = get_global_id(2) / DST_SIZE_F;
    float sum = src[SRC_INDEX(b, f, y, x)] + src2[SRC2_INDEX(b, f, y, x)];
#ifdef RELU
    sum = fmax(sum, 0.0f);
#endif
    dst[DST_INDEX(b, f, y, x)] = sum;
}
#endif

#ifdef LRN
// Local response normalisation over NEAR channels.
__kernel void lrn(__global const float *src, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint f = get_global_id(2) % DST_SIZE_F, b = get_global_id(2) / DST_SIZE_F;
    float sum = 0;
    for (uint k = 0; k < NEAR; ++k) {
        const uint near = f + k - (NEAR - 1) / 2;
        if (near < SRC_SIZE_F) {
            const float value = src[SRC_INDEX(b, near, y, x)];
            sum += value * value;
        }
    }
    dst[DST_INDEX(b, f, y, x)] =
        src[SRC_INDEX(b, f, y, x)] / pow(BIAS + ALPHA / NEAR * sum, BETA);
}
#endif

#ifdef NORMALISE
__kernel void normalise(__global const float *src, __global const float *scale,
                        __global const float *shift, __global const float *mean,
                        __global const float *variance, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint f = get_global_id(2) % DST_SIZE_F, b = get_global_id(2) / DST_SIZE_F;
    const float factor = scale[f] / sqrt(variance[f] + EPSILON);
    float value = (src[SRC_INDEX(b, f, y, x)] - mean[f]) * factor + shift[f];
#ifdef RELU
    value = fmax(value, 0.0f);
#endif
    dst[DST_INDEX(b, f, y, x)] = value;
}
#endif

#ifdef PLACE
// One part of a concatenation that is a copy: its channels go to those from FIRST on.
__kernel void place(__global const float *src, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint f = get_global_id(2) % SRC_SIZE_F, b = get_global_id(2) / SRC_SIZE_F;
    dst[DST_INDEX(b, FIRST + f, y, x)] = src[SRC_INDEX(b, f, y, x)];
}
#endif

#ifdef SOFTMAX
// Over channels, of tensors with one element in each; AT is the index source of their rank.
__kernel void softmax(__global const float *src, __global float *dst)
{
    const uint b = get_global_id(0);
    float most = -INFINITY, sum = 0;
    for (uint f = 0; f < INNER; ++f)
        most = fmax(most, src[AT(SRC_INDEX, b, f)]);
    for (uint f = 0; f < INNER; ++f)
        sum += exp(src[AT(SRC_INDEX, b, f)] - most);
    for (uint f = 0; f < INNER; ++f)
        dst[AT(DST_INDEX, b, f)] = exp(src[AT(SRC_INDEX, b, f)] - most) / sum;
}
#endif

#ifdef GEMM
// One work-item for each output: the matrix is stored with a row for each of them.
__kernel void gemm(__global const float *src, __global const float *weights,
                   __global const float *bias, __global float *dst)
{
    const uint o = get_global_id(0), b = get_global_id(1);
    float sum = bias[o];
    for (uint i = 0; i < INNER; ++i)
        sum += src[SRC_INDEX(b, i)] * weights[WEIGHTS_INDEX(o, i)];
#ifdef RELU
    sum = fmax(sum, 0.0f);
#endif
    dst[DST_INDEX(b, o)] = sum;
}
#endif
