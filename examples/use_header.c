/* The header of formats in plain OpenCL, without Python: a kernel moves a tensor from nchw to nChw16c,
 * and the host checks every element. The same functions serve both.
 *
 *     clformats header nchw nChw16c -o formats.h
 *     gcc use_header.c -lOpenCL -o use_header
 *     ./use_header formats.h
 *
 * Needs OpenCL's headers and loader (Debian: apt-get install opencl-c-headers ocl-icd-opencl-dev).
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats.h"

enum { N = 2, C = 19, H = 5, W = 7 };

/* One work-item for each place in memory: an element of the tensor, or zero in the padding. */
static const char *const kernel_source =
    "__kernel void to_blocked(__global const float *src, __global float *dst,\n"
    "                         uint N, uint C, uint H, uint W)\n"
    "{\n"
    "    const uint place = get_global_id(0);\n"
    "    uint n, c, h, w;\n"
    "    const bool found = cf_nChw16c_coords(N, C, H, W, place, &n, &c, &h, &w);\n"
    "    dst[place] = found ? src[cf_nchw(N, C, H, W, n, c, h, w)] : 0;\n"
    "}\n";

static void check(cl_int status, const char *doing)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s failed: OpenCL error %d\n", doing, (int)status);
        exit(1);
    }
}

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "cannot read %s: make it by `clformats header -o %s`\n", path, path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

/* Numbers that tell where they come from: 1, 2, 3, ... */
static float value(unsigned int n, unsigned int c, unsigned int h, unsigned int w)
{
    return 1.0f + (float)cf_nchw(N, C, H, W, n, c, h, w);
}

/* How many elements are wrong; padding must be zero. */
static unsigned int wrong_elements(const float *blocked, unsigned int places)
{
    unsigned int wrong = 0;
    for (unsigned int place = 0; place < places; ++place) {
        unsigned int n, c, h, w;
        const bool found = cf_nChw16c_coords(N, C, H, W, place, &n, &c, &h, &w);
        wrong += blocked[place] != (found ? value(n, c, h, w) : 0.0f);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    const char *texts[2] = {text_of(argc > 1 ? argv[1] : "formats.h"), kernel_source};
    const unsigned int elements = cf_nchw_places(N, C, H, W);
    const unsigned int places = cf_nChw16c_places(N, C, H, W);
    const cl_uint sizes[4] = {N, C, H, W};

    cl_platform_id platform;
    cl_device_id device;
    cl_int status = clGetPlatformIDs(1, &platform, NULL);
    check(status, "finding a platform");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "finding a device");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "making a context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "making a queue");
    cl_program program = clCreateProgramWithSource(context, 2, (const char **)texts, NULL, &status);
    check(status, "making a program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "building the program");
    cl_kernel kernel = clCreateKernel(program, "to_blocked", &status);
    check(status, "making a kernel");

    float *src = malloc(elements * sizeof(float)), *dst = malloc(places * sizeof(float));
    if (src == NULL || dst == NULL) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (unsigned int k = 0; k < elements; ++k) {
        unsigned int n, c, h, w;
        cf_nchw_coords(N, C, H, W, k, &n, &c, &h, &w);
        src[k] = value(n, c, h, w);
    }
    cl_mem from = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                 elements * sizeof(float), src, &status);
    check(status, "making a buffer");
    cl_mem to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, places * sizeof(float), NULL, &status);
    check(status, "making a buffer");
    check(clSetKernelArg(kernel, 0, sizeof from, &from), "setting an argument");
    check(clSetKernelArg(kernel, 1, sizeof to, &to), "setting an argument");
    for (cl_uint k = 0; k < 4; ++k) {
        check(clSetKernelArg(kernel, 2 + k, sizeof sizes[k], &sizes[k]), "setting an argument");
    }
    const size_t threads = places;
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &threads, NULL, 0, NULL, NULL), "running");
    check(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, places * sizeof(float), dst, 0, NULL, NULL),
          "reading the result");

    const unsigned int wrong = wrong_elements(dst, places);
    printf("%u elements in %u places, %u wrong\n", elements, places, wrong);
    clReleaseMemObject(to);
    clReleaseMemObject(from);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    free(dst);
    free(src);
    free((void *)texts[0]);
    return wrong != 0;
}
