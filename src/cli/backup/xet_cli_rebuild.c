
/*
 * xet rebuild: rows for the xorbs of a store that its database does not know.
 *
 * Each copy is verified as an upload is, and then its row is put as an upload
 * puts it, so that a xorb which has a row keeps it; only where the copy that
 * the row names is not there or known to be damaged, as beside a database from
 * an older dump, the row gets this one, as from an upload that heals.  What
 * files consist of is not in the store: whoever has a file sends it again, and
 * no byte of it that is in a xorb.
 *
 * A database without an identity takes that of the folder.  The lock keeps the
 * collector from removing copies meanwhile, those that have no row included.
 * Once a row is there the copies that have none yet look like orphans.  So
 * before the first row the database notes that it does not know the store, and
 * after the last one that it does: whatever ends this in between, nobody
 * removes copies without a row until a rebuild is complete.
 *
 * What a sweep has aside is no orphan any more, and gets its name back first.
 *
 * A server may run.  The copy of an upload that is about to put its row, or to
 * remove the file since the row was refused, is nothing that a row of ours may
 * lead to.  So a young copy gets a second name, with a tag of our own, which
 * nobody else removes.
 */


#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xet_cli_backup.h"


#define XET_CLI_TAGS_BLOCK  256       /* as in xet.tags_take() */


typedef struct {
    const xet_cli_args_t  *args;
    xet_store_t           *place;
    int                    began;      /* the database has noted it */
    unsigned               number;     /* of a folder */
    xet_cli_pg_t          *pg;
    xet_cli_copier_t       copier;
    uint32_t               tag;        /* the next one */
    unsigned               tags;       /* that are left */
    uint64_t               copies;
    uint64_t               known;
    uint64_t               added;
    uint64_t               bad;
    uint64_t               back;       /* files that were aside */
} xet_cli_rebuild_t;


/* The copy that the row of a xorb names. */

typedef struct {
    int                    known;      /* there is a row */
    int                    whole;
    uint32_t               tag;
} xet_cli_rebuild_named_t;


static int xet_cli_rebuild_all(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_asides(xet_cli_rebuild_t *b, uint64_t *n);
static int xet_cli_rebuild_aside(void *ctx, const char *name);
static int xet_cli_rebuild_walk(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_session(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_claim(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_name(void *ctx, const char *name);
static int xet_cli_rebuild_copy(xet_cli_rebuild_t *b, xet_cli_copy_t *copy);
static int xet_cli_rebuild_needed(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, xet_cli_rebuild_named_t *named, int *needed);
static int xet_cli_rebuild_named_row(void *ctx, const xet_cli_pg_row_t *row);
static int xet_cli_rebuild_given_up(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, uint64_t *given_up);
static int xet_cli_rebuild_link(xet_cli_rebuild_t *b, xet_cli_copy_t *copy,
    int *linked);
static int xet_cli_rebuild_tag(xet_cli_rebuild_t *b, uint32_t *tag);
static int xet_cli_rebuild_take(xet_cli_rebuild_t *b, xet_cli_copy_t *copy,
    const xet_cli_rebuild_named_t *named, int *taken);
static int xet_cli_rebuild_row(xet_cli_rebuild_t *b,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info,
    uint32_t *the_tag);
static char *xet_cli_rebuild_eligible(const xet_xorb_info_t *info);
static int xet_cli_rebuild_finish(xet_cli_rebuild_t *b);
static int xet_cli_rebuild_print(xet_cli_rebuild_t *b);


int
xet_cli_rebuild(const xet_cli_args_t *args)
{
    int                 rc;
    xet_cli_rebuild_t   b;

    memset(&b, 0, sizeof(b));

    b.args = args;
    b.place = xet_cli_store_open(args, 0, &rc);

    if (rc == XET_CLI_OK) {
        b.pg = xet_cli_pg_open(args, &rc);
    }

    rc = rc ? rc : xet_cli_rebuild_all(&b);

    if (b.began) {
        fprintf(stderr,
                "xet: %s: the rebuild is incomplete; run it again: until then "
                "copies without a row are not removed\n",
                b.place->name);
    }

    xet_cli_copier_end(&b.copier);
    xet_cli_pg_close(b.pg);
    xet_store_destroy(b.place);

    return rc;
}


static int
xet_cli_rebuild_all(xet_cli_rebuild_t *b)
{
    int       rc;
    uint64_t  back;

    back = 0;
    rc = xet_cli_rebuild_session(b);

    /* no row may lead to a file that a crash takes away */

    rc = rc ? rc : xet_cli_place_sync(b->place, NULL);
    rc = rc ? rc : xet_cli_copier_begin(&b->copier, NULL, NULL);

    xet_cli_progress_begin(xet_cli_quiet(b->args),
                           b->place->name, 0);

    rc = rc ? rc : xet_cli_rebuild_asides(b, &back);

    /* a sweep that had begun before may have taken more aside meanwhile */

    for (back = 1; rc == XET_CLI_OK && back; /* void */) {

        rc = xet_cli_rebuild_walk(b);

        back = 0;

        rc = rc ? rc : xet_cli_rebuild_asides(b, &back);
    }

    xet_cli_progress_end();

    rc = rc ? rc : xet_cli_rebuild_finish(b);

    return rc ? rc : xet_cli_rebuild_print(b);
}


/* Adds to n how many got their names back. */

static int
xet_cli_rebuild_asides(xet_cli_rebuild_t *b, uint64_t *n)
{
    int       rc;
    uint64_t  before;

    before = b->back;
    rc = xet_cli_place_list(b->place, "tmp", xet_cli_rebuild_aside, b);

    *n += b->back - before;

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


/* A sweep may have been first. */

static int
xet_cli_rebuild_aside(void *ctx, const char *name)
{
    int                 rc;
    char                aside[XET_CLI_PLACE_NAME], path[XET_CLI_PLACE_NAME];
    uint32_t            tag;
    uint64_t            sweep;
    xet_hash_t          hash;
    xet_cli_rebuild_t  *b = ctx;

    if (xet_xorb_aside_parse(&sweep, &hash, &tag, (const uint8_t *) name,
                             strlen(name))
        != XET_OK)
    {
        return XET_CLI_OK;
    }

    snprintf(aside, sizeof(aside), "tmp/%.*s", (int) XET_XORB_ASIDE_MAX, name);

    rc = xet_cli_place_back(b->place, aside,
                            xet_store_copy(path, &hash, tag));

    b->back++;

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


static int
xet_cli_rebuild_walk(xet_cli_rebuild_t *b)
{
    int       rc;
    char      folder[32];
    uint64_t  added;

    rc = XET_CLI_OK;
    added = b->added;

    b->copies = 0;
    b->known = 0;
    b->bad = 0;

    for (b->number = 0; b->number < 256 && rc == XET_CLI_OK; b->number++) {
        snprintf(folder, sizeof(folder), XET_CLI_BACKUP_COPIES "/%02x",
                 b->number);

        rc = xet_cli_place_list(b->place, folder, xet_cli_rebuild_name, b);

        if (rc == XET_CLI_GONE) {
            rc = XET_CLI_OK;
        }
    }

    /* those of a walk before are known by now */

    b->known -= (b->known < added) ? b->known : added;

    return rc;
}


/* The locks come first: who removes copies has ended, or has not begun. */

static int
xet_cli_rebuild_session(xet_cli_rebuild_t *b)
{
    int  rc;

    rc = xet_cli_pg_primary(b->pg);
    rc = rc ? rc : xet_cli_store_enter(b->pg, 0);
    rc = rc ? rc : xet_cli_pg_exec(b->pg, XET_CLI_BACKUP_PATIENCE
                                   " SELECT pg_advisory_lock_shared"
                                   XET_CLI_BACKUP_LOCK);
    rc = rc ? rc : xet_cli_rebuild_claim(b);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_pg_exec(b->pg, "SELECT xet.store_unknown()");
        b->began = (rc == XET_CLI_OK);
    }

    return rc;
}


static int
xet_cli_rebuild_claim(xet_cli_rebuild_t *b)
{
    int                        rc;
    char                       identity[64], named[64];
    const xet_cli_pg_param_t  *params;

    rc = xet_cli_place_identity(b->place, identity);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (identity[0] == '\0') {
        return xet_cli_place_bare(b->place);
    }

    params = xet_cli_pg_with(xet_cli_as_text(identity));
    named[0] = '\0';

    rc = xet_cli_pg_line(b->pg, "SELECT the_identity FROM xet.store_claim($1)",
                         params, named, sizeof(named));

    if (rc == XET_CLI_OK && strcmp(identity, named) != 0) {
        rc = xet_cli_place_other(b->place);
    }

    return rc ? rc : xet_cli_pg_query(b->pg, "SELECT xet.store_confirm($1)",
                                      params, NULL, NULL);
}


static int
xet_cli_rebuild_name(void *ctx, const char *name)
{
    xet_cli_copy_t      copy;
    xet_cli_rebuild_t  *b = ctx;

    memset(&copy, 0, sizeof(copy));

    if (xet_xorb_name_parse(&copy.hash, &copy.tag, (const uint8_t *) name,
                            strlen(name))
        != XET_OK
        || copy.hash.bytes[7] != b->number)
    {
        return XET_CLI_OK;
    }

    return xet_cli_rebuild_copy(b, &copy);
}


static int
xet_cli_rebuild_copy(xet_cli_rebuild_t *b, xet_cli_copy_t *copy)
{
    int                       rc, needed, linked, taken;
    char                      name[XET_CLI_PLACE_NAME];
    xet_cli_rebuild_named_t   named;

    b->copies++;

    rc = xet_cli_rebuild_needed(b, copy, &named, &needed);

    if (rc != XET_CLI_OK || !needed) {
        return rc;
    }

    taken = 0;

    rc = xet_cli_rebuild_link(b, copy, &linked);
    rc = rc ? rc : xet_cli_rebuild_take(b, copy, &named, &taken);

    /* where the answer of the database was lost a row may have that name */

    if (rc == XET_CLI_OK && linked && !taken) {
        rc = xet_cli_place_remove(b->place,
                                  xet_store_copy(name, &copy->hash,
                                                     copy->tag));
    }

    b->added += (uint64_t) taken;

    return rc;
}


/*
 * Whether the xorb needs this copy: it has no row, or its row names one that is
 * not there or damaged.
 */

static int
xet_cli_rebuild_needed(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    xet_cli_rebuild_named_t *named, int *needed)
{
    int              rc;
    uint64_t         given_up, size;
    xet_cli_copy_t   other;

    memset(named, 0, sizeof(xet_cli_rebuild_named_t));
    *needed = 0;

    rc = xet_cli_pg_query(b->pg, "SELECT tag, whole"
                          " FROM xet.xorb_get($1, true, '', NULL)",
                          xet_cli_pg_with(xet_cli_as_hash(&copy->hash)),
                          xet_cli_rebuild_named_row, named);

    if (rc == XET_CLI_OK && named->known && named->tag == copy->tag) {
        b->known++;
        return XET_CLI_OK;
    }

    rc = rc ? rc : xet_cli_rebuild_given_up(b, copy, &given_up);

    if (rc != XET_CLI_OK || given_up) {
        return rc;
    }

    other = *copy;
    other.tag = named->tag;

    rc = xet_cli_copier_size(b->place, &other, &size);

    *needed = !named->known || !named->whole || size == UINT64_MAX;

    return rc;
}


static int
xet_cli_rebuild_named_row(void *ctx, const xet_cli_pg_row_t *row)
{
    xet_cli_rebuild_named_t  *named = ctx;

    named->known = 1;
    named->tag = (uint32_t) xet_cli_pg_u64(row, 0);
    named->whole = xet_cli_pg_bool(row, 1) != 0;

    return XET_CLI_OK;
}


/* Whether the collector has dropped its row, and is to remove the file. */

static int
xet_cli_rebuild_given_up(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    uint64_t *given_up)
{
    *given_up = 0;

    return xet_cli_pg_number(b->pg, "SELECT count(*) FROM xet.gc_copies"
                             " WHERE hash = $1 AND tag = $2::integer",
                             xet_cli_pg_with(xet_cli_as_hash(&copy->hash),
                                             xet_cli_as_tag(copy->tag)),
                             given_up);
}


/*
 * Gives a copy that may be of an upload a second name, by which it is meant
 * from here on.  Without a server there are no uploads, and without sessions of
 * others no server.
 */

static int
xet_cli_rebuild_link(xet_cli_rebuild_t *b, xet_cli_copy_t *copy, int *linked)
{
    int               rc;
    char              name[XET_CLI_PLACE_NAME], other[XET_CLI_PLACE_NAME];
    uint64_t          sessions;
    xet_store_item_t  entry;

    *linked = 0;

    xet_store_copy(name, &copy->hash, copy->tag);

    rc = xet_cli_place_stat(b->place, name, &entry);

    if (rc != XET_CLI_OK
        || entry.modified < (int64_t) time(NULL) - XET_CLI_STORE_AGE_MIN)
    {
        return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
    }

    sessions = 0;
    rc = xet_cli_pg_number(b->pg, "SELECT count(*) FROM pg_stat_activity"
                           " WHERE datname = current_database()"
                           " AND usename IS NOT NULL"
                           " AND pid <> pg_backend_pid()", NULL, &sessions);

    if (rc != XET_CLI_OK || sessions == 0) {
        return rc;
    }

    rc = xet_cli_rebuild_tag(b, &copy->tag);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_place_link(b->place, name,
                            xet_store_copy(other, &copy->hash, copy->tag));

    *linked = (rc == XET_CLI_OK);

    /* the upload that it was of has removed it */

    return (rc == XET_CLI_GONE) ? XET_CLI_OK : rc;
}


/* A tag that no copy has, 0 being that of old ones; they come in blocks. */

static int
xet_cli_rebuild_tag(xet_cli_rebuild_t *b, uint32_t *tag)
{
    int       rc;
    uint64_t  first;

    do {
        if (b->tags == 0) {
            first = 0;
            rc = xet_cli_pg_number(b->pg, "SELECT xet.tags_take()", NULL,
                                   &first);

            if (rc != XET_CLI_OK) {
                return rc;
            }

            b->tag = (uint32_t) first;
            b->tags = XET_CLI_TAGS_BLOCK;
        }

        *tag = b->tag++;
        b->tags--;

    } while (*tag == 0);

    return XET_CLI_OK;
}


/* Verifies a copy and has the row of its xorb lead to it; *taken: it does. */

static int
xet_cli_rebuild_take(xet_cli_rebuild_t *b, xet_cli_copy_t *copy,
    const xet_cli_rebuild_named_t *named, int *taken)
{
    int                   rc;
    char                  path[XET_CLI_BACKUP_PATH];
    uint32_t              tag;
    xet_cli_copy_e        what;
    xet_xorb_verifier_t  *v;

    tag = 0;

    v = NULL;
    copy->digested = 0;

    /* nobody knows its size but the file itself */

    what = XET_CLI_COPY_GONE;
    rc = xet_cli_copier_size(b->place, copy, &copy->size);
    rc = rc ? rc : xet_cli_copier_verify(&b->copier, b->place, copy, &what,
                                         &v);

    if (rc != XET_CLI_OK || what == XET_CLI_COPY_GONE) {
        return rc;
    }

    if (what == XET_CLI_COPY_BAD) {
        b->bad++;
        xet_cli_progress_clear();
        (void) xet_cli_fail(XET_CLI_FAULT, xet_cli_copy_path(copy, path),
                            "is damaged; no row was added");
        return XET_CLI_OK;
    }

    xet_checksum_finish(b->copier.checksum, &copy->digest);

    copy->digested = 1;

    rc = named->known ? xet_cli_backup_heal(b->pg, named->tag, copy,
                                            xet_xorb_verifier_info(v), &tag)
                      : xet_cli_rebuild_row(b, copy,
                                            xet_xorb_verifier_info(v), &tag);

    *taken = (rc == XET_CLI_OK && tag == copy->tag);

    xet_xorb_verifier_destroy(v);

    return rc;
}


/* *the_tag: of the row that stands, as somebody else may have been first. */

static int
xet_cli_rebuild_row(xet_cli_rebuild_t *b, const xet_cli_copy_t *copy,
    const xet_xorb_info_t *info, uint32_t *the_tag)
{
    int        rc;
    char      *eligible;
    size_t     n;
    uint8_t   *lists;
    uint64_t   stands;

    static const char  sql[] = "SELECT p.the_tag FROM"
        " (SELECT length($2) / 40 AS n) l, LATERAL xet.xorb_put($1,"
        " substring($2 FROM 1 FOR 32 * n), substring($2 FROM 32 * n + 1 FOR"
        " 4 * n), substring($2 FROM 36 * n + 1), $3::bigint, $4::bigint,"
        " $5::integer[], $6::integer, $7, true, '', NULL) p";

    eligible = xet_cli_rebuild_eligible(info);
    n = info->chunk_count;

    lists = malloc(40 * n);

    if (eligible == NULL || lists == NULL) {
        free(eligible);
        free(lists);
        return xet_cli_no_memory();
    }

    memcpy(lists, info->hashes, 32 * n);
    memcpy(lists + 32 * n, info->raw_ends, 4 * n);
    memcpy(lists + 36 * n, info->stored_ends, 4 * n);

    stands = 0;

    rc = xet_cli_pg_number(b->pg, sql,
                           xet_cli_pg_with(
                               xet_cli_as_hash(&copy->hash),
                               xet_cli_as_bytes(lists, 40 * n),
                               xet_cli_as_number(info->raw_size),
                               xet_cli_as_number(copy->size),
                               xet_cli_as_text(eligible),
                               xet_cli_as_tag(copy->tag),
                               xet_cli_as_bytes(copy->digest.bytes,
                                                XET_CHECKSUM_LEN)),
                           &stands);

    *the_tag = (uint32_t) stands;

    free(lists);
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


/*
 * Nobody has paid for what has come: the sums are counted anew, as after rows
 * that were put in by hand.  A damaged copy may be the only one of its xorb,
 * and somebody may put a better one in its place: so it is no orphan yet.
 */

static int
xet_cli_rebuild_finish(xet_cli_rebuild_t *b)
{
    int       rc;
    uint64_t  n;

    rc = xet_cli_pg_exec(b->pg, "SELECT count(*) FROM xet.usage_recount()");

    n = 1;

    while (rc == XET_CLI_OK && n) {
        n = 0;
        rc = xet_cli_interrupted
             ? XET_CLI_INTERRUPTED
             : xet_cli_pg_number(b->pg, "SELECT xet.usage_settle(1000)", NULL,
                                 &n);
    }

    if (rc == XET_CLI_OK && b->bad == 0) {
        rc = xet_cli_pg_exec(b->pg, "SELECT xet.store_known()");
        b->began = (rc != XET_CLI_OK);
    }

    return rc;
}


static int
xet_cli_rebuild_print(xet_cli_rebuild_t *b)
{
    int  rc;

    rc = xet_cli_print(xet_cli_json(b->args),
             xet_cli_out_number("copies", b->copies, " copies: "),
             xet_cli_out_number("known", b->known, " known, "),
             xet_cli_out_number("added", b->added, " added, "),
             xet_cli_out_number("damaged", b->bad, " damaged\n"));

    if (b->added) {
        fprintf(stderr,
                "xet: %s: the added xorbs are charged to nobody; when files "
                "need them again, run \"xet usage --recount\"\n",
                b->place->name);
    }

    return b->bad ? xet_cli_worse(rc, XET_CLI_FAULT) : rc;
}
