// Kernels of a network, each written once over index sources: SRC, DST, WEIGHTS and SRC2 say where
// elements lie, in whatever formats the plan chose. Eight neighbouring channels to a work-item.
#define CHANNELS 8

#ifdef CONVOLUTION
__kernel void convolution(__global const float *src, __global const float *weights,
                          __global const float *bias, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint blocks = (DST_SIZE_F + CHANNELS - 1) / CHANNELS;
    const uint f = get_global_id(2) % blocks * CHANNELS, b = get_global_id(2) / blocks;
    float first[CHANNELS];
    for (uint k = 0; k < CHANNELS; ++k)
        first[k] = f + k < DST_SIZE_F ? bias[f + k] : 0;
    float8 sum = vload8(0, first);
    for (uint ky = 0; ky < WEIGHTS_SIZE_Y; ++ky)
        for (uint kx = 0; kx < WEIGHTS_SIZE_X; ++kx) {
            // Left of the border the unsigned difference is huge, so one test is for both sides.
            const uint sy = y * STRIDE + ky - BORDER, sx = x * STRIDE + kx - BORDER;
            if (sy >= SRC_SIZE_Y || sx >= SRC_SIZE_X)
                continue;
            for (uint i = 0; i < SRC_SIZE_F; ++i)
                sum += src[SRC_INDEX(b, i, sy, sx)] * WEIGHTS_LOAD_O8(weights, f, i, ky, kx);
        }
#ifdef RELU
    sum = fmax(sum, 0.0f);
#endif
    DST_STORE_F8(sum, dst, b, f, y, x);
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
    dst[DST_INDEX(b, o)] = sum;
}
#endif
