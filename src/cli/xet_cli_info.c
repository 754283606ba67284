
/*
 * xet info: what a xorb or a shard holds, and whether it is right.
 *
 * A shard begins with its tag; anything else is taken for a xorb, whose hash
 * is computed and, where the file's name ends in one, compared.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli.h"


#define XET_CLI_BUFFER  65536


typedef struct {
    const char          *name;
    FILE                *file;
    uint8_t              buffer[XET_CLI_BUFFER];
    size_t               len;
} xet_cli_input_t;


static int
xet_cli_read(xet_cli_input_t *in)
{
    in->len = fread(in->buffer, 1, XET_CLI_BUFFER, in->file);

    return in->len != 0;
}


static xet_status_t
xet_cli_record(void *ctx, const xet_shard_record_t *rec)
{
    char  text[XET_HASH_STR_LEN + 1];

    switch (rec->kind) {

    case XET_SHARD_REC_FILE:
        printf("  file %s, %u terms\n", xet_cli_hash_string(&rec->hash, text),
               rec->count);
        break;

    case XET_SHARD_REC_SEGMENT:
        printf("    %s chunks %u-%u, %u bytes\n",
               xet_cli_hash_string(&rec->hash, text), rec->chunk_start,
               rec->chunk_end - 1, rec->raw_length);
        break;

    case XET_SHARD_REC_XORB:
        printf("  xorb %s, %u chunks, %u bytes\n",
               xet_cli_hash_string(&rec->hash, text), rec->count,
               rec->raw_length);
        break;

    default:
        break;
    }

    return XET_OK;
}


static int
xet_cli_info_shard(xet_cli_input_t *in)
{
    xet_status_t        rc;
    xet_shard_parser_t  p;

    printf("%s: shard\n", in->name);

    xet_shard_parser_init(&p, xet_cli_record, NULL);

    do {
        rc = xet_shard_parser_feed(&p, in->buffer, in->len);
    } while (rc == XET_OK && xet_cli_read(in));

    if (rc == XET_OK || rc == XET_DONE) {
        rc = xet_shard_parser_finish(&p);
    }

    if (rc != XET_OK) {
        return xet_cli_fail(XET_CLI_FAULT, in->name, xet_status_text(rc));
    }

    printf("  %llu files, %llu terms, %llu xorbs\n",
           (unsigned long long) p.files, (unsigned long long) p.terms,
           (unsigned long long) p.xorbs);

    return XET_CLI_OK;
}


static int
xet_cli_info_xorb(xet_cli_input_t *in)
{
    char                    text[XET_HASH_STR_LEN + 1];
    size_t                  len, stored;
    xet_hash_t              expected, *named;
    xet_status_t            rc;
    xet_xorb_verifier_t    *v;
    const xet_xorb_info_t  *info;

    len = strlen(in->name);
    named = NULL;

    if (len >= XET_HASH_STR_LEN
        && xet_hash_parse(&expected, (const uint8_t *) in->name + len
                                     - XET_HASH_STR_LEN, XET_HASH_STR_LEN)
           == XET_OK)
    {
        named = &expected;
    }

    v = xet_xorb_verifier_create(&xet_suite_default, named, UINT32_MAX);
    if (v == NULL) {
        return xet_cli_fail(XET_CLI_ERROR, in->name, "out of memory");
    }

    do {
        rc = xet_xorb_verifier_feed(v, in->buffer, in->len, &stored);
    } while (rc == XET_OK && xet_cli_read(in));

    if (rc == XET_OK) {
        rc = xet_xorb_verifier_finish(v);
    }

    info = xet_xorb_verifier_info(v);

    if (rc == XET_OK) {
        printf("%s: xorb %s, %u chunks, %llu bytes stored, %llu raw%s\n",
               in->name, xet_cli_hash_string(&info->hash, text),
               info->chunk_count, (unsigned long long) info->stored_size,
               (unsigned long long) info->raw_size,
               named ? ", as named" : "");
    }

    xet_xorb_verifier_destroy(v);

    return (rc == XET_OK) ? XET_CLI_OK
                          : xet_cli_fail(XET_CLI_FAULT, in->name,
                                         xet_status_text(rc));
}


static int
xet_cli_info_file(xet_cli_input_t *in, const char *name)
{
    int  rc;

    in->name = name;
    in->file = strcmp(name, "-") ? fopen(name, "rb") : stdin;

    if (in->file == NULL) {
        return xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));
    }

    if (xet_cli_read(in) && in->len >= XET_SHARD_TAG_LEN
        && memcmp(in->buffer, xet_shard_tag, XET_SHARD_TAG_LEN) == 0)
    {
        rc = xet_cli_info_shard(in);

    } else {
        rc = xet_cli_info_xorb(in);
    }

    if (ferror(in->file)) {
        rc = xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));
    }

    if (in->file != stdin) {
        fclose(in->file);
    }

    return rc;
}


int
xet_cli_info(const xet_cli_args_t *args)
{
    int               i, rc;
    xet_cli_input_t  *in;

    in = malloc(sizeof(xet_cli_input_t));

    if (in == NULL) {
        return xet_cli_no_memory();
    }

    rc = XET_CLI_OK;

    for (i = 0; i < args->count; i++) {
        rc = xet_cli_worse(rc, xet_cli_info_file(in, args->operands[i]));
    }

    free(in);

    return rc;
}
