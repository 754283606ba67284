
/*
 * Checks a rule for all locations: if a Hub distinguishes its callers, no other
 * location may expose private repos, unless "xet_hub_expose" allows this.
 *
 * All locations of an http block share a store and a database.  A location that
 * serves data by hash, without checking the repo, exposes the contents of the
 * Hub's repos, and so does a Hub that is open to everyone.  If any server has a
 * Hub with private repos, such a location is rejected, unless the location or
 * its server has "xet_hub_expose on".  The directive is rejected where it has
 * no effect, because there it would hide later mistakes.
 *
 * Runs once, in postconfiguration, in the master, when all locations are
 * merged.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


/* A way in which a location exposes private repos, for the error message. */

typedef struct {
    const char                *name;           /* the directive at fault */
    const char                *what;           /* what the location does */
    const char                *write;          /* the correction */
} ngx_http_xet_leak_t;


static ngx_http_xet_conf_location_t *ngx_http_xet_expose_hub(
    ngx_http_xet_main_conf_t *xmcf);
static ngx_uint_t ngx_http_xet_expose_guarded(ngx_http_xet_loc_conf_t *conf);
static const ngx_http_xet_leak_t *ngx_http_xet_expose_leak(
    ngx_http_xet_conf_location_t *loc);
static ngx_uint_t ngx_http_xet_expose_reads(ngx_http_xet_conf_location_t *loc);
static ngx_uint_t ngx_http_xet_expose_used(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_conf_location_t *loc);


static const ngx_http_xet_leak_t  ngx_http_xet_leak_open = {
    "xet_auth", "opens the whole store without a token (\"xet_auth off\")",
    "xet_auth token;"
};


static const ngx_http_xet_leak_t  ngx_http_xet_leak_store = {
    "xet_access", "opens the whole store to any token (\"xet_access store\")",
    "xet_access repo;"
};


static const ngx_http_xet_leak_t  ngx_http_xet_leak_dedup = {
    "xet_dedup_scope", "reveals what the whole store has (\"xet_dedup_scope "
                       "store\")",
    "xet_dedup_scope repo;"
};


static const ngx_http_xet_leak_t  ngx_http_xet_leak_url = {
    "xet_url_mode", "issues URLs of whole xorbs with data of several repos "
                    "(\"xet_url_mode cacheable\")",
    "xet_url_mode strict;"
};


static const ngx_http_xet_leak_t  ngx_http_xet_leak_hub = {
    "xet_auth", "opens all repos to everyone (\"xet_hub\" with \"xet_auth "
                "off\")",
    "xet_auth token;"
};


ngx_int_t
ngx_http_xet_conf_expose(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *p, *hub;
    const ngx_http_xet_leak_t     *leak;

    hub = ngx_http_xet_expose_hub(xmcf);
    p = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if (p[i].conf->hub_expose
            && ngx_http_xet_conf_written(xmcf, p[i].conf, "xet_hub_expose")
            && (hub == NULL || !ngx_http_xet_expose_used(xmcf, &p[i])))
        {
            ngx_http_xet_conf_say(cf, NGX_LOG_EMERG, p[i].conf,
                                  "xet_hub_expose",
                                  "\"xet_hub_expose on\" has no effect: %s; "
                                  "remove it",
                                  hub ? "no location there exposes private "
                                        "repos"
                                      : "no \"xet_hub\" has private repos");
            return NGX_ERROR;
        }

        leak = (hub && !p[i].conf->hub_expose)
               ? ngx_http_xet_expose_leak(&p[i]) : NULL;

        if (leak) {
            ngx_http_xet_conf_say(cf, NGX_LOG_EMERG, p[i].conf, leak->name,
                                  "location \"%V\" %s and so exposes the "
                                  "private repos of \"xet_hub\" in location "
                                  "\"%V\": write \"%s\", or, if this is "
                                  "intended, \"xet_hub_expose on;\" in this "
                                  "location or its server",
                                  &p[i].core->name, leak->what,
                                  &hub->core->name, leak->write);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Returns the first Hub whose responses depend on the caller, or NULL. */

static ngx_http_xet_conf_location_t *
ngx_http_xet_expose_hub(ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *p;

    p = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if (!p[i].core->noname && p[i].conf->hub == 1
            && ngx_http_xet_expose_guarded(p[i].conf))
        {
            return &p[i];
        }
    }

    return NULL;
}


/*
 * Returns whether the responses of a Hub depend on the caller.  A token, or the
 * user or owners that a front end has determined, identify the caller.  If
 * everyone owns all name spaces, the responses do not depend on the caller.
 */

static ngx_uint_t
ngx_http_xet_expose_guarded(ngx_http_xet_loc_conf_t *conf)
{
    ngx_http_complex_value_t  *owners;

    if (conf->auth == NGX_HTTP_XET_AUTH_TOKEN) {
        return 1;
    }

    owners = conf->hub_owners;

    if (owners && owners->lengths == NULL && owners->value.len == 1
        && owners->value.data[0] == '*')
    {
        return 0;
    }

    return conf->hub_user || owners;
}


/*
 * Returns the way in which a location exposes private repos, or NULL.  Blocks
 * of "if" and "limit_except" are covered by the location around them.
 */

static const ngx_http_xet_leak_t *
ngx_http_xet_expose_leak(ngx_http_xet_conf_location_t *loc)
{
    ngx_http_xet_loc_conf_t  *conf;

    conf = loc->conf;

    if (loc->core->noname) {
        return NULL;
    }

    if (conf->hub == 1) {
        return ngx_http_xet_expose_guarded(conf) ? NULL
                                                 : &ngx_http_xet_leak_hub;
    }

    if (conf->api != 1 || !ngx_http_xet_expose_reads(loc)) {
        return NULL;
    }

    if (conf->auth != NGX_HTTP_XET_AUTH_TOKEN) {
        return &ngx_http_xet_leak_open;
    }

    if (!conf->repos) {
        return &ngx_http_xet_leak_store;
    }

    if (conf->dedup_scope == NGX_HTTP_XET_ACCESS_STORE) {
        return &ngx_http_xet_leak_dedup;
    }

    if (conf->url_mode == NGX_HTTP_XET_URL_CACHEABLE) {
        return &ngx_http_xet_leak_url;
    }

    return NULL;
}


/*
 * Returns whether requests to a location can read data.  Only an exact location
 * ("=") can be limited to a route that reads no data.
 */

static ngx_uint_t
ngx_http_xet_expose_reads(ngx_http_xet_conf_location_t *loc)
{
    size_t       len;
    ngx_str_t   *name, *base;
    ngx_uint_t   i;

    static const ngx_str_t  others[] = {
        ngx_string("/telemetry"), ngx_string("/v1/telemetry"),
        ngx_string("/health"), ngx_string("/v1/health"),
        ngx_string("/health/live"), ngx_string("/v1/health/live")
    };

    name = &loc->core->name;
    base = &loc->conf->api_base;

    if (!loc->core->exact_match || name->len < base->len
        || ngx_strncmp(name->data, base->data, base->len) != 0)
    {
        return 1;
    }

    len = name->len - base->len;

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {

        if (others[i].len == len
            && ngx_strncmp(others[i].data, name->data + base->len, len) == 0)
        {
            return 0;
        }
    }

    return 1;
}


/*
 * Returns whether "xet_hub_expose" of loc has an effect, in loc or in a nested
 * location.
 */

static ngx_uint_t
ngx_http_xet_expose_used(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_conf_location_t *loc)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *p, *around;

    p = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if (!p[i].conf->hub_expose
            || ngx_http_xet_expose_leak(&p[i]) == NULL)
        {
            continue;
        }

        for (around = &p[i]; around && around != loc;
             around = ngx_http_xet_conf_location_of(xmcf, around->outer))
        {
            /* void */
        }

        if (around) {
            return 1;
        }
    }

    return 0;
}
