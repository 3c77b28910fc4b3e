// A number of a tensor, its extent along a dimension, and indices: from the start of its padding,
// and taken modulo its size.
#define CF_OF(prefix, name) prefix##_##name
#define CF_EXTENT(prefix, name) \
    (prefix##_PAD_BEFORE_##name + prefix##_##name + prefix##_PAD_AFTER_##name)
#define CF_AT(prefix, name, i) ((i) + prefix##_PAD_BEFORE_##name)
#define CF_WRAP(prefix, name, i) ((i) % CF_OF(prefix, name))

// Plain formats: by pitches, which tell their order.
#define GET_DATA_INDEX(prefix, b, f, y, x) \
    (CF_OF(prefix, OFFSET) + (b) * CF_OF(prefix, BATCH_PITCH) + (f) * CF_OF(prefix, FEATURE_PITCH) \
    + (y) * CF_OF(prefix, Y_PITCH) + (x) * CF_OF(prefix, X_PITCH))
#define GET_DATA_INDEX_SAFE(prefix, b, f, y, x) \
    GET_DATA_INDEX(prefix, CF_WRAP(prefix, BATCH_NUM, b), CF_WRAP(prefix, FEATURE_NUM, f), \
    CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))
#define GET_DATA_INDEX_RAW(prefix, i0, i1, i2, i3) \
    (CF_OF(prefix, OFFSET) + (i0) * CF_OF(prefix, PITCHES)[0] + (i1) * CF_OF(prefix, PITCHES)[1] \
    + (i2) * CF_OF(prefix, PITCHES)[2] + (i3) * CF_OF(prefix, PITCHES)[3])
#define GET_DATA_INDEX_5D(prefix, b, f, z, y, x) \
    (CF_OF(prefix, OFFSET) + (b) * CF_OF(prefix, BATCH_PITCH) + (f) * CF_OF(prefix, FEATURE_PITCH) \
    + (z) * CF_OF(prefix, Z_PITCH) + (y) * CF_OF(prefix, Y_PITCH) + (x) * CF_OF(prefix, X_PITCH))
#define GET_DATA_INDEX_5D_SAFE(prefix, b, f, z, y, x) \
    GET_DATA_INDEX_5D(prefix, CF_WRAP(prefix, BATCH_NUM, b), CF_WRAP(prefix, FEATURE_NUM, f), \
    CF_WRAP(prefix, SIZE_Z, z), CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))
#define GET_DATA_INDEX_5D_RAW(prefix, i0, i1, i2, i3, i4) \
    (CF_OF(prefix, OFFSET) + (i0) * CF_OF(prefix, PITCHES)[0] + (i1) * CF_OF(prefix, PITCHES)[1] \
    + (i2) * CF_OF(prefix, PITCHES)[2] + (i3) * CF_OF(prefix, PITCHES)[3] \
    + (i4) * CF_OF(prefix, PITCHES)[4])
#define GET_DATA_INDEX_6D(prefix, b, f, w, z, y, x) \
    (CF_OF(prefix, OFFSET) + (b) * CF_OF(prefix, BATCH_PITCH) + (f) * CF_OF(prefix, FEATURE_PITCH) \
    + (w) * CF_OF(prefix, W_PITCH) + (z) * CF_OF(prefix, Z_PITCH) + (y) * CF_OF(prefix, Y_PITCH) \
    + (x) * CF_OF(prefix, X_PITCH))
#define GET_DATA_INDEX_6D_SAFE(prefix, b, f, w, z, y, x) \
    GET_DATA_INDEX_6D(prefix, CF_WRAP(prefix, BATCH_NUM, b), CF_WRAP(prefix, FEATURE_NUM, f), \
    CF_WRAP(prefix, SIZE_W, w), CF_WRAP(prefix, SIZE_Z, z), CF_WRAP(prefix, SIZE_Y, y), \
    CF_WRAP(prefix, SIZE_X, x))
#define GET_DATA_INDEX_6D_RAW(prefix, i0, i1, i2, i3, i4, i5) \
    (CF_OF(prefix, OFFSET) + (i0) * CF_OF(prefix, PITCHES)[0] + (i1) * CF_OF(prefix, PITCHES)[1] \
    + (i2) * CF_OF(prefix, PITCHES)[2] + (i3) * CF_OF(prefix, PITCHES)[3] \
    + (i4) * CF_OF(prefix, PITCHES)[4] + (i5) * CF_OF(prefix, PITCHES)[5])
#define GET_DATA_INDEX_7D(prefix, b, f, u, w, z, y, x) \
    (CF_OF(prefix, OFFSET) + (b) * CF_OF(prefix, BATCH_PITCH) + (f) * CF_OF(prefix, FEATURE_PITCH) \
    + (u) * CF_OF(prefix, U_PITCH) + (w) * CF_OF(prefix, W_PITCH) + (z) * CF_OF(prefix, Z_PITCH) \
    + (y) * CF_OF(prefix, Y_PITCH) + (x) * CF_OF(prefix, X_PITCH))
#define GET_DATA_INDEX_7D_SAFE(prefix, b, f, u, w, z, y, x) \
    GET_DATA_INDEX_7D(prefix, CF_WRAP(prefix, BATCH_NUM, b), CF_WRAP(prefix, FEATURE_NUM, f), \
    CF_WRAP(prefix, SIZE_U, u), CF_WRAP(prefix, SIZE_W, w), CF_WRAP(prefix, SIZE_Z, z), \
    CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))
#define GET_DATA_INDEX_7D_RAW(prefix, i0, i1, i2, i3, i4, i5, i6) \
    (CF_OF(prefix, OFFSET) + (i0) * CF_OF(prefix, PITCHES)[0] + (i1) * CF_OF(prefix, PITCHES)[1] \
    + (i2) * CF_OF(prefix, PITCHES)[2] + (i3) * CF_OF(prefix, PITCHES)[3] \
    + (i4) * CF_OF(prefix, PITCHES)[4] + (i5) * CF_OF(prefix, PITCHES)[5] \
    + (i6) * CF_OF(prefix, PITCHES)[6])
#define GET_DATA_INDEX_8D(prefix, b, f, v, u, w, z, y, x) \
    (CF_OF(prefix, OFFSET) + (b) * CF_OF(prefix, BATCH_PITCH) + (f) * CF_OF(prefix, FEATURE_PITCH) \
    + (v) * CF_OF(prefix, V_PITCH) + (u) * CF_OF(prefix, U_PITCH) + (w) * CF_OF(prefix, W_PITCH) \
    + (z) * CF_OF(prefix, Z_PITCH) + (y) * CF_OF(prefix, Y_PITCH) + (x) * CF_OF(prefix, X_PITCH))
#define GET_DATA_INDEX_8D_SAFE(prefix, b, f, v, u, w, z, y, x) \
    GET_DATA_INDEX_8D(prefix, CF_WRAP(prefix, BATCH_NUM, b), CF_WRAP(prefix, FEATURE_NUM, f), \
    CF_WRAP(prefix, SIZE_V, v), CF_WRAP(prefix, SIZE_U, u), CF_WRAP(prefix, SIZE_W, w), \
    CF_WRAP(prefix, SIZE_Z, z), CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))
#define GET_DATA_INDEX_8D_RAW(prefix, i0, i1, i2, i3, i4, i5, i6, i7) \
    (CF_OF(prefix, OFFSET) + (i0) * CF_OF(prefix, PITCHES)[0] + (i1) * CF_OF(prefix, PITCHES)[1] \
    + (i2) * CF_OF(prefix, PITCHES)[2] + (i3) * CF_OF(prefix, PITCHES)[3] \
    + (i4) * CF_OF(prefix, PITCHES)[4] + (i5) * CF_OF(prefix, PITCHES)[5] \
    + (i6) * CF_OF(prefix, PITCHES)[6] + (i7) * CF_OF(prefix, PITCHES)[7])
#define GET_FILTER_INDEX(prefix, g, o, i, y, x) \
    (CF_OF(prefix, OFFSET) + (g) * CF_OF(prefix, GROUPS_PITCH) + (o) * CF_OF(prefix, OFM_PITCH) \
    + (i) * CF_OF(prefix, IFM_PITCH) + (y) * CF_OF(prefix, Y_PITCH) + (x) * CF_OF(prefix, X_PITCH))
#define GET_FILTER_INDEX_SAFE(prefix, g, o, i, y, x) \
    GET_FILTER_INDEX(prefix, CF_WRAP(prefix, GROUPS_NUM, g), CF_WRAP(prefix, OFM_NUM, o), \
    CF_WRAP(prefix, IFM_NUM, i), CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))
#define GET_FILTER_INDEX_5D(prefix, g, o, i, z, y, x) \
    (CF_OF(prefix, OFFSET) + (g) * CF_OF(prefix, GROUPS_PITCH) + (o) * CF_OF(prefix, OFM_PITCH) \
    + (i) * CF_OF(prefix, IFM_PITCH) + (z) * CF_OF(prefix, Z_PITCH) + (y) * CF_OF(prefix, Y_PITCH) \
    + (x) * CF_OF(prefix, X_PITCH))
#define GET_FILTER_INDEX_5D_SAFE(prefix, g, o, i, z, y, x) \
    GET_FILTER_INDEX_5D(prefix, CF_WRAP(prefix, GROUPS_NUM, g), CF_WRAP(prefix, OFM_NUM, o), \
    CF_WRAP(prefix, IFM_NUM, i), CF_WRAP(prefix, SIZE_Z, z), CF_WRAP(prefix, SIZE_Y, y), \
    CF_WRAP(prefix, SIZE_X, x))
#define GET_FILTER_GOIYX(prefix, g, o, i, y, x) GET_FILTER_INDEX(prefix, g, o, i, y, x)
#define GET_FILTER_GOIYX_SAFE(prefix, g, o, i, y, x) GET_FILTER_INDEX_SAFE(prefix, g, o, i, y, x)
#define GET_FILTER_GIOYX(prefix, g, o, i, y, x) GET_FILTER_INDEX(prefix, g, o, i, y, x)
#define GET_FILTER_GIOYX_SAFE(prefix, g, o, i, y, x) GET_FILTER_INDEX_SAFE(prefix, g, o, i, y, x)
#define GET_FILTER_GOIZYX(prefix, g, o, i, z, y, x) GET_FILTER_INDEX_5D(prefix, g, o, i, z, y, x)
#define GET_FILTER_GOIZYX_SAFE(prefix, g, o, i, z, y, x) \
    GET_FILTER_INDEX_5D_SAFE(prefix, g, o, i, z, y, x)
#define GET_FILTER_GIOZYX(prefix, g, o, i, z, y, x) GET_FILTER_INDEX_5D(prefix, g, o, i, z, y, x)
#define GET_FILTER_GIOZYX_SAFE(prefix, g, o, i, z, y, x) \
    GET_FILTER_INDEX_5D_SAFE(prefix, g, o, i, z, y, x)

// b_fs_yx_fsv16
static inline uint cf_b_fs_yx_fsv16(uint B, uint F, uint Y, uint X, uint b, uint f, uint y, uint x)
{
    return (((b * ((F + 15) / 16) + f / 16) * Y + y) * X + x) * 16 + f % 16;
}
#define GET_DATA_B_FS_YX_FSV16_INDEX(prefix, b, f, y, x) \
    cf_b_fs_yx_fsv16(CF_EXTENT(prefix, BATCH_NUM), CF_EXTENT(prefix, FEATURE_NUM), \
    CF_EXTENT(prefix, SIZE_Y), CF_EXTENT(prefix, SIZE_X), CF_AT(prefix, BATCH_NUM, b), \
    CF_AT(prefix, FEATURE_NUM, f), CF_AT(prefix, SIZE_Y, y), CF_AT(prefix, SIZE_X, x))
#define GET_DATA_B_FS_YX_FSV16_INDEX_SAFE(prefix, b, f, y, x) \
    GET_DATA_B_FS_YX_FSV16_INDEX(prefix, CF_WRAP(prefix, BATCH_NUM, b), \
    CF_WRAP(prefix, FEATURE_NUM, f), CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))

// os_is_yx_isv16_osv16
static inline uint cf_os_is_yx_isv16_osv16(uint O, uint I, uint Y, uint X, uint o, uint i, uint y,
    uint x)
{
    return ((((o / 16 * ((I + 15) / 16) + i / 16) * Y + y) * X + x) * 16 + i % 16) * 16 + o % 16;
}
#define GET_FILTER_OS_IS_YX_ISV16_OSV16_INDEX(prefix, o, i, y, x) \
    cf_os_is_yx_isv16_osv16(CF_EXTENT(prefix, OFM_NUM), CF_EXTENT(prefix, IFM_NUM), \
    CF_EXTENT(prefix, SIZE_Y), CF_EXTENT(prefix, SIZE_X), CF_AT(prefix, OFM_NUM, o), \
    CF_AT(prefix, IFM_NUM, i), CF_AT(prefix, SIZE_Y, y), CF_AT(prefix, SIZE_X, x))
#define GET_FILTER_OS_IS_YX_ISV16_OSV16_INDEX_SAFE(prefix, o, i, y, x) \
    GET_FILTER_OS_IS_YX_ISV16_OSV16_INDEX(prefix, CF_WRAP(prefix, OFM_NUM, o), \
    CF_WRAP(prefix, IFM_NUM, i), CF_WRAP(prefix, SIZE_Y, y), CF_WRAP(prefix, SIZE_X, x))

// bfyx
#define GET_DATA_BFYX_INDEX(prefix, b, f, y, x) GET_DATA_INDEX(prefix, b, f, y, x)
#define GET_DATA_BFYX_INDEX_SAFE(prefix, b, f, y, x) GET_DATA_INDEX_SAFE(prefix, b, f, y, x)

#define IS_DYNAMIC 1
#define OPTIONAL_SHAPE_INFO_ARG __global const int *shape_info,
#define OPTIONAL_SHAPE_INFO_TENSOR shape_info,

// INPUT0: f32:b_fs_yx_fsv16:2x17x5x4:pad=0+0x0+0x1+1x1+1
#define INPUT0_SIZE_X 4
#define INPUT0_SIZE_Y 5
#define INPUT0_SIZE_Z 1
#define INPUT0_SIZE_W 1
#define INPUT0_SIZE_U 1
#define INPUT0_SIZE_V 1
#define INPUT0_FEATURE_NUM 17
#define INPUT0_BATCH_NUM 2
#define INPUT0_PAD_BEFORE_SIZE_X 1
#define INPUT0_PAD_BEFORE_SIZE_Y 1
#define INPUT0_PAD_BEFORE_SIZE_Z 0
#define INPUT0_PAD_BEFORE_SIZE_W 0
#define INPUT0_PAD_BEFORE_SIZE_U 0
#define INPUT0_PAD_BEFORE_SIZE_V 0
#define INPUT0_PAD_BEFORE_FEATURE_NUM 0
#define INPUT0_PAD_BEFORE_BATCH_NUM 0
#define INPUT0_PAD_AFTER_SIZE_X 1
#define INPUT0_PAD_AFTER_SIZE_Y 1
#define INPUT0_PAD_AFTER_SIZE_Z 0
#define INPUT0_PAD_AFTER_SIZE_W 0
#define INPUT0_PAD_AFTER_SIZE_U 0
#define INPUT0_PAD_AFTER_SIZE_V 0
#define INPUT0_PAD_AFTER_FEATURE_NUM 0
#define INPUT0_PAD_AFTER_BATCH_NUM 0
#define INPUT0_X_PITCH 1
#define INPUT0_Y_PITCH 6
#define INPUT0_Z_PITCH 1
#define INPUT0_W_PITCH 1
#define INPUT0_U_PITCH 1
#define INPUT0_V_PITCH 1
#define INPUT0_FEATURE_PITCH 42
#define INPUT0_BATCH_PITCH 714
#define INPUT0_OFFSET 7
#define INPUT0_VIEW_OFFSET 0
#define INPUT0_LENGTH 680
#define INPUT0_DIMS 4
#define INPUT0_SIMPLE 0
#define INPUT0_GROUPED 0
#define INPUT0_LAYOUT_B_FS_YX_FSV16 1
#define INPUT0_TYPE float
#define INPUT0_TYPE_SIZE 4
#define INPUT0_IS_FP 1
#define INPUT0_VAL_MAX FLT_MAX
#define INPUT0_VAL_MIN -INPUT0_VAL_MAX
#define INPUT0_VAL_ONE 1.0f
#define INPUT0_VAL_ZERO 0.0f
#define TO_INPUT0_TYPE(v) convert_float(v)
#define TO_INPUT0_TYPE_SAT(v) convert_float(v)
#define AS_INPUT0_TYPE(v) as_float(v)
#define INPUT0_COMPUTE_TYPE float
#define TO_INPUT0_COMPUTE_TYPE(v) convert_float(v)
#define DECODE_INPUT0_COMPUTE_TYPE(v) (v)
#define INPUT0_MAX_FUNC fmax
#define INPUT0_MIN_FUNC fmin
#define INPUT0_ABS_FUNC fabs
#define INPUT0_SIZES_DATA { 4, 5, 17, 2 }
__constant size_t INPUT0_SIZES[] = INPUT0_SIZES_DATA;
#define INPUT0_PITCHES_DATA { 1, 6, 42, 714 }
__constant size_t INPUT0_PITCHES[] = INPUT0_PITCHES_DATA;
#define INPUT0_PAD_BEFORE_DATA { 1, 1, 0, 0 }
__constant size_t INPUT0_PAD_BEFORE[] = INPUT0_PAD_BEFORE_DATA;
#define INPUT0_PAD_AFTER_DATA { 1, 1, 0, 0 }
__constant size_t INPUT0_PAD_AFTER[] = INPUT0_PAD_AFTER_DATA;
#define INPUT0_GET_INDEX(b, f, y, x) GET_DATA_B_FS_YX_FSV16_INDEX(INPUT0, b, f, y, x)
#define INPUT0_GET_INDEX_SAFE(b, f, y, x) GET_DATA_B_FS_YX_FSV16_INDEX_SAFE(INPUT0, b, f, y, x)
#define INPUT0_GET_INDEX_RAW(i0, i1, i2, i3) GET_DATA_INDEX_RAW(INPUT0, i0, i1, i2, i3)

// FILTER: f32:os_is_yx_isv16_osv16:19x17x3x3
#define FILTER_SIZE_X 3
#define FILTER_SIZE_Y 3
#define FILTER_SIZE_Z 1
#define FILTER_IFM_NUM 17
#define FILTER_OFM_NUM 19
#define FILTER_GROUPS_NUM 1
#define FILTER_PAD_BEFORE_SIZE_X 0
#define FILTER_PAD_BEFORE_SIZE_Y 0
#define FILTER_PAD_BEFORE_SIZE_Z 0
#define FILTER_PAD_BEFORE_IFM_NUM 0
#define FILTER_PAD_BEFORE_OFM_NUM 0
#define FILTER_PAD_BEFORE_GROUPS_NUM 0
#define FILTER_PAD_AFTER_SIZE_X 0
#define FILTER_PAD_AFTER_SIZE_Y 0
#define FILTER_PAD_AFTER_SIZE_Z 0
#define FILTER_PAD_AFTER_IFM_NUM 0
#define FILTER_PAD_AFTER_OFM_NUM 0
#define FILTER_PAD_AFTER_GROUPS_NUM 0
#define FILTER_X_PITCH 1
#define FILTER_Y_PITCH 3
#define FILTER_Z_PITCH 1
#define FILTER_IFM_PITCH 9
#define FILTER_OFM_PITCH 288
#define FILTER_GROUPS_PITCH 1
#define FILTER_OFFSET 0
#define FILTER_VIEW_OFFSET 0
#define FILTER_LENGTH 2907
#define FILTER_DIMS 4
#define FILTER_SIMPLE 0
#define FILTER_GROUPED 0
#define FILTER_LAYOUT_OS_IS_YX_ISV16_OSV16 1
#define FILTER_TYPE float
#define FILTER_TYPE_SIZE 4
#define FILTER_IS_FP 1
#define FILTER_VAL_MAX FLT_MAX
#define FILTER_VAL_MIN -FILTER_VAL_MAX
#define FILTER_VAL_ONE 1.0f
#define FILTER_VAL_ZERO 0.0f
#define TO_FILTER_TYPE(v) convert_float(v)
#define TO_FILTER_TYPE_SAT(v) convert_float(v)
#define AS_FILTER_TYPE(v) as_float(v)
#define FILTER_COMPUTE_TYPE float
#define TO_FILTER_COMPUTE_TYPE(v) convert_float(v)
#define DECODE_FILTER_COMPUTE_TYPE(v) (v)
#define FILTER_MAX_FUNC fmax
#define FILTER_MIN_FUNC fmin
#define FILTER_ABS_FUNC fabs
#define FILTER_SIZES_DATA { 3, 3, 17, 19 }
__constant size_t FILTER_SIZES[] = FILTER_SIZES_DATA;
#define FILTER_PITCHES_DATA { 1, 3, 9, 288 }
__constant size_t FILTER_PITCHES[] = FILTER_PITCHES_DATA;
#define FILTER_PAD_BEFORE_DATA { 0, 0, 0, 0 }
__constant size_t FILTER_PAD_BEFORE[] = FILTER_PAD_BEFORE_DATA;
#define FILTER_PAD_AFTER_DATA { 0, 0, 0, 0 }
__constant size_t FILTER_PAD_AFTER[] = FILTER_PAD_AFTER_DATA;
#define FILTER_GET_INDEX(o, i, y, x) GET_FILTER_OS_IS_YX_ISV16_OSV16_INDEX(FILTER, o, i, y, x)
#define FILTER_GET_INDEX_SAFE(o, i, y, x) \
    GET_FILTER_OS_IS_YX_ISV16_OSV16_INDEX_SAFE(FILTER, o, i, y, x)
#define INIT_FILTER_INDEX_FUNC_HERE
#define FILTER_INDEX_FUNC(o, i, y, x) FILTER_GET_INDEX(o, i, y, x)

// BIAS: f32:bfyx:1x19x1x1
#define BIAS_SIZE_X 1
#define BIAS_SIZE_Y 1
#define BIAS_SIZE_Z 1
#define BIAS_SIZE_W 1
#define BIAS_SIZE_U 1
#define BIAS_SIZE_V 1
#define BIAS_FEATURE_NUM 19
#define BIAS_BATCH_NUM 1
#define BIAS_PAD_BEFORE_SIZE_X 0
#define BIAS_PAD_BEFORE_SIZE_Y 0
#define BIAS_PAD_BEFORE_SIZE_Z 0
#define BIAS_PAD_BEFORE_SIZE_W 0
#define BIAS_PAD_BEFORE_SIZE_U 0
#define BIAS_PAD_BEFORE_SIZE_V 0
#define BIAS_PAD_BEFORE_FEATURE_NUM 0
#define BIAS_PAD_BEFORE_BATCH_NUM 0
#define BIAS_PAD_AFTER_SIZE_X 0
#define BIAS_PAD_AFTER_SIZE_Y 0
#define BIAS_PAD_AFTER_SIZE_Z 0
#define BIAS_PAD_AFTER_SIZE_W 0
#define BIAS_PAD_AFTER_SIZE_U 0
#define BIAS_PAD_AFTER_SIZE_V 0
#define BIAS_PAD_AFTER_FEATURE_NUM 0
#define BIAS_PAD_AFTER_BATCH_NUM 0
#define BIAS_X_PITCH 1
#define BIAS_Y_PITCH 1
#define BIAS_Z_PITCH 1
#define BIAS_W_PITCH 1
#define BIAS_U_PITCH 1
#define BIAS_V_PITCH 1
#define BIAS_FEATURE_PITCH 1
#define BIAS_BATCH_PITCH 19
#define BIAS_OFFSET 0
#define BIAS_VIEW_OFFSET 0
#define BIAS_LENGTH 19
#define BIAS_DIMS 4
#define BIAS_SIMPLE 1
#define BIAS_GROUPED 0
#define BIAS_LAYOUT_BFYX 1
#define BIAS_TYPE float
#define BIAS_TYPE_SIZE 4
#define BIAS_IS_FP 1
#define BIAS_VAL_MAX FLT_MAX
#define BIAS_VAL_MIN -BIAS_VAL_MAX
#define BIAS_VAL_ONE 1.0f
#define BIAS_VAL_ZERO 0.0f
#define TO_BIAS_TYPE(v) convert_float(v)
#define TO_BIAS_TYPE_SAT(v) convert_float(v)
#define AS_BIAS_TYPE(v) as_float(v)
#define BIAS_COMPUTE_TYPE float
#define TO_BIAS_COMPUTE_TYPE(v) convert_float(v)
#define DECODE_BIAS_COMPUTE_TYPE(v) (v)
#define BIAS_MAX_FUNC fmax
#define BIAS_MIN_FUNC fmin
#define BIAS_ABS_FUNC fabs
#define BIAS_SIZES_DATA { 1, 1, 19, 1 }
__constant size_t BIAS_SIZES[] = BIAS_SIZES_DATA;
#define BIAS_PITCHES_DATA { 1, 1, 1, 19 }
__constant size_t BIAS_PITCHES[] = BIAS_PITCHES_DATA;
#define BIAS_PAD_BEFORE_DATA { 0, 0, 0, 0 }
__constant size_t BIAS_PAD_BEFORE[] = BIAS_PAD_BEFORE_DATA;
#define BIAS_PAD_AFTER_DATA { 0, 0, 0, 0 }
__constant size_t BIAS_PAD_AFTER[] = BIAS_PAD_AFTER_DATA;
#define BIAS_GET_INDEX(b, f, y, x) (BIAS_OFFSET + (f))
#define BIAS_GET_INDEX_SAFE(b, f, y, x) ((BIAS_OFFSET + (f)) % 19)
#define BIAS_GET_INDEX_RAW(i0, i1, i2, i3) GET_DATA_INDEX_RAW(BIAS, i0, i1, i2, i3)

// OUTPUT: s8:bfyx:2x19x*x*
#define OUTPUT_SIZE_X (shape_info[7])
#define OUTPUT_SIZE_Y (shape_info[6])
#define OUTPUT_SIZE_Z 1
#define OUTPUT_SIZE_W 1
#define OUTPUT_SIZE_U 1
#define OUTPUT_SIZE_V 1
#define OUTPUT_FEATURE_NUM 19
#define OUTPUT_BATCH_NUM 2
#define OUTPUT_PAD_BEFORE_SIZE_X 0
#define OUTPUT_PAD_BEFORE_SIZE_Y 0
#define OUTPUT_PAD_BEFORE_SIZE_Z 0
#define OUTPUT_PAD_BEFORE_SIZE_W 0
#define OUTPUT_PAD_BEFORE_SIZE_U 0
#define OUTPUT_PAD_BEFORE_SIZE_V 0
#define OUTPUT_PAD_BEFORE_FEATURE_NUM 0
#define OUTPUT_PAD_BEFORE_BATCH_NUM 0
#define OUTPUT_PAD_AFTER_SIZE_X 0
#define OUTPUT_PAD_AFTER_SIZE_Y 0
#define OUTPUT_PAD_AFTER_SIZE_Z 0
#define OUTPUT_PAD_AFTER_SIZE_W 0
#define OUTPUT_PAD_AFTER_SIZE_U 0
#define OUTPUT_PAD_AFTER_SIZE_V 0
#define OUTPUT_PAD_AFTER_FEATURE_NUM 0
#define OUTPUT_PAD_AFTER_BATCH_NUM 0
#define OUTPUT_X_PITCH 1
#define OUTPUT_Y_PITCH OUTPUT_SIZE_X
#define OUTPUT_Z_PITCH 1
#define OUTPUT_W_PITCH 1
#define OUTPUT_U_PITCH 1
#define OUTPUT_V_PITCH 1
#define OUTPUT_FEATURE_PITCH (OUTPUT_SIZE_X * OUTPUT_SIZE_Y)
#define OUTPUT_BATCH_PITCH (OUTPUT_SIZE_X * OUTPUT_SIZE_Y * 19)
#define OUTPUT_OFFSET 0
#define OUTPUT_VIEW_OFFSET 0
#define OUTPUT_LENGTH (38 * OUTPUT_SIZE_Y * OUTPUT_SIZE_X)
#define OUTPUT_DIMS 4
#define OUTPUT_SIMPLE 1
#define OUTPUT_GROUPED 0
#define OUTPUT_LAYOUT_BFYX 1
#define OUTPUT_TYPE char
#define OUTPUT_TYPE_SIZE 1
#define OUTPUT_IS_FP 0
#define OUTPUT_VAL_MAX CHAR_MAX
#define OUTPUT_VAL_MIN CHAR_MIN
#define OUTPUT_VAL_ONE (char) 1
#define OUTPUT_VAL_ZERO (char) 0
#define TO_OUTPUT_TYPE(v) convert_char(v)
#define TO_OUTPUT_TYPE_SAT(v) convert_char_sat(v)
#define AS_OUTPUT_TYPE(v) as_char(v)
#define OUTPUT_COMPUTE_TYPE char
#define TO_OUTPUT_COMPUTE_TYPE(v) convert_char(v)
#define DECODE_OUTPUT_COMPUTE_TYPE(v) (v)
#define OUTPUT_MAX_FUNC max
#define OUTPUT_MIN_FUNC min
#define OUTPUT_ABS_FUNC abs
#define OUTPUT_GET_INDEX(b, f, y, x) GET_DATA_BFYX_INDEX(OUTPUT, b, f, y, x)
#define OUTPUT_GET_INDEX_SAFE(b, f, y, x) GET_DATA_BFYX_INDEX_SAFE(OUTPUT, b, f, y, x)
#define OUTPUT_GET_INDEX_RAW(i0, i1, i2, i3) GET_DATA_INDEX_RAW(OUTPUT, i0, i1, i2, i3)
