
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


/* What a request is about, and who asks. */

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

    /* what a body has for XET_HUB_UNSAFE to name; NULL: none was read */
    const xet_hub_refusal_t         *refusal;

    struct ngx_http_xet_hub_files_s *files;    /* that are taken in */
    void                            *state;    /* of the route */
};


#define XET_HUB(form, methods, right, act, action, label, name)              \
ngx_int_t ngx_http_xet_hub_##name##_handler(ngx_http_request_t *r,            \
    ngx_http_xet_hub_t *hub);

#include "routes.def"


/*
 * Makes what a request to a Hub is about; it may not come yet.  NULL without
 * memory.
 */
ngx_http_xet_hub_t *ngx_http_xet_hub_create(ngx_http_request_t *r,
    const ngx_http_xet_match_t *match);

/*
 * Who asks, whether the route is for them and does what is allowed, and what it
 * names: NGX_OK, or what the content handler returns.
 */
ngx_int_t ngx_http_xet_hub_enter(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, xet_scope_e does);

/*
 * ngx_http_xet_hub_path.c: the path below "xet_hub_base", as it was sent, which
 * begins with "/"; it is empty for what is not below that.
 */
ngx_int_t ngx_http_xet_hub_path(ngx_http_request_t *r, ngx_str_t *path);

/* Whether people may ask for a page by it. */
ngx_uint_t ngx_http_xet_hub_people(ngx_http_request_t *r,
    const ngx_str_t *path);

/*
 * Whether a token allows that, whatever the repo is: NGX_OK, or as
 * ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_allowed(ngx_http_request_t *r,
    ngx_http_xet_right_e right);

/*
 * Whether the server lets somebody do what takes this scope, as
 * ngx_http_xet_closed(): NGX_OK, or as ngx_http_xet_hub_deny().
 */
ngx_int_t ngx_http_xet_hub_open(ngx_http_request_t *r, xet_scope_e scope);

/* "me" is the name space of who asks, whatever his name is. */
void ngx_http_xet_hub_owner(ngx_http_xet_hub_t *hub, ngx_str_t *owner);

/* Notes which repo it is about, for $xet_audit. */
void ngx_http_xet_hub_note(ngx_http_request_t *r, ngx_http_xet_hub_t *hub);

/* The state of a request that the handler has begun. */
#define ngx_http_xet_hub_get(r)                                               \
    ((ngx_http_xet_ctx_t *)                                                   \
     ngx_http_get_module_ctx(r, ngx_http_xet_module))->route.hub


/*
 * ngx_http_xet_hub_answer.c: what all of them answer by.  As the functions of
 * ngx_http_xet.h that send an answer.
 */

/*
 * As ngx_http_xet_error_status(), for what has come of a body: XET_HUB_UNSAFE
 * names the part of the path.
 */
ngx_int_t ngx_http_xet_hub_status(ngx_http_request_t *r, xet_status_t status);

/*
 * An error of a check that the caller goes on behind, if it returns NGX_OK: the
 * request is answered and finalized, and NGX_DONE is what a content handler, or
 * a callback that finalizes, has to end with.
 */
ngx_int_t ngx_http_xet_hub_deny(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);
ngx_int_t ngx_http_xet_hub_deny_status(ngx_http_request_t *r,
    xet_status_t status);

/* The answer where too much of the caller is staged, see xet.hub_stage(). */
ngx_int_t ngx_http_xet_hub_much(ngx_http_request_t *r);

/*
 * The end of a callback that has sent a statement, with rc as sending returned
 * it: the request is finalized, unless a handler will be called.
 */
void ngx_http_xet_hub_wait(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Answers for a row of PostgreSQL that is not 200: its error, or for 307 where
 * the repo is now.
 */
ngx_int_t ngx_http_xet_hub_refuse(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);

#define ngx_http_xet_hub_is(text, literal)                                    \
    ((text)->len == sizeof(literal) - 1                                       \
     && ngx_memcmp((text)->data, literal, sizeof(literal) - 1) == 0)

/* Sends JSON, which must live as long as the request. */
ngx_int_t ngx_http_xet_hub_json(ngx_http_request_t *r, ngx_uint_t status,
    const ngx_str_t *json);

/* The same of JSON that was written, of a type of media. */
ngx_int_t ngx_http_xet_hub_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, xet_buf_t *json);

/*
 * What comes before the headers of any of them: a body that nobody has read is
 * dropped, and no cache keeps the answer.  NGX_OK, or as above.
 */
ngx_int_t ngx_http_xet_hub_headers(ngx_http_request_t *r);

/*
 * The handlers of statements whose body is the answer: send it, or the error.
 * That of a page has a link to the next one, if there is more.
 */
void ngx_http_xet_hub_answered(ngx_http_request_t *r, ngx_int_t rc);
void ngx_http_xet_hub_paged(ngx_http_request_t *r, ngx_int_t rc);

/* The same for one that adds to a repo, which may have no room left. */
void ngx_http_xet_hub_added(ngx_http_request_t *r, ngx_int_t rc);

/* NGX_DONE where it has none, and the request was finalized; else NGX_OK. */
ngx_int_t ngx_http_xet_hub_over(ngx_http_request_t *r, ngx_int_t rc);

/*
 * Gets the row of a statement, where all is well: NGX_OK.  Otherwise the
 * request was finalized, and NGX_DONE is returned.
 */
ngx_int_t ngx_http_xet_hub_row(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer);

/* "/me/m", "/datasets/me/d": of the web, not of the API; NULL: no memory. */
ngx_int_t ngx_http_xet_hub_page(ngx_http_request_t *r, xet_hub_kind_e kind,
    const ngx_str_t *id, ngx_str_t *page);

/* The URL of that, of the repo that is asked for, or of a commit of it. */
ngx_int_t ngx_http_xet_hub_url(ngx_http_request_t *r, const ngx_str_t *id,
    const ngx_str_t *commit, ngx_str_t *url);

#define NGX_HTTP_XET_HUB_HEADER  4096          /* a longer one is cut */

/* Adds a header from pieces, as ngx_sprintf(); NGX_ERROR without memory. */
ngx_int_t ngx_http_xet_hub_header(ngx_http_request_t *r, const char *key,
    const char *format, ...);

/* A page has a link to the next one, which begins behind "after". */
ngx_int_t ngx_http_xet_hub_next(ngx_http_request_t *r,
    const ngx_str_t *after);

/* An argument of the request, decoded; data is NULL where it has none. */
ngx_int_t ngx_http_xet_hub_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* Whether the client says that it shows HTML. */
ngx_uint_t ngx_http_xet_hub_browser(ngx_http_request_t *r);

/* Whether an argument is "true" or "1". */
ngx_uint_t ngx_http_xet_hub_flag(ngx_http_request_t *r, const char *name);


/*
 * ngx_http_xet_hub_read.c: limit, cursor, recursive and expand; a limit beyond
 * "most" is that.  NGX_OK, or what the handler returns.
 */
ngx_int_t ngx_http_xet_hub_page_args(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_uint_t most, ngx_http_xet_hub_page_t **page);


/*
 * ngx_http_xet_hub_token.c: what a token for a repo says; store is the repo of
 * its uploads, and lives as long as the claims.
 */
void ngx_http_xet_hub_claims(ngx_http_request_t *r, const ngx_str_t *store,
    ngx_uint_t writes, xet_token_claims_t *claims);

/* Until when a token or a URL may be good that is given to the caller now. */
uint64_t ngx_http_xet_hub_until(ngx_http_request_t *r);


/* ngx_http_xet_hub_commit.c: what a commit, or what is like one, may be. */
void ngx_http_xet_hub_limits(ngx_http_request_t *r, xet_hub_limits_t *limits);


/*
 * ngx_http_xet_hub_files.c: files that stand in a request.
 */

/* Called once, in the event loop; as ngx_http_xet_ingest_pt. */
typedef void (*ngx_http_xet_hub_files_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);

typedef struct ngx_http_xet_hub_files_s {
    ngx_http_xet_ingest_file_t  *files;        /* malloc()ed, as their data */
    ngx_uint_t                   n;
    ngx_uint_t                   room;
    size_t                       size;         /* bytes */
    ngx_http_xet_array_t         sha256;       /* that are asked for */
    ngx_http_xet_hub_files_pt    done;
} ngx_http_xet_hub_files_t;


void ngx_http_xet_hub_files_destroy(ngx_http_xet_hub_files_t *f);

/*
 * Adds a file whose path and content are set, in a thread: it becomes one that
 * was uploaded, with size and SHA-256.  XET_OK, XET_NOMEM.
 */
xet_status_t ngx_http_xet_hub_files_add(ngx_http_xet_hub_files_t *f,
    xet_hub_operation_t *op);

/* Whether those that were added are to be taken in before there are more. */
ngx_uint_t ngx_http_xet_hub_files_full(const ngx_http_xet_hub_files_t *f);

/*
 * Takes in all that were added, as files of the request's repo, and forgets
 * them; f lives as long as the request.
 */
void ngx_http_xet_hub_files_take(ngx_http_request_t *r,
    ngx_http_xet_hub_files_t *f, ngx_http_xet_hub_files_pt done);


/*
 * ngx_http_xet_hub_first.c: the files that a repo is created with.
 */

typedef struct ngx_http_xet_hub_first_s  ngx_http_xet_hub_first_t;

/* upload is the id of what is staged, and lives as long as r->pool. */
ngx_http_xet_hub_first_t *ngx_http_xet_hub_first_create(
    ngx_http_request_t *r, const u_char *upload);

/* Adds a file; an xet_hub_op_pt, for a thread.  ctx is the above. */
xet_status_t ngx_http_xet_hub_first_add(void *ctx,
    const xet_hub_operation_t *op);

/*
 * Takes the files in and stages them, and calls done with how many batches that
 * are; the request is finalized where that fails.
 */
void ngx_http_xet_hub_first_take(ngx_http_request_t *r,
    ngx_http_xet_hub_first_t *first,
    void (*done)(ngx_http_request_t *r, ngx_uint_t batches));

/* The repo was created: nothing is left to be dropped. */
void ngx_http_xet_hub_first_done(ngx_http_xet_hub_first_t *first);


/*
 * ngx_http_xet_hub_stream.c: answers that grow with a repo, a part at a time.
 */

typedef struct {
    ngx_http_xet_stream_t     stream;
    xet_buf_t                 buf;             /* of the part */
    ngx_uint_t                last;            /* it is */
    const char               *type;            /* of media */
    ngx_int_t               (*ask)(ngx_http_request_t *r);
} ngx_http_xet_hub_stream_t;


/*
 * s lives as long as the request.  ask() sends the statement of the next part,
 * and returns as that does; the first part is asked for by the caller.
 */
ngx_int_t ngx_http_xet_hub_stream_init(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t (*ask)(ngx_http_request_t *r));

/* As ngx_http_xet_hub_row(), of any part. */
ngx_int_t ngx_http_xet_hub_stream_row(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer);

/*
 * Begins the JSON of a part, in pieces of size bytes.  NULL: the request was
 * finalized.
 */
xet_buf_t *ngx_http_xet_hub_stream_part(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, size_t size, ngx_uint_t last);

/* The part can't be made: the request is finalized. */
void ngx_http_xet_hub_stream_fail(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, xet_status_t status);

/* Frees the rows and sends the part; the headers were added, for the first. */
void ngx_http_xet_hub_stream_send(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s);


/*
 * ngx_http_xet_hub_body.c: small bodies.
 */

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
 * Reads a body of at most max bytes, calls parse in a thread, and done in the
 * event loop if all is well; else the request is answered.  data lives as long
 * as the request's pool, text until it is parsed.
 */
ngx_int_t ngx_http_xet_hub_read(ngx_http_request_t *r, size_t max,
    xet_status_t (*parse)(void *data, u_char *text, size_t len),
    void (*done)(ngx_http_request_t *r, void *data), void *data);


#endif /* _NGX_HTTP_XET_HUB_H_INCLUDED_ */
