
/*
 * Hub client, for verbs that take the name of a repository instead of a hash.
 *
 * The form of a name is
 * [hf://][datasets/|spaces/|buckets/|models/]owner/name[/path].
 *
 * A Hub is not trusted: the core parses all responses, and paths are checked
 * by the rules for names.  Of a link to the next page, only the query
 * arguments are used.
 */

#ifndef _XET_CLI_HUB_H_INCLUDED_
#define _XET_CLI_HUB_H_INCLUDED_


#include "xet_cli_verify.h"
#include "xet_hub.h"


#define XET_CLI_HUB_ANSWER  (8 * 1024 * 1024)      /* bytes of a response */
#define XET_CLI_HUB_ROOM    (128 * 1024 * 1024)    /* bytes of parsed JSON */
#define XET_CLI_HUB_PATHS   500                    /* paths in a request */

#define XET_CLI_HUB_JSON    "Content-Type: application/json"
#define XET_CLI_HUB_LINES   "Content-Type: application/x-ndjson"


/*
 * A repository of a Hub, or a namespace (owner).  The client http sends
 * requests to the Hub, with the user's token.  The client cas sends requests
 * to the content server; the Hub issues the URL of the content server and the
 * tokens for it.
 */

typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    xet_cli_http_t        *cas;        /* NULL: not created yet */
    xet_hub_kind_e         kind;
    unsigned               said:1;     /* the user specified the kind */
    unsigned               writes:1;   /* tokens must allow writing */
    unsigned               made:1;     /* this run created the repository */
    char                  *owner;
    char                  *id;         /* owner/name; NULL: a namespace */
    char                  *path;       /* path in the repository, or empty */
    char                  *base;       /* last part of the operand */
    char                  *rev;
    char                   oid[XET_HUB_OID_LEN + 1];  /* commit id, or empty */

    char                  *token;      /* token for cas */
    uint64_t               expires;    /* expiry of token, s since 1970 */
    uint64_t               asked;      /* time of the last renewal, in ms */

    long                  *status;     /* where to store the status of a
                                          response; NULL: nowhere */
} xet_cli_hub_t;


/*
 * Returns whether an operand is a Hub name.  Verbs that also accept other
 * operands use this function.
 */
int xet_cli_hub_is(const xet_cli_args_t *args, const char *operand);

/* Returns whether --hub or HF_ENDPOINT names a Hub. */
int xet_cli_hub_known(const xet_cli_args_t *args);

/*
 * Checks the options for an operand that is not a Hub name: --revision and
 * --type are not allowed.  Returns XET_CLI_OK, or XET_CLI_USAGE after printing
 * the error.
 */
int xet_cli_hub_unnamed(const xet_cli_args_t *args, const char *operand);

/*
 * Zeroes *hub, and initializes it from an operand, which may be NULL for the
 * Hub itself, and the options of the verb.
 * Returns XET_CLI_OK, or an exit code after printing the error.  Call
 * xet_cli_hub_close() even after an error.
 */
int xet_cli_hub_open(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand);
void xet_cli_hub_close(xet_cli_hub_t *hub);

/* Like xet_cli_hub_open(), but an operand without a repository is an error. */
int xet_cli_hub_open_repo(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand);

/*
 * Runs a verb for each of its operands, which may be Hub names, hashes or
 * local files.  is() returns the type of an operand; named() handles a Hub
 * name, and other() everything else.  It is an error if the same token would
 * be sent to two servers, the Hub and the endpoint.  An exit code greater
 * than o->most ends the loop.  Returns the worst exit code.
 */

typedef enum {
    XET_CLI_HUB_NAME = 0,
    XET_CLI_HUB_HASH,
    XET_CLI_HUB_LOCAL
} xet_cli_hub_operand_e;

typedef struct {
    xet_cli_hub_operand_e  (*is)(const xet_cli_args_t *args,
                                 const char *operand);
    int                    (*named)(const xet_cli_args_t *args,
                                    const char *operand);
    int                    (*other)(const xet_cli_args_t *args);
    int                      most;
} xet_cli_hub_operands_t;

int xet_cli_hub_operands(const xet_cli_args_t *args,
    const xet_cli_hub_operands_t *o);

/*
 * Returns the URL of the API route "what" of the repository, malloc()ed; NULL
 * if out of memory.  If rev is set, the URL includes the revision, except
 * for a bucket.  path is appended, unless it is NULL.
 */
char *xet_cli_hub_url(const xet_cli_hub_t *hub, const char *what, int rev,
    const char *path);

/*
 * Sends a request to the Hub.  body may be NULL; type is the Content-Type
 * header line of the body.  The caller must free *r, which frees url.  Returns
 * XET_CLI_OK for any response, else another exit code.
 */
int xet_cli_hub_ask(const xet_cli_hub_t *hub, xet_cli_request_t *r, char *url,
    const xet_buf_t *body, const char *type);

/*
 * Returns the JSON of a 2xx response.  On an error, prints a message, sets *rc
 * to the exit code and returns NULL.
 */
json_t *xet_cli_hub_answer(const xet_cli_request_t *r, int *rc);

/*
 * Returns whether a response has status 404 and this value of X-Error-Code.
 */
int xet_cli_hub_lacks(const xet_cli_request_t *r, const char *code);

/*
 * Looks up the repository and its revision at the Hub, and stores the
 * repository id in hub->id and the commit id in hub->oid.  If make is set,
 * creates a missing repository or branch.  Returns XET_CLI_OK, or an exit code
 * after printing the error.
 */
int xet_cli_hub_look(xet_cli_hub_t *hub, int make);

/*
 * Returns the client hub->cas, which the first call creates.  On an error,
 * prints a message, sets *rc to the exit code and returns NULL.
 */
xet_cli_http_t *xet_cli_hub_cas(xet_cli_hub_t *hub, int *rc);


/*
 * List functions.  The handler is called for each value, which is valid until
 * the handler returns.  Any result other than XET_CLI_OK ends the list.
 */

typedef int (*xet_cli_hub_value_pt)(void *ctx, const json_t *value);
typedef int (*xet_cli_hub_entry_pt)(void *ctx, const xet_hub_entry_t *entry);

/*
 * Requests all pages of a list.  url is the URL of the first page, and is
 * freed.
 */
int xet_cli_hub_pages(const xet_cli_hub_t *hub, char *url,
    xet_cli_hub_value_pt handler, void *ctx);

/*
 * Lists a folder of the repository, and all its subfolders if deep is set.  If
 * dates is set, the entries contain their dates.
 */
int xet_cli_hub_tree(const xet_cli_hub_t *hub, const char *path, int deep,
    int dates, xet_cli_hub_entry_pt handler, void *ctx);

/*
 * Begins the progress bar of a folder of the repository.  If a progress bar is
 * shown, first lists the folder, for the number of files and bytes.  name must
 * stay valid.  Returns XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_hub_progress(const xet_cli_hub_t *hub, const char *name);

/*
 * Lists the file or the folder hub->path, and all subfolders if deep is set.
 * *n is a counter that the handler increments for each accepted entry.  If no
 * entry was accepted, hub->path is reported as not found.
 */
int xet_cli_hub_list(const xet_cli_hub_t *hub, int deep, int dates,
    xet_cli_hub_entry_pt handler, void *ctx, const size_t *n);

/* Looks up n paths and lists those that exist.  A path of NULL is skipped. */
int xet_cli_hub_paths(const xet_cli_hub_t *hub, char *const *paths, size_t n,
    xet_cli_hub_entry_pt handler, void *ctx);

/* The result of xet_cli_hub_file(): the file hub->path, if it exists. */

typedef struct {
    const char  *path;                 /* requested path */
    size_t       path_len;

    char         date[40];             /* date, or empty */
    uint64_t     size;
    xet_hash_t   hash;
    uint8_t      sha256[XET_CLI_SHA256_LEN];
    unsigned     found:1;
    unsigned     known:1;              /* hash is set */
    unsigned     digested:1;           /* sha256 is set */
} xet_cli_hub_file_t;

int xet_cli_hub_file(const xet_cli_hub_t *hub, xet_cli_hub_file_t *file);


/*
 * A commit to a repository, or a batch of operations on a bucket.  Many
 * operations are sent as several commits or batches.  An operation takes
 * 1 KiB of memory.
 */

typedef struct {
    const char           *path;        /* owned by the caller */
    xet_cli_file_t        file;        /* its segments are NULL */
    int64_t               mtime;       /* ms since 1970; -1: unknown */
    unsigned              removed:1;
    unsigned              folder:1;
} xet_cli_hub_op_t;


typedef struct {
    xet_cli_hub_t        *hub;
    const char           *message;
    xet_cli_hub_op_t     *ops;
    size_t                n;
    size_t                room;
    size_t                sent;
    unsigned              part;
    uint64_t              began;       /* time of the first operation, in ms */
    char                  oid[XET_HUB_OID_LEN + 1];
    xet_cli_total_t         sum;
    unsigned              many:1;      /* of a folder, not of a single file */
} xet_cli_hub_commit_t;


/*
 * Adds an uploaded file to the commit.  If file is NULL, adds an empty file.
 * The path is not copied.
 */
int xet_cli_hub_commit_put(xet_cli_hub_commit_t *c, const char *path,
    const xet_cli_file_t *file, int64_t mtime);
int xet_cli_hub_commit_remove(xet_cli_hub_commit_t *c, const char *path,
    int folder);

/*
 * Returns whether the pending operations should be sent now: there are many of
 * them, or the first one is old.
 */
int xet_cli_hub_commit_due(const xet_cli_hub_commit_t *c);

/*
 * Sends the pending operations, and prints them after the Hub has confirmed
 * them.  Returns XET_CLI_OK, or an exit code after printing the error.
 */
int xet_cli_hub_commit_send(xet_cli_hub_commit_t *c);
void xet_cli_hub_commit_free(xet_cli_hub_commit_t *c);


/*
 * A file, or a folder with its contents, to upload to a repository.  In a
 * cache of huggingface_hub, the files of a snapshot are symbolic links; for
 * such a snapshot, blobs is a descriptor of the folder that these links point
 * to.
 */

typedef struct {
    const char           *file;        /* NULL: upload folder */
    const char           *folder;
    int                   blobs;       /* -1: links are skipped */
    int                   make;        /* create a missing repository */
} xet_cli_hub_source_t;

int xet_cli_hub_send(xet_cli_hub_t *hub, const xet_cli_hub_source_t *source);


/*
 * A cache of huggingface_hub has a folder "models--owner--name" for each
 * repository.  Such a folder has refs, which contain commit ids, and
 * snapshots, whose files are links to blobs.
 */

/* Returns whether a folder is the cache of one repository. */
int xet_cli_hub_cache_one(const char *folder);

/*
 * Returns the name of the repository that the folder "base" of a cache belongs
 * to, malloc()ed, or NULL.  owner, unless NULL, replaces the owner in the
 * name.
 */
char *xet_cli_hub_cache_name(const char *base, const char *owner);

/*
 * Returns the path of the snapshot of a revision, malloc()ed, or NULL after
 * printing the error.
 */
char *xet_cli_hub_cache_snapshot(const char *folder, const char *rev);

/*
 * Opens the blobs folder in the cache of a repository.  Returns a descriptor,
 * or -1 after printing the error.
 */
int xet_cli_hub_cache_blobs(const char *folder);

/*
 * Opens the blob that a link of a snapshot points to.  Returns NULL after
 * printing the error.
 */
FILE *xet_cli_hub_cache_open(const xet_cli_tree_t *t, const char *path,
    int blobs);


#endif /* _XET_CLI_HUB_H_INCLUDED_ */
