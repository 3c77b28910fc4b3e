// A convolution in any formats: SRC, WEIGHTS and DST are index sources, and say where elements lie.
// One work-item computes eight neighbouring output channels of a pixel. BORDER rows and columns of
// zeros are thought around the input; they are not in memory.
__kernel void convolution(
    __global const float *src, __global const float *weights, __global float *dst)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    const uint blocks = (DST_SIZE_F + 7) / 8;
    const uint f = get_global_id(2) % blocks * 8, b = get_global_id(2) / blocks;
    if (x >= DST_SIZE_X || y >= DST_SIZE_Y || b >= DST_SIZE_B) {
        return;
    }
    float8 sum = 0;
    for (uint ky = 0; ky < WEIGHTS_SIZE_Y; ++ky) {
        for (uint kx = 0; kx < WEIGHTS_SIZE_X; ++kx) {
            // Left of the border the unsigned difference is huge, so one test is for both sides.
            const uint sy = y + ky - BORDER, sx = x + kx - BORDER;
            if (sy >= SRC_SIZE_Y || sx >= SRC_SIZE_X) {
                continue;
            }
            for (uint i = 0; i < SRC_SIZE_F; ++i) {
                sum += src[SRC_INDEX(b, i, sy, sx)] * WEIGHTS_LOAD_O8(weights, f, i, ky, kx);
            }
        }
    }
    DST_STORE_F8(sum, dst, b, f, y, x);
}
