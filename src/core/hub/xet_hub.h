
/*
 * The Hub API: names of repos and files, request bodies, responses, HTML
 * pages.  The formats are those that clients of a Hub send and read
 * (docs/hub.md).
 */

#ifndef _XET_HUB_H_INCLUDED_
#define _XET_HUB_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"
#include "xet_hash.h"
#include "xet_json.h"


/* The kind of a repo; the database stores these numbers. */

typedef enum {
    XET_HUB_MODEL = 0,
    XET_HUB_DATASET,
    XET_HUB_SPACE,
    XET_HUB_BUCKET,
    XET_HUB_KINDS
} xet_hub_kind_e;


/* A borrowed text without a terminating NUL. */

typedef struct {
    const uint8_t  *data;              /* NULL: absent */
    size_t          len;
} xet_hub_text_t;


/*
 * xet_hub_name.c: validation of names.
 */

#define XET_HUB_NAME_MAX     96        /* bytes of an owner's or repo's name */
#define XET_HUB_REV_MAX      255       /* bytes of a branch, tag or revision */
#define XET_HUB_PATH_MAX     1024      /* bytes of a file path in a repo */
#define XET_HUB_PART_MAX     255       /* bytes of a path component */
#define XET_HUB_OID_LEN      40        /* hex digits of a commit id */


/*
 * Returns whether a repo may have this name: letters, digits, "-", "_" and
 * "."; no "-" or "." at the beginning or at the end, no "--", no "..", no
 * ".git" at the end.  Clients of a Hub apply the same rules.
 */
int xet_hub_name_ok(const uint8_t *p, size_t len);

/*
 * Returns whether an owner of repos may have this name: the rules of a repo's
 * name apply, and the name must not be a reserved path component of the Hub,
 * such as "api", in upper or lower case.
 */
int xet_hub_owner_ok(const uint8_t *p, size_t len);

/*
 * Returns whether a caller with this name has a name space: the name must be
 * valid for an owner and in canonical form, without upper-case letters.
 * Permission checks compare names in this form only: the caller "Dora" is not
 * the caller "dora", and has no name space.
 */
int xet_hub_space_ok(const uint8_t *p, size_t len);

/*
 * Returns whether a file in a repo can have this path: UTF-8 without control
 * characters; no component is empty, "." or "..".  A path to be written must
 * also pass xet_hub_path_check().
 */
int xet_hub_path_ok(const uint8_t *p, size_t len);

/* Returns the number of folders in a path. */
size_t xet_hub_path_depth(const uint8_t *p, size_t len);

/*
 * Returns whether a branch or a tag may have this name: UTF-8 that git allows,
 * and not reserved.
 */
int xet_hub_ref_ok(const uint8_t *p, size_t len);

/*
 * Returns the length of the first component of a name if that component is
 * reserved, else 0.  Reserved components are "HEAD", "refs", and 40 hex digits
 * in upper or lower case, which mean a commit.
 */
size_t xet_hub_ref_reserved(const uint8_t *p, size_t len);

/* Returns whether the text is UTF-8 without control characters. */
int xet_hub_text_ok(const uint8_t *p, size_t len);

/*
 * Returns whether the text may be sent in the header Content-Type: printable
 * ASCII, up to XET_HUB_TYPE_MAX bytes.
 */
int xet_hub_type_ok(const uint8_t *p, size_t len);

/*
 * Returns whether a request may name this revision, which is a branch, a tag,
 * a commit or "HEAD".
 */
int xet_hub_rev_ok(const uint8_t *p, size_t len);

/* Return the plural of a kind, such as "models", or its singular, "model". */
const char *xet_hub_kind_plural(xet_hub_kind_e kind);
const char *xet_hub_kind_name(xet_hub_kind_e kind);

/* Parses the singular of a kind; returns XET_HUB_KINDS for any other text. */
xet_hub_kind_e xet_hub_kind_parse(const char *name);

#define XET_HUB_SHA256_LEN  32

/* Decodes 64 hex digits to sha256; returns 0 for any other text. */
int xet_hub_sha256_parse(uint8_t *sha256, const xet_hub_text_t *text);


/*
 * xet_hub_path.c: components of a path with a special meaning for git,
 * Windows, macOS or a client.
 */

typedef enum {
    XET_HUB_RISK_NONE = 0,
    XET_HUB_RISK_GIT,                  /* ".git" and equivalent names */
    XET_HUB_RISK_CACHE,                /* ".cache" and equivalent names */
    XET_HUB_RISK_DEVICE,               /* "con", "nul.txt" */
    XET_HUB_RISK_DRIVE,                /* "c:x" */
    XET_HUB_RISK_STREAM,               /* "x::$data" */
    XET_HUB_RISK_BACKSLASH,
    XET_HUB_RISK_END,                  /* a trailing dot or space */
    XET_HUB_RISK_CONTROL
} xet_hub_risk_e;

/*
 * The reason for refusing a body: a path component, an invalid path or a key,
 * sanitized for messages.  A path component has its original length, a path or
 * key may be truncated.
 */

typedef struct {
    xet_hub_risk_e  risk;              /* of a path component */
    const char     *wants;             /* what the value of a key must be */
    uint8_t         part[XET_HUB_PART_MAX];
    size_t          len;
} xet_hub_refusal_t;

/* Sets *refusal to a key, and to what its value must be (wants, or NULL). */
void xet_hub_refuse(xet_hub_refusal_t *refusal, const char *key,
    const char *wants);

/* Sets *refusal to the first bytes of a path that is invalid or too deep. */
void xet_hub_refuse_path(xet_hub_refusal_t *refusal,
    const xet_hub_text_t *path);

/*
 * Returns the risk of a path.  Sets *part to the first unsafe component of p.
 */
xet_hub_risk_e xet_hub_path_risk(const uint8_t *p, size_t len,
    xet_hub_text_t *part);

/*
 * Returns the text that follows a component's name in a message, such as "is a
 * folder of git".
 */
const char *xet_hub_risk_text(xet_hub_risk_e risk);

/*
 * Checks whether the server or its client may write a file to this path.
 * Returns XET_HUB_PATH for an invalid path, XET_HUB_UNSAFE for an unsafe path,
 * and sets *refusal for both.
 */
xet_status_t xet_hub_path_check(const xet_hub_text_t *path,
    xet_hub_refusal_t *refusal);


/*
 * xet_hub_keys.c: checks the keys of a JSON object.
 */

typedef enum {
    XET_HUB_VALUE_ANY = 0,
    XET_HUB_VALUE_TEXT,
    XET_HUB_VALUE_BOOL,
    XET_HUB_VALUE_NUMBER,
    XET_HUB_VALUE_LIST,
    XET_HUB_VALUE_OBJECT,
    XET_HUB_VALUE_VISIBILITY,          /* "public" or "private" */
    XET_HUB_VALUE_KIND,                /* "model", "dataset" and so on */
    XET_HUB_VALUE_SHA256,              /* "sha256" or "sha_256" */
    XET_HUB_VALUE_FALSE,               /* only false: unsupported feature */
    XET_HUB_VALUE_TRUE,                /* only true: a feature always on */
    XET_HUB_VALUE_NONE                 /* unsupported with any value */
} xet_hub_value_e;

typedef struct {
    const char      *name;             /* NULL: end of the table */
    xet_hub_value_e  rule;
} xet_hub_key_t;

/*
 * Checks that all keys of an object are in a table, and have values that obey
 * the rules; null is valid for each key.  Returns XET_HUB_KEY or XET_HUB_VALUE
 * with a refusal, or XET_BODY_SYNTAX if the value is not an object.
 */
xet_status_t xet_hub_keys_check(json_t *object, const xet_hub_key_t *keys,
    xet_hub_refusal_t *refusal);

/* Checks each object of an array like xet_hub_keys_check(). */
xet_status_t xet_hub_list_check(json_t *array, const xet_hub_key_t *keys,
    xet_hub_refusal_t *refusal);


/* The target of a request path, or of an operand of the command line. */

typedef struct {
    xet_hub_kind_e  kind;
    xet_hub_text_t  owner;
    xet_hub_text_t  name;
    xet_hub_text_t  rev;               /* a branch, a tag or a commit */
    xet_hub_text_t  path;              /* path in the repo; empty: its root */
    xet_hub_text_t  id;                /* owner/name as sent, not decoded */
} xet_hub_target_t;


/*
 * xet_hub_ops.c: the operations of a commit, or of a batch for a bucket: one
 * JSON value per line.  A commit may also be one JSON object of up to
 * XET_HUB_LINE_MAX bytes, with a list for each kind of operation.
 */

#define XET_HUB_LINE_MAX    (1024 * 1024)      /* bytes of an operation */
#define XET_HUB_TITLE_MAX   4096               /* bytes of a commit title */
#define XET_HUB_TEXT_MAX    65536              /* bytes of a description */
#define XET_HUB_TYPE_MAX    255                /* bytes of a media type */
#define XET_HUB_TIME_MAX    253402300799999    /* ms, end of the year 9999 */


typedef enum {
    XET_HUB_HEADER = 0,                /* title, text, parent */
    XET_HUB_INLINE,                    /* path, content */
    XET_HUB_LFS,                       /* path, sha256, size */
    XET_HUB_ADD,                       /* path, hash, mtime, type */
    XET_HUB_COPY,                      /* path, hash, mtime, kind, from */
    XET_HUB_DELETE,                    /* path */
    XET_HUB_DELETE_FOLDER,             /* path without a trailing "/" */
    XET_HUB_COPY_PATH                  /* path, from, type */
} xet_hub_op_e;


/* An operation of a commit; its texts are valid until the handler returns. */

typedef struct {
    xet_hub_op_e     op;
    xet_hub_text_t   path;
    int64_t          size;             /* bytes; -1: not given */
    uint8_t          sha256[XET_HUB_SHA256_LEN];
    xet_hash_t       hash;
    xet_hub_text_t   content;
    int64_t          mtime;            /* ms since 1970; -1: not given */
    xet_hub_text_t   type;             /* media type; COPY_PATH: revision */
    xet_hub_kind_e   kind;             /* kind of the repo to copy from */
    xet_hub_text_t   from;             /* owner/name; COPY_PATH: a path */
    xet_hub_text_t   title;
    xet_hub_text_t   text;
    xet_hub_text_t   parent;           /* id of the parent commit, in hex */
    int              ignored;          /* preupload: by a ".gitignore" */
} xet_hub_operation_t;


/*
 * A handler of operations.  Returns XET_OK to continue, XET_AGAIN to pause the
 * parser after the operation, or any other status to stop the parser.
 */
typedef xet_status_t (*xet_hub_op_pt)(void *ctx,
    const xet_hub_operation_t *op);


/* The limits of a request. */

typedef struct {
    uint64_t         operations;
    size_t           depth;            /* folders in a new path */
} xet_hub_limits_t;


typedef struct {
    xet_hub_op_pt    handler;
    void            *ctx;
    int              bucket;           /* 1: a batch, 0: a commit */
    xet_hub_limits_t limits;

    uint8_t           *line;           /* incomplete line, from malloc() */
    size_t             len;
    size_t             size;
    uint64_t           n;              /* operations, excluding the header */
    int                header;         /* the header was received */
    json_t            *object;         /* commit in one object, unfinished */
    size_t             list;           /* next list of object */
    size_t             item;           /* next item of this list */
    unsigned           whole:1;        /* the body is one JSON object */
    unsigned           ended:1;        /* no more lines may follow */
    xet_hub_refusal_t  refusal;        /* why the body is refused */
} xet_hub_ops_t;


void xet_hub_ops_init(xet_hub_ops_t *ops, int bucket,
    const xet_hub_limits_t *limits, xet_hub_op_pt handler, void *ctx);
void xet_hub_ops_free(xet_hub_ops_t *ops);

/*
 * Parses len bytes and sets *n to the number of consumed bytes, which is less
 * than len if the handler pauses or stops the parser.  Errors of the parser
 * itself: XET_HUB_OPERATION, XET_HUB_KEY, XET_HUB_VALUE, XET_HUB_PATH,
 * XET_HUB_UNSAFE; XET_HUB_LARGE for a line that is too long; XET_HUB_DEPTH and
 * XET_HUB_COUNT for exceeded limits; XET_NOMEM.  Otherwise returns the status
 * of the handler.  A path to delete or to copy from may be unsafe.
 */
xet_status_t xet_hub_ops_feed(xet_hub_ops_t *ops, const uint8_t *buf,
    size_t len, size_t *n);

/*
 * Ends the body; the last line may have no newline.  If the handler pauses,
 * returns XET_AGAIN, and the next call returns XET_OK.  Returns
 * XET_HUB_OPERATION for a commit without a header.
 */
xet_status_t xet_hub_ops_end(xet_hub_ops_t *ops);


/*
 * Parses an inline file, {path, content, encoding}, of a commit or of a new
 * repo.  *content must be NULL before the call; the caller must free() it
 * afterwards, even on errors.  Errors: XET_HUB_OPERATION, XET_HUB_PATH,
 * XET_HUB_UNSAFE with a refusal, XET_NOMEM.
 */
xet_status_t xet_hub_file_parse(json_t *value, xet_hub_operation_t *op,
    uint8_t **content, xet_hub_refusal_t *refusal);


/*
 * xet_hub_body.c: JSON bodies of the other routes.  Texts point into doc,
 * which the caller frees with json_decref(); doc may be NULL.
 */

/* The repo that a body names; to_* is its new name, for move only. */

typedef struct {
    json_t            *doc;
    xet_hub_kind_e     kind;
    xet_hub_text_t     owner;          /* NULL: the caller */
    xet_hub_text_t     name;
    xet_hub_text_t     to_owner;
    xet_hub_text_t     to_name;
    int                private;        /* -1: not given */
    xet_hub_refusal_t  refusal;        /* why the body is refused */
} xet_hub_repo_t;

/*
 * Parse {name, organization, type} or {name: "owner/name"}, to delete a repo,
 * or to create it, then also with its visibility and files.  Errors:
 * XET_BODY_SYNTAX, XET_HUB_NAME, XET_NOMEM; here and below XET_HUB_KEY and
 * XET_HUB_VALUE, with a refusal.
 */
xet_status_t xet_hub_repo_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);
xet_status_t xet_hub_create_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);

/*
 * Passes the files in the body of create to the handler, each as an
 * XET_HUB_INLINE operation.  Errors: XET_HUB_LARGE for more than
 * XET_HUB_FILES_MAX files; XET_HUB_DEPTH, XET_HUB_COUNT, and the errors of
 * xet_hub_file_parse().
 */
#define XET_HUB_FILES_MAX  1000

xet_status_t xet_hub_repo_files(xet_hub_repo_t *repo,
    const xet_hub_limits_t *limits, xet_hub_op_pt handler, void *ctx);

/* Parses {fromRepo, toRepo, type}. */
xet_status_t xet_hub_move_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);

/* Parses {visibility} or {private}; the body may be empty. */
xet_status_t xet_hub_settings_parse(xet_hub_repo_t *repo, const uint8_t *text,
    size_t len);


/*
 * Parses {target: {type, name}, files: [{xetHash, sha256}]}: files of a repo
 * to copy to the target.  Each file is passed to the handler with hash and
 * sha256.  Returns XET_BODY_SIZE for more than XET_HUB_COPIES_MAX files.
 */
#define XET_HUB_COPIES_MAX  1000

xet_status_t xet_hub_duplicate_parse(xet_hub_repo_t *target,
    const uint8_t *text, size_t len, xet_hub_op_pt handler, void *ctx);


/*
 * The body of a request to create a branch, {startingPoint, emptyBranch,
 * overwrite}, or a tag, {tag, message}; to delete either, {}; or to squash the
 * commits of a branch, {message}.
 */

typedef enum {
    XET_HUB_REF_BRANCH = 0,
    XET_HUB_REF_TAG,
    XET_HUB_REF_DELETE,
    XET_HUB_REF_SQUASH
} xet_hub_ref_e;

typedef struct {
    json_t             *doc;
    xet_hub_text_t      start;
    xet_hub_text_t      tag;
    xet_hub_text_t      message;
    int                 empty;
    int                 overwrite;
    xet_hub_refusal_t   refusal;       /* why the body is refused */
} xet_hub_ref_t;

xet_status_t xet_hub_ref_parse(xet_hub_ref_t *ref, xet_hub_ref_e kind,
    const uint8_t *text, size_t len);


/*
 * Lists in request bodies.  The handler gets each entry as an
 * xet_hub_operation_t, in which the members of the last column are set:
 *
 *     preupload  {files: [{path, size, sample}], gitIgnore}
 *                path, size, ignored, and content, which is the sample; the
 *                rules of "hosted" are used if the body has no gitIgnore
 *     paths      {paths: [..], expand}                           path
 *     LFS        {operation, transfers, objects: [{oid, size}]}  sha256, size
 */

#define XET_HUB_LIST_MAX  10000                /* entries */

typedef struct {
    int                expand;
    int                upload;         /* LFS: 1 upload, 0 download */
    int                xet;            /* LFS: the client supports "xet" */
    int                basic;          /* LFS: the client supports "basic" */
    int                ignores;        /* preupload: the body has gitIgnore */
    xet_hub_refusal_t  refusal;        /* why the body is refused */
} xet_hub_list_t;

xet_status_t xet_hub_preupload_parse(xet_hub_list_t *list, const uint8_t *text,
    size_t len, const xet_hub_text_t *hosted, xet_hub_op_pt handler,
    void *ctx);
xet_status_t xet_hub_paths_parse(xet_hub_list_t *list, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);
xet_status_t xet_hub_lfs_parse(xet_hub_list_t *list, const uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);

/* Parses paths as a form, paths=a&paths=b&expand=true, decoded in place. */
xet_status_t xet_hub_form_parse(xet_hub_list_t *list, uint8_t *text,
    size_t len, xet_hub_op_pt handler, void *ctx);


/*
 * xet_hub_ignore.c: the rules of a ".gitignore" file.
 */

#define XET_HUB_IGNORE_MAX    (256 * 1024)     /* bytes of the text */
#define XET_HUB_IGNORE_STEPS  200000000        /* steps for all paths */

typedef struct xet_hub_rule_s  xet_hub_rule_t;

typedef struct {
    xet_hub_rule_t  *rules;            /* from malloc(), point into the text */
    size_t           n;
    uint64_t         steps;
} xet_hub_ignore_t;

/*
 * Parses rules.  The text must live until xet_hub_ignore_free(), which must be
 * called even after an error.  Errors: XET_BODY_SIZE, XET_NOMEM.
 */
xet_status_t xet_hub_ignore_init(xet_hub_ignore_t *ignore, const uint8_t *text,
    size_t len);
void xet_hub_ignore_free(xet_hub_ignore_t *ignore);

/*
 * Sets *ignored to whether git would ignore the file at a valid path.  Returns
 * XET_BODY_SIZE if the rules take too long.
 */
xet_status_t xet_hub_ignore_match(xet_hub_ignore_t *ignore,
    const uint8_t *path, size_t len, int *ignored);


/*
 * xet_hub_card.c: the metadata of a README.md, called a card.
 */

#define XET_HUB_CARD_NAME   "README.md"        /* in the root of a repo */
#define XET_HUB_CARD_MAX    (1024 * 1024)      /* bytes of YAML */
#define XET_HUB_CARD_DEPTH  64                 /* levels of collections */


typedef struct {
    xet_hub_text_t   yaml;
    size_t           line;             /* lines before the head */
    unsigned         begins:1;         /* there is a first line "---" */
    unsigned         complete:1;       /* and a last one */
} xet_hub_card_head_t;


typedef struct {
    char             text[192];        /* printable ASCII */
} xet_hub_card_error_t;


/*
 * Finds the YAML at the beginning of a README.md, between two lines "---".
 * Returns 1; or 0 if there is no such head, or if its end is not in the text.
 */
int xet_hub_card_find(const uint8_t *text, size_t len,
    xet_hub_card_head_t *head);

/*
 * Converts a head to a JSON object, which the caller must free(); *json is NULL
 * if the head is empty.  Returns XET_HUB_CARD and sets *error for YAML that is
 * broken, that is not a mapping, or that exceeds a limit; or XET_NOMEM.
 */
xet_status_t xet_hub_card_parse(const xet_hub_card_head_t *head, char **json,
    size_t *json_len, xet_hub_card_error_t *error);

/*
 * Parses {content, repoType}, a README.md to check.  Errors: XET_BODY_SYNTAX,
 * XET_NOMEM, and those of xet_hub_card_parse().
 */
xet_status_t xet_hub_card_check(const uint8_t *text, size_t len,
    xet_hub_card_error_t *error);


/*
 * xet_hub_tree.c: entries of a tree, or of a list of paths, as JSON.
 */

#define XET_HUB_NO_TIME   INT64_MIN
#define XET_HUB_DATE_LEN  24

/*
 * An entry of a tree: a file or a folder, and the commit that changed it last.
 * hash, sha256 and made point to binary values, or are NULL.
 */

typedef struct {
    xet_hub_text_t   path;
    xet_hub_text_t   title;            /* commit title; data is NULL: none */
    const uint8_t   *hash;             /* file hash, its bytes in the order of
                                          the text form; NULL: a folder */
    const uint8_t   *sha256;
    const uint8_t   *made;             /* id of the commit, 20 bytes */
    uint64_t         size;
    int64_t          at;               /* microseconds since 1970 */
    int64_t          mtime;            /* microseconds, or XET_HUB_NO_TIME */
} xet_hub_node_t;


typedef struct {
    xet_buf_t       *buf;
    size_t           n;
    unsigned         bucket:1;
    unsigned         expand:1;
} xet_hub_tree_t;


/*
 * Write a JSON array: call begin, add for each entry, and end.  With expand
 * each entry includes its commit; objects of a bucket have no commit.  Errors
 * are kept in the buffer.
 */
void xet_hub_tree_begin(xet_hub_tree_t *tree, xet_buf_t *b, int bucket,
    int expand);
void xet_hub_tree_add(xet_hub_tree_t *tree, const xet_hub_node_t *node);
void xet_hub_tree_end(xet_hub_tree_t *tree);

/*
 * Writes a time as 2026-11-23T22:35:01.250Z, in UTC, XET_HUB_DATE_LEN bytes;
 * returns the end.  A time before 1970 or after 9999 is clamped to that range.
 */
uint8_t *xet_hub_tree_date(uint8_t *p, int64_t at);


/*
 * xet_hub_answer.c: client-side parser of Hub responses.
 */

/*
 * Parses an operand of the command line, [hf://][kind/]owner[/name[/path]].
 * The kind is "models", "datasets", "spaces" or "buckets"; without a kind,
 * target->kind is XET_HUB_KINDS.  The texts point into text.  Errors:
 * XET_HUB_NAME, XET_HUB_PATH.
 */
xet_status_t xet_hub_operand_parse(const char *text, xet_hub_target_t *target);


/*
 * An entry of a tree, or of a list of paths.  For an empty file, known is set
 * and hash is all zeros.
 */

typedef struct {
    xet_hub_text_t   path;
    xet_hub_text_t   date;             /* last change; data is NULL: absent */
    uint64_t         size;
    uint8_t          sha256[XET_HUB_SHA256_LEN];
    xet_hash_t       hash;
    unsigned         folder:1;
    unsigned         known:1;          /* hash is set */
    unsigned         digested:1;       /* sha256 is set */
} xet_hub_entry_t;

/*
 * Reads an entry.  Errors: XET_HUB_PATH for an invalid path, XET_BODY_SYNTAX.
 */
xet_status_t xet_hub_entry_read(const json_t *value, xet_hub_entry_t *entry);


/* The description of a repo, which may be an element of a list. */

typedef struct {
    xet_hub_text_t   id;               /* owner/name */
    xet_hub_text_t   oid;              /* commit id; data is NULL: absent */
    xet_hub_text_t   date;
    unsigned         private:1;
} xet_hub_described_t;

/* Reads the description of a repo.  Errors: XET_HUB_NAME, XET_BODY_SYNTAX. */
xet_status_t xet_hub_described_read(const json_t *value,
    xet_hub_described_t *described);


/* A token for the file data of a repo, and the URL of the server. */

typedef struct {
    xet_hub_text_t   url;              /* http or https, printable ASCII */
    xet_hub_text_t   token;
    uint64_t         expires;          /* seconds since 1970 */
} xet_hub_granted_t;

/*
 * Reads a token, and the URL of the server that accepts the token, from a
 * response.  Returns XET_OK or XET_BODY_SYNTAX.
 */
xet_status_t xet_hub_granted_read(const json_t *value,
    xet_hub_granted_t *granted);

/*
 * Parses a Link header.  Returns 1 and sets *args to the query arguments of the
 * next page; args->data points into link.  Returns 0 if there is no next page,
 * or if the arguments are too long or have characters that a URL must not
 * contain.
 */
int xet_hub_next_parse(const char *link, xet_hub_text_t *args);


#endif /* _XET_HUB_H_INCLUDED_ */
