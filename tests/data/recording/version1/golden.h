/* golden, recorded by clformats 0.1.0.dev0:

    clf_program_create(&program, "folder of this file", queue, NULL);
    clf_program_set_buffer(program, "photo", ...);
    clf_program_set_buffer(program, "result", ...);
    clf_program_set_scalar(program, "by", ...);
    clf_program_run(program, 0, NULL, NULL);
*/
#ifndef GOLDEN_H
#define GOLDEN_H

/* Input: 4 dimensions, n, c, h, w. */
#define GOLDEN_PHOTO "photo"
#define GOLDEN_PHOTO_DESC "u8:nhwc:2x5x3x7"
#define GOLDEN_PHOTO_DIMS {2, 5, 3, 7}
#define GOLDEN_PHOTO_BYTES 210
#define GOLDEN_PHOTO_ALIGNMENT 1

/* Output: 4 dimensions, n, c, h, w. */
#define GOLDEN_RESULT "result"
#define GOLDEN_RESULT_DESC "f32:nchw:2x5x3x7"
#define GOLDEN_RESULT_DIMS {2, 5, 3, 7}
#define GOLDEN_RESULT_BYTES 840
#define GOLDEN_RESULT_ALIGNMENT 1

/* Scalar: f32. */
#define GOLDEN_BY "by"

#endif
