
/*
 * The store on disk against the database: jobs, threads, findings, and files
 * without a row.
 */


#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xet_cli_json.h"
#include "xet_cli_progress.h"
#include "xet_cli_store.h"


static int xet_cli_store_folder(xet_cli_store_t *s, xet_cli_pg_t *pg,
    unsigned number);
static int xet_cli_store_entry(xet_cli_store_t *s, xet_cli_pg_t *pg,
    const char *folder, const char *name);
static int xet_cli_store_known(void *ctx, const xet_cli_pg_row_t *row);
static void xet_cli_store_report(xet_cli_store_t *s, const char *kind,
    const char *name, const char *text);
static int xet_cli_store_order(const void *one, const void *two);


char *
xet_cli_store_path(const xet_cli_store_t *s, const xet_hash_t *hash,
    uint32_t tag)
{
    char   text[XET_XORB_NAME_MAX + 1];
    char  *path;

    *xet_xorb_name_print((uint8_t *) text, hash, tag) = '\0';

    if (asprintf(&path, "%s/xorbs/default/%.2s/%s", s->folder, text, text)
        < 0)
    {
        (void) xet_cli_no_memory();
        return NULL;
    }

    return path;
}


void
xet_cli_store_name(uint8_t *name, const xet_hash_t *hash, uint32_t tag)
{
    memcpy(name, hash->bytes, XET_HASH_LEN);
    xet_put_u32(name + XET_HASH_LEN, tag);
}


void
xet_cli_store_read(xet_cli_store_t *s, uint64_t bytes)
{
    pthread_mutex_lock(&s->mutex);

    s->bytes += bytes;
    xet_cli_progress_set(s->bytes);

    pthread_mutex_unlock(&s->mutex);
}


void
xet_cli_store_fault(xet_cli_store_t *s, const char *kind,
    const xet_hash_t *hash, const char *fmt, ...)
{
    char     name[XET_HASH_STR_LEN + 1], text[256];
    va_list  ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    pthread_mutex_lock(&s->mutex);

    s->faults++;
    xet_cli_store_report(s, kind, xet_cli_hash_string(hash, name), text);

    pthread_mutex_unlock(&s->mutex);
}


static void
xet_cli_store_report(xet_cli_store_t *s, const char *kind, const char *name,
    const char *text)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    xet_cli_progress_clear();

    if (!s->json) {
        printf("%s %s: %s\n", kind, name, text);
        fflush(stdout);
        return;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "kind", kind);
    xet_cli_json_put_string(j, "name", name);
    xet_cli_json_put_string(j, "fault", text);

    (void) xet_cli_json_end(&out);
}


/*
 * A file that no row names is what a crash leaves between the two, or a copy
 * that was not needed: no harm but for its room.
 */

int
xet_cli_store_orphans(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int       rc;
    unsigned  i;

    if (s->nnames) {
        qsort(s->names, s->nnames, XET_CLI_STORE_NAME, xet_cli_store_order);
    }

    rc = XET_CLI_OK;

    for (i = 0; i < 256 && rc == XET_CLI_OK; i++) {
        rc = xet_cli_interrupted ? XET_CLI_INTERRUPTED
                                 : xet_cli_store_folder(s, pg, i);
    }

    return rc;
}


static int
xet_cli_store_folder(xet_cli_store_t *s, xet_cli_pg_t *pg, unsigned number)
{
    int             rc;
    DIR            *dir;
    char           *folder;
    struct dirent  *entry;

    if (asprintf(&folder, "%s/xorbs/default/%02x", s->folder, number) < 0) {
        return xet_cli_no_memory();
    }

    dir = opendir(folder);
    rc = XET_CLI_OK;

    if (dir == NULL) {
        rc = xet_cli_fail(XET_CLI_ERROR, folder, strerror(errno));
    }

    while (dir && rc == XET_CLI_OK && (entry = readdir(dir)) != NULL) {
        if (*entry->d_name != '.') {
            rc = xet_cli_store_entry(s, pg, folder, entry->d_name);
        }
    }

    if (dir) {
        closedir(dir);
    }

    free(folder);

    return rc;
}


/* One that came since the start may get its row any moment, or has it. */

static int
xet_cli_store_entry(xet_cli_store_t *s, xet_cli_pg_t *pg, const char *folder,
    const char *name)
{
    int                  rc;
    char                *path;
    uint8_t              key[XET_CLI_STORE_NAME];
    uint32_t             tag;
    uint64_t             named;
    xet_hash_t           hash;
    struct stat          st;
    xet_cli_pg_param_t   param;

    if (xet_xorb_name_parse(&hash, &tag, (const uint8_t *) name, strlen(name))
        == XET_OK
        && strncmp(folder + strlen(folder) - 2, name, 2) == 0)
    {
        xet_cli_store_name(key, &hash, tag);

        if (s->nnames
            && bsearch(key, s->names, s->nnames, XET_CLI_STORE_NAME,
                       xet_cli_store_order))
        {
            return XET_CLI_OK;
        }

        memset(&param, 0, sizeof(param));
        param.bytes = hash.bytes;
        param.len = XET_HASH_LEN;

        named = UINT64_MAX;

        rc = xet_cli_pg_query(pg, "SELECT tag FROM xet.xorb_get($1)", &param,
                              1, xet_cli_store_known, &named);

        if (rc != XET_CLI_OK
            || (named != UINT64_MAX && (uint32_t) named == tag))
        {
            return rc;
        }
    }

    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        return xet_cli_no_memory();
    }

    if (stat(path, &st) == 0 && (uint64_t) st.st_mtime < s->start) {
        s->orphans++;
        xet_cli_store_report(s, "orphan", path, "the file has no row");
    }

    free(path);

    return XET_CLI_OK;
}


static int
xet_cli_store_known(void *ctx, const xet_cli_pg_row_t *row)
{
    *(uint64_t *) ctx = (uint32_t) xet_cli_pg_u64(row, 0);

    return XET_CLI_OK;
}


static int
xet_cli_store_order(const void *one, const void *two)
{
    return memcmp(one, two, XET_CLI_STORE_NAME);
}
