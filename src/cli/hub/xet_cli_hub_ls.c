
/*
 * xet ls: lists the repositories of a Hub or of an owner, or the files of a
 * repository.  Without a Hub, or with --postgres or --repo, lists the files in
 * a database.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


typedef struct {
    xet_cli_hub_t  *hub;
    xet_hub_kind_e  kind;
    int             json;
    size_t          n;
} xet_cli_hub_ls_t;


static int xet_cli_hub_ls_bare(const xet_cli_args_t *args, int *database);
static int xet_cli_hub_ls_me(xet_cli_hub_t *hub);
static int xet_cli_hub_ls_repos(xet_cli_hub_ls_t *l);
static int xet_cli_hub_ls_repo(void *ctx, const json_t *value);
static int xet_cli_hub_ls_files(xet_cli_hub_ls_t *l);
static int xet_cli_hub_ls_entry(void *ctx, const xet_hub_entry_t *entry);


int
xet_cli_hub_ls(const xet_cli_args_t *args)
{
    int                rc, database;
    xet_cli_hub_t      hub;
    xet_cli_hub_ls_t   l;

    if (args->count == 0) {
        database = 0;
        rc = xet_cli_hub_ls_bare(args, &database);

        if (rc != XET_CLI_OK || database) {
            return rc ? rc : xet_cli_ls(args);
        }
    }

    if (args->count && args->value[XET_CLI_OPT_REPO]) {
        return xet_cli_fail(XET_CLI_USAGE, "ls",
                            "use either a name or --repo");
    }

    memset(&l, 0, sizeof(l));

    l.hub = &hub;
    l.json = xet_cli_json(args);

    rc = xet_cli_hub_open(&hub, args, args->count ? args->operands[0] : NULL);

    if (rc == XET_CLI_OK && hub.owner && hub.id == NULL
        && strcmp(hub.owner, "me") == 0)
    {
        rc = xet_cli_hub_ls_me(&hub);
    }

    if (rc == XET_CLI_OK) {
        rc = hub.id ? xet_cli_hub_ls_files(&l) : xet_cli_hub_ls_repos(&l);
    }

    xet_cli_hub_close(&hub);

    return xet_cli_worse(rc, xet_cli_flush());
}


/*
 * Finds out what to list without a name: the database, or the Hub.  An option
 * counts more than a variable of the environment.
 */

static int
xet_cli_hub_ls_bare(const xet_cli_args_t *args, int *database)
{
    if (args->value[XET_CLI_OPT_RECURSIVE] || args->value[XET_CLI_OPT_TYPE]
        || args->value[XET_CLI_OPT_REVISION])
    {
        return xet_cli_fail(XET_CLI_USAGE, "ls", "--recursive, --revision and "
                            "--type need a name");
    }

    *database = args->value[XET_CLI_OPT_REPO]
                || args->value[XET_CLI_OPT_POSTGRES]
                || !xet_cli_hub_known(args);

    if (*database && args->value[XET_CLI_OPT_POSTGRES] == NULL
        && getenv("XET_POSTGRES") == NULL)
    {
        return xet_cli_fail(XET_CLI_USAGE, "ls",
                            args->value[XET_CLI_OPT_REPO]
                            ? "--repo needs a database; set --postgres or "
                              "XET_POSTGRES"
                            : "nothing to list; for a Hub set --hub or "
                              "HF_ENDPOINT, for a database set --postgres or "
                              "XET_POSTGRES");
    }

    return XET_CLI_OK;
}


/*
 * Replaces the owner "me" by the user's name, since the Hub lists repositories
 * only for a name.  A Hub without users returns 401; there the owner is in
 * fact "me".
 */

static int
xet_cli_hub_ls_me(xet_cli_hub_t *hub)
{
    int                 rc;
    char               *owner;
    json_t             *answer;
    const char         *name;
    xet_cli_request_t   r;

    rc = xet_cli_hub_ask(hub, &r, xet_cli_http_url(hub->http,
                                                   "/api/whoami-v2"),
                         NULL, NULL);

    if (rc != XET_CLI_OK || r.status == 401) {
        xet_cli_http_free(&r);
        return rc;
    }

    answer = xet_cli_hub_answer(&r, &rc);
    name = json_string_value(json_object_get(answer, "name"));

    if (name && xet_hub_owner_ok((const uint8_t *) name, strlen(name))) {
        owner = strdup(name);

        if (owner) {
            free(hub->owner);
            hub->owner = owner;

        } else {
            rc = xet_cli_no_memory();
        }
    }

    json_decref(answer);
    xet_cli_http_free(&r);

    return rc;
}


static int
xet_cli_hub_ls_repos(xet_cli_hub_ls_t *l)
{
    int          rc;
    unsigned     kind;
    const char  *owner, *before;

    rc = XET_CLI_OK;

    for (kind = 0; kind < XET_HUB_KINDS && rc == XET_CLI_OK; kind++) {

        if (l->hub->said && l->hub->kind != kind) {
            continue;
        }

        l->kind = (xet_hub_kind_e) kind;

        owner = l->hub->owner;
        before = (kind == XET_HUB_BUCKET) ? "/" : "?author=";

        rc = xet_cli_hub_pages(l->hub,
                               xet_cli_http_url(l->hub->http, "/api/%s%s%s",
                                                xet_hub_kind_plural(l->kind),
                                                owner ? before : "",
                                                owner ? owner : ""),
                               xet_cli_hub_ls_repo, l);
    }

    return rc;
}


static int
xet_cli_hub_ls_repo(void *ctx, const json_t *value)
{
    int                    model;
    const char            *date;
    xet_cli_hub_ls_t      *l = ctx;
    xet_hub_described_t    d;

    if (xet_hub_described_read(value, &d) != XET_OK) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the Hub's list has an entry that is not a "
                            "repository");
    }

    model = (l->kind == XET_HUB_MODEL);
    date = (const char *) d.date.data;

    return xet_cli_print_row(l->json,
               xet_cli_out_bytes("repo", d.id.data, d.id.len, 0, NULL),
               xet_cli_out_text("type", xet_hub_kind_name(l->kind), NULL),
               xet_cli_out_bool("private", d.private),
               xet_cli_out_word(NULL, d.private ? "private" : "public", -7,
                                " "),
               xet_cli_out_bytes(date ? "date" : NULL, date ? date : "-",
                                 date ? d.date.len : 1, -24, " "),
               xet_cli_out_text(NULL, model ? ""
                                            : xet_hub_kind_plural(l->kind),
                                model ? "" : "/"),
               xet_cli_out_bytes(NULL, d.id.data, d.id.len, 0, "\n"));
}


static int
xet_cli_hub_ls_files(xet_cli_hub_ls_t *l)
{
    int  rc, deep;

    deep = l->hub->args->value[XET_CLI_OPT_RECURSIVE] != NULL;
    rc = xet_cli_hub_look(l->hub, 0);

    return rc ? rc : xet_cli_hub_list(l->hub, deep, 1, xet_cli_hub_ls_entry, l,
                                      &l->n);
}


static int
xet_cli_hub_ls_entry(void *ctx, const xet_hub_entry_t *entry)
{
    char               sha256[2 * XET_CLI_SHA256_LEN + 1];
    const char        *date;
    xet_cli_hub_ls_t  *l = ctx;

    /* the lookup of a folder's path returns the folder itself: skip it */

    if (entry->folder && entry->path.len == strlen(l->hub->path)) {
        return XET_CLI_OK;
    }

    l->n++;

    date = (const char *) entry->date.data;
    *xet_hash_print_plain((uint8_t *) sha256, entry->sha256) = '\0';

    return xet_cli_print_row(l->json,
               xet_cli_out_bytes(entry->folder ? "folder" : "file",
                                 entry->path.data, entry->path.len, 0, NULL),
               xet_cli_out_word(NULL, "-", 14, entry->folder ? " " : NULL),
               xet_cli_out_column(entry->folder ? NULL : "size", entry->size,
                                  14, entry->folder ? NULL : " "),
               xet_cli_out_hash((!entry->folder && entry->known) ? "hash"
                                                                 : NULL,
                                &entry->hash, NULL),
               xet_cli_out_text(entry->digested ? "sha256" : NULL, sha256,
                                NULL),
               xet_cli_out_bytes(date ? "date" : NULL, date ? date : "-",
                                 date ? entry->date.len : 1, -24, " "),
               xet_cli_out_bytes(NULL, entry->path.data, entry->path.len, 0,
                                 entry->folder ? "/\n" : "\n"));
}
