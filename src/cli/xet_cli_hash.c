
/*
 * xet hash: chunks a file and prints its file hash and size.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli.h"


#define XET_CLI_BUFFER  (1024 * 1024)


typedef struct {
    xet_chunker_t   chunker;
    xet_merkle_t    merkle;
    uint8_t         chunk[XET_CHUNK_MAX];
    size_t          len;               /* of the open chunk */
    uint64_t        size;
    uint8_t         buffer[XET_CLI_BUFFER];
} xet_cli_hash_t;


static void
xet_cli_hash_end(xet_cli_hash_t *h)
{
    xet_hash_t  hash;

    xet_hash_chunk(&xet_suite_default, h->chunk, h->len, &hash);
    xet_merkle_add(&h->merkle, hash.bytes, h->len);

    h->len = 0;
}


static void
xet_cli_hash_feed(xet_cli_hash_t *h, const uint8_t *data, size_t len)
{
    int     cut;
    size_t  n;

    h->size += len;

    while (len) {
        n = xet_chunker_feed(&h->chunker, data, len, &cut);

        /* a chunk is never longer than the suite allows */

        memcpy(h->chunk + h->len, data, n);
        h->len += n;

        if (cut) {
            xet_cli_hash_end(h);
        }

        data += n;
        len -= n;
    }
}


static int
xet_cli_hash_file(xet_cli_hash_t *h, const char *name)
{
    int         rc;
    char        text[XET_HASH_STR_LEN + 1];
    FILE       *f;
    size_t      n;
    xet_hash_t  root, hash;

    f = strcmp(name, "-") ? fopen(name, "rb") : stdin;

    if (f == NULL) {
        return xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));
    }

    xet_chunker_init(&h->chunker, &xet_suite_default);
    xet_merkle_init(&h->merkle, &xet_suite_default);

    h->len = 0;
    h->size = 0;

    do {
        n = fread(h->buffer, 1, XET_CLI_BUFFER, f);
        xet_cli_hash_feed(h, h->buffer, n);
    } while (n);

    rc = ferror(f) ? xet_cli_fail(XET_CLI_ERROR, name, strerror(errno))
                   : XET_CLI_OK;

    if (f != stdin) {
        fclose(f);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (h->len) {
        xet_cli_hash_end(h);
    }

    xet_merkle_finish(&h->merkle, &root);
    xet_hash_file(&xet_suite_default, &root, &hash);

    printf("%s %llu %s\n", xet_cli_hash_string(&hash, text),
           (unsigned long long) h->size, name);

    return XET_CLI_OK;
}


int
xet_cli_hash(int argc, char **argv)
{
    int              i, rc, worst;
    xet_cli_hash_t  *h;

    h = malloc(sizeof(xet_cli_hash_t));
    if (h == NULL) {
        return xet_cli_fail(XET_CLI_ERROR, "hash", "out of memory");
    }

    worst = XET_CLI_OK;

    for (i = 0; i < argc; i++) {
        rc = xet_cli_hash_file(h, argv[i]);

        if (rc > worst) {
            worst = rc;
        }
    }

    free(h);

    return worst;
}
