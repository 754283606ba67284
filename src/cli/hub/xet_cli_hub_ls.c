
/*
 * xet ls of a name of a Hub: the repos of an owner, or what is in a repo.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_hub.h"


typedef struct {
    xet_cli_hub_t  *hub;
    xet_hub_kind_e  kind;
    int             json;
    size_t          n;
} xet_cli_hub_ls_t;


static int xet_cli_hub_ls_me(xet_cli_hub_t *hub);
static int xet_cli_hub_ls_repos(xet_cli_hub_ls_t *l);
static int xet_cli_hub_ls_repo(void *ctx, const json_t *value);
static int xet_cli_hub_ls_files(xet_cli_hub_ls_t *l);
static int xet_cli_hub_ls_entry(void *ctx, const xet_hub_entry_t *entry);
static void xet_cli_hub_ls_date(const xet_hub_text_t *date);


int
xet_cli_hub_ls(const xet_cli_args_t *args)
{
    int                rc;
    xet_cli_hub_t      hub;
    xet_cli_hub_ls_t   l;

    if (args->count == 0) {

        if (args->value[XET_CLI_OPT_RECURSIVE] || args->value[XET_CLI_OPT_TYPE]
            || args->value[XET_CLI_OPT_REVISION])
        {
            return xet_cli_fail(XET_CLI_USAGE, "ls", "--recursive, --revision "
                                "and --type need a name");
        }

        return xet_cli_ls(args);
    }

    if (args->value[XET_CLI_OPT_REPO]) {
        return xet_cli_fail(XET_CLI_USAGE, "ls",
                            "needs either a name or --repo");
    }

    memset(&l, 0, sizeof(l));

    l.hub = &hub;
    l.json = xet_cli_json(args);

    rc = xet_cli_hub_open(&hub, args, args->operands[0]);

    if (rc == XET_CLI_OK && hub.id == NULL && strcmp(hub.owner, "me") == 0) {
        rc = xet_cli_hub_ls_me(&hub);
    }

    if (rc == XET_CLI_OK) {
        rc = hub.id ? xet_cli_hub_ls_files(&l) : xet_cli_hub_ls_repos(&l);
    }

    xet_cli_hub_close(&hub);

    return xet_cli_worse(rc, xet_cli_flush());
}


/* A list of an owner wants his name; where nobody is known, "me" is one. */

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
    int       rc;
    unsigned  kind;

    rc = XET_CLI_OK;

    for (kind = 0; kind < XET_HUB_KINDS && rc == XET_CLI_OK; kind++) {

        if (l->hub->said && l->hub->kind != kind) {
            continue;
        }

        l->kind = (xet_hub_kind_e) kind;

        rc = xet_cli_hub_pages(l->hub,
                               xet_cli_http_url(l->hub->http,
                                                (kind == XET_HUB_BUCKET)
                                                ? "/api/%s/%s"
                                                : "/api/%s?author=%s",
                                                xet_hub_kind_plural(l->kind),
                                                l->hub->owner),
                               xet_cli_hub_ls_repo, l);
    }

    return rc;
}


static int
xet_cli_hub_ls_repo(void *ctx, const json_t *value)
{
    char                  *id;
    xet_json_t            *j;
    xet_cli_json_t         out;
    xet_cli_hub_ls_t      *l = ctx;
    xet_hub_described_t    d;

    if (xet_hub_described_read(value, &d) != XET_OK) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "an entry of the list of the Hub is no repository");
    }

    if (!l->json) {
        printf("%-7s ", d.private ? "private" : "public");
        xet_cli_hub_ls_date(&d.date);

        if (l->kind != XET_HUB_MODEL) {
            printf("%s/", xet_hub_kind_plural(l->kind));
        }

        xet_cli_text_write(stdout, (const char *) d.id.data, d.id.len);
        putchar('\n');

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    id = strndup((const char *) d.id.data, d.id.len);

    if (id == NULL) {
        return xet_cli_no_memory();
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "repo", id);
    xet_cli_json_put_string(j, "type", xet_hub_kind_name(l->kind));
    xet_cli_json_put_bool(j, "private", d.private);

    if (d.date.data) {
        xet_json_key(j, "date");
        xet_json_string(j, d.date.data, d.date.len);
    }

    free(id);

    return xet_cli_json_end(&out);
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
    xet_json_t        *j;
    xet_cli_json_t     out;
    xet_cli_hub_ls_t  *l = ctx;

    /* the folder itself, which was asked for as a file */

    if (entry->folder && entry->path.len == strlen(l->hub->path)) {
        return XET_CLI_OK;
    }

    l->n++;

    if (!l->json) {

        if (entry->folder) {
            printf("%14s ", "-");

        } else {
            printf("%14" PRIu64 " ", entry->size);
        }

        xet_cli_hub_ls_date(&entry->date);
        xet_cli_text_write(stdout, (const char *) entry->path.data,
                           entry->path.len);
        printf("%s\n", entry->folder ? "/" : "");

        return ferror(stdout) ? xet_cli_flush() : XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_key(j, entry->folder ? "folder" : "file");
    xet_json_string(j, entry->path.data, entry->path.len);

    if (!entry->folder) {
        xet_cli_json_put_u64(j, "size", entry->size);
    }

    if (!entry->folder && entry->known) {
        xet_cli_json_put_hash(j, "hash", &entry->hash);
    }

    if (entry->digested) {
        *xet_hash_print_plain((uint8_t *) sha256, entry->sha256) = '\0';
        xet_cli_json_put_string(j, "sha256", sha256);
    }

    if (entry->date.data) {
        xet_json_key(j, "date");
        xet_json_string(j, entry->date.data, entry->date.len);
    }

    return xet_cli_json_end(&out);
}


static void
xet_cli_hub_ls_date(const xet_hub_text_t *date)
{
    printf("%-24.*s ", date->data ? (int) date->len : 1,
           date->data ? (const char *) date->data : "-");
}
