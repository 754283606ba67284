
/*
 * Finds the component of a zTensor file that a request names by its arguments:
 * "name" or "i", and "role" if the object has no default component.
 *
 * The job that finds the object copies it, because the object of the walk is
 * invalid after the handler has returned.  A copy takes a few hundred bytes,
 * limited by the maximum lengths of names and roles.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_ztensor.h"


static void ngx_http_xet_zt_component_cleanup(void *data);
static void ngx_http_xet_zt_component_opened(ngx_http_request_t *r,
    void *data, xet_status_t status);
static xet_status_t ngx_http_xet_zt_component_object(void *ctx,
    xet_zt_object_t *o);
static void ngx_http_xet_zt_component_walked(ngx_http_request_t *r,
    void *data, xet_status_t status);
static xet_status_t ngx_http_xet_zt_component_choose(
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_component_roles(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


ngx_int_t
ngx_http_xet_zt_component(ngx_http_request_t *r, unsigned wanted,
    ngx_http_xet_zt_component_pt handler)
{
    xet_status_t                  status;
    ngx_http_xet_zt_component_t  *c;

    c = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_component_t),
                           ngx_http_xet_zt_component_cleanup);
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    c->handler = handler;

    status = ngx_http_xet_ztensor_create(r, wanted|XET_ZT_ARG_NAME
                                            |XET_ZT_ARG_ONE|XET_ZT_ARG_ROLE,
                                         &c->ztensor, c);
    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    return ngx_http_xet_ztensor_open(r, c->ztensor, 0,
                                     ngx_http_xet_zt_component_opened);
}


static void
ngx_http_xet_zt_component_cleanup(void *data)
{
    ngx_http_xet_zt_component_t *c = data;

    free(c->object);
}


static void
ngx_http_xet_zt_component_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_component_t *c = data;

    if (status == XET_OK) {
        xet_zt_region(c->ztensor->zt, &c->region);

        status = ngx_http_xet_ztensor_walk(r, c->ztensor,
                                           ngx_http_xet_zt_component_object,
                                           ngx_http_xet_zt_component_walked);
        if (status == XET_AGAIN) {
            return;
        }

        if (status == XET_OK) {
            status = XET_ZT_NO_OBJECT;
        }
    }

    ngx_http_finalize_request(r,
                       ngx_http_xet_ztensor_error(r, c->ztensor, status));
}


/*
 * Copies the first object whose number is at least select.first.  Numbers have
 * no gaps, so if the request has "i", this object has that number.  Runs in a
 * thread.
 */

static xet_status_t
ngx_http_xet_zt_component_object(void *ctx, xet_zt_object_t *o)
{
    ngx_http_xet_zt_component_t *c = ctx;

    c->object = xet_zt_object_copy(o);

    return (c->object == NULL) ? XET_NOMEM : XET_DONE;
}


static void
ngx_http_xet_zt_component_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_component_t *c = data;

    ngx_int_t  rc;

    if (status == XET_OK) {
        status = ngx_http_xet_zt_component_choose(c);
    }

    switch (status) {

    case XET_OK:
        rc = c->handler(r, c);

        if (rc == NGX_AGAIN) {
            return;
        }

        break;

    case XET_ZT_ROLE:
        rc = ngx_http_xet_zt_component_roles(r, c);
        break;

    default:
        rc = ngx_http_xet_ztensor_error(r, c->ztensor, status);
        break;
    }

    ngx_http_finalize_request(r, rc);
}


static xet_status_t
ngx_http_xet_zt_component_choose(ngx_http_xet_zt_component_t *c)
{
    xet_status_t          status;
    const xet_zt_text_t  *role;

    if (c->object == NULL) {
        return XET_ZT_NO_OBJECT;
    }

    role = &c->ztensor->query.role;

    if (role->data) {
        c->component = xet_zt_object_component(c->object, role->data,
                                               role->len);
        if (c->component == NULL) {
            return XET_ZT_NO_COMPONENT;
        }

    } else {
        c->component = xet_zt_object_default(c->object);

        if (c->component == NULL) {
            return XET_ZT_ROLE;
        }
    }

    status = xet_zt_object_fault(c->object);

    if (status != XET_OK) {
        return status;
    }

    return xet_zt_component_range(c->component, &c->region, &c->range);
}


/* Sends the error XET_ZT_ROLE, with the roles of the object. */

static ngx_int_t
ngx_http_xet_zt_component_roles(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    unsigned    i;
    xet_buf_t   b;
    xet_json_t  j;

    ngx_http_xet_error_begin(r, &b, &j, xet_status_code(XET_ZT_ROLE),
                             xet_status_text(XET_ZT_ROLE));

    xet_json_key(&j, "roles");
    xet_json_array_begin(&j);

    for (i = 0; i < c->object->n; i++) {
        xet_json_string(&j, c->object->components[i].role.data,
                        c->object->components[i].role.len);
    }

    xet_json_array_end(&j);

    ngx_http_xet_error_end(&j);

    return ngx_http_xet_error_more(r, .core = XET_ZT_ROLE, .body = &b);
}
