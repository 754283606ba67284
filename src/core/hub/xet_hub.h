
/*
 * A Hub: repos with names, and files in them, as requests name them.  What is
 * here follows what clients of a Hub send (docs/hub.md).
 */

#ifndef _XET_HUB_H_INCLUDED_
#define _XET_HUB_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"
#include "xet_hash.h"
#include "xet_json.h"


/* A kind of repo; the numbers are in the database. */

typedef enum {
    XET_HUB_MODEL = 0,
    XET_HUB_DATASET,
    XET_HUB_SPACE,
    XET_HUB_BUCKET,
    XET_HUB_KINDS
} xet_hub_kind_e;


/* A text of somebody else; not terminated. */

typedef struct {
    const uint8_t  *data;              /* NULL: there is none */
    size_t          len;
} xet_hub_text_t;


/*
 * xet_hub_name.c: what may be a name.
 */

#define XET_HUB_NAME_MAX     96        /* of an owner, of a repo */
#define XET_HUB_REV_MAX      255       /* of a branch, a tag, a revision */
#define XET_HUB_PATH_MAX     1024      /* of a file in a repo */
#define XET_HUB_PART_MAX     255       /* of a folder or a file in that */
#define XET_HUB_OID_LEN      40        /* digits of a commit */
#define XET_HUB_OID_MIN      7         /* of one that are enough */


/*
 * Whether a repo may be called so: letters, digits, "-", "_" and ".", neither
 * "-" nor "." at an end, no "--", no "..", no ".git" at the end: what clients
 * of a Hub let pass.
 */
int xet_hub_name_ok(const uint8_t *p, size_t len);

/*
 * Whether somebody who has repos may be called so: a name as above that is no
 * part of a path of the Hub, in any case of letters.
 */
int xet_hub_owner_ok(const uint8_t *p, size_t len);

/*
 * Whether a caller of that name has a name space: that of an owner, in the
 * canonical form, which has no upper case.  Rights are compared in this form
 * alone; "Dora" is another caller than "dora", and has none.
 */
int xet_hub_space_ok(const uint8_t *p, size_t len);

/*
 * Whether a file in a repo can have this path: UTF-8 without control
 * characters, parts that are not empty, "." or "..".  What is written has to
 * pass xet_hub_path_check(), too.
 */
int xet_hub_path_ok(const uint8_t *p, size_t len);

/* How many folders a path is in. */
size_t xet_hub_path_depth(const uint8_t *p, size_t len);

/*
 * Whether a branch or a tag may be called so: what git allows of UTF-8, and
 * nothing that is reserved.
 */
int xet_hub_ref_ok(const uint8_t *p, size_t len);

/*
 * The length of what a name begins with, up to a "/", if no branch or tag may
 * begin so: the digits of a commit, 7 to 40 in any case, "HEAD" and "refs".  0
 * for other names.
 */
size_t xet_hub_ref_reserved(const uint8_t *p, size_t len);

/* Whether it is UTF-8 without control characters. */
int xet_hub_text_ok(const uint8_t *p, size_t len);

/*
 * Whether it may stand in the header Content-Type: printable ASCII, up to
 * XET_HUB_TYPE_MAX bytes.
 */
int xet_hub_type_ok(const uint8_t *p, size_t len);

/* Whether that may be asked for: a branch, a tag, a commit, "HEAD". */
int xet_hub_rev_ok(const uint8_t *p, size_t len);

/* "models", "datasets", "spaces", "buckets", or the same without "s". */
const char *xet_hub_kind_plural(xet_hub_kind_e kind);
const char *xet_hub_kind_name(xet_hub_kind_e kind);

/* XET_HUB_KINDS for a text that is none of those without "s". */
xet_hub_kind_e xet_hub_kind_parse(const char *name);

#define XET_HUB_SHA256_LEN  32

/* Whether the text is 64 hex digits, whose bytes sha256 gets. */
int xet_hub_sha256_parse(uint8_t *sha256, const xet_hub_text_t *text);


/*
 * xet_hub_path.c: parts of a path that git, Windows, macOS or a client takes
 * for something of its own.
 */

typedef enum {
    XET_HUB_RISK_NONE = 0,
    XET_HUB_RISK_GIT,                  /* ".git", in all its forms */
    XET_HUB_RISK_CACHE,                /* ".cache", the same */
    XET_HUB_RISK_DEVICE,               /* "con", "nul.txt" */
    XET_HUB_RISK_DRIVE,                /* "c:x" */
    XET_HUB_RISK_STREAM,               /* "x::$data" */
    XET_HUB_RISK_BACKSLASH,
    XET_HUB_RISK_END,                  /* a dot or a blank at the end */
    XET_HUB_RISK_CONTROL
} xet_hub_risk_e;

/* A part that was refused, as a message shows it: of the same length. */

typedef struct {
    xet_hub_risk_e  risk;
    uint8_t         part[XET_HUB_PART_MAX];
    size_t          len;
} xet_hub_refusal_t;

/* The first part of a path that is refused is *part, and points into it. */
xet_hub_risk_e xet_hub_path_risk(const uint8_t *p, size_t len,
    xet_hub_text_t *part);

/* What a risk says of such a part: "is a folder of git". */
const char *xet_hub_risk_text(xet_hub_risk_e risk);

/*
 * Whether a file may be written to this path, here or by a client of ours:
 * XET_HUB_PATH where none can have it, XET_HUB_UNSAFE with a refusal.
 */
xet_status_t xet_hub_path_check(const xet_hub_text_t *path,
    xet_hub_refusal_t *refusal);


/* What a path or an operand names. */

typedef struct {
    xet_hub_kind_e  kind;
    xet_hub_text_t  owner;
    xet_hub_text_t  name;
    xet_hub_text_t  rev;               /* a revision, a branch, a tag */
    xet_hub_text_t  path;              /* in the repo; empty: its root */
    xet_hub_text_t  id;                /* owner and name, as they were sent */
} xet_hub_target_t;


/*
 * xet_hub_ops.c: the operations of a commit, or of a batch of a bucket: JSON
 * values, one a line.
 */

#define XET_HUB_LINE_MAX    (1024 * 1024)      /* of an operation, bytes */
#define XET_HUB_TITLE_MAX   4096               /* of a commit */
#define XET_HUB_TEXT_MAX    65536              /* the rest of its message */
#define XET_HUB_TYPE_MAX    255                /* of a media type */
#define XET_HUB_TIME_MAX    253402300799999    /* ms: the year 9999 */


typedef enum {
    XET_HUB_HEADER = 0,                /* title, text, parent */
    XET_HUB_INLINE,                    /* path, content */
    XET_HUB_LFS,                       /* path, sha256, size */
    XET_HUB_ADD,                       /* path, hash, mtime, type */
    XET_HUB_COPY,                      /* path, hash, mtime, kind, from */
    XET_HUB_DELETE,                    /* path */
    XET_HUB_DELETE_FOLDER,             /* path, without a "/" at its end */
    XET_HUB_COPY_PATH                  /* path, from, type */
} xet_hub_op_e;


/* The texts are there until the handler returns. */

typedef struct {
    xet_hub_op_e     op;
    xet_hub_text_t   path;
    int64_t          size;             /* bytes; -1: not said */
    uint8_t          sha256[XET_HUB_SHA256_LEN];
    xet_hash_t       hash;
    xet_hub_text_t   content;
    int64_t          mtime;            /* ms since 1970; -1: not said */
    xet_hub_text_t   type;             /* of media; of "from", a revision */
    xet_hub_kind_e   kind;             /* of the repo to copy from */
    xet_hub_text_t   from;             /* owner/name, or a path here */
    xet_hub_text_t   title;
    xet_hub_text_t   text;
    xet_hub_text_t   parent;           /* hex digits of a commit */
} xet_hub_operation_t;


/*
 * XET_OK goes on, XET_AGAIN pauses behind the operation, any other status ends
 * the parser.
 */
typedef xet_status_t (*xet_hub_op_pt)(void *ctx,
    const xet_hub_operation_t *op);


/* What a request may ask for. */

typedef struct {
    uint64_t         operations;
    size_t           depth;            /* folders that a new path is in */
} xet_hub_limits_t;


typedef struct {
    xet_hub_op_pt    handler;
    void            *ctx;
    int              bucket;           /* a batch, else a commit */
    xet_hub_limits_t limits;

    uint8_t         *line;             /* malloc()ed: what came of a line */
    size_t           len;
    size_t           size;
    uint64_t         n;                /* operations, without the header */
    int              header;           /* it has come */
    xet_hub_refusal_t  refusal;        /* of XET_HUB_UNSAFE */
} xet_hub_ops_t;


void xet_hub_ops_init(xet_hub_ops_t *ops, int bucket,
    const xet_hub_limits_t *limits, xet_hub_op_pt handler, void *ctx);
void xet_hub_ops_free(xet_hub_ops_t *ops);

/*
 * Takes *n of len bytes: all of them, or as far as the handler let it.
 * XET_HUB_OPERATION, XET_HUB_PATH, XET_HUB_UNSAFE, XET_HUB_LARGE for a line
 * that is too long, XET_HUB_DEPTH and XET_HUB_COUNT for what exceeds the
 * limits, before the handler sees the operation; XET_NOMEM, and what the
 * handler returns.  What is deleted or copied from may have an unsafe path.
 */
xet_status_t xet_hub_ops_feed(xet_hub_ops_t *ops, const uint8_t *buf,
    size_t len, size_t *n);

/*
 * The end of the body: the last line need not have an end.  XET_AGAIN where
 * the handler paused, XET_OK the next time; a commit without a header is
 * XET_HUB_OPERATION.
 */
xet_status_t xet_hub_ops_end(xet_hub_ops_t *ops);


/*
 * A file that stands in JSON, {path, content, encoding}: of a commit, or of a
 * repo that is created with it.  XET_HUB_OPERATION, XET_HUB_PATH,
 * XET_HUB_UNSAFE with a refusal, XET_NOMEM.
 * *content is what the caller has to free(), in any case; NULL before.
 */
xet_status_t xet_hub_file_parse(json_t *value, xet_hub_operation_t *op,
    uint8_t **content, xet_hub_refusal_t *refusal);


/*
 * xet_hub_body.c: JSON bodies of the other routes.  Texts point into doc,
 * which the caller releases with json_decref() when it is not NULL.
 */

/* create, and move: what is made, or what becomes what */

typedef struct {
    json_t          *doc;
    xet_hub_kind_e   kind;
    xet_hub_text_t   owner;            /* NULL: who asks */
    xet_hub_text_t   name;
    xet_hub_text_t   to_owner;
    xet_hub_text_t   to_name;
    int              private;          /* -1: not said */
    xet_hub_refusal_t  refusal;        /* of one of its files */
} xet_hub_repo_t;

/*
 * {name, organization, type, visibility} or {name: "owner/name"}; the bodies of
 * delete and of settings are the same.  XET_BODY_SYNTAX, XET_HUB_NAME,
 * XET_NOMEM.
 */
xet_status_t xet_hub_repo_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);

/*
 * The files of a body of create, each as XET_HUB_INLINE, at most
 * XET_HUB_FILES_MAX: XET_HUB_LARGE.  Also XET_HUB_DEPTH and XET_HUB_COUNT, and
 * as xet_hub_file_parse().
 */
#define XET_HUB_FILES_MAX  1000

xet_status_t xet_hub_repo_files(xet_hub_repo_t *repo,
    const xet_hub_limits_t *limits, xet_hub_op_pt handler, void *ctx);

/* {fromRepo, toRepo, type} */
xet_status_t xet_hub_move_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);

/* {visibility}, {private}: of a repo that the path names; may be empty. */
xet_status_t xet_hub_settings_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);


/*
 * {target: {type, name}, files: [{xetHash, sha256}]}: files of a repo that are
 * to become files of the target; each is given to the handler with hash and
 * sha256.  At most XET_HUB_COPIES_MAX of them: XET_BODY_SIZE.
 */
#define XET_HUB_COPIES_MAX  1000

xet_status_t xet_hub_duplicate_parse(xet_hub_repo_t *target,
    const uint8_t *text, size_t len, xet_hub_op_pt handler, void *ctx);


/* A branch or a tag that is to be made: {startingPoint}, {tag, message}. */

typedef struct {
    json_t          *doc;
    xet_hub_text_t   start;
    xet_hub_text_t   tag;
    xet_hub_text_t   message;
} xet_hub_ref_t;

xet_status_t xet_hub_ref_parse(xet_hub_ref_t *ref, const uint8_t *text,
    size_t len);


/*
 * Lists: preupload {files: [{path, size}]}, paths {paths: [..], expand} and
 * LFS
 * {operation, transfers, objects: [{oid, size}]}; each entry is given to the
 * handler, as xet_hub_operation_t with path and size, or sha256 and size.
 */

#define XET_HUB_LIST_MAX  10000                /* entries */

typedef struct {
    int  expand;
    int  upload;                       /* LFS: else a download */
    int  xet;                          /* LFS: the client knows "xet" */
    int  basic;
    xet_hub_refusal_t  refusal;        /* of a file of a preupload */
} xet_hub_list_t;

xet_status_t xet_hub_preupload_parse(xet_hub_list_t *list, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);
xet_status_t xet_hub_paths_parse(xet_hub_list_t *list, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);
xet_status_t xet_hub_lfs_parse(xet_hub_list_t *list, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);

/* paths as a form: paths=a&paths=b&expand=true; text is decoded in place. */
xet_status_t xet_hub_form_parse(xet_hub_list_t *list, uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);


/*
 * xet_hub_html.c: HTML of a Hub's pages.
 */

/*
 * Writes markup, with values in it:
 *
 *     %t  text                           size_t, const uint8_t *
 *     %u  the same, in a URL             size_t, const uint8_t *
 *     %p  the same, whose "/" stay       size_t, const uint8_t *
 *     %w  as a word of a command line    size_t, const uint8_t *
 *     %l  as a string of Python          size_t, const uint8_t *
 *     %s  text                           const char *
 *     %n  1,234,567                      uint64_t
 *     %b  bytes, as 1.2 MB               uint64_t
 *     %d  2026-11-23 22:35, in UTC       int64_t, seconds since 1970
 *     %D  the same for <time datetime>   int64_t
 *     %%  a percent sign
 *
 * No value leaves a "<", ">", "&" or quotation mark in the text, nor anything
 * that is no UTF-8; attributes stand in quotation marks in the format.
 */
void xet_hub_html(xet_buf_t *b, const char *format, ...);

/* As %t. */
void xet_hub_html_text(xet_buf_t *b, const uint8_t *text, size_t len);

#define XET_HUB_HTML_NUMBER  32        /* room for either of these */

/* As %n and %b, no markup; the end of what was written. */
uint8_t *xet_hub_html_number(uint8_t *p, uint64_t v);
uint8_t *xet_hub_html_size(uint8_t *p, uint64_t v);


/*
 * xet_hub_tree.c: entries of a tree, or of a list of paths, as JSON.
 */

#define XET_HUB_NO_TIME   INT64_MIN
#define XET_HUB_DATE_LEN  24

/* A row; digests are NULL where there are none. */

typedef struct {
    xet_hub_text_t   path;
    xet_hub_text_t   title;            /* of the commit; NULL: none */
    const uint8_t   *hash;             /* as written; NULL: a folder */
    const uint8_t   *sha256;
    const uint8_t   *made;             /* the commit, 20 bytes */
    uint64_t         size;
    int64_t          at;               /* microseconds since 1970 */
    int64_t          mtime;            /* or XET_HUB_NO_TIME */
} xet_hub_node_t;


typedef struct {
    xet_buf_t       *buf;
    size_t           n;
    unsigned         bucket:1;
    unsigned         expand:1;
} xet_hub_tree_t;


/*
 * An array: begin, an add for each entry, end.  With expand each one has the
 * commit that it comes from; objects of a bucket have none.  Errors are those
 * of the buffer.
 */
void xet_hub_tree_begin(xet_hub_tree_t *tree, xet_buf_t *b, int bucket,
    int expand);
void xet_hub_tree_add(xet_hub_tree_t *tree, const xet_hub_node_t *node);
void xet_hub_tree_end(xet_hub_tree_t *tree);

/*
 * 2026-11-23T22:35:01.250Z, in UTC, XET_HUB_DATE_LEN bytes; returns the end.
 * Of times before 1970 and after 9999 the first and the last one in between.
 */
uint8_t *xet_hub_tree_date(uint8_t *p, int64_t at);


/*
 * xet_hub_answer.c: what a Hub answers, for who asks one.
 */

/*
 * A name as people write it: [hf://][kind/]owner[/name[/path]], kind being
 * "models", "datasets", "spaces" or "buckets"; XET_HUB_KINDS where it is not
 * said.  The texts point into text.  XET_HUB_NAME, XET_HUB_PATH.
 */
xet_status_t xet_hub_operand_parse(const char *text, xet_hub_target_t *target);


/* An entry of a tree, or of a list of paths; of a file without bytes the hash
   is known, and zero. */

typedef struct {
    xet_hub_text_t   path;
    xet_hub_text_t   date;             /* of its last change; NULL: not said */
    uint64_t         size;
    uint8_t          sha256[XET_HUB_SHA256_LEN];
    xet_hash_t       hash;
    unsigned         folder:1;
    unsigned         known:1;          /* has a hash */
    unsigned         digested:1;       /* has a SHA-256 */
} xet_hub_entry_t;

/* XET_HUB_PATH for a path that no file can have, XET_BODY_SYNTAX. */
xet_status_t xet_hub_entry_read(const json_t *value, xet_hub_entry_t *entry);


/* A repo, alone or in a list. */

typedef struct {
    xet_hub_text_t   id;               /* owner/name */
    xet_hub_text_t   oid;              /* the commit; NULL: not said */
    xet_hub_text_t   date;
    unsigned         private:1;
} xet_hub_described_t;

/* XET_HUB_NAME, XET_BODY_SYNTAX. */
xet_status_t xet_hub_described_read(const json_t *value,
    xet_hub_described_t *described);


/* A token for the contents of a repo. */

typedef struct {
    xet_hub_text_t   url;              /* http or https, no blanks in it */
    xet_hub_text_t   token;
    uint64_t         expires;          /* s since 1970 */
} xet_hub_granted_t;

/* XET_BODY_SYNTAX. */
xet_status_t xet_hub_granted_read(const json_t *value,
    xet_hub_granted_t *granted);

/*
 * The arguments of the next page, out of a header Link; 0: there is none, or
 * it is nothing that may be sent.
 */
int xet_hub_next_parse(const char *link, xet_hub_text_t *args);


#endif /* _XET_HUB_H_INCLUDED_ */
