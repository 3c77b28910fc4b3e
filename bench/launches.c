/* launches FOLDER PLATFORM ROUNDS: the median microseconds that the runner takes to enqueue a run. */
#define _POSIX_C_SOURCE 200809L
#include "clformats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    cl_platform_id ids[16];
    cl_uint count = 0, k;
    cl_device_id device = NULL;
    cl_int error = 0;
    clf_program *program;
    clf_buffer_info info;
    const int rounds = argc > 3 ? atoi(argv[3]) : 1;
    double *times = (double *)calloc((size_t)rounds, sizeof *times);
    int r;
    clGetPlatformIDs(16, ids, &count);
    for (k = 0; argc > 3 && k < count && k < 16; k++) {
        char name[256] = "";
        clGetPlatformInfo(ids[k], CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
        if (!device && strstr(name, argv[2])) clGetDeviceIDs(ids[k], CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    }
    if (!device || !times) return 2;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    if (clf_program_create(&program, argv[1], queue, NULL) != CLF_OK) {
        fprintf(stderr, "%s\n", clf_program_error(program));
        return 1;
    }
    for (k = 0; clf_program_buffer(program, k, &info) == CLF_OK; k++) {
        cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, info.bytes, NULL, &error);
        clf_program_set_buffer(program, info.name, mem);
        clReleaseMemObject(mem);
    }
    for (r = -3; r < rounds; r++) {
        const double start = now();
        if (clf_program_run(program, 0, NULL, NULL) != CLF_OK) return 1;
        if (r >= 0) times[r] = now() - start;
        clFinish(queue);
    }
    qsort(times, (size_t)rounds, sizeof *times, less);
    printf("%f\n", times[rounds / 2]);
    clf_program_destroy(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    free(times);
    return 0;
}
