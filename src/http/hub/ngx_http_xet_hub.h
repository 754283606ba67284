
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


/* The subject of a request to a Hub, and its caller. */

struct ngx_http_xet_hub_s {
    const ngx_http_xet_match_t      *match;
    ngx_http_xet_hub_asked_t         asked;
    ngx_str_t                        rev;      /* "main" if none */
    ngx_str_t                        path;     /* in the repo, not NULL */
    ngx_str_t                        who;
    ngx_array_t                      spaces;   /* of who: ngx_str_t */
    ngx_str_t                        origin;   /* "http://host" */
    ngx_str_t                        base;     /* with "xet_hub_base" */
    ngx_uint_t                       writes;   /* the route does */

    /* the body's path for errors of XET_HUB_UNSAFE; NULL: no body was read */
    const xet_hub_refusal_t         *refusal;

    struct ngx_http_xet_hub_files_s *files;    /* that are taken in */
    void                            *state;    /* of the route */
};


#define XET_HUB(form, methods, right, act, action, label, name)              \
ngx_int_t ngx_http_xet_hub_##name##_handler(ngx_http_request_t *r,            \
    ngx_http_xet_hub_t *hub);

#include "routes.def"


/*
 * Creates the description of a request to a Hub, before access is checked.
 * NULL if out of memory.
 */
ngx_http_xet_hub_t *ngx_http_xet_hub_create(ngx_http_request_t *r,
    const ngx_http_xet_match_t *match);

/*
 * Identifies the caller, checks that the route is open to the caller and
 * allowed on this server, and parses the names in the path.  NGX_OK, or the
 * result of the content handler.
 */
ngx_int_t ngx_http_xet_hub_enter(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, xet_scope_e does);

/*
 * ngx_http_xet_hub_path.c: the path below "xet_hub_base", as it was sent,
 * starting with "/"; empty if the path is not below it.
 */
ngx_int_t ngx_http_xet_hub_path(ngx_http_request_t *r, ngx_str_t *path);

/* Whether the route is a web page. */
ngx_uint_t ngx_http_xet_hub_people(ngx_http_request_t *r,
    const ngx_str_t *path);

/*
 * Whether the token allows the scope, for any repo: NGX_OK, or the result of
 * ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_allowed(ngx_http_request_t *r,
    ngx_http_xet_right_e right);

/*
 * Whether the server allows requests with this scope, by
 * ngx_http_xet_closed(): NGX_OK, or the result of ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_open(ngx_http_request_t *r, xet_scope_e scope);

/* Replaces the name space "me" by that of the caller. */
void ngx_http_xet_hub_owner(ngx_http_xet_hub_t *hub, ngx_str_t *owner);

/* Records the repo of the request for $xet_audit. */
void ngx_http_xet_hub_note(ngx_http_request_t *r, ngx_http_xet_hub_t *hub);

/* The state of a request after its handler was called. */
#define ngx_http_xet_hub_get(r)                                               \
    ((ngx_http_xet_ctx_t *)                                                   \
     ngx_http_get_module_ctx(r, ngx_http_xet_module))->route.hub


/*
 * ngx_http_xet_hub_answer.c: responses of all routes.  The results are those
 * of the functions in ngx_http_xet.h that send a response.
 */

/*
 * As ngx_http_xet_error_status(), for the result of parsing a body: the error
 * of XET_HUB_UNSAFE names the unsafe part of the path.
 */
ngx_int_t ngx_http_xet_hub_status(ngx_http_request_t *r, xet_status_t status);

/*
 * For a check after which the caller continues if the result is NGX_OK.
 * Otherwise the request was answered and finalized, and a content handler, or
 * a callback that finalizes, must return NGX_DONE.
 */
ngx_int_t ngx_http_xet_hub_deny(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);
ngx_int_t ngx_http_xet_hub_deny_status(ngx_http_request_t *r,
    xet_status_t status);

/*
 * The response if the caller has too many staged operations, see
 * xet.hub_stage().
 */
ngx_int_t ngx_http_xet_hub_much(ngx_http_request_t *r);

/*
 * The end of a callback that has sent a statement; rc is the result of
 * sending. Finalizes the request, unless a handler will be called.
 */
void ngx_http_xet_hub_wait(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Responds to a row of PostgreSQL whose status is not 200: with its error, or
 * for 307 with the new location of the repo.
 */
ngx_int_t ngx_http_xet_hub_refuse(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);

#define ngx_http_xet_hub_is(text, literal)                                    \
    ((text)->len == sizeof(literal) - 1                                       \
     && ngx_memcmp((text)->data, literal, sizeof(literal) - 1) == 0)

/* Sends JSON, which must live as long as the request. */
ngx_int_t ngx_http_xet_hub_json(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *json);

/* The same for generated content, of any media type. */
ngx_int_t ngx_http_xet_hub_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, xet_buf_t *json);

/*
 * Called before the headers of each response: drops an unread body, and
 * disables caches.  NGX_OK, or as above.
 */
ngx_int_t ngx_http_xet_hub_headers(ngx_http_request_t *r);

/*
 * Handlers of statements whose body is the response: send it, or the error.
 * That of a page adds a link to the next page, if there is one.
 */
void ngx_http_xet_hub_answered(ngx_http_request_t *r, ngx_int_t rc);
void ngx_http_xet_hub_paged(ngx_http_request_t *r, ngx_int_t rc);

/* The same for a statement that adds to a repo, which may exceed a quota. */
void ngx_http_xet_hub_added(ngx_http_request_t *r, ngx_int_t rc);

/*
 * NGX_DONE if a quota was exceeded and the request was finalized; else NGX_OK.
 */
ngx_int_t ngx_http_xet_hub_over(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Reads the row of a statement: NGX_OK.  After an error the request was
 * finalized, and NGX_DONE is returned.
 */
ngx_int_t ngx_http_xet_hub_row(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer);

/* "/me/m", "/datasets/me/d": the path of a web page.  NULL: out of memory. */
ngx_int_t ngx_http_xet_hub_page(ngx_http_request_t *r, xet_hub_kind_e kind,
    const ngx_str_t *id, ngx_str_t *page);

/* The URL of the web page of the requested repo, or of a commit of it. */
ngx_int_t ngx_http_xet_hub_url(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *commit, ngx_str_t *url);

#define NGX_HTTP_XET_HUB_HEADER  4096          /* a longer one is cut */

/* Adds a header, formatted as by ngx_sprintf(); NGX_ERROR if out of memory. */
ngx_int_t ngx_http_xet_hub_header(ngx_http_request_t *r, const char *key,
    const char *format, ...);

/* Adds a link to the next page, which starts after the entry "after". */
ngx_int_t ngx_http_xet_hub_next(ngx_http_request_t *r,
    const ngx_str_t *after);

/* An argument of the request, decoded; data is NULL if it is missing. */
ngx_int_t ngx_http_xet_hub_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* Whether the client accepts HTML. */
ngx_uint_t ngx_http_xet_hub_browser(ngx_http_request_t *r);

/* Whether an argument is "true" or "1". */
ngx_uint_t ngx_http_xet_hub_flag(ngx_http_request_t *r, const char *name);


/*
 * ngx_http_xet_hub_read.c: the arguments limit, cursor, recursive and expand;
 * a limit larger than "most" becomes "most".  NGX_OK, or the result of the
 * handler.
 */
ngx_int_t ngx_http_xet_hub_page_args(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_uint_t most, ngx_http_xet_hub_page_t **page);


/*
 * ngx_http_xet_hub_token.c: the claims of a token for a repo; store is the
 * repo of its uploads, and lives as long as the claims.
 */
void ngx_http_xet_hub_claims(ngx_http_request_t *r, const ngx_str_t *store,
    ngx_uint_t writes, xet_token_claims_t *claims);

/* The expiry time of a token or URL that is issued to the caller now. */
uint64_t ngx_http_xet_hub_until(ngx_http_request_t *r);


/* ngx_http_xet_hub_commit.c: limits of a commit and similar requests. */
void ngx_http_xet_hub_limits(ngx_http_request_t *r, xet_hub_limits_t *limits);


/* ngx_http_xet_hub_files.c: files that are contained in a request. */

/* Called once, in the event loop; as ngx_http_xet_ingest_pt. */
typedef void (*ngx_http_xet_hub_files_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);

typedef struct ngx_http_xet_hub_files_s {
    ngx_http_xet_ingest_file_t  *files;        /* malloc()ed, as their data */
    ngx_uint_t                   n;
    ngx_uint_t                   room;
    size_t                       size;         /* bytes */
    ngx_http_xet_array_t         sha256;       /* requested */
    ngx_http_xet_hub_files_pt    done;
} ngx_http_xet_hub_files_t;


void ngx_http_xet_hub_files_destroy(ngx_http_xet_hub_files_t *f);

/*
 * Adds a file with path and content, in a thread, and sets its size and
 * SHA-256, as for an uploaded file.  XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_hub_files_add(ngx_http_xet_hub_files_t *f,
    xet_hub_operation_t *op);

/* Whether the added files should be stored before more are added. */
ngx_uint_t ngx_http_xet_hub_files_full(const ngx_http_xet_hub_files_t *f);

/*
 * Stores all added files in the request's repo, and clears the list; f lives
 * as long as the request.
 */
void ngx_http_xet_hub_files_take(ngx_http_request_t *r,
    ngx_http_xet_hub_files_t *f, ngx_http_xet_hub_files_pt done);


/* ngx_http_xet_hub_initial.c: the files of a new repo. */

typedef struct ngx_http_xet_hub_initial_s  ngx_http_xet_hub_initial_t;

/* upload is the id of the staged files, and lives as long as r->pool. */
ngx_http_xet_hub_initial_t *ngx_http_xet_hub_initial_create(
    ngx_http_request_t *r, const u_char *upload);

/* Adds a file; an xet_hub_op_pt, for a thread.  ctx is the structure above. */
xet_status_t ngx_http_xet_hub_initial_add(void *ctx,
    const xet_hub_operation_t *op);

/*
 * Stores and stages the files, and calls done with the number of batches;
 * finalizes the request after an error.
 */
void ngx_http_xet_hub_initial_take(ngx_http_request_t *r,
    ngx_http_xet_hub_initial_t *first,
    void (*done)(ngx_http_request_t *r, ngx_uint_t batches));

/* The repo was created: nothing must be dropped. */
void ngx_http_xet_hub_initial_done(ngx_http_xet_hub_initial_t *first);


/* ngx_http_xet_hub_stream.c: responses that grow with a repo, sent in parts. */

typedef struct {
    ngx_http_xet_stream_t     stream;
    xet_buf_t                 buf;             /* of the part */
    ngx_uint_t                last;            /* it is */
    const char               *type;            /* of media */
    ngx_int_t               (*ask)(ngx_http_request_t *r);
} ngx_http_xet_hub_stream_t;


/*
 * s lives as long as the request.  ask() sends the statement of the next part,
 * and returns the result of sending; the caller requests the first part.
 */
ngx_int_t ngx_http_xet_hub_stream_init(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t (*ask)(ngx_http_request_t *r));

/* As ngx_http_xet_hub_row(), for any part. */
ngx_int_t ngx_http_xet_hub_stream_row(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer);

/*
 * Starts the JSON of a part, in pieces of size bytes.  NULL: the request was
 * finalized.
 */
xet_buf_t *ngx_http_xet_hub_stream_part(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, size_t size, ngx_uint_t last);

/* The part can't be made; finalizes the request. */
void ngx_http_xet_hub_stream_fail(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, xet_status_t status);

/*
 * Frees the rows and sends the part.  Headers must be added before the first
 * part.
 */
void ngx_http_xet_hub_stream_send(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s);


/* ngx_http_xet_hub_body.c: small request bodies. */

typedef struct {
    u_char        *text;               /* malloc()ed */
    size_t         len;
    size_t         size;
    size_t         max;
    void          *data;               /* of the route */

    xet_status_t (*parse)(void *data, u_char *text, size_t len);
    void         (*done)(ngx_http_request_t *r, void *data);
} ngx_http_xet_hub_body_t;


/*
 * Reads a body of at most max bytes, calls parse in a thread, and then done in
 * the event loop; after an error the request is answered.  data lives as long
 * as the request's pool, text until it is parsed.
 */
ngx_int_t ngx_http_xet_hub_read(ngx_http_request_t *r, size_t max,
    xet_status_t (*parse)(void *data, u_char *text, size_t len),
    void (*done)(ngx_http_request_t *r, void *data), void *data);


#endif /* _NGX_HTTP_XET_HUB_H_INCLUDED_ */
