
/*
 * A Hub: repos with names, for huggingface_hub and other clients.
 */

#ifndef _NGX_HTTP_XET_HUB_H_INCLUDED_
#define _NGX_HTTP_XET_HUB_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_upload.h"


/*
 * The state of a request to a Hub: the route, the caller, and the names in the
 * path.
 */

struct ngx_http_xet_hub_s {
    const ngx_http_xet_match_t      *match;
    ngx_http_xet_hub_asked_t         asked;
    ngx_str_t                        rev;      /* "main" by default */
    ngx_str_t                        path;     /* path in the repo; not NULL */
    ngx_str_t                        who;
    ngx_array_t                      spaces;   /* ngx_str_t of the caller */
    ngx_str_t                        origin;   /* such as http://host/path */
    ngx_str_t                        prefix;   /* path of origin; "" if none */
    ngx_str_t                        base;     /* origin + xet_hub_base */
    ngx_str_t                        root;     /* prefix + xet_hub_base */
    ngx_uint_t                       writes;   /* whether the route writes */

    /*
     * the path or key that the body is refused for; NULL if no body was read
     */
    const xet_hub_refusal_t         *refusal;

    struct ngx_http_xet_hub_files_s *files;    /* files in the body */

    /*
     * If "keep" is set before a small body is read, "body" has its text, for
     * another Hub, until ngx_http_xet_hub_body_free() or the request ends.
     */
    ngx_uint_t                       keep;
    struct ngx_http_xet_hub_body_s  *body;
    const xet_hub_refusal_t         *unsafe;   /* path for another Hub */
    struct ngx_http_xet_hub_card_s  *card;     /* of a README.md in a commit */
    struct ngx_http_xet_hub_prove_s *prove;    /* files of a commit */
    ngx_str_t                        filters;  /* of a list, for its cursors */
    void                            *state;    /* state of the handler */
};


#define XET_HUB(form, methods, right, act, action, label, name)              \
ngx_int_t ngx_http_xet_hub_##name##_handler(ngx_http_request_t *r,            \
    ngx_http_xet_hub_t *hub);

#include "routes.def"


/*
 * Creates the state of a request to a Hub, before access is checked.  Returns
 * NULL if out of memory.
 */
ngx_http_xet_hub_t *ngx_http_xet_hub_create(ngx_http_request_t *r,
    const ngx_http_xet_match_t *match);

/*
 * Identifies the caller, checks that the caller may use the route and that
 * this server permits the action, and parses the names in the path.  Returns
 * NGX_OK, or the result of the content handler if the request is rejected.
 */
ngx_int_t ngx_http_xet_hub_enter(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, xet_scope_e does);

/* Responds to a request that matches no route, like a content handler. */
ngx_int_t ngx_http_xet_hub_no_route(ngx_http_request_t *r,
    const ngx_http_xet_match_t *match);

/*
 * ngx_http_xet_hub_args.c: checks that the route knows the arguments of the
 * request.  Returns NGX_OK, or the result of the content handler.
 */
ngx_int_t ngx_http_xet_hub_args_check(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);

/*
 * ngx_http_xet_hub_path.c: gets the path below "xet_hub_base" as sent by the
 * client, starting with "/".  The path is empty if the request is not below
 * "xet_hub_base".
 */
ngx_int_t ngx_http_xet_hub_path(ngx_http_request_t *r, ngx_str_t *path);

/* Returns whether the request may be for a web page. */
ngx_uint_t ngx_http_xet_hub_people(ngx_http_request_t *r,
    const ngx_str_t *path);

/*
 * Checks whether the scope of the token permits the action; does not check
 * permissions for a repo.  Returns NGX_OK, or the result of
 * ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_allowed(ngx_http_request_t *r,
    ngx_http_xet_right_e right);

/*
 * Checks with ngx_http_xet_closed() that this server allows requests with the
 * scope.  Returns NGX_OK, or the result of ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_open(ngx_http_request_t *r, xet_scope_e scope);

/*
 * Returns 1 for a client of a registry of containers, which requests the media
 * type of a manifest, and loads the layers.
 */
ngx_uint_t ngx_http_xet_hub_registry(ngx_http_request_t *r);

/*
 * Refuses such a client without a token, if the repo is missing or private, or
 * the Hub is not public.  Like ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_registry_deny(ngx_http_request_t *r);

/* Replaces the name space "me" by the caller's name space. */
void ngx_http_xet_hub_owner(ngx_http_xet_hub_t *hub, ngx_str_t *owner);

/* Records the repo of the request in $xet_audit. */
void ngx_http_xet_hub_note(ngx_http_request_t *r, ngx_http_xet_hub_t *hub);

/*
 * Returns the state of a request to a Hub.  Use it only after the handler of
 * the route was called.
 */
#define ngx_http_xet_hub_get(r)                                               \
    ((ngx_http_xet_ctx_t *)                                                   \
     ngx_http_get_module_ctx(r, ngx_http_xet_module))->route.hub


/*
 * ngx_http_xet_hub_answer.c: responses of all routes.  Functions that send a
 * response return a code for ngx_http_finalize_request().
 */

/*
 * Sends an error found while parsing a body, like ngx_http_xet_error_status().
 * The message contains the unsafe part of the path for XET_HUB_UNSAFE, and the
 * key for XET_HUB_KEY and XET_HUB_VALUE.
 */
ngx_int_t ngx_http_xet_hub_status(ngx_http_request_t *r, xet_status_t status);

/* Sends an error that contains the unsafe part of a path, and the reason. */
ngx_int_t ngx_http_xet_hub_unsafe(ngx_http_request_t *r, ngx_uint_t status,
    const xet_hub_refusal_t *refusal);

/*
 * Send an error and return NGX_DONE, for use in functions that return NGX_OK if
 * the request may continue.  A content handler must return this NGX_DONE, and a
 * callback must pass it to ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_hub_deny(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);
ngx_int_t ngx_http_xet_hub_deny_status(ngx_http_request_t *r,
    xet_status_t status);
ngx_int_t ngx_http_xet_hub_deny_key(ngx_http_request_t *r,
    xet_status_t status, const xet_hub_refusal_t *refusal);

/*
 * Sends the error for a caller with too many staged operations, see
 * xet.hub_stage().
 */
ngx_int_t ngx_http_xet_hub_much(ngx_http_request_t *r);

/*
 * Returns whether xet.hub_stage(), which has ended with rc, has staged the
 * operations.  If not, ends the request with an error.
 */
ngx_uint_t ngx_http_xet_hub_staged(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Ends a callback that has sent a statement; rc is the result of sending.
 * Finalizes the request, unless the handler of the statement will be called.
 */
void ngx_http_xet_hub_wait(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Responds to a row whose status is not 200: sends the error in the row, or for
 * status 307 a redirect to the new location of the repo.
 */
ngx_int_t ngx_http_xet_hub_refuse(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);

/*
 * Redirects a read of a repo that does not exist here to the location named by
 * "xet_hub_upstream", which proxies to another Hub.  Returns NGX_DECLINED if
 * this request is not redirected, else the code for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_hub_upstream(ngx_http_request_t *r);

#define ngx_http_xet_hub_is(text, literal)                                    \
    ((text)->len == sizeof(literal) - 1                                       \
     && ngx_memcmp((text)->data, literal, sizeof(literal) - 1) == 0)

/* Sends JSON, which must stay in memory until the request ends. */
ngx_int_t ngx_http_xet_hub_json(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *json);

/* Sends generated content with the media type "type". */
ngx_int_t ngx_http_xet_hub_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, xet_buf_t *json);

/*
 * Prepares the headers of each response: discards an unread body, and disables
 * caches.  Returns NGX_OK, or the result of the content handler.
 */
ngx_int_t ngx_http_xet_hub_headers(ngx_http_request_t *r);

/*
 * Handlers of statements that return the response body: send the body, or the
 * error.  ngx_http_xet_hub_paged() also adds a link to the next page, if one
 * exists.
 */
void ngx_http_xet_hub_answered(ngx_http_request_t *r, ngx_int_t rc);
void ngx_http_xet_hub_paged(ngx_http_request_t *r, ngx_int_t rc);

/* The handler of a statement that adds data and may exceed a quota. */
void ngx_http_xet_hub_added(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Checks whether the statement has exceeded a quota.  Returns NGX_DONE if it
 * has, after finalizing the request, else NGX_OK.
 */
ngx_int_t ngx_http_xet_hub_over(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Reads the row of a statement.  After an error, finalizes the request and
 * returns NGX_DONE, else returns NGX_OK.
 */
ngx_int_t ngx_http_xet_hub_row(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer);

/*
 * Sets *page to the path of a repo's web page, such as "/me/m" or
 * "/datasets/me/d".  Returns NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_hub_page(ngx_http_request_t *r, xet_hub_kind_e kind,
    const ngx_str_t *id, ngx_str_t *page);

/* Makes the web page URL of the requested repo, or of a commit in this repo. */
ngx_int_t ngx_http_xet_hub_url(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *commit, ngx_str_t *url);

#define NGX_HTTP_XET_HUB_HEADER  4096          /* maximum bytes of a value */

/*
 * Adds a header formatted like ngx_sprintf(); truncates a value that is too
 * long.  Returns NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_hub_header(ngx_http_request_t *r, const char *key,
    const char *format, ...);

/*
 * Adds a Link header with the URL of the next page, which starts after entry
 * "after".
 */
ngx_int_t ngx_http_xet_hub_next(ngx_http_request_t *r,
    const ngx_str_t *after);
ngx_int_t ngx_http_xet_hub_next_link(ngx_http_request_t *r,
    const ngx_str_t *cursor);

/*
 * ngx_http_xet_hub_cursor.c: cursors of lists.
 */

/*
 * Makes the cursor of the page that begins after position "after" in the list
 * of the request.  id is the name of the repo, or NULL for the name in the
 * request.  Returns NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_hub_cursor(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *after, ngx_str_t *cursor);

/*
 * Sets *after to the position in the argument "cursor"; its data is NULL if the
 * argument is missing.  Returns NGX_OK, or the result of the content handler if
 * the cursor does not belong to this list.
 */
ngx_int_t ngx_http_xet_hub_cursor_arg(ngx_http_request_t *r, ngx_str_t *after);

/* The same, but returns NGX_DECLINED instead of a response, or NGX_ERROR. */
ngx_int_t ngx_http_xet_hub_cursor_get(ngx_http_request_t *r, ngx_str_t *after);

/*
 * Write "?" and the arguments of the request with another cursor, for a URL of
 * the same list: return the room that is needed, and the end of the text.
 */
size_t ngx_http_xet_hub_cursor_room(ngx_http_request_t *r,
    const ngx_str_t *cursor);
u_char *ngx_http_xet_hub_cursor_put(ngx_http_request_t *r, u_char *p,
    const ngx_str_t *cursor);


/*
 * Sets *value to the decoded argument of the request; its data is NULL if the
 * argument is missing.
 */
ngx_int_t ngx_http_xet_hub_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* Returns whether an argument is "true" or "1". */
ngx_uint_t ngx_http_xet_hub_flag(ngx_http_request_t *r, const char *name);


/*
 * ngx_http_xet_hub_read.c: reads the arguments limit, cursor, recursive and
 * expand; limit is at most "most".  Returns NGX_OK, or the result of the
 * content handler after an error.
 */
ngx_int_t ngx_http_xet_hub_page_args(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_uint_t most, ngx_http_xet_hub_page_t **page);


/*
 * ngx_http_xet_hub_list.c: checks the arguments of a request for the
 * description of a repo; *siblings is whether to add its files.  Returns
 * NGX_OK, or the result of the content handler after an error.
 */
ngx_int_t ngx_http_xet_hub_info_args(ngx_http_request_t *r,
    ngx_uint_t *siblings);


/*
 * ngx_http_xet_hub_prove.c: computes the SHA-256 of all files in a staged
 * commit that have only a claimed one, and calls done; or finalizes the
 * request.  store and upload must live as long as the request.
 */

typedef struct ngx_http_xet_hub_prove_s  ngx_http_xet_hub_prove_t;

void ngx_http_xet_hub_prove(ngx_http_request_t *r, const ngx_str_t *store,
    const u_char *upload, void (*done)(ngx_http_request_t *r));

/* Returns how many bytes of the current file are read; 0 if none is. */
uint64_t ngx_http_xet_hub_proving(const ngx_http_xet_hub_t *hub);


/*
 * ngx_http_xet_hub_card.c: reads the card of the README.md in a staged commit,
 * stores it, and calls done; or finalizes the request if the card is broken.
 * store is the internal name of the repo that the file was uploaded to; store
 * and upload must live as long as the request.
 */

typedef struct ngx_http_xet_hub_card_s  ngx_http_xet_hub_card_t;

void ngx_http_xet_hub_card_take(ngx_http_request_t *r, const ngx_str_t *store,
    const u_char *upload, void (*done)(ngx_http_request_t *r));


/*
 * ngx_http_xet_hub_text.c: reads up to "most" bytes of the beginning of a file,
 * and calls parse in a thread, unless the file is empty; then calls done in the
 * event loop with the result of parse, or with an error.  The text lives as
 * long as the request.
 */

typedef xet_status_t (*ngx_http_xet_hub_text_pt)(void *data,
    const u_char *text, size_t len);

void ngx_http_xet_hub_text_read(ngx_http_request_t *r, const xet_hash_t *file,
    size_t most, ngx_http_xet_hub_text_pt parse,
    void (*done)(ngx_http_request_t *r, void *data, xet_status_t status),
    void *data);


/*
 * ngx_http_xet_hub_token.c: fills the claims of a token for a repo.  store is
 * the internal name of the repo, and must live as long as the claims.
 */
void ngx_http_xet_hub_claims(ngx_http_request_t *r, const ngx_str_t *store,
    ngx_uint_t writes, xet_token_claims_t *claims);

/*
 * Returns the expiry time of a token or URL that is issued to the caller now.
 */
uint64_t ngx_http_xet_hub_until(ngx_http_request_t *r);


/*
 * ngx_http_xet_hub_elsewhere.c: responds to the request for a page of a list
 * of the other Hub, like a content handler; returns NGX_DECLINED for a page of
 * this server.
 */
ngx_int_t ngx_http_xet_hub_list_upstream(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);

/*
 * The handler of a statement that lists repos: like ngx_http_xet_hub_paged(),
 * but the last page has a link to the list of the other Hub.
 */
void ngx_http_xet_hub_listed(ngx_http_request_t *r, ngx_int_t rc);


/*
 * ngx_http_xet_hub_quant.c: adds a Location header with the URL of the request.
 * Ollama needs it in the response with the data, in order to request ranges.
 */
ngx_int_t ngx_http_xet_hub_here(ngx_http_request_t *r);


/*
 * ngx_http_xet_hub_commit.c: sets *limits to the limits for request bodies that
 * contain operations.
 */
void ngx_http_xet_hub_limits(ngx_http_request_t *r, xet_hub_limits_t *limits);


/* ngx_http_xet_hub_files.c: files contained in a request body. */

/*
 * Called once, in the event loop, with the arguments of
 * ngx_http_xet_ingest_pt.
 */
typedef void (*ngx_http_xet_hub_files_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);

typedef struct ngx_http_xet_hub_files_s {
    ngx_http_xet_ingest_file_t  *files;        /* malloc()ed, like their data */
    ngx_uint_t                   n;
    ngx_uint_t                   room;
    size_t                       size;         /* total bytes of files */
    ngx_http_xet_array_t         sha256;       /* digests to look up */
    ngx_http_xet_hub_files_pt    done;
} ngx_http_xet_hub_files_t;


void ngx_http_xet_hub_files_destroy(ngx_http_xet_hub_files_t *f);

/*
 * Copies the file contained in op to the list, and changes op so that it refers
 * to the file by size and SHA-256, as if the file had been uploaded.  Runs in a
 * thread.  Returns XET_OK or XET_NOMEM.
 */
xet_status_t ngx_http_xet_hub_files_add(ngx_http_xet_hub_files_t *f,
    xet_hub_operation_t *op);

/* Returns whether the files should be stored before more are added. */
ngx_uint_t ngx_http_xet_hub_files_full(const ngx_http_xet_hub_files_t *f);

/*
 * Stores all files of the list in the request's repo, empties the list, and
 * calls done.  f must live as long as the request.
 */
void ngx_http_xet_hub_files_take(ngx_http_request_t *r,
    ngx_http_xet_hub_files_t *f, ngx_http_xet_hub_files_pt done);


/* ngx_http_xet_hub_initial.c: the files of a repo that is being created. */

typedef struct ngx_http_xet_hub_initial_s  ngx_http_xet_hub_initial_t;

/*
 * Creates an empty list.  upload is the id of the staged files, and must live
 * as long as r->pool.
 */
ngx_http_xet_hub_initial_t *ngx_http_xet_hub_initial_create(
    ngx_http_request_t *r, const u_char *upload);

/*
 * An xet_hub_op_pt: adds a file to ctx, an ngx_http_xet_hub_initial_t.  Runs in
 * a thread.
 */
xet_status_t ngx_http_xet_hub_initial_add(void *ctx,
    const xet_hub_operation_t *op);

/*
 * Stores and stages the files, and calls done with the number of staged
 * batches.  Finalizes the request after an error.
 */
void ngx_http_xet_hub_initial_take(ngx_http_request_t *r,
    ngx_http_xet_hub_initial_t *first,
    void (*done)(ngx_http_request_t *r, ngx_uint_t batches));

/*
 * Must be called after the repo was created; otherwise its files are dropped
 * when the request ends.
 */
void ngx_http_xet_hub_initial_done(ngx_http_xet_hub_initial_t *first);


/* ngx_http_xet_hub_stream.c: long responses, sent in parts. */

typedef struct {
    ngx_http_xet_stream_t     stream;
    xet_buf_t                 buf;             /* JSON of the current part */
    ngx_uint_t                last;            /* buf has the last part */
    const char               *type;            /* media type */
    ngx_int_t               (*ask)(ngx_http_request_t *r);
} ngx_http_xet_hub_stream_t;


/*
 * Initializes s, which must live as long as the request.  ask() sends the
 * statement for the next part, and returns the result of sending.  The caller
 * calls ask() for the first part.
 */
ngx_int_t ngx_http_xet_hub_stream_init(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t (*ask)(ngx_http_request_t *r));

/*
 * Reads the row of the first or a later part, like ngx_http_xet_hub_row().
 */
ngx_int_t ngx_http_xet_hub_stream_row(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer);

/*
 * Begins the JSON of a part, with buffers of size bytes.  After an error,
 * finalizes the request and returns NULL.
 */
xet_buf_t *ngx_http_xet_hub_stream_part(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, size_t size, ngx_uint_t last);

/* Finalizes the request after a part could not be made; status is the error. */
void ngx_http_xet_hub_stream_fail(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, xet_status_t status);

/*
 * Frees the rows and sends the part.  The caller must add its headers before
 * the first part is sent.
 */
void ngx_http_xet_hub_stream_send(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s);


/* ngx_http_xet_hub_body.c: small request bodies in memory. */

typedef struct ngx_http_xet_hub_body_s {
    u_char        *text;               /* malloc()ed */
    size_t         len;
    size_t         size;
    size_t         max;
    ngx_uint_t     keep;               /* whether done needs the text */
    void          *data;               /* argument of parse and done */

    xet_status_t (*parse)(void *data, u_char *text, size_t len);
    void         (*done)(ngx_http_request_t *r, void *data);
} ngx_http_xet_hub_body_t;


/*
 * Reads a body of at most max bytes, calls parse in a thread, and then calls
 * done in the event loop.  After an error the error response is sent instead.
 * data must live as long as the request's pool; text lives until parse
 * returns.
 */
ngx_int_t ngx_http_xet_hub_read(ngx_http_request_t *r, size_t max,
    xet_status_t (*parse)(void *data, u_char *text, size_t len),
    void (*done)(ngx_http_request_t *r, void *data), void *data);

/* Frees the text that was kept for another Hub. */
void ngx_http_xet_hub_body_free(ngx_http_xet_hub_t *hub);


/*
 * ngx_http_xet_hub_lfs_object.c: sets *url to a URL that permits to download
 * an object of a repo, or with "writes" to upload and to verify it.  Returns
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_xet_hub_lfs_url(ngx_http_request_t *r, ngx_pool_t *pool,
    const u_char *sha256, const ngx_str_t *store, ngx_uint_t writes,
    ngx_str_t *url);


#endif /* _NGX_HTTP_XET_HUB_H_INCLUDED_ */
