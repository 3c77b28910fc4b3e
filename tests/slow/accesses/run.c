/* Runs work-groups of a GPU's kernel on the host, a thread for each work-item, and writes down every
 * access to its source, its destination and its local memory.
 *
 * The kernel is compiled as it is, with clang's -fsanitize=kernel-address: it calls a function before
 * each access, which are those below. What precedes this file in the same compilation says, as macros,
 * ITEMS, SRC_BYTES, DST_BYTES, GROUPS (numbers between commas) and ARGUMENTS (those of the kernel
 * behind source and destination, each with a comma before it), and declares the kernel. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE, DESTINATION, LOCAL };

struct access {
    uint32_t group, item, bytes, memory, stores, unused;
    uint64_t instruction, at; /* at: from the start of the memory on */
};

static const uint32_t groups[] = {GROUPS};
static char *src, *dst;
static pthread_barrier_t together;
static FILE *out;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static __thread uint32_t group, item;
static __thread struct access *found;
static __thread size_t count, room;

/* The linker's: static memory, where the kernel's local memory lies. */
extern char __bss_start[], _end[];

static void note(const char *address, size_t bytes, int stores, void *instruction)
{
    struct access a = {group, item, bytes, 0, stores, 0, (uint64_t)instruction, 0};
    if (address >= src && address < src + SRC_BYTES) {
        a.memory = SOURCE;
        a.at = address - src;
    } else if (address >= dst && address < dst + DST_BYTES) {
        a.memory = DESTINATION;
        a.at = address - dst;
    } else if (address >= __bss_start && address < _end) {
        a.memory = LOCAL;
        a.at = (uint64_t)address;
    } else {
        return; /* private memory */
    }
    if (count == room) {
        room = room ? 2 * room : 1024;
        found = realloc(found, room * sizeof *found);
    }
    found[count++] = a;
}

#define CALLER __builtin_return_address(0)
#define ACCESS(n) \
    void __asan_load##n##_noabort(char *at) { note(at, n, 0, CALLER); } \
    void __asan_store##n##_noabort(char *at) { note(at, n, 1, CALLER); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
void __asan_loadN_noabort(char *at, size_t n) { note(at, n, 0, CALLER); }
void __asan_storeN_noabort(char *at, size_t n) { note(at, n, 1, CALLER); }
void *__asan_memcpy(void *to, const void *from, size_t n) { return memcpy(to, from, n); }
void *__asan_memset(void *to, int value, size_t n) { return memset(to, value, n); }
void __asan_handle_no_return(void) {}

/* What the kernel asks of OpenCL, by the names that a header gives it. */
size_t host_group_id(uint32_t d) { return d ? 0 : group; }
size_t host_local_id(uint32_t d) { return d ? 0 : item; }
void host_barrier(uint32_t flags) { (void)flags; pthread_barrier_wait(&together); }

static void *work_item(void *number)
{
    item = (uint32_t)(uintptr_t)number;
    for (size_t k = 0; k < sizeof groups / sizeof *groups; ++k) {
        group = groups[k];
        reorder(src, dst ARGUMENTS);
        pthread_barrier_wait(&together);
    }
    pthread_mutex_lock(&one_at_a_time);
    fwrite(found, sizeof *found, count, out);
    pthread_mutex_unlock(&one_at_a_time);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[ITEMS];
    pthread_attr_t small;
    out = argc > 1 ? fopen(argv[1], "wb") : NULL;
    src = aligned_alloc(4096, (SRC_BYTES + 4095) / 4096 * 4096);
    dst = aligned_alloc(4096, (DST_BYTES + 4095) / 4096 * 4096);
    if (!out || !src || !dst) return 1;
    memset(src, 1, SRC_BYTES);
    pthread_barrier_init(&together, NULL, ITEMS);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    for (uintptr_t k = 0; k < ITEMS; ++k)
        if (pthread_create(&threads[k], &small, work_item, (void *)k)) return 1;
    for (size_t k = 0; k < ITEMS; ++k) pthread_join(threads[k], NULL);
    return fclose(out) != 0;
}
