/* Runs an export as a program of a user's would, for the tests.
 *
 *     run_export PLATFORM PATH [-c FOLDER] [-v VARIANT] [-o] [-i] [-r] [-t THREADS] WHAT...
 *
 * -c: a folder for binaries. -o: a queue without order. -i: CLF_INEXACT. -r: through the reader callback.
 * -t: so many threads, with a program and a queue each, run 20 times.
 * WHAT is <NAME=FILE, an input; >NAME=FILE, an output, which is 0xA5 before, to be written to the file;
 * ?NAME=FILE, an output that is compared with the file; NAME=NUMBER, a scalar.
 * Prints the status, then what was asked for; exits with the status, or 20 and more where the test failed.
 */
#include "clformats.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256 };
static cl_context context;
static cl_device_id device;
static const char *path, *whats[MOST];
static int num_whats, out_of_order, runs = 2;
static clf_options options;

static void stop(const char *why, const char *about)
{
    fprintf(stderr, "%s %s\n", why, about);
    exit(20);
}

static void *file_of(void *user, const char *name, size_t *bytes)
{
    char whole[4096];
    FILE *file;
    void *data = NULL;
    long size;
    snprintf(whole, sizeof whole, "%s%s%s", user ? (const char *)user : "", user ? "/" : "", name);
    file = fopen(whole, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    if (size >= 0) data = malloc((size_t)size + 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    *bytes = (size_t)size;
    return data;
}

static cl_device_id device_of(const char *platform)
{
    cl_platform_id ids[16];
    cl_uint count = 0, k;
    clGetPlatformIDs(16, ids, &count);
    for (k = 0; k < count && k < 16; k++) {
        char name[256] = "";
        cl_device_id found;
        clGetPlatformInfo(ids[k], CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
        if (strstr(name, platform) && !clGetDeviceIDs(ids[k], CL_DEVICE_TYPE_ALL, 1, &found, NULL)) return found;
    }
    stop("no platform", platform);
    return NULL;
}

typedef struct {
    clf_program *program;
    cl_command_queue queue;
    cl_mem mems[MOST];
    char names[MOST][80];
    const char *files[MOST];
    size_t sizes[MOST];
    clf_status status;
    int wrong;
} job;

/* Splits "<NAME=FILE", and makes the buffer, which holds the file or poison. */
static void give(job *j, int k)
{
    const char *what = whats[k], *equals = strchr(what, '=');
    const int named = strchr("<>?", what[0]) != NULL;
    clf_buffer_info info;
    unsigned char *host;
    cl_int error;
    size_t i;
    if (!equals || equals - what > 70) stop("cannot read", what);
    memcpy(j->names[k], what + named, (size_t)(equals - what) - (size_t)named);
    j->files[k] = equals + 1;
    if (!named) {
        j->status = clf_program_set_scalar(j->program, j->names[k], strtod(equals + 1, NULL));
        return;
    }
    for (i = 0; clf_program_buffer(j->program, i, &info) == CLF_OK; i++)
        if (!strcmp(info.name, j->names[k])) break;
    if (i == clf_program_num_buffers(j->program)) stop("no buffer", what);
    if ((what[0] == '<') != (info.role == CLF_INPUT)) stop("the other role", what);
    j->sizes[k] = info.bytes;
    host = (unsigned char *)malloc(info.bytes + 64);
    memset(host, 0xa5, info.bytes + 64);
    if (what[0] == '<') {
        size_t bytes = 0;
        void *data = file_of(NULL, j->files[k], &bytes);
        if (!data || bytes != info.bytes) stop("not the bytes expected:", what);
        memcpy(host, data, bytes);
        free(data);
    }
    j->mems[k] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, info.bytes + 64, host, &error);
    free(host);
    if (error) stop("clCreateBuffer", what);
    j->status = clf_program_set_buffer(j->program, j->names[k], j->mems[k]);
}

static void look(job *j, int k)
{
    unsigned char *host = (unsigned char *)malloc(j->sizes[k] + 64);
    size_t i;
    if (clEnqueueReadBuffer(j->queue, j->mems[k], CL_TRUE, 0, j->sizes[k] + 64, host, 0, NULL, NULL))
        stop("cannot read", whats[k]);
    for (i = 0; i < 64; i++) j->wrong += host[j->sizes[k] + i] != 0xa5; /* behind the end */
    if (whats[k][0] == '>') {
        FILE *file = fopen(j->files[k], "wb");
        if (!file || fwrite(host, 1, j->sizes[k], file) != j->sizes[k]) stop("cannot write", whats[k]);
        fclose(file);
    } else {
        size_t bytes = 0;
        void *data = file_of(NULL, j->files[k], &bytes);
        if (!data || bytes != j->sizes[k] || memcmp(data, host, bytes)) j->wrong++;
        free(data);
    }
    free(host);
}

static void *work(void *given)
{
    job *j = (job *)given;
    cl_int error;
    cl_event done = NULL;
    int k, run;
    j->queue = clCreateCommandQueue(context, device, out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &error);
    if (error) stop("clCreateCommandQueue", "");
    j->status = clf_program_create(&j->program, options.read ? NULL : path, j->queue, &options);
    for (k = 0; k < num_whats && j->status == CLF_OK; k++) give(j, k);
    for (run = 0; run < runs && j->status == CLF_OK; run++) {
        cl_event before = done;
        j->status = clf_program_run(j->program, before ? 1 : 0, before ? &before : NULL, &done);
        if (before) clReleaseEvent(before);
        if (j->status != CLF_OK) done = NULL;
    }
    if (done) {
        clWaitForEvents(1, &done);
        clReleaseEvent(done);
    }
    for (k = 0; k < num_whats && j->status == CLF_OK; k++)
        if (whats[k][0] == '>' || whats[k][0] == '?') look(j, k);
    return NULL;
}

int main(int argc, char **argv)
{
    static job jobs[16];
    pthread_t threads[16];
    int count = 1, k, wrong = 0, status = 0;
    cl_int error;
    if (argc < 3) stop("expected", "PLATFORM PATH");
    device = device_of(argv[1]);
    path = argv[2];
    for (k = 3; k < argc; k++) {
        if (!strcmp(argv[k], "-c") && k + 1 < argc) options.cache_folder = argv[++k];
        else if (!strcmp(argv[k], "-v") && k + 1 < argc) options.variant = argv[++k];
        else if (!strcmp(argv[k], "-t") && k + 1 < argc) count = atoi(argv[++k]);
        else if (!strcmp(argv[k], "-o")) out_of_order = 1;
        else if (!strcmp(argv[k], "-i")) options.flags |= CLF_INEXACT;
        else if (!strcmp(argv[k], "-r")) options.read = file_of;
        else if (num_whats < MOST) whats[num_whats++] = argv[k];
    }
    options.user = argv[2];
    if (count < 1 || count > 16) stop("threads: 1 to", "16");
    if (count > 1) runs = 20;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (error) stop("clCreateContext", argv[1]);
    for (k = 1; k < count; k++) pthread_create(&threads[k], NULL, work, &jobs[k]);
    work(&jobs[0]);
    for (k = 1; k < count; k++) pthread_join(threads[k], NULL);
    for (k = 0; k < count; k++) {
        int i;
        job *j = &jobs[k];
        if (j->status) status = (int)j->status;
        wrong += j->wrong;
        printf("status %d variant %s tuned %d exact %d wrong %d %s\n", (int)j->status, clf_program_variant(j->program),
               clf_program_is_tuned(j->program), clf_program_is_exact(j->program), j->wrong, clf_program_error(j->program));
        clf_program_destroy(j->program);
        for (i = 0; i < num_whats; i++)
            if (j->mems[i]) clReleaseMemObject(j->mems[i]);
        clReleaseCommandQueue(j->queue);
    }
    clReleaseContext(context);
    return status ? status : wrong ? 21 : 0;
}
