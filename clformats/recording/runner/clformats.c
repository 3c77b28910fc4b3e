/* See clformats.h. C99 and C++11, OpenCL 1.2, nothing else. */
#include "clformats.h"

#include <float.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __GNUC__
#define CLF_PRINTF __attribute__((format(printf, 3, 4)))
#else
#define CLF_PRINTF
#endif

/* ---- JSON: objects, lists, texts, true, false, and whole numbers from 0 on ------------------------- */

typedef enum { CLF_J_NONE, CLF_J_FLAG, CLF_J_NUMBER, CLF_J_TEXT, CLF_J_LIST, CLF_J_MAP } clf_kind;

/* A value; its members follow each other by next. 0 stands for no value. */
typedef struct {
    clf_kind kind;
    const char *key;
    const char *text;
    uint64_t number;
    size_t first, next, count;
} clf_node;

/* Texts are unescaped in place, so they live as long as the text that was read. */
typedef struct {
    char *at, *end;
    clf_node *nodes;
    size_t count, room;
    int depth, no_memory;
} clf_json;

enum { CLF_DEEPEST = 32 };

static void clf_blank(clf_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r')) j->at++;
}

static int clf_take(clf_json *j, char c)
{
    clf_blank(j);
    if (j->at >= j->end || *j->at != c) return 0;
    j->at++;
    return 1;
}

static int clf_hex(const char *from, unsigned *out)
{
    unsigned value = 0;
    int k;
    for (k = 0; k < 4; k++) {
        const char c = from[k];
        value <<= 4;
        if (c >= '0' && c <= '9') value |= (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f') value |= (unsigned)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') value |= (unsigned)(c - 'A' + 10);
        else return 0;
    }
    *out = value;
    return 1;
}

/* One code unit of \uXXXX as UTF-8; at most three bytes, which is less than the escape has. */
static char *clf_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | (code >> 6));
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xe0 | (code >> 12));
        *to++ = (char)(0x80 | ((code >> 6) & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

/* The character of an escape, after the backslash; NULL where it is none. */
static char *clf_escape(clf_json *j, char *to)
{
    static const char known[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *found;
    unsigned code;
    if (j->at >= j->end || !*j->at) return NULL;
    found = strchr(known, *j->at);
    if (found) {
        j->at++;
        *to++ = meant[found - known];
        return to;
    }
    if (*j->at != 'u' || j->end - j->at < 5 || !clf_hex(j->at + 1, &code) || !code) return NULL;
    j->at += 5;
    return clf_utf8(to, code);
}

static const char *clf_string(clf_json *j)
{
    char *from, *to;
    if (!clf_take(j, '"')) return NULL;
    from = to = j->at;
    while (j->at < j->end && *j->at != '"') {
        const char c = *j->at++;
        if ((unsigned char)c < 32) return NULL;
        if (c != '\\') *to++ = c;
        else if ((to = clf_escape(j, to)) == NULL) return NULL;
    }
    if (j->at >= j->end) return NULL;
    j->at++;
    *to = 0; /* at the latest where the quote was */
    return from;
}

static size_t clf_node_new(clf_json *j)
{
    if (j->count == j->room) {
        const size_t room = j->room ? 2 * j->room : 256;
        clf_node *more = (clf_node *)realloc(j->nodes, room * sizeof *more);
        if (!more) {
            j->no_memory = 1;
            return 0;
        }
        j->nodes = more;
        j->room = room;
        if (!j->count) memset(&j->nodes[j->count++], 0, sizeof *more); /* the value that is none */
    }
    memset(&j->nodes[j->count], 0, sizeof *j->nodes);
    return j->count++;
}

static int clf_word(clf_json *j, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(j->end - j->at) < length || memcmp(j->at, word, length)) return 0;
    j->at += length;
    return 1;
}

static int clf_number(clf_json *j, uint64_t *out)
{
    const char *from = j->at;
    uint64_t value = 0;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') {
        const uint64_t digit = (uint64_t)(*j->at - '0');
        if (value > (((uint64_t)1 << 62) - digit) / 10) return 0;
        value = value * 10 + digit;
        j->at++;
    }
    *out = value;
    return j->at > from && j->at < j->end && *j->at != '.' && *j->at != 'e' && *j->at != 'E';
}

static size_t clf_value(clf_json *j, const char *key);

/* The members of a list or a map up to its end. */
static int clf_members(clf_json *j, size_t node, char close)
{
    size_t last = 0;
    if (clf_take(j, close)) return 1;
    for (;;) {
        const char *key = NULL;
        size_t member;
        if (close == '}' && ((key = clf_string(j)) == NULL || !clf_take(j, ':'))) return 0;
        member = clf_value(j, key);
        if (!member) return 0;
        if (last) j->nodes[last].next = member;
        else j->nodes[node].first = member;
        last = member;
        j->nodes[node].count++;
        if (clf_take(j, close)) return 1;
        if (!clf_take(j, ',')) return 0;
    }
}

/* Reads a value; 0 where there is none. */
static size_t clf_value(clf_json *j, const char *key)
{
    const size_t node = clf_node_new(j);
    int well = 0;
    if (!node) return 0;
    clf_blank(j);
    j->nodes[node].key = key;
    if (j->at >= j->end) return 0;
    if (*j->at == '{' || *j->at == '[') {
        const char close = *j->at == '{' ? '}' : ']';
        j->nodes[node].kind = close == '}' ? CLF_J_MAP : CLF_J_LIST;
        j->at++;
        if (j->depth++ < CLF_DEEPEST) well = clf_members(j, node, close);
        j->depth--;
    } else if (*j->at == '"') {
        const char *text = clf_string(j);
        j->nodes[node].kind = CLF_J_TEXT;
        j->nodes[node].text = text;
        well = text != NULL;
    } else if (*j->at == 't' || *j->at == 'f') {
        j->nodes[node].kind = CLF_J_FLAG;
        j->nodes[node].number = *j->at == 't';
        well = clf_word(j, *j->at == 't' ? "true" : "false");
    } else {
        uint64_t number = 0;
        well = clf_number(j, &number);
        j->nodes[node].kind = CLF_J_NUMBER;
        j->nodes[node].number = number;
    }
    return well ? node : 0;
}

/* ---- the program ------------------------------------------------------------------------------------ */

typedef enum { CLF_CONSTANT = 2, CLF_TEMPORARY = 3 } clf_private_role;

typedef struct {
    clf_buffer_info info;
    size_t at; /* in the data, or in the arena */
    cl_mem mem;
} clf_buffer;

typedef enum { CLF_F32, CLF_F64, CLF_S32, CLF_U32, CLF_S64, CLF_U64, CLF_TYPES } clf_type;
static const char *const clf_type_names[CLF_TYPES] = {"f32", "f64", "s32", "u32", "s64", "u64"};
static const size_t clf_type_bytes[CLF_TYPES] = {4, 8, 4, 4, 8, 8};

typedef struct {
    const char *name;
    clf_type type;
    int is_set;
} clf_scalar;

/* Where an argument comes from at each run: a buffer's number, or a scalar's after those of buffers. */
typedef struct {
    cl_uint argument;
    size_t source;
} clf_place;

typedef struct {
    cl_kernel kernel; /* NULL: a fill */
    cl_uint dims;
    size_t global[3], local[3];
    int has_local;
    clf_place *places;
    size_t num_places;
    size_t buffer, first, bytes; /* of a fill */
    unsigned char value;
} clf_command;

struct clf_program {
    char error[4096];
    cl_command_queue queue;
    cl_context context;
    cl_device_id device;
    clf_options options;
    const char *path;
    unsigned char *tar;
    size_t tar_bytes;
    unsigned char *text; /* the manifest */
    clf_json json;
    unsigned char *data;
    size_t data_bytes;
    clf_buffer *buffers;
    size_t num_buffers, num_named;
    clf_scalar *scalars;
    size_t num_scalars;
    cl_mem arena;
    const char *variant;
    const clf_node *programs_of, *kernels_of; /* of the variant that is being built */
    cl_program *programs;
    size_t num_programs;
    clf_command *commands;
    size_t num_commands;
    int is_tuned, is_exact, can_round, in_order;
    char *names[3]; /* device, platform, driver */
};

static clf_status clf_fail(clf_program *p, clf_status status, const char *format, ...) CLF_PRINTF;
static clf_status clf_fail(clf_program *p, clf_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->error, sizeof p->error, format, list);
    va_end(list);
    return status;
}

static clf_status clf_no_memory(clf_program *p) { return clf_fail(p, CLF_NO_MEMORY, "out of memory"); }

static clf_status clf_damaged(clf_program *p, const char *what)
{
    return clf_fail(p, CLF_BAD_FILE, "manifest.json: %s is missing, or not as it should be", what);
}

/* ---- members of the manifest ------------------------------------------------------------------------ */

static const clf_node *clf_get(const clf_program *p, const clf_node *map, const char *key, clf_kind kind)
{
    size_t k;
    if (!map || map->kind != CLF_J_MAP) return NULL;
    for (k = map->first; k; k = p->json.nodes[k].next) {
        const clf_node *node = &p->json.nodes[k];
        if (!strcmp(node->key, key)) return node->kind == kind ? node : NULL;
    }
    return NULL;
}

static const clf_node *clf_first(const clf_program *p, const clf_node *list)
{
    return list && list->first ? &p->json.nodes[list->first] : NULL;
}

static const clf_node *clf_next(const clf_program *p, const clf_node *node)
{
    return node->next ? &p->json.nodes[node->next] : NULL;
}

static const clf_node *clf_nth(const clf_program *p, const clf_node *list, uint64_t index)
{
    const clf_node *node = clf_first(p, list);
    while (node && index--) node = clf_next(p, node);
    return node;
}

static const char *clf_text(const clf_program *p, const clf_node *map, const char *key)
{
    const clf_node *found = clf_get(p, map, key, CLF_J_TEXT);
    return found ? found->text : NULL;
}

static int clf_size(const clf_program *p, const clf_node *map, const char *key, size_t *out)
{
    const clf_node *found = clf_get(p, map, key, CLF_J_NUMBER);
    if (!found || found->number > SIZE_MAX / 4) return 0;
    *out = (size_t)found->number;
    return 1;
}

/* ---- files ------------------------------------------------------------------------------------------ */

static uint32_t clf_crc32(const unsigned char *bytes, size_t count)
{
    uint32_t table[256], crc = 0xffffffffu;
    uint32_t k;
    for (k = 0; k < 256; k++) {
        uint32_t c = k;
        int bit;
        for (bit = 0; bit < 8; bit++) c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1u)));
        table[k] = c;
    }
    while (count--) crc = (crc >> 8) ^ table[(crc ^ *bytes++) & 255];
    return ~crc;
}

/* A file with a zero behind it; NULL where it cannot be read. */
static unsigned char *clf_read_path(const char *path, size_t *bytes)
{
    size_t room = 1 << 16, count = 0;
    unsigned char *data;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    data = (unsigned char *)malloc(room);
    while (data) {
        unsigned char *more;
        count += fread(data + count, 1, room - 1 - count, file);
        if (count < room - 1) break;
        more = room < SIZE_MAX / 2 ? (unsigned char *)realloc(data, 2 * room) : NULL;
        if (!more) {
            free(data);
            data = NULL;
        } else {
            data = more;
            room *= 2;
        }
    }
    if (data && ferror(file)) {
        free(data);
        data = NULL;
    }
    fclose(file);
    if (data) {
        data[count] = 0;
        *bytes = count;
    }
    return data;
}

/* "folder/name" in memory of its own. */
static char *clf_joined(const char *folder, const char *name)
{
    const size_t room = strlen(folder) + strlen(name) + 2;
    char *path = (char *)malloc(room);
    if (path) snprintf(path, room, "%s/%s", folder, name);
    return path;
}

/* A copy with a zero behind it. */
static unsigned char *clf_copied(const void *from, size_t bytes)
{
    unsigned char *to = bytes < SIZE_MAX ? (unsigned char *)malloc(bytes + 1) : NULL;
    if (!to) return NULL;
    if (bytes) memcpy(to, from, bytes);
    to[bytes] = 0;
    return to;
}

/* A file in a tar file without compression, as export writes it. */
static unsigned char *clf_from_tar(const clf_program *p, const char *name, size_t *bytes)
{
    size_t at = 0;
    while (p->tar_bytes - at >= 512 && p->tar[at]) {
        const unsigned char *head = p->tar + at;
        size_t size = 0, k;
        for (k = 124; k < 135 && head[k] >= '0' && head[k] <= '7'; k++) size = size * 8 + (size_t)(head[k] - '0');
        if (size > p->tar_bytes - at - 512) return NULL;
        if (strlen(name) < 100 && !strncmp((const char *)head, name, 100)) {
            *bytes = size;
            return clf_copied(head + 512, size);
        }
        at += 512;
        size = (size + 511) / 512 * 512;
        if (size > p->tar_bytes - at) return NULL;
        at += size;
    }
    return NULL;
}

static unsigned char *clf_load(clf_program *p, const char *name, size_t *bytes)
{
    unsigned char *found;
    char *path;
    if (p->options.read) {
        size_t count = 0;
        void *given = p->options.read(p->options.user, name, &count);
        found = given ? clf_copied(given, count) : NULL;
        free(given);
        *bytes = count;
        return found;
    }
    if (p->tar) return clf_from_tar(p, name, bytes);
    path = clf_joined(p->path, name);
    found = path ? clf_read_path(path, bytes) : NULL;
    free(path);
    return found;
}

/* Whether a name stays inside of the export. */
static int clf_is_inside(const char *name)
{
    return *name && *name != '/' && !strstr(name, "..") && !strchr(name, '\\') && !strchr(name, ':');
}

/* A file that the manifest names, with the checksum that it says. */
static clf_status clf_load_checked(clf_program *p, const char *name, unsigned char **out, size_t *bytes)
{
    const clf_node *files = clf_get(p, &p->json.nodes[1], "files", CLF_J_LIST), *f;
    for (f = clf_first(p, files); f; f = clf_next(p, f)) {
        const char *file = clf_text(p, f, "file");
        size_t size, crc;
        if (!file || strcmp(file, name)) continue;
        if (!clf_is_inside(file) || !clf_size(p, f, "bytes", &size) || !clf_size(p, f, "crc32", &crc)) break;
        *out = clf_load(p, file, bytes);
        if (!*out) return clf_fail(p, CLF_NO_FILE, "%s cannot be read", file);
        if (*bytes == size && clf_crc32(*out, size) == crc) return CLF_OK;
        free(*out);
        *out = NULL;
        return clf_fail(p, CLF_BAD_FILE, "%s is not the file that was exported", file);
    }
    return clf_damaged(p, "files");
}

/* Finds out whether the path is a folder or a file. */
static clf_status clf_open(clf_program *p, const char *path)
{
    char *manifest;
    FILE *file;
    if (p->options.read) return CLF_OK;
    if (!path) return clf_fail(p, CLF_BAD_CALL, "neither a path nor options->read was given");
    p->path = path;
    manifest = clf_joined(path, "manifest.json");
    if (!manifest) return clf_no_memory(p);
    file = fopen(manifest, "rb");
    free(manifest);
    if (file) {
        fclose(file);
        return CLF_OK;
    }
    p->tar = clf_read_path(path, &p->tar_bytes);
    if (!p->tar) return clf_fail(p, CLF_NO_FILE, "%s is neither a folder with manifest.json nor a file", path);
    return CLF_OK;
}

/* The last member of the manifest is the checksum of all bytes before it. Asked before JSON is read. */
static int clf_is_sealed(const unsigned char *text, size_t bytes)
{
    static const char key[] = "\"crc32\": ";
    const size_t length = sizeof key - 1;
    size_t at = bytes < length ? 0 : bytes - length + 1;
    while (at && memcmp(text + at - 1, key, length)) at--;
    return at && strtoul((const char *)text + at - 1 + length, NULL, 10) == clf_crc32(text, at - 1);
}

static clf_status clf_read_manifest(clf_program *p)
{
    size_t bytes = 0, version = 0;
    int is_sealed;
    const char *format;
    p->text = clf_load(p, "manifest.json", &bytes);
    if (!p->text) return clf_fail(p, CLF_NO_FILE, "manifest.json cannot be read");
    is_sealed = clf_is_sealed(p->text, bytes);
    p->json.at = (char *)p->text;
    p->json.end = p->json.at + bytes;
    if (clf_value(&p->json, NULL) != 1) {
        if (p->json.no_memory) return clf_no_memory(p);
        return clf_fail(p, CLF_BAD_FILE, "manifest.json is damaged");
    }
    clf_blank(&p->json);
    format = clf_text(p, &p->json.nodes[1], "format");
    if (p->json.at != p->json.end || !format || strcmp(format, "clformats recording"))
        return clf_fail(p, CLF_BAD_FILE, "manifest.json is damaged, or none of a recording's");
    if (!clf_size(p, &p->json.nodes[1], "version", &version)) return clf_damaged(p, "version");
    if (version > CLF_FORMAT_VERSION)
        return clf_fail(p, CLF_NEWER, "manifest.json is of version %llu, this runner reads %d: take a newer one",
                        (unsigned long long)version, CLF_FORMAT_VERSION);
    if (!is_sealed) return clf_fail(p, CLF_BAD_FILE, "manifest.json was changed since it was exported");
    return CLF_OK;
}

/* ---- the device ------------------------------------------------------------------------------------- */

/* A text of the device or the platform, without blanks around it; NULL where there is none. */
static char *clf_info(clf_program *p, cl_platform_id platform, cl_uint what)
{
    size_t bytes = 0, first = 0;
    char *text;
    cl_int error = platform ? clGetPlatformInfo(platform, what, 0, NULL, &bytes)
                            : clGetDeviceInfo(p->device, what, 0, NULL, &bytes);
    if (error || bytes > SIZE_MAX / 2) return NULL;
    text = (char *)calloc(bytes + 1, 1);
    if (!text) return NULL;
    error = platform ? clGetPlatformInfo(platform, what, bytes, text, NULL)
                     : clGetDeviceInfo(p->device, what, bytes, text, NULL);
    if (error) {
        free(text);
        return NULL;
    }
    bytes = strlen(text);
    while (bytes && strchr(" \t\r\n", text[bytes - 1])) text[--bytes] = 0;
    while (text[first] && strchr(" \t\r\n", text[first])) first++;
    memmove(text, text + first, bytes - first + 1);
    return text;
}

static clf_status clf_find_device(clf_program *p)
{
    cl_platform_id platform = NULL;
    cl_device_fp_config single = 0;
    cl_command_queue_properties properties = 0;
    cl_int error = clGetCommandQueueInfo(p->queue, CL_QUEUE_CONTEXT, sizeof p->context, &p->context, NULL);
    char *driver, *version;
    if (!error) error = clGetCommandQueueInfo(p->queue, CL_QUEUE_DEVICE, sizeof p->device, &p->device, NULL);
    if (!error) error = clGetCommandQueueInfo(p->queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (!error) error = clGetDeviceInfo(p->device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    if (error) return clf_fail(p, CLF_OPENCL, "asking the queue for its device: error %d", (int)error);
    p->in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    clGetDeviceInfo(p->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    p->can_round = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    p->names[0] = clf_info(p, NULL, CL_DEVICE_NAME);
    p->names[1] = clf_info(p, platform, CL_PLATFORM_NAME);
    driver = clf_info(p, NULL, CL_DRIVER_VERSION);
    version = clf_info(p, platform, CL_PLATFORM_VERSION);
    if (driver && version) {
        const size_t room = strlen(driver) + strlen(version) + 3;
        p->names[2] = (char *)malloc(room);
        if (p->names[2]) snprintf(p->names[2], room, "%s, %s", driver, version);
    }
    free(driver);
    free(version);
    if (!p->names[0] || !p->names[1] || !p->names[2]) return clf_fail(p, CLF_OPENCL, "the device tells no name");
    return CLF_OK;
}

static int clf_has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    const char *at = words;
    while (length && (at = strstr(at, word)) != NULL) {
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return 1;
        at += length;
    }
    return 0;
}

static clf_status clf_check_extensions(clf_program *p, const clf_node *list)
{
    char *known = clf_info(p, NULL, CL_DEVICE_EXTENSIONS);
    clf_status status = known && list ? CLF_OK : clf_damaged(p, "extensions");
    const clf_node *e = status == CLF_OK ? clf_first(p, list) : NULL;
    for (; e && status == CLF_OK; e = clf_next(p, e))
        if (e->kind != CLF_J_TEXT || !clf_has_word(known, e->text))
            status = clf_fail(p, CLF_WRONG_DEVICE, "needs the extension %s", e->kind == CLF_J_TEXT ? e->text : "?");
    free(known);
    return status;
}

/* The newest version of OpenCL C that the device compiles, times 100. Devices of OpenCL 3.0 name 1.2 where
 * older ones name the newest, and have a list of all: CL_DEVICE_OPENCL_C_ALL_VERSIONS, newer than some headers. */
static size_t clf_version(clf_program *p)
{
    struct { cl_uint version; char name[64]; } all[64];
    char *text = clf_info(p, NULL, CL_DEVICE_OPENCL_C_VERSION);
    size_t found = 0, bytes = 0, k;
    if (text && !strncmp(text, "OpenCL C ", 9) && strlen(text) >= 12)
        found = (size_t)(text[9] - '0') * 100 + (size_t)(text[11] - '0') * 10;
    free(text);
    if (clGetDeviceInfo(p->device, 0x1066, sizeof all, all, &bytes) != CL_SUCCESS) return found;
    for (k = 0; k < bytes / sizeof all[0]; k++) {
        const size_t own = (size_t)(all[k].version >> 22) * 100 + (size_t)(all[k].version >> 12 & 0x3ff) * 10;
        if (own > found) found = own;
    }
    return found;
}

/* What the device must have, lest bytes be wrong or nothing runs. */
static clf_status clf_check_requires(clf_program *p, const clf_node *variant)
{
    const clf_node *needs = clf_get(p, variant, "requires", CLF_J_MAP);
    const clf_node *rounded = clf_get(p, needs, "rounded_division", CLF_J_FLAG);
    const clf_node *little = clf_get(p, needs, "little_endian", CLF_J_FLAG);
    size_t opencl_c, group, largest, parameter, most_group = 0, most_parameter = 0;
    cl_ulong most = 0;
    cl_bool is_little = CL_FALSE;
    if (!rounded || !little || !clf_size(p, needs, "opencl_c", &opencl_c) || !clf_size(p, needs, "work_group", &group) ||
        !clf_size(p, needs, "largest_buffer", &largest) || !clf_size(p, needs, "parameter_bytes", &parameter))
        return clf_damaged(p, "requires");
    clGetDeviceInfo(p->device, CL_DEVICE_ENDIAN_LITTLE, sizeof is_little, &is_little, NULL);
    clGetDeviceInfo(p->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most_group, &most_group, NULL);
    clGetDeviceInfo(p->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL);
    clGetDeviceInfo(p->device, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof most_parameter, &most_parameter, NULL);
    if (most_parameter < 1024) most_parameter = 1024;
    if (little->number && !is_little) return clf_fail(p, CLF_WRONG_DEVICE, "needs a little-endian device");
    if (opencl_c > clf_version(p))
        return clf_fail(p, CLF_WRONG_DEVICE, "needs OpenCL C %d.%d", (int)(opencl_c / 100), (int)(opencl_c / 10 % 10));
    if (group > most_group)
        return clf_fail(p, CLF_WRONG_DEVICE, "needs work-groups of %llu", (unsigned long long)group);
    if (largest > most)
        return clf_fail(p, CLF_WRONG_DEVICE, "needs a buffer of %llu bytes", (unsigned long long)largest);
    if (parameter > most_parameter && !p->is_tuned)
        return clf_fail(p, CLF_WRONG_DEVICE, "needs %llu bytes of arguments for a kernel", (unsigned long long)parameter);
    if (rounded->number && !p->can_round && !(p->options.flags & CLF_INEXACT))
        return clf_fail(p, CLF_WRONG_DEVICE, "needs correctly rounded divisions (CLF_INEXACT lets it run without)");
    return clf_check_extensions(p, clf_get(p, needs, "extensions", CLF_J_LIST));
}

/* ---- built programs, kept in a folder --------------------------------------------------------------- */

static const char clf_magic[] = "clformats binary 1\n";

static void clf_hash(uint64_t *hash, const char *text)
{
    size_t k;
    for (k = 0; k <= strlen(text); k++) {
        hash[0] = (hash[0] ^ (unsigned char)text[k]) * (uint64_t)1099511628211u;
        hash[1] = (hash[1] ^ (unsigned char)text[k] ^ (hash[0] >> 56)) * (uint64_t)1099511628211u;
        if (!text[k]) break;
    }
}

/* Where a program is kept: the name is a hash of all that its binary depends on. NULL: nowhere. */
static char *clf_cache_path(clf_program *p, const char *source, const char *options)
{
    uint64_t hash[2] = {(uint64_t)14695981039346656037u, (uint64_t)0x5bd1e9955bd1e995u};
    char name[48];
    if (!p->options.cache_folder) return NULL;
    clf_hash(hash, clf_magic);
    clf_hash(hash, p->names[0]);
    clf_hash(hash, p->names[1]);
    clf_hash(hash, p->names[2]);
    clf_hash(hash, options);
    clf_hash(hash, source);
    snprintf(name, sizeof name, "%016llx%016llx.clb", (unsigned long long)hash[0], (unsigned long long)hash[1]);
    return clf_joined(p->options.cache_folder, name);
}

/* A program from the cache, built; NULL for a miss of any kind. */
static cl_program clf_from_cache(clf_program *p, const char *path, const char *options)
{
    const size_t head = sizeof clf_magic - 1 + 4;
    size_t bytes = 0;
    cl_program made = NULL;
    unsigned char *file = clf_read_path(path, &bytes);
    if (file && bytes > head && !memcmp(file, clf_magic, sizeof clf_magic - 1)) {
        const unsigned char *sum = file + head - 4, *binary = file + head;
        const size_t length = bytes - head;
        const uint32_t crc = clf_crc32(binary, length);
        cl_int state = CL_SUCCESS, error = CL_SUCCESS;
        if (sum[0] == (crc & 255) && sum[1] == (crc >> 8 & 255) && sum[2] == (crc >> 16 & 255) && sum[3] == crc >> 24)
            made = clCreateProgramWithBinary(p->context, 1, &p->device, &length, &binary, &state, &error);
        if (made && (error || state || clBuildProgram(made, 1, &p->device, options, NULL, NULL))) {
            clReleaseProgram(made);
            made = NULL;
        }
    }
    free(file);
    return made;
}

/* PoCL 3.1 aborts where it loads a binary in which the program is an empty file. */
static int clf_is_hollow(const unsigned char *binary, size_t bytes)
{
    static const char sign[] = "/program.bc\0\0\0"; /* and the zero at its end */
    size_t k;
    for (k = 0; k + sizeof sign <= bytes; k++)
        if (!memcmp(binary + k, sign, sizeof sign)) return 1;
    return 0;
}

/* The binary of a program for the one device; NULL where the driver gives none. */
static unsigned char *clf_binary(cl_program program, size_t *bytes)
{
    cl_uint devices = 0;
    unsigned char *binary;
    if (clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof devices, &devices, NULL) || devices != 1) return NULL;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL) || !*bytes) return NULL;
    binary = (unsigned char *)malloc(*bytes);
    if (binary && clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL)) {
        free(binary);
        binary = NULL;
    }
    return binary;
}

/* Keeps a program; whatever fails, it is built again the next time. */
static void clf_to_cache(cl_program program, const char *path)
{
    size_t bytes = 0;
    unsigned char *binary = clf_binary(program, &bytes);
    const size_t room = strlen(path) + 64;
    char *name = (char *)malloc(room);
    if (binary && name && !clf_is_hollow(binary, bytes)) {
        const uint32_t crc = clf_crc32(binary, bytes);
        const unsigned char sum[4] = {(unsigned char)(crc & 255), (unsigned char)(crc >> 8 & 255),
                                      (unsigned char)(crc >> 16 & 255), (unsigned char)(crc >> 24)};
        FILE *file;
        /* Of a name of its own, so that nobody reads half of it. */
        snprintf(name, room, "%s.%lx.%lx.%p.new", path, (unsigned long)time(NULL), (unsigned long)clock(), (void *)binary);
        file = fopen(name, "wb");
        if (file) {
            int well = fwrite(clf_magic, sizeof clf_magic - 1, 1, file) == 1 && fwrite(sum, 4, 1, file) == 1 &&
                       fwrite(binary, bytes, 1, file) == 1;
            well = !fclose(file) && well;
            if (!well || rename(name, path)) remove(name);
        }
    }
    free(binary);
    free(name);
}

/* ---- programs and kernels ---------------------------------------------------------------------------- */

static clf_status clf_from_source(clf_program *p, const char *name, const char *text, const char *options,
                                  cl_program *out)
{
    cl_int error = CL_SUCCESS;
    *out = clCreateProgramWithSource(p->context, 1, &text, NULL, &error);
    if (error) return clf_fail(p, CLF_OPENCL, "making a program of %s: error %d", name, (int)error);
    error = clBuildProgram(*out, 1, &p->device, options, NULL, NULL);
    if (error) {
        const int used = snprintf(p->error, sizeof p->error, "building %s: error %d\n", name, (int)error);
        const size_t room = used > 0 && (size_t)used < sizeof p->error ? sizeof p->error - (size_t)used : 0;
        size_t bytes = 0;
        char *log = NULL;
        if (!clGetProgramBuildInfo(*out, p->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) && bytes)
            log = (char *)calloc(bytes + 1, 1);
        if (log && room && !clGetProgramBuildInfo(*out, p->device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL))
            snprintf(p->error + used, room, "%s", log);
        free(log);
        clReleaseProgram(*out);
        *out = NULL;
        return CLF_OPENCL;
    }
    return CLF_OK;
}

/* Whether a program has all of its kernels: a binary that a driver took may be of another program. */
static int clf_has_kernels(clf_program *p, cl_program program, size_t index)
{
    const clf_node *k;
    for (k = clf_first(p, p->kernels_of); k; k = clf_next(p, k)) {
        size_t of;
        const char *name = clf_text(p, k, "name");
        cl_kernel kernel;
        cl_int error = CL_SUCCESS;
        if (!name || !clf_size(p, k, "program", &of) || of != index) continue;
        kernel = clCreateKernel(program, name, &error);
        if (error || !kernel) return 0;
        clReleaseKernel(kernel);
    }
    return 1;
}

/* The platforms whose compilers translate clang's built-in functions; others may die of one, such as rusticl. */
static const char *const clf_takes_builtins[] = {"Portable Computing Language", "Intel(R) OpenCL"};

static int clf_is_portable(const clf_program *p)
{
    size_t k;
    for (k = 0; k < sizeof clf_takes_builtins / sizeof *clf_takes_builtins; k++)
        if (!strcmp(p->names[1], clf_takes_builtins[k])) return 0;
    return 1;
}

static clf_status clf_build(clf_program *p, const clf_node *entry, size_t index)
{
    const clf_node *rounds = clf_get(p, entry, "rounds", CLF_J_FLAG);
    const char *name = clf_text(p, entry, "file"), *given = clf_text(p, entry, "options");
    static const char rounded[] = " -cl-fp32-correctly-rounded-divide-sqrt", portable[] = " -DCLFORMATS_PORTABLE";
    unsigned char *source = NULL;
    char *options, *cached;
    size_t bytes = 0;
    clf_status status;
    if (!rounds || !name || !given) return clf_damaged(p, "programs");
    status = clf_load_checked(p, name, &source, &bytes);
    if (status != CLF_OK) return status;
    options = (char *)malloc(strlen(given) + sizeof rounded + sizeof portable);
    if (!options) {
        free(source);
        return clf_no_memory(p);
    }
    strcpy(options, given);
    if (rounds->number && p->can_round) strcat(options, rounded);
    if (clf_is_portable(p)) strcat(options, portable);
    cached = clf_cache_path(p, (const char *)source, options);
    if (cached) p->programs[index] = clf_from_cache(p, cached, options);
    if (p->programs[index] && !clf_has_kernels(p, p->programs[index], index)) {
        clReleaseProgram(p->programs[index]);
        p->programs[index] = NULL;
    }
    if (!p->programs[index]) {
        status = clf_from_source(p, name, (const char *)source, options, &p->programs[index]);
        if (status == CLF_OK && cached) clf_to_cache(p->programs[index], cached);
    }
    free(cached);
    free(options);
    free(source);
    return status;
}

static int clf_sizes(const clf_program *p, const clf_node *list, size_t *out, cl_uint *count)
{
    const clf_node *n;
    if (!list || list->count > 3) return 0;
    *count = (cl_uint)list->count;
    for (n = clf_first(p, list); n; n = clf_next(p, n)) {
        if (n->kind != CLF_J_NUMBER || !n->number || n->number > SIZE_MAX / 4) return 0;
        *out++ = (size_t)n->number;
    }
    return 1;
}

/* Sets an argument, or remembers what is given later. What it is must be what the kernel's entry says. */
static clf_status clf_make_argument(clf_program *p, clf_command *c, cl_uint k, const clf_node *a, const clf_node *kind)
{
    const clf_node *data = clf_get(p, a, "data", CLF_J_LIST);
    cl_int error = CL_SUCCESS;
    size_t number;
    if (data) {
        const clf_node *at = clf_nth(p, data, 0), *bytes = clf_nth(p, data, 1);
        if (data->count != 2 || at->kind != CLF_J_NUMBER || bytes->kind != CLF_J_NUMBER || kind->kind != CLF_J_NUMBER ||
            kind->number != bytes->number || at->number > p->data_bytes || bytes->number > p->data_bytes - at->number ||
            !bytes->number)
            return clf_damaged(p, "data of an argument");
        error = clSetKernelArg(c->kernel, k, (size_t)bytes->number, p->data + at->number);
    } else if (clf_size(p, a, "local", &number)) {
        if (kind->kind != CLF_J_TEXT || strcmp(kind->text, "local") || !number) return clf_damaged(p, "local");
        error = clSetKernelArg(c->kernel, k, number, NULL);
    } else if (clf_size(p, a, "buffer", &number)) {
        if (kind->kind != CLF_J_TEXT || strcmp(kind->text, "buffer") || number >= p->num_buffers)
            return clf_damaged(p, "buffer of an argument");
        if (p->buffers[number].mem) {
            error = clSetKernelArg(c->kernel, k, sizeof(cl_mem), &p->buffers[number].mem);
        } else {
            c->places[c->num_places].argument = k;
            c->places[c->num_places++].source = number;
        }
    } else {
        if (!clf_size(p, a, "scalar", &number) || number >= p->num_scalars || kind->kind != CLF_J_NUMBER ||
            kind->number != clf_type_bytes[p->scalars[number].type])
            return clf_damaged(p, "arguments");
        c->places[c->num_places].argument = k;
        c->places[c->num_places++].source = p->num_buffers + number;
    }
    if (error) return clf_fail(p, CLF_OPENCL, "setting argument %u of a kernel: error %d", (unsigned)k, (int)error);
    return CLF_OK;
}

static clf_status clf_make_kernel(clf_program *p, clf_command *c, const clf_node *entry)
{
    const clf_node *args = clf_get(p, entry, "arguments", CLF_J_LIST), *kernel, *kinds, *a, *kind;
    size_t number, program, group = 1, most = 0;
    const char *name;
    cl_int error = CL_SUCCESS;
    cl_uint wanted = 0, locals = 0, k;
    if (!clf_size(p, entry, "kernel", &number)) return clf_damaged(p, "kernel of a command");
    kernel = clf_nth(p, p->kernels_of, number);
    kinds = clf_get(p, kernel, "arguments", CLF_J_LIST);
    name = clf_text(p, kernel, "name");
    if (!args || !kinds || !name || args->count != kinds->count || !clf_size(p, kernel, "program", &program) ||
        program >= p->num_programs)
        return clf_damaged(p, "kernels");
    if (!clf_sizes(p, clf_get(p, entry, "global", CLF_J_LIST), c->global, &c->dims) || !c->dims ||
        !clf_sizes(p, clf_get(p, entry, "local", CLF_J_LIST), c->local, &locals) || (locals && locals != c->dims))
        return clf_damaged(p, "sizes of a command");
    c->has_local = locals != 0;
    c->kernel = clCreateKernel(p->programs[program], name, &error);
    if (error) return clf_fail(p, CLF_OPENCL, "making the kernel %s: error %d", name, (int)error);
    clGetKernelInfo(c->kernel, CL_KERNEL_NUM_ARGS, sizeof wanted, &wanted, NULL);
    if (wanted != args->count) return clf_damaged(p, "arguments of a kernel");
    clGetKernelWorkGroupInfo(c->kernel, p->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    for (k = 0; k < locals; k++) group = c->local[k] > most ? most + 1 : group * c->local[k];
    if (most && group > most)
        return clf_fail(p, CLF_WRONG_DEVICE, "the kernel %s needs larger work-groups than %llu", name, (unsigned long long)most);
    c->places = (clf_place *)calloc(args->count + 1, sizeof *c->places);
    if (!c->places) return clf_no_memory(p);
    a = clf_first(p, args);
    kind = clf_first(p, kinds);
    for (k = 0; a; k++, a = clf_next(p, a), kind = clf_next(p, kind)) {
        const clf_status status = clf_make_argument(p, c, k, a, kind);
        if (status != CLF_OK) return status;
    }
    return CLF_OK;
}

static clf_status clf_make_fill(clf_program *p, clf_command *c, const clf_node *entry)
{
    size_t value;
    if (!clf_size(p, entry, "fill", &c->buffer) || !clf_size(p, entry, "value", &value) || value > 255 ||
        !clf_size(p, entry, "first", &c->first) || !clf_size(p, entry, "bytes", &c->bytes) || c->buffer >= p->num_buffers ||
        c->first > p->buffers[c->buffer].info.bytes || c->bytes > p->buffers[c->buffer].info.bytes - c->first || !c->bytes)
        return clf_damaged(p, "fill");
    c->value = (unsigned char)value;
    return CLF_OK;
}

static clf_status clf_make_commands(clf_program *p, const clf_node *list)
{
    const clf_node *entry;
    p->commands = (clf_command *)calloc(list->count + 1, sizeof *p->commands);
    if (!p->commands) return clf_no_memory(p);
    for (entry = clf_first(p, list); entry; entry = clf_next(p, entry)) {
        clf_command *c = &p->commands[p->num_commands++];
        const clf_status status = clf_get(p, entry, "fill", CLF_J_NUMBER) ? clf_make_fill(p, c, entry)
                                                                         : clf_make_kernel(p, c, entry);
        if (status != CLF_OK) return status;
    }
    return CLF_OK;
}

/* ---- variants ---------------------------------------------------------------------------------------- */

static void clf_drop_variant(clf_program *p)
{
    size_t k;
    for (k = 0; k < p->num_commands; k++) {
        if (p->commands[k].kernel) clReleaseKernel(p->commands[k].kernel);
        free(p->commands[k].places);
    }
    for (k = 0; k < p->num_programs; k++)
        if (p->programs[k]) clReleaseProgram(p->programs[k]);
    free(p->commands);
    free(p->programs);
    p->commands = NULL;
    p->programs = NULL;
    p->num_commands = p->num_programs = 0;
}

/* Builds a variant and everything in it. */
static clf_status clf_take_variant(clf_program *p, const clf_node *variant)
{
    const clf_node *programs = clf_get(p, variant, "programs", CLF_J_LIST), *entry;
    const clf_node *commands = clf_get(p, variant, "commands", CLF_J_LIST);
    const char *exact = clf_text(p, variant, "exact");
    size_t index = 0;
    clf_status status = clf_check_requires(p, variant);
    p->kernels_of = clf_get(p, variant, "kernels", CLF_J_LIST);
    p->variant = clf_text(p, variant, "name");
    if (status != CLF_OK) return status;
    if (!programs || !commands || !p->kernels_of || !exact || !p->variant) return clf_damaged(p, "variants");
    p->is_exact = p->is_tuned || !strcmp(exact, "anywhere") || (!strcmp(exact, "rounded") && p->can_round);
    p->programs = (cl_program *)calloc(programs->count + 1, sizeof *p->programs);
    if (!p->programs) return clf_no_memory(p);
    p->num_programs = programs->count;
    for (entry = clf_first(p, programs); entry; entry = clf_next(p, entry)) {
        status = clf_build(p, entry, index++);
        if (status != CLF_OK) return status;
    }
    return clf_make_commands(p, commands);
}

/* How well a variant fits: 0 this device and driver, 1 this device, 2 its kind, 3 any device; 4 another. */
static int clf_rank(clf_program *p, const clf_node *variant)
{
    const clf_node *names = clf_get(p, variant, "tuned_for", CLF_J_LIST);
    const char *like = clf_text(p, variant, "like");
    cl_device_type type = 0;
    if (!names || !like) return 4;
    if (names->count == 3) {
        int same = 0;
        const clf_node *n = clf_first(p, names);
        while (n && n->kind == CLF_J_TEXT && !strcmp(n->text, p->names[same])) {
            same++;
            n = clf_next(p, n);
        }
        return same == 3 ? 0 : same == 2 ? 1 : 4;
    }
    if (!*like) return 3;
    clGetDeviceInfo(p->device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return !strcmp(like, type & CL_DEVICE_TYPE_CPU ? "cpu" : "gpu") ? 2 : 4;
}

/* The first variant that fits best, and builds. */
static clf_status clf_choose(clf_program *p)
{
    const clf_node *list = clf_get(p, &p->json.nodes[1], "variants", CLF_J_LIST), *v;
    const char *wanted = p->options.variant;
    clf_status first = CLF_OK;
    char told[sizeof p->error] = "";
    int rank;
    for (rank = 0; rank < (wanted ? 1 : 4); rank++)
        for (v = clf_first(p, list); v; v = clf_next(p, v)) {
            const char *name = clf_text(p, v, "name");
            const int own = clf_rank(p, v);
            clf_status status;
            if (wanted ? !name || strcmp(name, wanted) : own != rank) continue;
            p->is_tuned = own == 0;
            status = clf_take_variant(p, v);
            if (status == CLF_OK || status == CLF_NO_MEMORY) return status;
            clf_drop_variant(p);
            if (first == CLF_OK) {
                first = status;
                memcpy(told, p->error, sizeof told);
            }
        }
    if (first == CLF_OK && wanted) return clf_fail(p, CLF_BAD_CALL, "there is no variant %s", wanted);
    if (first == CLF_OK) return clf_fail(p, CLF_WRONG_DEVICE, "no variant is for %s", p->names[0]);
    memcpy(p->error, told, sizeof told);
    return first;
}

/* ---- buffers and scalars ------------------------------------------------------------------------------ */

static clf_status clf_read_buffer(clf_program *p, clf_buffer *b, const clf_node *entry, size_t arena)
{
    static const char *const roles[] = {"input", "output", "constant", "temporary"};
    const char *role = clf_text(p, entry, "role");
    size_t end = SIZE_MAX / 4;
    b->info.name = clf_text(p, entry, "name");
    b->info.desc = clf_text(p, entry, "desc");
    if (!role || !b->info.name || !b->info.desc || !clf_size(p, entry, "bytes", &b->info.bytes) ||
        !clf_size(p, entry, "alignment", &b->info.alignment) || !clf_size(p, entry, "at", &b->at) || !b->info.alignment)
        return clf_damaged(p, "buffers");
    for (b->info.role = 0; b->info.role < 4; b->info.role++)
        if (!strcmp(role, roles[b->info.role])) break;
    if (b->info.role == (int)CLF_CONSTANT) end = p->data_bytes;
    if (b->info.role == (int)CLF_TEMPORARY) end = arena;
    if (b->info.role == 4 || (b->info.role > CLF_OUTPUT && (b->at > end || b->info.bytes > end - b->at || !b->info.bytes)))
        return clf_damaged(p, "buffers");
    p->num_named += b->info.role <= CLF_OUTPUT;
    return CLF_OK;
}

static clf_status clf_allocate(clf_program *p, clf_buffer *b)
{
    cl_int error = CL_SUCCESS;
    if (b->info.role == (int)CLF_CONSTANT) {
        b->mem = clCreateBuffer(p->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, b->info.bytes, p->data + b->at, &error);
    } else if (p->arena) {
        cl_buffer_region region;
        region.origin = b->at;
        region.size = b->info.bytes;
        b->mem = clCreateSubBuffer(p->arena, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    } else {
        b->mem = clCreateBuffer(p->context, CL_MEM_READ_WRITE, b->info.bytes, NULL, &error);
    }
    if (error) {
        b->mem = NULL;
        return clf_fail(p, CLF_OPENCL, "allocating %llu bytes: error %d", (unsigned long long)b->info.bytes, (int)error);
    }
    return CLF_OK;
}

static clf_status clf_make_buffers(clf_program *p)
{
    const clf_node *list = clf_get(p, &p->json.nodes[1], "buffers", CLF_J_LIST), *entry;
    size_t arena = 0, k;
    cl_uint bits = 0;
    cl_int error = CL_SUCCESS;
    clf_status status = CLF_OK;
    if (!list || !clf_size(p, &p->json.nodes[1], "arena_bytes", &arena)) return clf_damaged(p, "buffers");
    p->buffers = (clf_buffer *)calloc(list->count + 1, sizeof *p->buffers);
    if (!p->buffers) return clf_no_memory(p);
    for (entry = clf_first(p, list); entry && status == CLF_OK; entry = clf_next(p, entry))
        status = clf_read_buffer(p, &p->buffers[p->num_buffers++], entry, arena);
    if (status != CLF_OK) return status;
    /* Parts of one buffer, where the device takes them at multiples of 512 bytes. */
    clGetDeviceInfo(p->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    if (arena && bits <= 8 * 512) p->arena = clCreateBuffer(p->context, CL_MEM_READ_WRITE, arena, NULL, &error);
    if (error) {
        p->arena = NULL;
        return clf_fail(p, CLF_OPENCL, "allocating %llu bytes: error %d", (unsigned long long)arena, (int)error);
    }
    for (k = 0; k < p->num_buffers && status == CLF_OK; k++)
        if (p->buffers[k].info.role > CLF_OUTPUT) status = clf_allocate(p, &p->buffers[k]);
    return status;
}

static clf_status clf_make_scalars(clf_program *p)
{
    const clf_node *list = clf_get(p, &p->json.nodes[1], "scalars", CLF_J_LIST), *entry;
    if (!list) return clf_damaged(p, "scalars");
    p->scalars = (clf_scalar *)calloc(list->count + 1, sizeof *p->scalars);
    if (!p->scalars) return clf_no_memory(p);
    for (entry = clf_first(p, list); entry; entry = clf_next(p, entry)) {
        clf_scalar *s = &p->scalars[p->num_scalars++];
        const char *type = clf_text(p, entry, "type");
        int k = 0;
        s->name = clf_text(p, entry, "name");
        while (type && k < (int)CLF_TYPES && strcmp(type, clf_type_names[k])) k++;
        if (!s->name || !type || k == (int)CLF_TYPES) return clf_damaged(p, "scalars");
        s->type = (clf_type)k;
    }
    return CLF_OK;
}

/* ---- what the header declares ------------------------------------------------------------------------- */

clf_status clf_program_create(clf_program **program, const char *path, cl_command_queue queue, const clf_options *options)
{
    clf_program *p;
    clf_status status;
    if (!program) return CLF_BAD_CALL;
    p = *program = (clf_program *)calloc(1, sizeof **program);
    if (!p) return CLF_NO_MEMORY;
    if (options) p->options = *options;
    if (!queue) return clf_fail(p, CLF_BAD_CALL, "no queue was given");
    if (clRetainCommandQueue(queue)) return clf_fail(p, CLF_BAD_CALL, "the queue is none");
    p->queue = queue;
    status = clf_find_device(p);
    if (status == CLF_OK) status = clf_open(p, path);
    if (status == CLF_OK) status = clf_read_manifest(p);
    if (status == CLF_OK) status = clf_load_checked(p, "data.bin", &p->data, &p->data_bytes);
    if (status == CLF_OK) status = clf_make_buffers(p);
    if (status == CLF_OK) status = clf_make_scalars(p);
    if (status == CLF_OK) status = clf_choose(p);
    /* OpenCL has copies of all that was in these. */
    free(p->data);
    free(p->tar);
    p->data = p->tar = NULL;
    p->path = NULL;
    if (status != CLF_OK) clf_drop_variant(p);
    return status;
}

size_t clf_program_num_buffers(const clf_program *p) { return p ? p->num_named : 0; }

clf_status clf_program_buffer(const clf_program *p, size_t index, clf_buffer_info *info)
{
    size_t k;
    if (!p || !info) return CLF_BAD_CALL;
    for (k = 0; k < p->num_buffers; k++)
        if (p->buffers[k].info.role <= CLF_OUTPUT && !index--) {
            *info = p->buffers[k].info;
            return CLF_OK;
        }
    return CLF_BAD_CALL;
}

/* Sets an argument wherever it stands. */
static clf_status clf_set(clf_program *p, size_t source, size_t bytes, const void *value)
{
    size_t k, i;
    for (k = 0; k < p->num_commands; k++)
        for (i = 0; i < p->commands[k].num_places; i++)
            if (p->commands[k].places[i].source == source) {
                const cl_int error = clSetKernelArg(p->commands[k].kernel, p->commands[k].places[i].argument, bytes, value);
                if (error) return clf_fail(p, CLF_OPENCL, "command %llu: setting an argument: error %d",
                                           (unsigned long long)k, (int)error);
            }
    return CLF_OK;
}

static clf_status clf_check_buffer(clf_program *p, const clf_buffer *b, cl_mem mem)
{
    cl_mem_object_type type = 0;
    cl_context context = NULL;
    cl_mem_flags flags = 0;
    size_t bytes = 0, offset = 0;
    void *host = NULL;
    cl_int error = clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (!error) error = clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    if (!error) error = clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    if (!error) error = clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (error) return clf_fail(p, CLF_OPENCL, "%s: what was given is no buffer: error %d", b->info.name, (int)error);
    if (type != CL_MEM_OBJECT_BUFFER) return clf_fail(p, CLF_BAD_CALL, "%s: an image was given, it is a buffer", b->info.name);
    if (context != p->context) return clf_fail(p, CLF_BAD_CALL, "%s is of another context than the queue", b->info.name);
    if (bytes < b->info.bytes)
        return clf_fail(p, CLF_BAD_CALL, "%s has %llu bytes, %llu are needed", b->info.name, (unsigned long long)bytes,
                        (unsigned long long)b->info.bytes);
    if (b->info.role == CLF_OUTPUT && (flags & CL_MEM_READ_ONLY))
        return clf_fail(p, CLF_BAD_CALL, "%s is read-only, and is an output", b->info.name);
    clGetMemObjectInfo(mem, CL_MEM_OFFSET, sizeof offset, &offset, NULL);
    if (flags & CL_MEM_USE_HOST_PTR) clGetMemObjectInfo(mem, CL_MEM_HOST_PTR, sizeof host, &host, NULL);
    if (offset % b->info.alignment || (uintptr_t)host % b->info.alignment)
        return clf_fail(p, CLF_BAD_CALL, "%s must begin at a multiple of %llu bytes", b->info.name,
                        (unsigned long long)b->info.alignment);
    return CLF_OK;
}

clf_status clf_program_set_buffer(clf_program *p, const char *name, cl_mem mem)
{
    size_t k;
    if (!p || !name) return CLF_BAD_CALL;
    if (!mem) return clf_fail(p, CLF_BAD_CALL, "%s: no buffer was given", name);
    if (!p->commands) return clf_fail(p, CLF_BAD_CALL, "the program was not made: nothing can be given to it");
    for (k = 0; k < p->num_buffers; k++) {
        clf_buffer *b = &p->buffers[k];
        clf_status status;
        if (b->info.role > CLF_OUTPUT || strcmp(b->info.name, name)) continue;
        status = clf_check_buffer(p, b, mem);
        if (status == CLF_OK) status = clf_set(p, k, sizeof mem, &mem);
        if (status != CLF_OK) return status;
        clRetainMemObject(mem);
        if (b->mem) clReleaseMemObject(b->mem);
        b->mem = mem;
        return CLF_OK;
    }
    return clf_fail(p, CLF_BAD_CALL, "there is no input or output %s", name);
}

/* The value as the type; 0 where that cannot hold it. */
static int clf_convert(clf_type type, double value, unsigned char *out)
{
    static const double least[CLF_TYPES] = {0, 0, -2147483648.0, 0, -9223372036854775808.0, 0};
    static const double beyond[CLF_TYPES] = {0, 0, 2147483648.0, 4294967296.0, 9223372036854775808.0, 18446744073709551616.0};
    if (type == CLF_F64) {
        memcpy(out, &value, sizeof value);
    } else if (type == CLF_F32) {
        /* Half a step beyond the largest float is where rounding leads to infinity. */
        const double limit = (double)FLT_MAX * (1.0 + 1.0 / 33554432.0);
        const int is_finite = value - value == 0;
        float single;
        if (is_finite && (value >= limit || value <= -limit)) return 0;
        if (is_finite && value > (double)FLT_MAX) single = FLT_MAX;
        else if (is_finite && value < -(double)FLT_MAX) single = -FLT_MAX;
        else single = (float)value;
        memcpy(out, &single, sizeof single);
    } else {
        uint64_t whole;
        if (!(value >= least[type] && value < beyond[type])) return 0;
        whole = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
        if ((value < 0 ? (double)(int64_t)whole : (double)whole) != value) return 0;
        if (clf_type_bytes[type] == 4) {
            const uint32_t half = (uint32_t)whole;
            memcpy(out, &half, sizeof half);
        } else {
            memcpy(out, &whole, sizeof whole);
        }
    }
    return 1;
}

clf_status clf_program_set_scalar(clf_program *p, const char *name, double value)
{
    size_t k;
    if (!p || !name) return CLF_BAD_CALL;
    for (k = 0; k < p->num_scalars; k++) {
        clf_scalar *s = &p->scalars[k];
        unsigned char bytes[8];
        clf_status status;
        if (strcmp(s->name, name)) continue;
        if (!clf_convert(s->type, value, bytes))
            return clf_fail(p, CLF_BAD_CALL, "%s: %s cannot hold %g", name, clf_type_names[s->type], value);
        status = clf_set(p, p->num_buffers + k, clf_type_bytes[s->type], bytes);
        if (status == CLF_OK) s->is_set = 1;
        return status;
    }
    return clf_fail(p, CLF_BAD_CALL, "there is no scalar %s", name);
}

size_t clf_program_num_scalars(const clf_program *p) { return p ? p->num_scalars : 0; }

const char *clf_program_scalar(const clf_program *p, size_t index)
{
    return p && index < p->num_scalars ? p->scalars[index].name : NULL;
}

/* Everything must have been given, and nothing be written that stands for two names. */
static clf_status clf_check_given(clf_program *p)
{
    size_t k, i;
    if (!p->commands) return clf_fail(p, CLF_BAD_CALL, "the program was not made: it cannot run");
    for (k = 0; k < p->num_scalars; k++)
        if (!p->scalars[k].is_set) return clf_fail(p, CLF_BAD_CALL, "no number was given for %s", p->scalars[k].name);
    for (k = 0; k < p->num_buffers; k++) {
        const clf_buffer *b = &p->buffers[k];
        if (!b->mem && b->info.bytes) return clf_fail(p, CLF_BAD_CALL, "no buffer was given for %s", b->info.name);
        for (i = 0; b->info.role == CLF_OUTPUT && b->mem && i < p->num_buffers; i++)
            if (i != k && p->buffers[i].mem == b->mem)
                return clf_fail(p, CLF_BAD_CALL, "%s and %s are one buffer: give two", b->info.name, p->buffers[i].info.name);
    }
    return CLF_OK;
}

static cl_int clf_enqueue(clf_program *p, const clf_command *c, cl_uint num, const cl_event *wait, cl_event *done)
{
    if (!c->kernel)
        return clEnqueueFillBuffer(p->queue, p->buffers[c->buffer].mem, &c->value, 1, c->first, c->bytes, num, wait, done);
    return clEnqueueNDRangeKernel(p->queue, c->kernel, c->dims, NULL, c->global, c->has_local ? c->local : NULL, num, wait, done);
}

clf_status clf_program_run(clf_program *p, cl_uint num, const cl_event *wait, cl_event *done)
{
    cl_event before = NULL, now = NULL;
    cl_int error = CL_SUCCESS;
    size_t k;
    clf_status status;
    if (!p) return CLF_BAD_CALL;
    status = clf_check_given(p);
    if (status != CLF_OK) return status;
    for (k = 0; k < p->num_commands && !error; k++) {
        const int first = k == 0, last = k + 1 == p->num_commands;
        const cl_event *waits = first ? wait : before ? &before : NULL;
        cl_event *event = last ? done : p->in_order ? NULL : &now;
        error = clf_enqueue(p, &p->commands[k], first ? num : before ? 1 : 0, waits, event);
        if (before) clReleaseEvent(before);
        before = now;
        now = NULL;
    }
    if (before) clReleaseEvent(before);
    if (error) return clf_fail(p, CLF_OPENCL, "enqueueing command %llu: error %d", (unsigned long long)(k - 1), (int)error);
    if (!p->num_commands) error = clEnqueueMarkerWithWaitList(p->queue, num, wait, done);
    return error ? clf_fail(p, CLF_OPENCL, "enqueueing a marker: error %d", (int)error) : CLF_OK;
}

int clf_program_is_tuned(const clf_program *p) { return p ? p->is_tuned : 0; }
int clf_program_is_exact(const clf_program *p) { return p ? p->is_exact : 0; }
const char *clf_program_variant(const clf_program *p) { return p && p->variant ? p->variant : ""; }
const char *clf_program_error(const clf_program *p) { return p ? p->error : "out of memory"; }

void clf_program_destroy(clf_program *p)
{
    size_t k;
    if (!p) return;
    if (p->queue) clFinish(p->queue); /* a driver may use what a kernel was given until it has ended */
    clf_drop_variant(p);
    /* The last made goes first: NVIDIA's driver ends the process otherwise, where parts of the arena overlap. */
    for (k = p->num_buffers; k-- > 0;)
        if (p->buffers[k].mem) clReleaseMemObject(p->buffers[k].mem);
    if (p->arena) clReleaseMemObject(p->arena);
    if (p->queue) clReleaseCommandQueue(p->queue);
    free(p->buffers);
    free(p->scalars);
    free(p->json.nodes);
    free(p->text);
    free(p->data);
    free(p->tar);
    for (k = 0; k < 3; k++) free(p->names[k]);
    free(p);
}
