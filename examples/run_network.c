/* A planned network without Python: photo, reorder to blocked f16, network, result. C99 and C++11.
 *
 *     python examples/export_network.py squeezenet net
 *     cc -Inet examples/run_network.c net/clformats.c -lOpenCL -o run_network
 *     ./run_network net net/photo.bin result.bin [PLATFORM [FOLDER FOR BUILT PROGRAMS]]
 *
 * Needs OpenCL's headers and loader (Debian: apt-get install opencl-c-headers ocl-icd-opencl-dev).
 */
#include "clformats.h"
#include "network.h" /* names and sizes of what was recorded */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(cl_int status, const char *doing)
{
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s failed: OpenCL error %d\n", doing, (int)status);
    exit(1);
}

static void run(clf_status status, const clf_program *program)
{
    if (status == CLF_OK) return;
    fprintf(stderr, "%s\n", clf_program_error(program));
    exit(1);
}

/* The first device of a platform with this text in its name. */
static cl_device_id device_of(const char *text)
{
    cl_platform_id platforms[16];
    cl_uint count = 0, k;
    check(clGetPlatformIDs(16, platforms, &count), "finding platforms");
    for (k = 0; k < count && k < 16; k++) {
        char name[256] = "";
        cl_device_id device;
        check(clGetPlatformInfo(platforms[k], CL_PLATFORM_NAME, sizeof name - 1, name, NULL), "asking for a name");
        if (strstr(name, text) && !clGetDeviceIDs(platforms[k], CL_DEVICE_TYPE_ALL, 1, &device, NULL)) return device;
    }
    fprintf(stderr, "no OpenCL device of a platform %s\n", text);
    exit(1);
}

int main(int argc, char **argv)
{
    static unsigned char photo[NETWORK_PHOTO_BYTES], result[NETWORK_RESULT_BYTES];
    clf_options options;
    clf_program *program;
    clf_status status;
    cl_int error;
    FILE *file;
    if (argc < 4) {
        fprintf(stderr, "expected a folder, a photo, a file for the result\n");
        return 2;
    }
    file = fopen(argv[2], "rb");
    if (file == NULL || fread(photo, 1, sizeof photo, file) != sizeof photo) {
        fprintf(stderr, "%s does not have the %u bytes of %s\n", argv[2], (unsigned)sizeof photo, NETWORK_PHOTO_DESC);
        return 1;
    }
    fclose(file);

    cl_device_id device = device_of(argc > 4 ? argv[4] : "");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "making a context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "making a queue");
    cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof photo, NULL, &error);
    check(error, "making a buffer");
    cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof result, NULL, &error);
    check(error, "making a buffer");

    memset(&options, 0, sizeof options);
    options.cache_folder = argc > 5 ? argv[5] : NULL;
    status = clf_program_create(&program, argv[1], queue, &options); /* sets program: a statement of its own */
    run(status, program);
    run(clf_program_set_buffer(program, NETWORK_PHOTO, in), program);
    run(clf_program_set_buffer(program, NETWORK_RESULT, out), program);

    check(clEnqueueWriteBuffer(queue, in, CL_FALSE, 0, sizeof photo, photo, 0, NULL, NULL), "writing the photo");
    run(clf_program_run(program, 0, NULL, NULL), program);
    check(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof result, result, 0, NULL, NULL), "reading the result");

    file = fopen(argv[3], "wb");
    if (file == NULL || fwrite(result, 1, sizeof result, file) != sizeof result || fclose(file)) {
        fprintf(stderr, "%s cannot be written\n", argv[3]);
        return 1;
    }
    printf("%s, %s\n", NETWORK_RESULT_DESC,
           clf_program_is_tuned(program) ? "planned for this device" : "planned for another device, or for any");
    clf_program_destroy(program);
    clReleaseMemObject(out);
    clReleaseMemObject(in);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
