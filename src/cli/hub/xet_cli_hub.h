
/*
 * Client of a Hub: repositories with names, for verbs that take a Hub name
 * instead of a hash.
 *
 * A name is [hf://][datasets/|spaces/|buckets/|models/]owner/name[/path].  A
 * Hub is not trusted: its responses are parsed by the core, its paths are
 * checked by the rules for names, and only the arguments of its links are
 * used.
 */

#ifndef _XET_CLI_HUB_H_INCLUDED_
#define _XET_CLI_HUB_H_INCLUDED_


#include "xet_cli_verify.h"
#include "xet_hub.h"


#define XET_CLI_HUB_ANSWER  (8 * 1024 * 1024)      /* bytes of JSON */
#define XET_CLI_HUB_ROOM    (128 * 1024 * 1024)    /* of memory for it */
#define XET_CLI_HUB_PATHS   500                    /* per request */

#define XET_CLI_HUB_JSON    "Content-Type: application/json"
#define XET_CLI_HUB_LINES   "Content-Type: application/x-ndjson"


/*
 * A repository, or a namespace, of a Hub.  It has two HTTP clients: one for
 * the Hub, with the user's token, and one for the server of the contents that
 * the Hub names, with the tokens that the Hub issues.
 */

typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    xet_cli_http_t        *cas;        /* NULL: not created yet */
    xet_hub_kind_e         kind;
    unsigned               said:1;     /* the kind was given */
    unsigned               writes:1;   /* tokens must allow writing */
    unsigned               made:1;     /* the repository is new */
    char                  *owner;
    char                  *id;         /* owner/name; NULL: a namespace */
    char                  *path;       /* in the repository, or empty */
    char                  *base;       /* last name of the operand */
    char                  *rev;
    char                   oid[XET_HUB_OID_LEN + 1];  /* or empty */

    char                  *token;      /* for the contents */
    uint64_t               expires;    /* s since 1970 */
    uint64_t               asked;      /* xet_cli_now() */

    long                  *status;     /* of the last response, or NULL */
} xet_cli_hub_t;


/* Whether an operand is a Hub name, for verbs with other operands, too. */
int xet_cli_hub_is(const xet_cli_args_t *args, const char *operand);

/*
 * For an operand that is not a Hub name: fails if an option is for one.
 * Returns the exit code, reported.
 */
int xet_cli_hub_unnamed(const xet_cli_args_t *args, const char *operand);

/*
 * Zeroes *hub, and sets it up from an operand and the options of the verb.
 * Returns the exit code, reported.  Call xet_cli_hub_close() in any case.
 */
int xet_cli_hub_open(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand);
void xet_cli_hub_close(xet_cli_hub_t *hub);

/* The same for a verb that needs a repository. */
int xet_cli_hub_open_repo(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand);

/*
 * Handles operands that are Hub names, hashes or local files, one by one:
 * named handles a name, and other everything else.  One token is not sent to
 * both servers, the Hub and the endpoint.  An exit code worse than most ends
 * the loop; returns the worst one.
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
 * Returns the URL of a route of the repository, malloc()ed; NULL: no memory.
 * With rev it has the revision, except for a bucket; path may be NULL.
 */
char *xet_cli_hub_url(const xet_cli_hub_t *hub, const char *what, int rev,
    const char *path);

/*
 * Sends a request with a body of this type, or none; the caller frees *r, and
 * url with it.  Returns XET_CLI_OK for any response.
 */
int xet_cli_hub_ask(const xet_cli_hub_t *hub, xet_cli_request_t *r, char *url,
    const xet_buf_t *body, const char *type);

/* Returns the JSON of a 2xx response; NULL on an error, reported. */
json_t *xet_cli_hub_answer(const xet_cli_request_t *r, int *rc);

/* Whether a response is 404 with this X-Error-Code. */
int xet_cli_hub_lacks(const xet_cli_request_t *r, const char *code);

/*
 * Looks up the repository and its revision, and stores its id and its commit.
 * With make, a missing repository or branch is created.
 */
int xet_cli_hub_look(xet_cli_hub_t *hub, int make);

/* Returns the client for the contents, or NULL on an error, reported. */
xet_cli_http_t *xet_cli_hub_cas(xet_cli_hub_t *hub, int *rc);


/*
 * Lists.  A handler gets one value at a time, valid until it returns; any
 * result but XET_CLI_OK ends the list.
 */

typedef int (*xet_cli_hub_value_pt)(void *ctx, const json_t *value);
typedef int (*xet_cli_hub_entry_pt)(void *ctx, const xet_hub_entry_t *entry);

/* Reads all pages of a list, from url, which is freed. */
int xet_cli_hub_pages(const xet_cli_hub_t *hub, char *url,
    xet_cli_hub_value_pt handler, void *ctx);

/* Lists a folder of the repository; with deep everything below it. */
int xet_cli_hub_tree(const xet_cli_hub_t *hub, const char *path, int deep,
    int dates, xet_cli_hub_entry_pt handler, void *ctx);

/*
 * Lists the file or the folder that hub->path names; with deep everything
 * below the folder.  *n counts the entries that the handler has accepted.
 */
int xet_cli_hub_list(const xet_cli_hub_t *hub, int deep, int dates,
    xet_cli_hub_entry_pt handler, void *ctx, const size_t *n);

/* Lists those of n paths that exist; a path of NULL is skipped. */
int xet_cli_hub_paths(const xet_cli_hub_t *hub, char *const *paths, size_t n,
    xet_cli_hub_entry_pt handler, void *ctx);

/* The file that hub->path names, if it exists. */

typedef struct {
    const char  *path;                 /* requested path */
    size_t       path_len;

    char         date[40];             /* or empty */
    uint64_t     size;
    xet_hash_t   hash;
    uint8_t      sha256[XET_CLI_SHA256_LEN];
    unsigned     found:1;
    unsigned     known:1;              /* hash is set */
    unsigned     digested:1;           /* sha256 is set */
} xet_cli_hub_file_t;

int xet_cli_hub_file(const xet_cli_hub_t *hub, xet_cli_hub_file_t *file);


/*
 * A commit, or a batch of a bucket.  A large one is sent in parts.  An
 * operation needs 1 KiB.
 */

typedef struct {
    const char           *path;        /* not copied */
    xet_cli_file_t        file;        /* without terms and name */
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
    uint64_t              began;       /* time of the first operation */
    char                  oid[XET_HUB_OID_LEN + 1];
} xet_cli_hub_commit_t;


/* Adds a file that was sent; a file of NULL is an empty one. */
int xet_cli_hub_commit_put(xet_cli_hub_commit_t *c, const char *path,
    const xet_cli_file_t *file, int64_t mtime);
int xet_cli_hub_commit_remove(xet_cli_hub_commit_t *c, const char *path,
    int folder);

/* Whether there are so many or so old operations that they should be sent. */
int xet_cli_hub_commit_due(const xet_cli_hub_commit_t *c);

/* Sends the pending operations, and prints them. */
int xet_cli_hub_commit_send(xet_cli_hub_commit_t *c);
void xet_cli_hub_commit_free(xet_cli_hub_commit_t *c);


/*
 * What to upload to a repository: a file, or a folder with its contents.  For
 * a snapshot of a cache, whose files are links, blobs is its folder of blobs.
 */

typedef struct {
    const char           *file;        /* or NULL */
    const char           *folder;
    int                   blobs;       /* -1: links are skipped */
    int                   make;        /* create a missing repository */
} xet_cli_hub_source_t;

int xet_cli_hub_send(xet_cli_hub_t *hub, const xet_cli_hub_source_t *source);


/*
 * A cache of huggingface_hub: folders "models--owner--name", with refs that
 * name commits, and snapshots with links to blobs.
 */

/* Whether a folder is the cache of one repository. */
int xet_cli_hub_cache_one(const char *folder);

/* Returns the repository name of a folder in a cache, malloc()ed, or NULL. */
char *xet_cli_hub_cache_name(const char *base, const char *owner);

/* Returns the folder of the snapshot of a revision, malloc()ed, or NULL. */
char *xet_cli_hub_cache_snapshot(const char *folder, const char *rev);

/* Opens the blobs folder of a cache; -1 on an error, reported. */
int xet_cli_hub_cache_blobs(const char *folder);

/* Opens the blob that a link of a snapshot names; NULL, reported. */
FILE *xet_cli_hub_cache_open(const xet_cli_tree_t *t, const char *path,
    int blobs);


#endif /* _XET_CLI_HUB_H_INCLUDED_ */
