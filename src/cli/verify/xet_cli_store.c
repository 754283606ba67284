
/*
 * The store that "xet verify --store" checks: names of its copies, its
 * identity, and the output of faults.
 */


#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_verify.h"


static int xet_cli_store_name_row(void *ctx, const xet_cli_pg_row_t *row);


xet_store_t *
xet_cli_store_open(const xet_cli_args_t *args, int flags, int *rc)
{
    const char  *store = args->value[XET_CLI_OPT_STORE];

    if (store == NULL) {
        store = getenv("XET_STORE");
    }

    if (store == NULL || *store == '\0') {
        *rc = xet_cli_fail(XET_CLI_USAGE, args->verb,
                           "set --store or XET_STORE");
        return NULL;
    }

    return xet_cli_storage_open(store, flags, rc);
}


void
xet_cli_store_name(uint8_t *name, const xet_hash_t *hash, uint32_t copy_id)
{
    memcpy(name, hash->bytes, XET_HASH_LEN);
    xet_put_u32(name + XET_HASH_LEN, copy_id);
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


void
xet_cli_store_report(xet_cli_store_t *s, const char *kind, const char *name,
    const char *text)
{
    xet_cli_progress_clear();

    (void) xet_cli_print(s->json,
               xet_cli_out_text("kind", kind, " "),
               xet_cli_out_text("name", name, ": "),
               xet_cli_out_text("fault", text, "\n"));
}


int
xet_cli_store_named(xet_cli_pg_t *pg, const xet_hash_t *hash, uint64_t *copy_id)
{
    *copy_id = UINT64_MAX;

    return xet_cli_pg_number(pg, "SELECT copy_id"
                             " FROM xet.xorb_get($1, true, '', NULL)",
                             xet_cli_pg_with(xet_cli_as_hash(hash)), copy_id);
}


/*
 * Checks the store against the database of a session.  In a wrong folder, all
 * copies would seem to be lost, so the identities are compared.  A standby is
 * refused: it may lag behind, so new xorbs would look like orphans and
 * replaced copies like damage, and a standby cannot record damage.  Every
 * session is checked, because a connection string may name several hosts.
 */

int
xet_cli_store_session(const xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    int   rc;
    char  claimed[128];

    rc = xet_cli_pg_line(pg, XET_CLI_STORE_CLAIMED, NULL, claimed,
                         sizeof(claimed));

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (strcmp(claimed, s->identity) != 0) {
        return s->identity[0] ? xet_cli_storage_other(s->storage)
                              : xet_cli_storage_bare(s->storage);
    }

    if (s->strict && s->identity[0] == '\0') {
        return xet_cli_storage_bare(s->storage);
    }

    return xet_cli_pg_primary(pg);
}


int
xet_cli_store_enter(xet_cli_pg_t *pg, int restore)
{
    int       rc;
    uint64_t  had;

    had = 0;

    rc = xet_cli_pg_number(pg, restore
                           ? "SELECT pg_try_advisory_lock("
                             "hashtext('xet.copies'), 1)"
                           : "SELECT pg_try_advisory_lock_shared("
                             "hashtext('xet.copies'), 1)", NULL, &had);

    if (rc != XET_CLI_OK || had) {
        return rc;
    }

    return xet_cli_fail(XET_CLI_ERROR, "postgres", restore
                        ? "xet gc, a backup, a rebuild or another restore is "
                          "running; wait until it ends"
                        : "a restore is running; wait until it ends");
}


int
xet_cli_store_names(xet_cli_store_t *s, xet_cli_pg_t *pg)
{
    return xet_cli_pg_query(pg, "SELECT hash, copy_id FROM xet.xorbs UNION ALL"
                                " SELECT hash, copy_id FROM xet.gc_copies",
                            NULL, xet_cli_store_name_row, s);
}


static int
xet_cli_store_name_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_hash_t  hash;

    if (!xet_cli_pg_hash(row, 0, &hash)) {
        return xet_cli_fail(XET_CLI_FAULT, "xorbs", "a row has no hash");
    }

    return xet_cli_store_note(ctx, &hash, (uint32_t) xet_cli_pg_u64(row, 1));
}


int
xet_cli_store_note(xet_cli_store_t *s, const xet_hash_t *hash, uint32_t copy_id)
{
    uint8_t  *names;

    names = xet_cli_grow(s->names, s->nnames, &s->room, XET_CLI_STORE_NAME);

    if (names == NULL) {
        return xet_cli_no_memory();
    }

    s->names = names;

    xet_cli_store_name(s->names + s->nnames++ * XET_CLI_STORE_NAME,
                       hash, copy_id);

    return XET_CLI_OK;
}
