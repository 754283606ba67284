
/*
 * Creates, moves and deletes repos, and changes their settings.
 *
 *     handler -> body -> permission (PostgreSQL) -> the response
 *
 * If the body names no owner, the repo belongs to the caller's name space.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_HUB_REPO_BODY   65536
#define NGX_HTTP_XET_HUB_FILES_BODY  (1024 * 1024)    /* max. body with files */


typedef struct {
    xet_hub_repo_t               repo;
    ngx_http_xet_hub_initial_t  *first;
    xet_hub_limits_t             limits;
    u_char                       upload[NGX_HTTP_XET_UPLOAD_LEN];
} ngx_http_xet_hub_change_t;


static ngx_http_xet_hub_change_t *ngx_http_xet_hub_change(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_change_read(ngx_http_request_t *r,
    xet_status_t (*parse)(void *data, u_char *text, size_t len),
    void (*done)(ngx_http_request_t *r, void *data));
static void ngx_http_xet_hub_change_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_create_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_repo_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_move_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_settings_parse(void *data, u_char *text,
    size_t len);
static void ngx_http_xet_hub_asked(ngx_http_request_t *r,
    ngx_http_xet_hub_change_t *c);
static void ngx_http_xet_hub_create_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_create_put(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_create_make(ngx_http_request_t *r,
    ngx_uint_t batches);
static void ngx_http_xet_hub_created(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_create_send(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);
static ngx_int_t ngx_http_xet_hub_create_warn(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer);
static void ngx_http_xet_hub_delete_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_move_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_settings_read(ngx_http_request_t *r, void *data);


ngx_int_t
ngx_http_xet_hub_create_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_change_t  *c;

    c = ngx_http_xet_hub_change(r);

    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_xet_hub_limits(r, &c->limits);

    c->first = ngx_http_xet_hub_initial_create(r, c->upload);
    if (c->first == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_FILES_BODY,
                                 ngx_http_xet_hub_create_parse,
                                 ngx_http_xet_hub_create_read, c);
}


ngx_int_t
ngx_http_xet_hub_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_change_read(r, ngx_http_xet_hub_repo_parse,
                                        ngx_http_xet_hub_delete_read);
}


ngx_int_t
ngx_http_xet_hub_move_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_change_read(r, ngx_http_xet_hub_move_parse,
                                        ngx_http_xet_hub_move_read);
}


ngx_int_t
ngx_http_xet_hub_settings_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_change_read(r, ngx_http_xet_hub_settings_parse,
                                        ngx_http_xet_hub_settings_read);
}


/*
 * Creates a bucket.  Its name is in the path; the body has only its visibility.
 */

ngx_int_t
ngx_http_xet_hub_bucket_create_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_hub_change_read(r, ngx_http_xet_hub_settings_parse,
                                        ngx_http_xet_hub_create_put);
}


ngx_int_t
ngx_http_xet_hub_bucket_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_delete, ngx_http_xet_hub_answered,
                                  .asked = &hub->asked));
}


static ngx_http_xet_hub_change_t *
ngx_http_xet_hub_change(ngx_http_request_t *r)
{
    ngx_http_xet_hub_change_t  *c;

    c = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_change_t),
                           ngx_http_xet_hub_change_cleanup);
    if (c == NULL || RAND_bytes(c->upload, sizeof(c->upload)) != 1) {
        return NULL;
    }

    ngx_http_xet_hub_get(r)->state = c;
    ngx_http_xet_hub_get(r)->refusal = &c->repo.refusal;

    return c;
}


/* Reads a body that describes a repo. */

static ngx_int_t
ngx_http_xet_hub_change_read(ngx_http_request_t *r,
    xet_status_t (*parse)(void *data, u_char *text, size_t len),
    void (*done)(ngx_http_request_t *r, void *data))
{
    ngx_http_xet_hub_change_t  *c;

    c = ngx_http_xet_hub_change(r);

    return c ? ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_REPO_BODY, parse,
                                     done, c)
             : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static void
ngx_http_xet_hub_change_cleanup(void *data)
{
    ngx_http_xet_hub_change_t *c = data;

    json_decref(c->repo.doc);
}


static xet_status_t
ngx_http_xet_hub_create_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_change_t *c = data;

    xet_status_t  rc;

    rc = xet_hub_create_parse(&c->repo, text, len);

    return (rc == XET_OK) ? xet_hub_repo_files(&c->repo, &c->limits,
                                               ngx_http_xet_hub_initial_add,
                                               c->first)
                          : rc;
}


static xet_status_t
ngx_http_xet_hub_repo_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_change_t *c = data;

    return xet_hub_repo_parse(&c->repo, text, len);
}


static xet_status_t
ngx_http_xet_hub_move_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_change_t *c = data;

    return xet_hub_move_parse(&c->repo, text, len);
}


static xet_status_t
ngx_http_xet_hub_settings_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_change_t *c = data;

    return xet_hub_settings_parse(&c->repo, text, len);
}


/* Sets the requested repo from the body. */

static void
ngx_http_xet_hub_asked(ngx_http_request_t *r, ngx_http_xet_hub_change_t *c)
{
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    hub->asked.kind = c->repo.kind;
    hub->asked.name.data = (u_char *) c->repo.name.data;
    hub->asked.name.len = c->repo.name.len;

    if (c->repo.owner.data) {
        hub->asked.owner.data = (u_char *) c->repo.owner.data;
        hub->asked.owner.len = c->repo.owner.len;

        ngx_http_xet_hub_owner(hub, &hub->asked.owner);

    } else {
        hub->asked.owner = hub->who;
    }

    ngx_http_xet_hub_note(r, hub);
}


static void
ngx_http_xet_hub_create_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_asked(r, data);

    ngx_http_xet_hub_create_put(r, data);
}


static void
ngx_http_xet_hub_create_put(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_change_t *c = data;

    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    if (!xet_hub_owner_ok(hub->asked.owner.data, hub->asked.owner.len)) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r,
                                                               XET_HUB_NAME));
        return;
    }

    if (c->first) {
        ngx_http_xet_hub_initial_take(r, c->first,
                                      ngx_http_xet_hub_create_make);
        return;
    }

    ngx_http_xet_hub_create_make(r, 0);
}


static void
ngx_http_xet_hub_create_make(ngx_http_request_t *r, ngx_uint_t batches)
{
    ngx_http_xet_hub_t         *hub;
    ngx_http_xet_hub_change_t  *c;

    hub = ngx_http_xet_hub_get(r);
    c = hub->state;

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_leave(r,
            ngx_http_xet_query(r, hub_create, ngx_http_xet_hub_created,
                               .asked = &hub->asked,
                               .private = (c->repo.private == 1),
                               .who = hub->who, .upload = c->upload,
                               .batches = batches),
            batches ? c->upload : NULL, 1));
}


static void
ngx_http_xet_hub_created(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_answer_t   answer;
    ngx_http_xet_hub_change_t  *c;

    c = ngx_http_xet_hub_get(r)->state;

    if (ngx_http_xet_hub_over(r, rc) != NGX_OK) {
        return;
    }

    if (rc == NGX_ABORT) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r,
                                                            XET_STAGED_GONE));
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, &answer);

        if (answer.status == NGX_HTTP_OK && c->first) {
            ngx_http_xet_hub_initial_done(c->first);
        }

        if (answer.status == NGX_HTTP_OK
            || answer.status == NGX_HTTP_CONFLICT)
        {
            ngx_http_finalize_request(r, ngx_http_xet_hub_create_send(r,
                                                                      &answer));
            return;
        }
    }

    ngx_http_xet_hub_answered(r, rc);
}


/*
 * Sends the created repo, or an error.  If the repo exists already, clients
 * read its URL from the error.
 */

static ngx_int_t
ngx_http_xet_hub_create_send(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    ngx_str_t   url;
    xet_buf_t   b;
    xet_json_t  j;

    if (ngx_http_xet_hub_url(r, &answer->more, NULL, &url) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);

    if (answer->status != NGX_HTTP_OK) {
        xet_json_put_string(&j, "error", answer->message.data,
                            answer->message.len);

        if (ngx_http_xet_hub_header(r, "X-Error-Message", "%V",
                                    &answer->message)
            != NGX_OK
            || ngx_http_xet_hub_create_warn(r, answer) != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    xet_json_put_string(&j, "url", url.data, url.len);
    xet_json_put_string(&j, "name", answer->more.data, answer->more.len);
    xet_json_put_string(&j, "id", answer->more.data, answer->more.len);
    xet_json_object_end(&j);

    return ngx_http_xet_send(r, answer->status, "application/json", &b);
}


/*
 * Clients that create a repo with "exist_ok" ignore the error, although the
 * existing repo may be public and not private as requested.  They print this
 * header.
 */

static ngx_int_t
ngx_http_xet_hub_create_warn(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    int                         private;
    ngx_http_xet_hub_change_t  *c;

    c = ngx_http_xet_hub_get(r)->state;
    private = ngx_http_xet_hub_is(&answer->body, "private");

    if (answer->body.len == 0 || c->repo.private < 0
        || c->repo.private == private)
    {
        return NGX_OK;
    }

    return ngx_http_xet_hub_header(r, "X-HF-Warning",
                                   "visibility; %V already exists and remains"
                                   " %V", &answer->more, &answer->body);
}


static void
ngx_http_xet_hub_delete_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    ngx_http_xet_hub_asked(r, data);

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_delete, ngx_http_xet_hub_answered,
                           .asked = &hub->asked));
}


static void
ngx_http_xet_hub_move_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_change_t *c = data;

    ngx_int_t            rc;
    ngx_str_t            owner, name;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    ngx_http_xet_hub_asked(r, c);

    owner = hub->who;

    if (c->repo.to_owner.data) {
        owner.data = (u_char *) c->repo.to_owner.data;
        owner.len = c->repo.to_owner.len;

        ngx_http_xet_hub_owner(hub, &owner);
    }

    name.data = (u_char *) c->repo.to_name.data;
    name.len = c->repo.to_name.len;

    if (!xet_hub_owner_ok(owner.data, owner.len)) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r,
                                                               XET_HUB_NAME));
        return;
    }

    hub->rev = owner;
    hub->path = name;

    rc = ngx_http_xet_query(r, hub_move, ngx_http_xet_hub_answered,
                            .asked = &hub->asked, .admin = hub->asked.admin,
                            .to_owner = hub->rev, .to_name = hub->path);

    ngx_http_xet_hub_wait(r, rc);
}


static void
ngx_http_xet_hub_settings_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_change_t *c = data;

    ngx_int_t            rc;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    rc = ngx_http_xet_query(r, hub_settings, ngx_http_xet_hub_answered,
                            .asked = &hub->asked, .admin = hub->asked.admin,
                            .private = c->repo.private);

    ngx_http_xet_hub_wait(r, rc);
}
