
/*
 * Arguments of requests to a Hub.
 *
 * A request with an argument that its route does not know is rejected:
 * otherwise it would succeed without the effect that the client wants.  Routes
 * that are not in the tables take any arguments: pages and files, to which
 * browsers, proxies and people append arguments; signed URLs; and the list of
 * repos, which checks its arguments itself.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_ARG  64       /* maximum bytes of a known name */


typedef enum {
    NGX_HTTP_XET_HUB_ARG_ANY = 0,
    NGX_HTTP_XET_HUB_ARG_FLAG,         /* true, false, 1 or 0 */
    NGX_HTTP_XET_HUB_ARG_COUNT,        /* a number of at least 1 */
    NGX_HTTP_XET_HUB_ARG_TIME,         /* the characters of a time */
    NGX_HTTP_XET_HUB_ARG_REV           /* a revision, or nothing */
} ngx_http_xet_hub_arg_e;


typedef struct {
    const char              *name;
    ngx_http_xet_hub_arg_e   type;
} ngx_http_xet_hub_arg_t;


/* what a value must be, by type */

static const char *const  ngx_http_xet_hub_arg_must[] = {
    "",
    "must be true or false",
    "must be a number",
    "must be a date, or a date and a time in UTC (2026-01-31T12:00:00Z)",
    "must be a branch, a tag or a commit"
};


static const ngx_http_xet_hub_arg_t *ngx_http_xet_hub_args_of(
    const char *action);
static ngx_int_t ngx_http_xet_hub_arg_check(ngx_http_request_t *r,
    const ngx_http_xet_hub_arg_t *known, u_char *p, u_char *last);
static ngx_uint_t ngx_http_xet_hub_arg_ok(ngx_http_xet_hub_arg_e type,
    u_char *p, size_t len);


static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_none[] = {
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

/* "expand" lists fields; a response may have more fields, or fewer */

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_info[] = {
    { "blobs", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "securityStatus", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "full", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "cardData", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "config", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "expand", NGX_HTTP_XET_HUB_ARG_ANY },
    { "expand[]", NGX_HTTP_XET_HUB_ARG_ANY },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_tree[] = {
    { "recursive", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "expand", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "limit", NGX_HTTP_XET_HUB_ARG_COUNT },
    { "cursor", NGX_HTTP_XET_HUB_ARG_ANY },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_commits[] = {
    { "expand", NGX_HTTP_XET_HUB_ARG_ANY },
    { "expand[]", NGX_HTTP_XET_HUB_ARG_ANY },
    { "until", NGX_HTTP_XET_HUB_ARG_TIME },
    { "limit", NGX_HTTP_XET_HUB_ARG_COUNT },
    { "cursor", NGX_HTTP_XET_HUB_ARG_ANY },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_changes[] = {
    { "base", NGX_HTTP_XET_HUB_ARG_REV },
    { "limit", NGX_HTTP_XET_HUB_ARG_COUNT },
    { "cursor", NGX_HTTP_XET_HUB_ARG_ANY },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_refs[] = {
    { "include_prs", NGX_HTTP_XET_HUB_ARG_FLAG },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

/* a token is the same for a commit that a client wants as a pull request */

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_token[] = {
    { "create_pr", NGX_HTTP_XET_HUB_ARG_FLAG },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};

/* "hot_reload" is a hint for a running space */

static const ngx_http_xet_hub_arg_t  ngx_http_xet_hub_args_commit[] = {
    { "create_pr", NGX_HTTP_XET_HUB_ARG_FLAG },
    { "hot_reload", NGX_HTTP_XET_HUB_ARG_FLAG },
    { NULL, NGX_HTTP_XET_HUB_ARG_ANY }
};


static const struct {
    const char                    *action;     /* of routes.def */
    const ngx_http_xet_hub_arg_t  *args;
} ngx_http_xet_hub_args[] = {
    { "hub.info", ngx_http_xet_hub_args_info },
    { "hub.tree", ngx_http_xet_hub_args_tree },
    { "hub.commits", ngx_http_xet_hub_args_commits },
    { "hub.changes", ngx_http_xet_hub_args_changes },
    { "hub.refs", ngx_http_xet_hub_args_refs },
    { "hub.preupload", ngx_http_xet_hub_args_commit },
    { "hub.commit", ngx_http_xet_hub_args_commit },
    { "hub.enter", ngx_http_xet_hub_args_none },
    { "hub.paths", ngx_http_xet_hub_args_none },
    { "hub.create", ngx_http_xet_hub_args_none },
    { "hub.delete", ngx_http_xet_hub_args_none },
    { "hub.move", ngx_http_xet_hub_args_none },
    { "hub.settings", ngx_http_xet_hub_args_none },
    { "hub.branch", ngx_http_xet_hub_args_none },
    { "hub.tag", ngx_http_xet_hub_args_none },
    { "hub.squash", ngx_http_xet_hub_args_none },
    { "hub.duplicate", ngx_http_xet_hub_args_none },
    { "hub.lfs_batch", ngx_http_xet_hub_args_none },
    { "hub.bucket_create", ngx_http_xet_hub_args_none },
    { "hub.bucket_delete", ngx_http_xet_hub_args_none },
    { "token.mint", ngx_http_xet_hub_args_token },
    { NULL, NULL }
};


ngx_int_t
ngx_http_xet_hub_args_check(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    u_char                        *p, *end, *last;
    ngx_int_t                      rc;
    const ngx_http_xet_hub_arg_t  *known;

    known = ngx_http_xet_hub_args_of(hub->match->route->action);

    if (known == NULL || r->args.len == 0) {
        return NGX_OK;
    }

    rc = NGX_OK;
    last = r->args.data + r->args.len;

    for (p = r->args.data; p < last && rc == NGX_OK; p = end + 1) {
        end = ngx_strlchr(p, last, '&');

        if (end == NULL) {
            end = last;
        }

        if (end > p) {
            rc = ngx_http_xet_hub_arg_check(r, known, p, end);
        }
    }

    return rc;
}


/* Returns the arguments of a route; NULL if it takes any. */

static const ngx_http_xet_hub_arg_t *
ngx_http_xet_hub_args_of(const char *action)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_xet_hub_args[i].action; i++) {
        if (ngx_strcmp(ngx_http_xet_hub_args[i].action, action) == 0) {
            break;
        }
    }

    return ngx_http_xet_hub_args[i].args;
}


static ngx_int_t
ngx_http_xet_hub_arg_check(ngx_http_request_t *r,
    const ngx_http_xet_hub_arg_t *known, u_char *p, u_char *last)
{
    u_char             *src, *dst, *value;
    xet_hub_refusal_t   refusal;
    u_char              name[NGX_HTTP_XET_HUB_ARG];

    value = ngx_strlchr(p, last, '=');

    if (value == NULL) {
        value = last;
    }

    src = p;
    dst = name;

    ngx_unescape_uri(&dst, &src,
                     ngx_min((size_t) (value - p), sizeof(name) - 1), 0);
    *dst = '\0';

    while (known->name && ngx_strcmp(known->name, name) != 0) {
        known++;
    }

    ngx_memzero(&refusal, sizeof(xet_hub_refusal_t));

    if (known->name == NULL) {

        /* an incomplete character of a name that was cut is not shown */

        while (dst > name
               && !xet_hub_text_ok(name, ngx_strlen(name)))
        {
            *--dst = '\0';
        }

        xet_hub_refuse(&refusal, (char *) name, NULL);

        return ngx_http_xet_hub_deny_key(r, XET_HUB_KEY, &refusal);
    }

    if (value < last) {
        value++;
    }

    dst = ngx_pnalloc(r->pool, last - value + 1);
    if (dst == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    src = value;
    value = dst;

    ngx_unescape_uri(&dst, &src, last - src, 0);

    if (ngx_http_xet_hub_arg_ok(known->type, value, dst - value)) {
        return NGX_OK;
    }

    xet_hub_refuse(&refusal, known->name,
                   ngx_http_xet_hub_arg_must[known->type]);

    return ngx_http_xet_hub_deny_key(r, XET_HUB_VALUE, &refusal);
}


static ngx_uint_t
ngx_http_xet_hub_arg_ok(ngx_http_xet_hub_arg_e type, u_char *p, size_t len)
{
    switch (type) {

    case NGX_HTTP_XET_HUB_ARG_FLAG:
        return (len == 4 && ngx_strncasecmp(p, (u_char *) "true", 4) == 0)
               || (len == 5 && ngx_strncasecmp(p, (u_char *) "false", 5) == 0)
               || (len == 1 && (*p == '1' || *p == '0'));

    case NGX_HTTP_XET_HUB_ARG_COUNT:
        return ngx_atoi(p, len) > 0;

    case NGX_HTTP_XET_HUB_ARG_TIME:

        if (len == 0 || len > NGX_HTTP_XET_HUB_ARG) {
            return 0;
        }

        while (len--) {
            if (p[len] != '\0' && ngx_strchr("0123456789-:.TZ", p[len])) {
                continue;
            }

            return 0;
        }

        return 1;

    case NGX_HTTP_XET_HUB_ARG_REV:
        return len == 0 || xet_hub_rev_ok(p, len);

    default:
        return 1;
    }
}
