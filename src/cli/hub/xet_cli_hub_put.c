
/*
 * xet put of a file or a folder to a Hub repository.
 *
 * Purpose:    uploads the files that differ from the repository, and commits
 *             these files.
 * States:     the repository exists -> files are compared with the repository,
 *             in batches of paths -> files that differ are sent -> one or
 *             several commits.
 * Ownership:  owns one path for each file, until all files are committed.
 *
 * If the repository has a file of the same path and size, the local file is
 * read twice, the first time for its SHA-256.  All other files are read once.
 * A file is never completely in memory.
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "xet_cli_hub.h"


typedef struct {
    char                  *path;       /* repository path; NULL: skipped */
    int64_t                mtime;
    uint64_t               size;       /* size of the file in the repository */
    xet_hash_t             hash;
    uint8_t                sha256[XET_CLI_SHA256_LEN];
    unsigned               asked:1;
    unsigned               there:1;
    unsigned               known:1;
    unsigned               digested:1;
    unsigned               done:1;     /* unchanged, or in the commit */
} xet_cli_hub_item_t;


typedef struct {
    xet_cli_hub_t               *hub;
    const xet_cli_hub_source_t  *source;
    xet_cli_tree_t               tree;
    FILE                        *in;          /* open source->file, or NULL */
    xet_cli_hub_item_t          *items;
    size_t                       count;
    size_t                       next;        /* next item to be registered */
    size_t                       window;      /* first item of the batch */
    size_t                       unchanged;
    xet_cli_hub_commit_t         commit;
} xet_cli_hub_put_t;


static int xet_cli_hub_operand(const xet_cli_args_t *args);
static int xet_cli_hub_meant(const xet_cli_args_t *args);
static int xet_cli_hub_skip(const char *path);
static int xet_cli_hub_put_check(xet_cli_hub_put_t *p);
static int xet_cli_hub_items(xet_cli_hub_put_t *p);
static char *xet_cli_hub_inside(const xet_cli_hub_put_t *p,
    const char *name);
static int xet_cli_hub_put_run(xet_cli_hub_put_t *p);
static int xet_cli_hub_put_open(void *ctx, size_t i, FILE **in,
    const char **name, int *executable);
static int xet_cli_hub_put_empty(FILE *in);
static int xet_cli_hub_put_add(xet_cli_hub_put_t *p,
    const xet_cli_hub_item_t *item, const xet_cli_file_t *file);
static FILE *xet_cli_hub_put_file(xet_cli_hub_put_t *p, size_t i,
    int *executable);
static int xet_cli_hub_put_look(xet_cli_hub_put_t *p, size_t i);
static int xet_cli_hub_put_there(void *ctx, const xet_hub_entry_t *entry);
static int xet_cli_hub_put_same(const xet_cli_hub_item_t *item, FILE *in,
    int *same);
static int xet_cli_hub_put_registered(void *ctx, const xet_cli_file_t *file);
static int xet_cli_hub_put_end(void *ctx);
static int xet_cli_hub_put_print(const xet_cli_hub_put_t *p);


int
xet_cli_hub_put(const xet_cli_args_t *args)
{
    int                    rc, folder;
    xet_cli_hub_t          hub;
    xet_cli_hub_source_t   source;

    if (!xet_cli_hub_operand(args)) {

        if (args->value[XET_CLI_OPT_MESSAGE]
            || args->value[XET_CLI_OPT_REVISION]
            || args->value[XET_CLI_OPT_TYPE])
        {
            return xet_cli_fail(XET_CLI_USAGE, "put",
                                "--message, --revision and --type need a "
                                "repository name");
        }

        return xet_cli_put(args);
    }

    folder = (args->value[XET_CLI_OPT_RECURSIVE] != NULL);

    source.file = folder ? NULL : args->operands[0];
    source.folder = folder ? args->operands[0] : NULL;
    source.blobs = -1;
    source.make = folder || xet_cli_hub_meant(args);

    rc = xet_cli_hub_open_repo(&hub, args, args->operands[1]);

    if (rc == XET_CLI_OK && !folder && *hub.path == '\0') {
        rc = xet_cli_fail(XET_CLI_USAGE, args->operands[1],
                          "needs a path in the repository");
    }

    rc = rc ? rc : xet_cli_hub_send(&hub, &source);

    xet_cli_hub_close(&hub);

    return rc;
}


/*
 * Returns whether the last of two operands is a Hub name, not a second file.
 */

static int
xet_cli_hub_operand(const xet_cli_args_t *args)
{
    struct stat       st;
    xet_hub_target_t  target;

    if (args->count != 2) {
        return 0;
    }

    if (args->value[XET_CLI_OPT_RECURSIVE]
        || strncmp(args->operands[1], "hf://", 5) == 0)
    {
        return 1;
    }

    return xet_cli_hub_is(args, args->operands[1])
           && xet_hub_operand_parse(args->operands[1], &target) == XET_OK
           && target.path.len
           && lstat(args->operands[1], &st) != 0;
}


/*
 * Returns whether the last operand must be a Hub name.  Otherwise the operand
 * may be a mistyped file name, for which no repository is created.
 */

static int
xet_cli_hub_meant(const xet_cli_args_t *args)
{
    return strncmp(args->operands[1], "hf://", 5) == 0
           || args->value[XET_CLI_OPT_HUB] || args->value[XET_CLI_OPT_MESSAGE]
           || args->value[XET_CLI_OPT_REVISION]
           || args->value[XET_CLI_OPT_TYPE];
}


int
xet_cli_hub_send(xet_cli_hub_t *hub, const xet_cli_hub_source_t *source)
{
    int                 rc;
    size_t              i;
    xet_cli_hub_put_t   p;

    memset(&p, 0, sizeof(p));

    p.hub = hub;
    p.source = source;
    p.tree.root = -1;
    p.tree.skip = xet_cli_hub_skip;
    p.tree.links = (source->blobs >= 0);

    p.commit.hub = hub;
    p.commit.many = (source->file == NULL);

    xet_cli_total_begin(&p.commit.sum);

    p.commit.message = hub->args->value[XET_CLI_OPT_MESSAGE];

    if (p.commit.message == NULL) {
        p.commit.message = source->file ? "Upload a file" : "Upload a folder";
    }

    hub->writes = 1;

    rc = xet_cli_hub_put_check(&p);
    rc = rc ? rc : xet_cli_hub_items(&p);

    if (rc <= XET_CLI_ERROR && rc != XET_CLI_USAGE && p.items) {
        rc = xet_cli_worse(rc, xet_cli_hub_put_run(&p));
    }

    xet_cli_hub_commit_free(&p.commit);

    for (i = 0; p.items && i < p.count; i++) {
        free(p.items[i].path);
    }

    free(p.items);
    xet_cli_close(p.in);
    xet_cli_tree_free(&p.tree);

    return rc;
}


/* Checks options and the local file, before a request changes the Hub. */

static int
xet_cli_hub_put_check(xet_cli_hub_put_t *p)
{
    int           rc;
    uint64_t      parallel;
    const char   *file;
    struct stat   st;

    rc = xet_cli_args_number(p->hub->args, XET_CLI_OPT_PARALLEL, 1, 16, 1,
                             &parallel);

    file = p->source->file;

    if (rc != XET_CLI_OK || file == NULL) {
        return rc;
    }

    p->in = xet_cli_open(file);

    if (p->in == NULL) {
        return XET_CLI_ERROR;
    }

    if (fstat(fileno(p->in), &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return xet_cli_fail_errno(file);
    }

    return XET_CLI_OK;
}


/*
 * Returns whether a path is skipped: .git and .cache/huggingface, as in other
 * clients.
 */

static int
xet_cli_hub_skip(const char *path)
{
    const char  *name, *slash;

    slash = strrchr(path, '/');
    name = slash ? slash + 1 : path;

    if (strcmp(name, ".git") == 0) {
        return 1;
    }

    return strcmp(name, "huggingface") == 0 && slash
           && slash - path >= 6 && memcmp(slash - 6, ".cache", 6) == 0
           && (slash - path == 6 || slash[-7] == '/');
}


/* Collects the files and their paths in the repository. */

static int
xet_cli_hub_items(xet_cli_hub_put_t *p)
{
    int          rc;
    char        *path;
    size_t       i;
    const char  *name;

    rc = XET_CLI_OK;
    p->count = 1;

    if (p->source->folder) {
        rc = xet_cli_tree_read(&p->tree, p->source->folder);
        p->count = p->tree.count;

        if (rc > XET_CLI_ERROR) {
            return rc;
        }
    }

    if (p->count == 0) {
        return rc ? rc : xet_cli_fail(XET_CLI_FAULT, p->source->folder,
                                      "is empty");
    }

    p->items = calloc(p->count, sizeof(xet_cli_hub_item_t));

    if (p->items == NULL) {
        return xet_cli_no_memory();
    }

    for (i = 0; i < p->count; i++) {

        if (p->source->folder && p->tree.entries[i].folder) {
            continue;
        }

        name = p->source->folder ? p->tree.entries[i].path : NULL;
        path = xet_cli_hub_inside(p, name);

        if (path == NULL) {
            return xet_cli_no_memory();
        }

        if (!xet_hub_path_ok((const uint8_t *) path, strlen(path))) {
            rc = xet_cli_fail(XET_CLI_ERROR, path,
                              "skipped: not a valid path in a repository");
            free(path);
            continue;
        }

        if (!xet_cli_tree_safe(path, "skipped")) {
            rc = xet_cli_worse(rc, XET_CLI_ERROR);
            free(path);
            continue;
        }

        p->items[i].path = path;
    }

    return rc;
}


static char *
xet_cli_hub_inside(const xet_cli_hub_put_t *p, const char *name)
{
    char  *path;

    if (name == NULL || *p->hub->path == '\0') {
        return strdup(name ? name : p->hub->path);
    }

    return (asprintf(&path, "%s/%s", p->hub->path, name) < 0) ? NULL : path;
}


static int
xet_cli_hub_put_run(xet_cli_hub_put_t *p)
{
    int              rc;
    char            *storage;
    xet_cli_http_t  *cas;
    xet_cli_puts_t   puts;

    rc = xet_cli_hub_look(p->hub, p->source->make);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    cas = xet_cli_hub_cas(p->hub, &rc);

    if (cas == NULL) {
        return rc;
    }

    if (asprintf(&storage, "%s/%s@%s", xet_hub_kind_plural(p->hub->kind),
                 p->hub->id, p->hub->rev)
        < 0)
    {
        return xet_cli_no_memory();
    }

    memset(&puts, 0, sizeof(puts));

    puts.storage = storage;
    puts.count = p->count;
    puts.tree = p->source->folder ? &p->tree : NULL;
    puts.name = p->hub->id;
    puts.open = xet_cli_hub_put_open;
    puts.registered = xet_cli_hub_put_registered;
    puts.end = xet_cli_hub_put_end;
    puts.ctx = p;
    puts.once = (p->source->file && strcmp(p->source->file, "-") == 0);

    rc = xet_cli_puts(p->hub->args, cas, &puts);

    free(storage);

    return rc;
}


/*
 * Opens file i.  *in stays NULL if there is nothing to upload: the repository
 * has the same file, or the file is empty.
 */

static int
xet_cli_hub_put_open(void *ctx, size_t i, FILE **in, const char **name,
    int *executable)
{
    int                  rc, same, empty;
    FILE                *file;
    struct stat          st;
    xet_cli_hub_put_t   *p = ctx;
    xet_cli_hub_item_t  *item;

    item = &p->items[i];

    if (item->path == NULL || item->done) {
        return XET_CLI_OK;
    }

    rc = item->asked ? XET_CLI_OK : xet_cli_hub_put_look(p, i);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    file = xet_cli_hub_put_file(p, i, executable);

    if (file == NULL) {
        return XET_CLI_ERROR;
    }

    same = 0;
    item->mtime = -1;

    if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode)) {
        item->mtime = (int64_t) st.st_mtim.tv_sec * 1000
                      + st.st_mtim.tv_nsec / 1000000;

        empty = (st.st_size == 0 && xet_cli_hub_put_empty(file));

        /* stdin may start at any offset, and cannot be read twice */

        if (file != stdin && item->there
            && item->size == (uint64_t) st.st_size && (item->size || empty))
        {
            rc = xet_cli_hub_put_same(item, file, &same);
        }

        if (rc == XET_CLI_OK && !same && empty) {
            item->done = 1;
            rc = xet_cli_hub_put_add(p, item, NULL);
        }
    }

    if (same) {
        item->done = 1;
        p->unchanged++;
    }

    if (rc != XET_CLI_OK || item->done) {
        xet_cli_close(file);
        return rc;
    }

    *in = file;
    *name = item->path;

    return XET_CLI_OK;
}


/*
 * Returns whether a file of size 0 is empty: files in /proc have size 0, but
 * have data.
 */

static int
xet_cli_hub_put_empty(FILE *in)
{
    int  c;

    c = getc(in);

    if (c != EOF) {
        ungetc(c, in);
        return 0;
    }

    if (ferror(in)) {

        /* the next read reports the error */

        clearerr(in);
        return 0;
    }

    return 1;
}


/* Adds a file to the commit, and sends the commit if it is due. */

static int
xet_cli_hub_put_add(xet_cli_hub_put_t *p, const xet_cli_hub_item_t *item,
    const xet_cli_file_t *file)
{
    int  rc;

    rc = xet_cli_hub_commit_put(&p->commit, item->path, file, item->mtime);

    return (rc == XET_CLI_OK && xet_cli_hub_commit_due(&p->commit))
           ? xet_cli_hub_commit_send(&p->commit) : rc;
}


static FILE *
xet_cli_hub_put_file(xet_cli_hub_put_t *p, size_t i, int *executable)
{
    FILE                  *in;
    xet_cli_tree_entry_t  *entry;

    if (p->source->file) {
        in = p->in;
        p->in = NULL;

        return in ? in : xet_cli_open(p->source->file);
    }

    entry = &p->tree.entries[i];

    return entry->link
           ? xet_cli_hub_cache_open(&p->tree, entry->path, p->source->blobs)
           : xet_cli_tree_open(&p->tree, entry->path, executable);
}


/* Looks up a batch of paths in the repository, starting with item i. */

static int
xet_cli_hub_put_look(xet_cli_hub_put_t *p, size_t i)
{
    char    *paths[XET_CLI_HUB_PATHS];
    size_t   n;

    p->window = i;

    for (n = 0; n < XET_CLI_HUB_PATHS && i + n < p->count; n++) {
        paths[n] = p->items[i + n].path;
        p->items[i + n].asked = 1;
    }

    return p->hub->made ? XET_CLI_OK
                        : xet_cli_hub_paths(p->hub, paths, n,
                                            xet_cli_hub_put_there, p);
}


static int
xet_cli_hub_put_there(void *ctx, const xet_hub_entry_t *entry)
{
    size_t               i, end;
    xet_cli_hub_put_t   *p = ctx;
    xet_cli_hub_item_t  *item;

    end = p->window + XET_CLI_HUB_PATHS;
    end = (end < p->count) ? end : p->count;

    for (i = p->window; i < end && !entry->folder; i++) {
        item = &p->items[i];

        if (item->path == NULL || strlen(item->path) != entry->path.len
            || memcmp(item->path, entry->path.data, entry->path.len) != 0)
        {
            continue;
        }

        item->there = 1;
        item->known = entry->known;
        item->digested = entry->digested;
        item->size = entry->size;
        item->hash = entry->hash;
        memcpy(item->sha256, entry->sha256, XET_CLI_SHA256_LEN);

        break;
    }

    return XET_CLI_OK;
}


/*
 * Compares a local file with the file in the repository, by SHA-256, or by Xet
 * hash if a bucket has no SHA-256 of the file.  Sets *same if they are equal.
 */

static int
xet_cli_hub_put_same(const xet_cli_hub_item_t *item, FILE *in, int *same)
{
    int                rc;
    xet_cli_digest_t  *d;

    if (item->size == 0) {
        *same = 1;
        return XET_CLI_OK;
    }

    d = malloc(sizeof(xet_cli_digest_t));

    if (d == NULL) {
        return xet_cli_no_memory();
    }

    rc = xet_cli_digest_file(d, in, item->path, 1);

    *same = rc == XET_CLI_OK && d->size == item->size
            && (item->digested
                ? memcmp(d->digest, item->sha256, XET_CLI_SHA256_LEN) == 0
                : item->known && xet_hash_equal(&d->hash, &item->hash));

    free(d);

    if (rc == XET_CLI_OK && fseeko(in, 0, SEEK_SET) != 0) {
        rc = xet_cli_fail_errno(item->path);
    }

    return rc;
}


/* Files are registered in the order in which they were opened. */

static int
xet_cli_hub_put_registered(void *ctx, const xet_cli_file_t *file)
{
    xet_cli_hub_put_t   *p = ctx;
    xet_cli_hub_item_t  *item;

    while (p->items[p->next].path != file->name) {
        p->next++;
    }

    item = &p->items[p->next];
    item->done = 1;

    return xet_cli_hub_put_add(p, item, file);
}


static int
xet_cli_hub_put_end(void *ctx)
{
    int                 rc;
    xet_cli_hub_put_t  *p = ctx;

    rc = xet_cli_hub_commit_send(&p->commit);

    return rc ? rc : xet_cli_hub_put_print(p);
}


static int
xet_cli_hub_put_print(const xet_cli_hub_put_t *p)
{
    char         more[128], unchanged[32];
    const char  *oid;

    oid = *p->commit.oid ? p->commit.oid : NULL;

    if (p->commit.many && !xet_cli_json(p->hub->args)) {
        snprintf(more, sizeof(more), ", %s unchanged%s%s",
                 xet_cli_text_count(unchanged, sizeof(unchanged),
                                    p->unchanged),
                 oid ? ", commit " : "", oid ? oid : "");

        return xet_cli_total_print(&p->commit.sum, p->hub->id, "new", more);
    }

    return xet_cli_print(xet_cli_json(p->hub->args),
               xet_cli_out_text("repo", p->hub->id, "\n"),
               xet_cli_out_text("type", xet_hub_kind_name(p->hub->kind), NULL),
               xet_cli_out_number_line("files", 13, "files", p->commit.sent),
               xet_cli_out_number_line("unchanged", 13, "unchanged",
                                       p->unchanged),
               xet_cli_out_text_line(oid ? "commit" : NULL, 13, "commit",
                                     oid));
}
