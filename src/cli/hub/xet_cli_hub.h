
/*
 * A Hub: repos with names, for verbs that take a name where others take a hash.
 *
 * A name is [hf://][datasets/|spaces/|buckets/|models/]owner/name[/path].  What
 * comes from a Hub is somebody else's: its answers are read by the core, its
 * paths are held against the rules of names, and its links are followed by
 * their arguments alone.
 */

#ifndef _XET_CLI_HUB_H_INCLUDED_
#define _XET_CLI_HUB_H_INCLUDED_


#include "xet_cli_verify.h"
#include "xet_hub.h"


#define XET_CLI_HUB_ANSWER  (8 * 1024 * 1024)      /* bytes of JSON */
#define XET_CLI_HUB_ROOM    (128 * 1024 * 1024)    /* of memory for it */
#define XET_CLI_HUB_PATHS   500                    /* asked for at a time */

#define XET_CLI_HUB_JSON    "Content-Type: application/json"
#define XET_CLI_HUB_LINES   "Content-Type: application/x-ndjson"


/*
 * A repo, or a name space, of a Hub: two clients, one for the Hub with the
 * user's token, one for what it names as the place of the contents, with the
 * tokens that it gives out.
 */

typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    xet_cli_http_t        *cas;        /* NULL: not asked for so far */
    xet_hub_kind_e         kind;
    unsigned               said:1;     /* the kind was */
    unsigned               writes:1;   /* tokens are to be for that */
    unsigned               made:1;     /* nothing was there before */
    char                  *owner;
    char                  *id;         /* owner/name; NULL: a name space */
    char                  *path;       /* in the repo; empty: all of it */
    char                  *base;       /* the last name of the operand */
    char                  *rev;
    char                   oid[XET_HUB_OID_LEN + 1];  /* or empty */

    char                  *token;      /* for the contents */
    uint64_t               expires;    /* s since 1970 */
    uint64_t               asked;      /* xet_cli_now() */

    long                  *status;     /* of the last answer; NULL: not kept */
} xet_cli_hub_t;


/* Whether an operand that may be something else, too, is a name of a Hub. */
int xet_cli_hub_is(const xet_cli_args_t *args, const char *operand);

/*
 * For an operand that is no name of a Hub: that no option is for one.  The exit
 * code, reported.
 */
int xet_cli_hub_unnamed(const xet_cli_args_t *args, const char *operand);

/*
 * Zeroes *hub, and sets it up by an operand and the options of the verb.  The
 * exit code, reported; xet_cli_hub_close() is to be called in any case.
 */
int xet_cli_hub_open(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand);
void xet_cli_hub_close(xet_cli_hub_t *hub);

/* The same for a verb that needs a repo. */
int xet_cli_hub_open_repo(xet_cli_hub_t *hub, const xet_cli_args_t *args,
    const char *operand);

/*
 * Operands that are names of a Hub, or hashes, or local files, each by itself:
 * named takes a name, and other all else.  One token does not go to both
 * servers, the Hub and the endpoint.  What is worse than most ends it; returns
 * the worst exit code.
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
 * A route of the repo, malloc()ed, NULL without memory: with rev its revision,
 * with a path that.  A bucket has no revisions.
 */
char *xet_cli_hub_url(const xet_cli_hub_t *hub, const char *what, int rev,
    const char *path);

/*
 * Sends a request with a body of this type, or none; the caller frees *r.  The
 * url is freed with the request.  XET_CLI_OK, whatever the answer is.
 */
int xet_cli_hub_ask(const xet_cli_hub_t *hub, xet_cli_request_t *r, char *url,
    const xet_buf_t *body, const char *type);

/* What an answer of 2xx has; NULL on an error, reported. */
json_t *xet_cli_hub_answer(const xet_cli_request_t *r, int *rc);

/* Whether an answer is 404 for this reason, as X-Error-Code has it. */
int xet_cli_hub_lacks(const xet_cli_request_t *r, const char *code);

/*
 * Asks for the repo and its revision: its id and its commit are those from now
 * on.  With make a repo, or a branch, that is not there is made.
 */
int xet_cli_hub_look(xet_cli_hub_t *hub, int make);

/* The client for the contents, or NULL on an error, reported. */
xet_cli_http_t *xet_cli_hub_cas(xet_cli_hub_t *hub, int *rc);


/*
 * Lists.  A handler gets one value at a time, which is gone when it returns;
 * what is not XET_CLI_OK ends the list.
 */

typedef int (*xet_cli_hub_value_pt)(void *ctx, const json_t *value);
typedef int (*xet_cli_hub_entry_pt)(void *ctx, const xet_hub_entry_t *entry);

/* All pages of a list, from a URL that is freed. */
int xet_cli_hub_pages(const xet_cli_hub_t *hub, char *url,
    xet_cli_hub_value_pt handler, void *ctx);

/* What is in a folder of the repo; with deep all below it. */
int xet_cli_hub_tree(const xet_cli_hub_t *hub, const char *path, int deep,
    int dates, xet_cli_hub_entry_pt handler, void *ctx);

/*
 * The file that the name of the repo leads to, or what is in this folder, and
 * with deep all below it; *n counts what the handler has taken.
 */
int xet_cli_hub_list(const xet_cli_hub_t *hub, int deep, int dates,
    xet_cli_hub_entry_pt handler, void *ctx, const size_t *n);

/* Which of n paths are there; a path of NULL is passed over. */
int xet_cli_hub_paths(const xet_cli_hub_t *hub, char *const *paths, size_t n,
    xet_cli_hub_entry_pt handler, void *ctx);

/* The one file that the name of the repo leads to, if it is found. */

typedef struct {
    const char  *path;                 /* that was asked for */
    size_t       path_len;

    char         date[40];             /* or empty */
    uint64_t     size;
    xet_hash_t   hash;
    uint8_t      sha256[XET_CLI_SHA256_LEN];
    unsigned     found:1;
    unsigned     known:1;              /* has a hash */
    unsigned     digested:1;           /* has a SHA-256 */
} xet_cli_hub_file_t;

int xet_cli_hub_file(const xet_cli_hub_t *hub, xet_cli_hub_file_t *file);


/*
 * A commit, or a batch of a bucket: its operations, and who they were sent for.
 * A large one is sent in parts.  1 KiB an operation.
 */

typedef struct {
    const char           *path;        /* not copied */
    xet_cli_file_t        file;        /* without terms and name */
    int64_t               mtime;       /* ms since 1970; -1: not known */
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
    uint64_t              began;       /* xet_cli_now(), of the first one */
    char                  oid[XET_HUB_OID_LEN + 1];
} xet_cli_hub_commit_t;


/* A file that was sent, or one without bytes for a file of NULL. */
int xet_cli_hub_commit_put(xet_cli_hub_commit_t *c, const char *path,
    const xet_cli_file_t *file, int64_t mtime);
int xet_cli_hub_commit_remove(xet_cli_hub_commit_t *c, const char *path,
    int folder);

/* Whether there are so many operations, or so old ones, that they should go. */
int xet_cli_hub_commit_due(const xet_cli_hub_commit_t *c);

/* Sends what there is, and prints it. */
int xet_cli_hub_commit_send(xet_cli_hub_commit_t *c);
void xet_cli_hub_commit_free(xet_cli_hub_commit_t *c);


/*
 * What is put to a repo: a file, or a folder with what is in it.  Of a folder
 * of a cache, whose files are links to its blobs, the descriptor of these.
 */

typedef struct {
    const char           *file;        /* or NULL */
    const char           *folder;
    int                   blobs;       /* -1: links are left out */
    int                   make;        /* a repo that is not there */
} xet_cli_hub_source_t;

int xet_cli_hub_send(xet_cli_hub_t *hub, const xet_cli_hub_source_t *source);


/*
 * A cache of huggingface_hub: folders "models--owner--name", in which refs name
 * commits, and snapshots have links to blobs.
 */

/* Whether it is the cache of one repo. */
int xet_cli_hub_cache_one(const char *folder);

/* The name of a folder in a cache as that of a repo, malloc()ed, or NULL. */
char *xet_cli_hub_cache_name(const char *base, const char *owner);

/* The folder of the snapshot that a revision is, malloc()ed, or NULL. */
char *xet_cli_hub_cache_snapshot(const char *folder, const char *rev);

/* The blobs of a cache, or -1, reported. */
int xet_cli_hub_cache_blobs(const char *folder);

/* The blob that a link of a snapshot leads to; NULL on an error, reported. */
FILE *xet_cli_hub_cache_open(const xet_cli_tree_t *t, const char *path,
    int blobs);


#endif /* _XET_CLI_HUB_H_INCLUDED_ */
