/* Runs what clformats recorded in Python, in C or C++, without Python.
 *
 *     clf_program *program;
 *     if (clf_program_create(&program, "net", queue, NULL) != CLF_OK) puts(clf_program_error(program));
 *     clf_program_set_buffer(program, "photo", photo);
 *     clf_program_set_buffer(program, "packed", packed);
 *     clf_program_run(program, 0, NULL, NULL);
 *     clf_program_destroy(program);
 *
 * Compile clformats.c with your program, as C99 or C++11, and link the OpenCL library (1.2 or later).
 * There are no global variables, and nothing is printed. A program is for one thread at a time; threads
 * may have a program each. An export is code, as a shared library is: load none that you do not trust.
 */
#ifndef CLFORMATS_H
#define CLFORMATS_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#include <CL/cl.h>
#endif
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLF_FORMAT_VERSION 1 /* of the manifests that this runner reads */

typedef struct clf_program clf_program;

typedef enum {
    CLF_OK = 0,
    CLF_NO_FILE = 1,      /* a file is missing */
    CLF_BAD_FILE = 2,     /* a file was damaged or changed, or is none of an export */
    CLF_NEWER = 3,        /* of a version of the format that this runner does not know */
    CLF_WRONG_DEVICE = 4, /* the device lacks what the recording requires */
    CLF_BAD_CALL = 5,     /* a name that there is not, a buffer too small or not given, NULL */
    CLF_OPENCL = 6,       /* an OpenCL call failed; clf_program_error() has its code, or the build log */
    CLF_NO_MEMORY = 7
} clf_status;

enum { CLF_INPUT = 0, CLF_OUTPUT = 1 };

enum {
    CLF_INEXACT = 1 /* also where the device rounds divisions otherwise: bytes may differ */
};

typedef struct {
    const char *name;
    const char *desc; /* element type, format and sizes, such as f16:nChw16c:1x3x224x224 */
    size_t bytes;     /* the least that the buffer must have */
    size_t alignment; /* what its address must be a multiple of */
    int role;         /* CLF_INPUT or CLF_OUTPUT */
} clf_buffer_info;

typedef struct {
    unsigned flags;           /* CLF_INEXACT, or 0 */
    const char *cache_folder; /* an existing folder for built programs, that only you can write; or NULL */
    const char *variant;      /* the name of a variant; or NULL, for the first that fits best */
    /* Gives a file of the export by its name, in memory of malloc's that the runner frees; NULL where
     * there is none. For files inside of an application. Or NULL, for folders and files on disk. */
    void *(*read)(void *user, const char *file, size_t *bytes);
    void *user;
} clf_options;

/* Loads an export, builds its programs for the device of the queue, and sets what does not change.
 *
 * path is a folder or a *.clf file; it is not used where options->read is given. options may be NULL. The
 * queue is kept. *program is set where this fails, too, for clf_program_error(): destroy it. Only where
 * there is no memory at all is it NULL. */
clf_status clf_program_create(clf_program **program, const char *path, cl_command_queue queue,
                              const clf_options *options);

/* Inputs and outputs, in the order of the recording. */
size_t clf_program_num_buffers(const clf_program *program);
clf_status clf_program_buffer(const clf_program *program, size_t index, clf_buffer_info *info);

/* Gives an input or output, for this run and later ones; it is kept until another is given. Outputs need
 * buffers of their own. */
clf_status clf_program_set_buffer(clf_program *program, const char *name, cl_mem buffer);

/* Gives a scalar, converted to its type; refused where that cannot hold it. Of the whole numbers beyond 2^53
 * only those can be given that a double has. */
clf_status clf_program_set_scalar(clf_program *program, const char *name, double value);
size_t clf_program_num_scalars(const clf_program *program);
const char *clf_program_scalar(const clf_program *program, size_t index); /* its name, or NULL */

/* Enqueues all commands after the events, and returns. done may be NULL; else release the event. Runs
 * follow each other on an in-order queue; on one without order, wait for the run before. */
clf_status clf_program_run(clf_program *program, cl_uint num_events, const cl_event *events, cl_event *done);

/* Whether the variant was planned for this device and driver: another one runs, perhaps slower. */
int clf_program_is_tuned(const clf_program *program);
/* Whether OpenCL promises the bytes of the recording: not for functions such as exp, nor for kernels of
 * your own, on another device than that of the recording. */
int clf_program_is_exact(const clf_program *program);
const char *clf_program_variant(const clf_program *program); /* its name */

/* What went wrong in the latest call that failed: one line, then the build log where a build failed. */
const char *clf_program_error(const clf_program *program);

void clf_program_destroy(clf_program *program); /* NULL is fine; commands under way end first */

#ifdef __cplusplus
}
#endif
#endif
