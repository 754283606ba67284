
/*
 * xet_make: builds protocol bytes for tests from descriptions, and parses
 * them.
 *
 *     schemes
 *     xorb [--scheme NAME|auto] [--footer v0|v1] [--sizes a,b,c]
 *         [--large] OUT < data
 *     xorb-info FILE
 *     decode-xorb FILE [START END]
 *     shard SPEC.json OUT
 *     parse-shard FILE
 *     hash-file [--sizes a,b,c] < data
 *     keyed KEYHEX HASH
 *     random SEED SIZE
 *     mix SEED SIZE
 *     serve
 *
 * "-" stands for the standard input or output.  Results go to the standard
 * output as one line of JSON; raw bytes are written unchanged.  Hashes are in
 * the protocol's string form, keys in plain hex.
 *
 * "serve" runs many commands in one process: it reads lines "LENGTH COMMAND
 * ARGUMENTS", each followed by LENGTH bytes for the command's standard input,
 * and responds with "STATUS LENGTH" and the output of the command.
 */


#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xet_make/xet_make.h"

/*
 * "make tools" builds a program from each file, so the parts are included here.
 */

#include "xet_make/xet_make_data.c"
#include "xet_make/xet_make_xorb.c"
#include "xet_make/xet_make_shard.c"
#include "xet_make/xet_make_parse.c"


typedef struct {
    const char  *name;
    int        (*run)(int argc, char **argv);
} xet_make_command_t;


static int xet_make_hash_file(int argc, char **argv);
static int xet_make_keyed(int argc, char **argv);
static int xet_make_serve(int argc, char **argv);
static int xet_make_run(int argc, char **argv);
static int xet_make_child(int argc, char **argv, int in, int out);
static void xet_make_copy(int from, int to, size_t len);


static const xet_make_command_t  xet_make_commands[] = {
    { "schemes", xet_make_schemes },
    { "xorb", xet_make_xorb },
    { "xorb-info", xet_make_xorb_info },
    { "decode-xorb", xet_make_decode_xorb },
    { "shard", xet_make_shard },
    { "parse-shard", xet_make_parse_shard },
    { "hash-file", xet_make_hash_file },
    { "keyed", xet_make_keyed },
    { "random", xet_make_random },
    { "mix", xet_make_mix },
    { "serve", xet_make_serve },
    { NULL, NULL }
};


int
main(int argc, char **argv)
{
    if (argc < 2) {
        xet_make_fatal("usage: xet_make COMMAND [ARGUMENTS]");
    }

    return xet_make_run(argc - 1, argv + 1);
}


static int
xet_make_run(int argc, char **argv)
{
    const xet_make_command_t  *c;

    for (c = xet_make_commands; c->name != NULL; c++) {
        if (strcmp(c->name, argv[0]) == 0) {
            return c->run(argc - 1, argv + 1);
        }
    }

    xet_make_fatal("unknown command \"%s\"", argv[0]);
}


/* Forks a child for each command, because commands never free memory. */

static int
xet_make_serve(int argc, char **argv)
{
    int     in, out, n, status;
    char    line[65536], head[64], *args[64], *p;
    size_t  len;

    (void) argv;

    if (argc != 0) {
        xet_make_fatal("usage: serve");
    }

    for ( ;; ) {

        /* no stdio, which would read ahead bytes that the child must read */

        for (p = line; p < line + sizeof(line) - 1; p++) {
            if (read(STDIN_FILENO, p, 1) != 1) {
                return 0;
            }

            if (*p == '\n') {
                break;
            }
        }

        *p = '\0';

        for (n = 0, p = strtok(line, " "); p && n < 64;
             p = strtok(NULL, " "))
        {
            args[n++] = p;
        }

        in = memfd_create("in", 0);
        out = memfd_create("out", 0);

        if (n < 2 || in == -1 || out == -1) {
            xet_make_fatal("cannot serve");
        }

        len = (size_t) xet_make_number(args[0], SIZE_MAX);
        xet_make_copy(STDIN_FILENO, in, len);
        lseek(in, 0, SEEK_SET);

        status = xet_make_child(n - 1, args + 1, in, out);

        len = (size_t) lseek(out, 0, SEEK_END);
        lseek(out, 0, SEEK_SET);

        n = snprintf(head, sizeof(head), "%d %zu\n", status, len);
        if (write(STDOUT_FILENO, head, (size_t) n) != n) {
            return 1;
        }

        xet_make_copy(out, STDOUT_FILENO, len);

        close(in);
        close(out);
    }
}


static int
xet_make_child(int argc, char **argv, int in, int out)
{
    int    status;
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        dup2(in, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);

        exit(xet_make_run(argc, argv));
    }

    if (pid == -1 || waitpid(pid, &status, 0) != pid) {
        xet_make_fatal("cannot fork: %s", strerror(errno));
    }

    return status;
}


static void
xet_make_copy(int from, int to, size_t len)
{
    ssize_t      n, done, w;
    static char  block[65536];

    while (len) {
        n = read(from, block, len < sizeof(block) ? len : sizeof(block));
        if (n <= 0) {
            xet_make_fatal("cannot read: %s", strerror(errno));
        }

        for (done = 0; done < n; done += w) {
            w = write(to, block + done, (size_t) (n - done));
            if (w <= 0) {
                xet_make_fatal("cannot write: %s", strerror(errno));
            }
        }

        len -= (size_t) n;
    }
}


static int
xet_make_hash_file(int argc, char **argv)
{
    size_t         len, n, i;
    json_t        *out, *chunks;
    uint8_t       *data, *p;
    uint32_t      *cut;
    xet_hash_t     hash, root;
    const char    *sizes;
    xet_merkle_t   merkle;

    sizes = NULL;

    if (argc == 2 && strcmp(argv[0], "--sizes") == 0) {
        sizes = argv[1];

    } else if (argc != 0) {
        xet_make_fatal("usage: hash-file [--sizes a,b,c] < data");
    }

    data = xet_make_read("-", &len);
    cut = xet_make_cut(data, len, sizes, &n);

    chunks = json_array();
    xet_merkle_init(&merkle, &xet_suite_default);

    for (i = 0, p = data; i < n; p += cut[i], i++) {
        xet_hash_chunk(&xet_suite_default, p, cut[i], &hash);
        xet_merkle_add(&merkle, hash.bytes, cut[i]);

        json_array_append_new(chunks,
            json_pack("{s:o,s:o}", "hash", xet_make_json_hash(hash.bytes),
                      "raw_length", xet_make_json_u64(cut[i])));
    }

    xet_merkle_finish(&merkle, &root);
    xet_hash_file(&xet_suite_default, &root, &hash);

    out = json_pack("{s:o,s:o,s:o,s:o}",
                    "hash", xet_make_json_hash(hash.bytes),
                    "root", xet_make_json_hash(root.bytes),
                    "size", xet_make_json_u64(len), "chunks", chunks);
    xet_make_json_print(out);

    return 0;
}


static int
xet_make_keyed(int argc, char **argv)
{
    uint8_t     key[32], str[XET_HASH_STR_LEN + 1];
    xet_hash_t  hash, keyed;

    if (argc != 2) {
        xet_make_fatal("usage: keyed KEYHEX HASH");
    }

    xet_make_key(key, argv[0]);
    xet_make_hash(&hash, argv[1]);

    xet_hash_keyed(key, hash.bytes, XET_HASH_LEN, &keyed);

    *xet_hash_print(str, &keyed) = '\n';
    xet_make_put(stdout, str, sizeof(str));
    xet_make_close(stdout);

    return 0;
}


uint32_t *
xet_make_cut(const uint8_t *data, size_t len, const char *sizes, size_t *n)
{
    int             cut;
    size_t          room, pos, size;
    uint32_t       *lens, *grown;
    const char     *comma;
    xet_chunker_t   chunker;

    room = 64;
    lens = xet_make_alloc(room, sizeof(uint32_t));

    xet_chunker_init(&chunker, &xet_suite_default);
    *n = 0;
    size = 0;

    for (pos = 0; pos < len; pos += size) {

        if (sizes == NULL) {
            size = xet_chunker_feed(&chunker, data + pos, len - pos, &cut);

        } else {
            if (*sizes != '\0') {
                comma = strchr(sizes, ',');
                size = (size_t) strtoul(sizes, NULL, 10);
                sizes = comma ? comma + 1 : "";
            }

            if (size > len - pos) {
                size = len - pos;
            }
        }

        if (size == 0 || size > UINT32_MAX) {
            xet_make_fatal("a chunk size of %zu", size);
        }

        if (*n == room) {
            grown = xet_make_alloc(room * 2, sizeof(uint32_t));
            memcpy(grown, lens, room * sizeof(uint32_t));
            free(lens);
            lens = grown;
            room *= 2;
        }

        lens[(*n)++] = (uint32_t) size;
    }

    return lens;
}


void
xet_make_fatal(const char *fmt, ...)
{
    va_list  args;

    fprintf(stderr, "xet_make: ");

    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);

    fprintf(stderr, "\n");

    exit(1);
}


void
xet_make_check(xet_status_t status, const char *what)
{
    if (status != XET_OK) {
        xet_make_fatal("%s: %s", what, xet_status_text(status));
    }
}


void *
xet_make_alloc(size_t n, size_t size)
{
    void  *p;

    p = calloc(n ? n : 1, size ? size : 1);
    if (p == NULL) {
        xet_make_fatal("out of memory");
    }

    return p;
}


void *
xet_make_buf_alloc(void *data, size_t size)
{
    (void) data;

    return xet_make_alloc(1, size);
}


uint8_t *
xet_make_read(const char *path, size_t *len)
{
    FILE     *f;
    size_t    room, got;
    uint8_t  *data;

    f = stdin;

    if (strcmp(path, "-") != 0) {
        f = fopen(path, "rb");
        if (f == NULL) {
            xet_make_fatal("%s: %s", path, strerror(errno));
        }
    }

    room = 1 << 20;
    data = xet_make_alloc(1, room);
    *len = 0;

    for ( ;; ) {
        got = fread(data + *len, 1, room - *len, f);
        if (got == 0) {
            break;
        }

        *len += got;

        if (*len == room) {
            room *= 2;
            data = realloc(data, room);
            if (data == NULL) {
                xet_make_fatal("out of memory");
            }
        }
    }

    if (ferror(f)) {
        xet_make_fatal("%s: %s", path, strerror(errno));
    }

    if (f != stdin) {
        fclose(f);
    }

    return data;
}


FILE *
xet_make_open(const char *path)
{
    FILE  *f;

    if (strcmp(path, "-") == 0) {
        return stdout;
    }

    f = fopen(path, "wb");
    if (f == NULL) {
        xet_make_fatal("%s: %s", path, strerror(errno));
    }

    return f;
}


void
xet_make_put(FILE *f, const void *data, size_t len)
{
    if (fwrite(data, 1, len, f) != len) {
        xet_make_fatal("cannot write: %s", strerror(errno));
    }
}


void
xet_make_close(FILE *f)
{
    if (f == stdout ? fflush(f) : fclose(f)) {
        xet_make_fatal("cannot write: %s", strerror(errno));
    }
}


uint64_t
xet_make_number(const char *s, uint64_t max)
{
    char                *end;
    unsigned long long   v;

    errno = 0;
    v = strtoull(s, &end, 10);

    if (*s < '0' || *s > '9' || *end != '\0' || errno != 0 || v > max) {
        xet_make_fatal("bad number \"%s\"", s);
    }

    return v;
}


/* Hash strings are plain hex in which each group of 8 bytes is reversed. */

void
xet_make_key(uint8_t *key, const char *hex)
{
    unsigned    i;
    xet_hash_t  hash;

    xet_make_hash(&hash, hex);

    for (i = 0; i < 32; i++) {
        key[i] = hash.bytes[(i & ~7u) + 7 - (i & 7)];
    }
}


void
xet_make_hash(xet_hash_t *hash, const char *s)
{
    xet_make_check(xet_hash_parse(hash, (const uint8_t *) s, strlen(s)), s);
}


json_t *
xet_make_json_hash(const uint8_t *bytes)
{
    uint8_t     str[XET_HASH_STR_LEN];
    xet_hash_t  hash;

    memcpy(hash.bytes, bytes, XET_HASH_LEN);
    xet_hash_print(str, &hash);

    return json_stringn((const char *) str, XET_HASH_STR_LEN);
}


json_t *
xet_make_json_u64(uint64_t v)
{
    return json_integer((json_int_t) v);
}


void
xet_make_json_print(json_t *j)
{
    if (j == NULL || json_dumpf(j, stdout, JSON_COMPACT) != 0) {
        xet_make_fatal("cannot print JSON");
    }

    xet_make_put(stdout, "\n", 1);
    xet_make_close(stdout);

    json_decref(j);
}
