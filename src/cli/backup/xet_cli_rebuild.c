
/*
 * xet rebuild: rows for the xorbs of a store that its database does not know.
 *
 * Each copy is verified as an upload is, and then its row is put as an upload
 * puts it, so that a xorb which has a row keeps it; only where the copy that
 * the row names is not there, as beside a database from an older dump, the row
 * gets this one, as from an upload that heals.  What files consist of is
 * not in the store: whoever has a file sends it again, and no byte of it that
 * is in a xorb.
 *
 * A database without an identity takes that of the folder.  The lock keeps the
 * collector from removing copies meanwhile, those that have no row included.
 */


#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_backup.h"


typedef struct {
    const xet_cli_args_t  *args;
    int                    folder;
    const char            *name;
    xet_cli_pg_t          *pg;
    xet_cli_copier_t       copier;
    uint64_t               copies;
    uint64_t               known;
    uint64_t               added;
    uint64_t               bad;
} xet_cli_rebuild_t;


static int xet_cli_rebuild_session(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_identity(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_rebuild_folder(xet_cli_rebuild_t *b, int number);
static int xet_cli_rebuild_copy(xet_cli_rebuild_t *b, xet_cli_copy_t *copy);
static int xet_cli_rebuild_given_up(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, uint64_t *given_up);
static int xet_cli_rebuild_row(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info);
static char *xet_cli_rebuild_eligible(const xet_xorb_info_t *info);
static int xet_cli_rebuild_print(xet_cli_rebuild_t *b);


int
xet_cli_rebuild(const xet_cli_args_t *args)
{
    int                 rc, i;
    xet_cli_rebuild_t   b;

    memset(&b, 0, sizeof(b));

    b.args = args;
    b.name = xet_cli_backup_store(args);

    if (b.name == NULL) {
        return XET_CLI_USAGE;
    }

    b.folder = xet_cli_backup_folder(b.name);

    if (b.folder < 0) {
        return XET_CLI_ERROR;
    }

    b.pg = xet_cli_pg_open(args, &rc);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_rebuild_session(&b);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_copier_begin(&b.copier, -1, 0);
    }

    xet_cli_progress_begin(xet_cli_quiet(args), b.name, 0);

    for (i = 0; i < 256 && rc == XET_CLI_OK; i++) {
        rc = xet_cli_rebuild_folder(&b, i);
    }

    xet_cli_progress_end();

    xet_cli_copier_end(&b.copier);
    xet_cli_pg_close(b.pg);
    close(b.folder);

    return (rc == XET_CLI_OK) ? xet_cli_rebuild_print(&b) : rc;
}


static int
xet_cli_rebuild_session(xet_cli_rebuild_t *b)
{
    int                  rc;
    char                 identity[64], named[64];
    uint64_t             number;
    xet_cli_pg_param_t   param;

    xet_cli_store_identity(b->name, identity);

    if (identity[0] == '\0') {
        return xet_cli_fail(XET_CLI_ERROR, b->name, "the folder has no"
                            " identity, is its disk mounted?");
    }

    number = 0;
    rc = xet_cli_pg_number(b->pg, "SELECT pg_is_in_recovery()", NULL, 0,
                           &number);

    if (rc == XET_CLI_OK && number) {
        rc = xet_cli_fail(XET_CLI_ERROR, "postgres", "is a standby, which"
                          " may be behind; the primary has to be asked");
    }

    param.value = identity;
    param.len = 0;
    named[0] = '\0';

    if (rc == XET_CLI_OK) {
        rc = xet_cli_pg_query(b->pg, "SELECT the_identity"
                              " FROM xet.store_claim($1)", &param, 1,
                              xet_cli_rebuild_identity, named);
    }

    if (rc == XET_CLI_OK && strcmp(identity, named) != 0) {
        rc = xet_cli_fail(XET_CLI_ERROR, b->name, "the folder is not the store"
                          " that the database describes");
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_pg_query(b->pg, "SELECT xet.store_confirm($1)", &param, 1,
                              NULL, NULL);
    }

    return (rc == XET_CLI_OK)
           ? xet_cli_pg_exec(b->pg, "SET statement_timeout = 0;"
                             " SELECT pg_advisory_lock_shared("
                             "hashtext('xet.copies'), 0)")
           : rc;
}


static int
xet_cli_rebuild_identity(void *ctx, const xet_cli_pg_row_t *row)
{
    snprintf(ctx, 64, "%s", xet_cli_pg_text(row, 0));

    return XET_CLI_OK;
}


static int
xet_cli_rebuild_folder(xet_cli_rebuild_t *b, int number)
{
    int              fd, rc;
    DIR             *dir;
    char             path[XET_CLI_BACKUP_PATH];
    struct dirent   *entry;
    xet_cli_copy_t   copy;

    snprintf(path, sizeof(path), XET_CLI_BACKUP_COPIES "/%02x", number);

    fd = openat(b->folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        return XET_CLI_OK;
    }

    dir = (fd < 0) ? NULL : fdopendir(fd);

    if (dir == NULL) {
        return xet_cli_fail_errno(path);
    }

    rc = XET_CLI_OK;

    while (rc == XET_CLI_OK && (entry = readdir(dir)) != NULL) {

        if (xet_xorb_name_parse(&copy.hash, &copy.tag,
                                (uint8_t *) entry->d_name,
                                strlen(entry->d_name))
            == XET_OK
            && copy.hash.bytes[7] == number)
        {
            rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                     : xet_cli_rebuild_copy(b, &copy);
        }
    }

    closedir(dir);

    return rc;
}


static int
xet_cli_rebuild_copy(xet_cli_rebuild_t *b, xet_cli_copy_t *copy)
{
    int                   rc;
    char                  path[XET_CLI_BACKUP_PATH];
    uint64_t              named, given_up;
    xet_cli_copy_e        what;
    xet_cli_copy_t        old;
    xet_xorb_verifier_t  *v;

    b->copies++;

    rc = xet_cli_store_named(b->pg, &copy->hash, &named);

    if (rc == XET_CLI_OK && named != copy->tag) {
        rc = xet_cli_rebuild_given_up(b, copy, &given_up);

        if (rc != XET_CLI_OK || given_up) {
            return rc;
        }
    }

    old = *copy;
    old.tag = (uint32_t) named;

    if (rc != XET_CLI_OK
        || (named != UINT64_MAX
            && (named == copy->tag
                || xet_cli_copier_size(b->folder, &old) != UINT64_MAX)))
    {
        b->known += (named == copy->tag);
        return rc;
    }

    v = NULL;
    copy->digested = 0;

    /* nobody knows its size but the file itself */

    copy->size = xet_cli_copier_size(b->folder, copy);

    rc = xet_cli_copier_read(&b->copier, b->folder, copy, NULL, NULL, &v,
                             &what);

    if (rc == XET_CLI_OK && what == XET_CLI_COPY_GONE) {
        return XET_CLI_OK;
    }

    if (rc == XET_CLI_OK && what == XET_CLI_COPY_BAD) {
        b->bad++;
        xet_cli_progress_clear();
        (void) xet_cli_fail(XET_CLI_FAULT, xet_cli_copy_path(copy, path),
                            "is damaged, and gets no row");
        return XET_CLI_OK;
    }

    if (rc == XET_CLI_OK) {
        xet_checksum_finish(b->copier.checksum, &copy->digest);

        copy->digested = 1;

        rc = (named == UINT64_MAX)
             ? xet_cli_rebuild_row(b, copy, xet_xorb_verifier_info(v))
             : xet_cli_backup_heal(b->pg, old.tag, copy,
                                   xet_xorb_verifier_info(v));

        b->added += (rc == XET_CLI_OK);
    }

    xet_xorb_verifier_destroy(v);

    return rc;
}


/* Whether the collector has dropped its row, and is to remove the file. */

static int
xet_cli_rebuild_given_up(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    uint64_t *given_up)
{
    char                 tag[16];
    xet_cli_pg_param_t   params[2];

    snprintf(tag, sizeof(tag), "%d", (int) copy->tag);

    memset(params, 0, sizeof(params));
    params[0].value = copy->hash.bytes;
    params[0].len = XET_HASH_LEN;
    params[1].value = tag;

    *given_up = 0;

    return xet_cli_pg_number(b->pg, "SELECT count(*) FROM xet.gc_copies"
                             " WHERE hash = $1 AND tag = $2::integer",
                             params, 2, given_up);
}


static int
xet_cli_rebuild_row(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    const xet_xorb_info_t *info)
{
    int                  rc;
    char                 raw[24], stored[24], tag[16], *eligible;
    size_t               n;
    uint64_t             news;
    xet_cli_pg_param_t   params[8];

    static const char  sql[] = "SELECT count(*) FROM (SELECT xet.xorb_put($1,"
        " substring($2 FROM 1 FOR 32 * n), substring($2 FROM 32 * n + 1 FOR"
        " 4 * n), substring($2 FROM 36 * n + 1), $3::bigint, $4::bigint,"
        " $5::integer[], $6::integer, $7)"
        " FROM (SELECT length($2) / 40 AS n) l) p";

    eligible = xet_cli_rebuild_eligible(info);
    n = info->chunk_count;

    memset(params, 0, sizeof(params));
    params[1].len = 40 * n;
    params[1].value = malloc(40 * n);

    if (eligible == NULL || params[1].value == NULL) {
        free(eligible);
        free((void *) params[1].value);
        return xet_cli_no_memory();
    }

    memcpy((uint8_t *) params[1].value, info->hashes, 32 * n);
    memcpy((uint8_t *) params[1].value + 32 * n, info->raw_ends, 4 * n);
    memcpy((uint8_t *) params[1].value + 36 * n, info->stored_ends, 4 * n);

    snprintf(raw, sizeof(raw), "%" PRIu64, (uint64_t) info->raw_size);
    snprintf(stored, sizeof(stored), "%" PRIu64, copy->size);
    snprintf(tag, sizeof(tag), "%d", (int) copy->tag);

    params[0].value = copy->hash.bytes;
    params[0].len = XET_HASH_LEN;
    params[2].value = raw;
    params[3].value = stored;
    params[4].value = eligible;
    params[5].value = tag;
    params[6].value = copy->digest.bytes;
    params[6].len = XET_CHECKSUM_LEN;

    rc = xet_cli_pg_number(b->pg, sql, params, 7, &news);

    free((uint8_t *) params[1].value);
    free(eligible);

    return rc;
}


/*
 * As PUT files has it: the first chunk of each xorb goes into the dedup index,
 * eligible or not.  Which chunk a file begins with nobody knows.
 */

static char *
xet_cli_rebuild_eligible(const xet_xorb_info_t *info)
{
    char      *text, *p;
    uint16_t  *chunks;
    uint32_t   i, n;

    chunks = malloc(info->chunk_count * sizeof(uint16_t));
    text = malloc((size_t) info->chunk_count * 6 + 8);

    if (chunks == NULL || text == NULL) {
        free(chunks);
        free(text);
        return NULL;
    }

    n = xet_xorb_eligible(&xet_suite_default, info, chunks);

    p = text + sprintf(text, "{0");

    for (i = 0; i < n; i++) {
        p += chunks[i] ? sprintf(p, ",%u", chunks[i]) : 0;
    }

    strcpy(p, "}");
    free(chunks);

    return text;
}


static int
xet_cli_rebuild_print(xet_cli_rebuild_t *b)
{
    int              rc;
    xet_json_t      *j;
    xet_cli_json_t   out;

    rc = XET_CLI_OK;

    if (b->args->value[XET_CLI_OPT_JSON] == NULL) {
        printf("%" PRIu64 " copies: %" PRIu64 " known, %" PRIu64 " added, %"
               PRIu64 " damaged\n", b->copies, b->known, b->added, b->bad);

    } else {
        j = xet_cli_json_begin(&out);

        xet_cli_json_put_u64(j, "copies", b->copies);
        xet_cli_json_put_u64(j, "known", b->known);
        xet_cli_json_put_u64(j, "added", b->added);
        xet_cli_json_put_u64(j, "damaged", b->bad);

        rc = xet_cli_json_end(&out);
    }

    return b->bad ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
