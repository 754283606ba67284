
/*
 * Warnings that "nginx -t" prints about URLs that do not lead to the data.
 *
 * The URL of a xorb consists of "xet_url_base" and a path.  A request for the
 * URL reaches a server and a location of some nginx, and ends at a file below
 * root or alias.  Each of these steps is configured in a different place.  The
 * checks in this file follow those steps that are configured in this nginx;
 * other checks are in ngx_http_xet_conf_warn.c.  This file also has the sample
 * requests and functions that other checks use.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_conf_warn.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_DATA        "/xorbs/" NGX_HTTP_XET_NAMESPACE "/00/"      \
                                 NGX_HTTP_XET_WARN_HASH


static ngx_int_t ngx_http_xet_warn_root_of(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc,
    const ngx_str_t *prefix);
static ngx_uint_t ngx_http_xet_warn_comes(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc,
    const ngx_str_t *prefix);
static void ngx_http_xet_warn_resolve(u_char *path, u_char *real);
static ngx_uint_t ngx_http_xet_warn_same(u_char *one, u_char *two);
static const xet_url_t *ngx_http_xet_warn_base(ngx_http_xet_conf_location_t
    *loc, ngx_str_t *path);
static ngx_uint_t ngx_http_xet_warn_ours(ngx_http_xet_warn_t *w,
    const xet_url_t *base);
static ngx_uint_t ngx_http_xet_warn_named(ngx_http_conf_addr_t *addr,
    const xet_url_t *base);
static ngx_uint_t ngx_http_xet_warn_served(ngx_http_xet_warn_t *w,
    ngx_str_t *path);


/*
 * Warns if a data location does not serve the folder of "xet_store".  A data
 * URL consists of a base and the path of a xorb in the store.  The base may be
 * empty, the start of the location's name, or any "xet_url_base".  There is no
 * warning if any of these leads to the store.
 */

void
ngx_http_xet_warn_root(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    u_char                        *p;
    ngx_str_t                      prefix, path;
    ngx_int_t                      rc, judged;
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *locations;
    ngx_http_core_loc_conf_t      *clcf;

    clcf = loc->core;

    if (w->xmcf->store == NULL || w->xmcf->store->s3 || clcf->root_lengths
        || clcf->named)
    {
        return;
    }

    ngx_str_null(&prefix);

    judged = ngx_http_xet_warn_root_of(w, server, loc, &prefix);

    if (judged == NGX_OK) {
        return;
    }

    p = ngx_strnstr(clcf->name.data, "/xorbs", clcf->name.len);

    if (p && ngx_http_xet_conf_location_plain(loc)) {
        prefix.data = clcf->name.data;
        prefix.len = p - clcf->name.data;

        rc = ngx_http_xet_warn_root_of(w, server, loc, &prefix);
        judged = (rc == NGX_DECLINED) ? judged : rc;
    }

    locations = w->xmcf->locations->elts;

    for (i = 0; judged != NGX_OK && i < w->xmcf->locations->nelts; i++) {

        if (locations[i].conf->api
            && ngx_http_xet_warn_base(&locations[i], &path))
        {
            rc = ngx_http_xet_warn_root_of(w, server, loc, &path);
            judged = (rc == NGX_DECLINED) ? judged : rc;
        }
    }

    if (judged != NGX_ERROR) {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_data",
                          "\"%s\" of location \"%V\" is \"%V\", which is not "
                          "the folder of \"xet_store\", \"%V\": downloads "
                          "fail with 404; write \"root %V;\" where URLs have "
                          "\"/xorbs/\" at their root, or \"alias %V/xorbs/;\" "
                          "in a location that ends with \"/xorbs/\"",
                          clcf->alias ? "alias" : "root", &clcf->name,
                          &clcf->root, &w->xmcf->store->name,
                          &w->xmcf->store->name, &w->xmcf->store->name);
}


ngx_uint_t
ngx_http_xet_warn_data(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    u_char                        *p;
    ngx_str_t                      prefix, path, *name;
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *locations;

    ngx_str_null(&prefix);

    if (ngx_http_xet_warn_comes(w, server, loc, &prefix)) {
        return 1;
    }

    name = &loc->core->name;
    p = ngx_strnstr(name->data, "/xorbs", name->len);

    if (p && ngx_http_xet_conf_location_plain(loc)) {
        prefix.data = name->data;
        prefix.len = p - name->data;

        if (ngx_http_xet_warn_comes(w, server, loc, &prefix)) {
            return 1;
        }
    }

    locations = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (locations[i].conf->api
            && ngx_http_xet_warn_base(&locations[i], &path)
            && ngx_http_xet_warn_comes(w, server, loc, &path))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_xet_warn_comes(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc, const ngx_str_t *prefix)
{
    u_char     buf[NGX_HTTP_XET_URI_MAX];
    ngx_str_t  uri;

    uri.data = buf;
    uri.len = ngx_snprintf(buf, sizeof(buf), "%V%s", prefix,
                           NGX_HTTP_XET_DATA)
              - buf;

    return ngx_http_xet_conf_location_find(w->xmcf, server, &uri) == loc;
}


/*
 * Finds the path of a file that nginx opens for a xorb below prefix.  Returns
 * NGX_OK if the file is in the store, NGX_ERROR if it is elsewhere, or
 * NGX_DECLINED if the request does not reach this location.
 */

static ngx_int_t
ngx_http_xet_warn_root_of(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc, const ngx_str_t *prefix)
{
    u_char                     buf[NGX_HTTP_XET_URI_MAX], *p;
    u_char                     path[NGX_MAX_PATH], real[NGX_MAX_PATH];
    u_char                     store[NGX_MAX_PATH];
    ngx_str_t                  uri;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = loc->core;

    p = ngx_slprintf(buf, buf + sizeof(buf) - 1, "%V%s", prefix,
                     NGX_HTTP_XET_DATA);
    *p = '\0';

    uri.data = buf;
    uri.len = p - buf;

    if (clcf->alias > uri.len
        || ngx_http_xet_conf_location_find(w->xmcf, server, &uri) != loc)
    {
        return NGX_DECLINED;
    }

    p = ngx_slprintf(path, path + sizeof(path) - 1, "%V%s", &clcf->root,
                     uri.data + clcf->alias);
    *p = '\0';

    ngx_http_xet_warn_resolve(path, real);

    p = ngx_slprintf(path, path + sizeof(path) - 1, "%V%s",
                     &w->xmcf->store->name, NGX_HTTP_XET_DATA);
    *p = '\0';

    ngx_http_xet_warn_resolve(path, store);

    return (ngx_strcmp(real, store) == 0
            || ngx_http_xet_warn_same(real, store))
           ? NGX_OK : NGX_ERROR;
}


/*
 * Resolves symbolic links in the existing part of the path; nginx creates
 * missing folders of the store at its first start.  real has NGX_MAX_PATH
 * bytes.
 */

static void
ngx_http_xet_warn_resolve(u_char *path, u_char *real)
{
    char    *found;
    u_char  *end, *last;

    last = path + ngx_strlen(path);
    end = last;

    for ( ;; ) {

        while (end > path && *--end != '/') { /* void */ }

        if (end == path) {
            ngx_cpystrn(real, path, NGX_MAX_PATH);
            return;
        }

        *end = '\0';
        found = realpath((char *) path, NULL);
        *end = '/';

        if (found) {
            break;
        }
    }

    (void) ngx_snprintf(real, NGX_MAX_PATH, "%s%s%Z", found, end);
    real[NGX_MAX_PATH - 1] = '\0';

    free(found);
}


/* Returns whether two paths are the same folder, possibly mounted twice. */

static ngx_uint_t
ngx_http_xet_warn_same(u_char *one, u_char *two)
{
    size_t           len;
    ngx_uint_t       i;
    u_char          *path[2];
    ngx_file_info_t  fi[2];

    path[0] = one;
    path[1] = two;

    /* compare the folders above "/00/" */

    for (i = 0; i < 2; i++) {
        len = ngx_strlen(path[i]);

        if (len <= sizeof("/00/" NGX_HTTP_XET_WARN_HASH) - 1) {
            return 0;
        }

        path[i][len - (sizeof("/00/" NGX_HTTP_XET_WARN_HASH) - 1)] = '\0';

        if (ngx_file_info(path[i], &fi[i]) == NGX_FILE_ERROR) {
            return 0;
        }
    }

    return fi[0].st_dev == fi[1].st_dev && fi[0].st_ino == fi[1].st_ino;
}


/*
 * Warns if "max_ranges" of the data location is less than "xet_url_ranges".
 * The check is possible only if the same server also serves the data.
 */

void
ngx_http_xet_warn_ranges(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    u_char                         buf[NGX_HTTP_XET_URI_MAX], *p;
    ngx_str_t                      uri, path;
    ngx_http_xet_conf_location_t  *data;

    if (loc->conf->url_ranges == 1
        || !ngx_http_xet_warn_leads(w, server, loc, "/v2/reconstructions/"
                                                      NGX_HTTP_XET_WARN_HASH))
    {
        return;
    }

    if (ngx_http_xet_warn_base(loc, &path) == NULL) {
        ngx_str_null(&path);
    }

    p = ngx_slprintf(buf, buf + sizeof(buf) - 1, "%V%s", &path,
                     NGX_HTTP_XET_DATA);
    *p = '\0';

    uri.data = buf;
    uri.len = p - buf;

    data = ngx_http_xet_conf_location_find(w->xmcf, server, &uri);

    if (data == NULL || !data->conf->data || data->core->handler
        || data->core->max_ranges >= loc->conf->url_ranges)
    {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_url_ranges",
                          "\"xet_url_ranges\" is %ui, but \"max_ranges\" of "
                          "location \"%V\" is %ui: requests for more ranges "
                          "fail with 403 range_not_signed; write \"max_ranges "
                          "%ui;\" there",
                          loc->conf->url_ranges, &data->core->name,
                          data->core->max_ranges, loc->conf->url_ranges);
}


void
ngx_http_xet_warn_url_base(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc)
{
    ngx_str_t                      path;
    const xet_url_t               *base;
    ngx_http_xet_conf_location_t  *first;

    /* warn once for all locations that inherit the same "xet_url_base" */

    first = w->xmcf->locations->elts;

    while (first->conf->urls != loc->conf->urls
           || !first->conf->api || first->core->noname)
    {
        first++;
    }

    /* if no location has "xet_data", another machine serves the data */

    if (first != loc || !w->xmcf->data) {
        return;
    }

    base = ngx_http_xet_warn_base(loc, &path);

    if (base == NULL || !ngx_http_xet_warn_ours(w, base)
        || ngx_http_xet_warn_served(w, &path))
    {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_url_base",
                          "\"xet_url_base\" points to this nginx, but no "
                          "location of \"xet_data\" serves \"%V/xorbs/\": "
                          "downloads fail with 404; add such a location, or "
                          "correct the path of \"xet_url_base\"",
                          &path);
}


/* Returns the first "xet_url_base"; NULL if it has variables or is not set. */

static const xet_url_t *
ngx_http_xet_warn_base(ngx_http_xet_conf_location_t *loc, ngx_str_t *path)
{
    const xet_url_t  *url;

    if (loc->conf->urls == NULL) {
        return NULL;
    }

    url = loc->conf->urls->elts;

    path->data = (u_char *) url->path.data;
    path->len = url->path.len;

    return url;
}


/*
 * Returns whether the URL certainly leads to this nginx, with its path
 * unchanged: scheme and port are those of a listening address of a server with
 * this name.  Otherwise a proxy or a CDN might change the path.
 */

static ngx_uint_t
ngx_http_xet_warn_ours(ngx_http_xet_warn_t *w, const xet_url_t *base)
{
    ngx_uint_t             i, j, tls;
    ngx_http_conf_port_t  *port;
    ngx_http_conf_addr_t  *addr;

    if (w->ports == NULL) {
        return 0;
    }

    port = w->ports->elts;

    for (i = 0; i < w->ports->nelts; i++) {

        addr = port[i].addrs.elts;

        for (j = 0; j < port[i].addrs.nelts; j++) {

#if (NGX_HTTP_SSL)
            tls = addr[j].opt.ssl;
#else
            tls = 0;
#endif

            if (tls == (ngx_uint_t) base->tls
                && ngx_inet_get_port(addr[j].opt.sockaddr)
                   == xet_url_port_of(base, base->tls)
                && ngx_http_xet_warn_named(&addr[j], base))
            {
                return 1;
            }
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_xet_warn_named(ngx_http_conf_addr_t *addr, const xet_url_t *base)
{
    ngx_uint_t                  i, j;
    ngx_http_server_name_t     *name;
    ngx_http_core_srv_conf_t  **cscf;

    if (addr->opt.addr_text.len == base->authority.len
        && ngx_strncmp(addr->opt.addr_text.data, base->authority.data,
                       base->authority.len)
           == 0)
    {
        return 1;
    }

    cscf = addr->servers.elts;

    for (i = 0; i < addr->servers.nelts; i++) {

        name = cscf[i]->server_names.elts;

        for (j = 0; j < cscf[i]->server_names.nelts; j++) {

            if (name[j].name.len == base->host.len
                && ngx_strncasecmp(name[j].name.data,
                                   (u_char *) base->host.data,
                                   base->host.len)
                   == 0)
            {
                return 1;
            }
        }
    }

    return 0;
}


/*
 * Returns whether a location may serve data under a path: it has "xet_data",
 * another handler, or rewrite directives.
 */

static ngx_uint_t
ngx_http_xet_warn_served(ngx_http_xet_warn_t *w, ngx_str_t *path)
{
    u_char                         buf[NGX_HTTP_XET_URI_MAX], *p;
    ngx_str_t                      uri;
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *locations, *found;

    p = ngx_slprintf(buf, buf + sizeof(buf) - 1, "%V%s", path,
                     NGX_HTTP_XET_DATA);
    *p = '\0';

    uri.data = buf;
    uri.len = p - buf;

    locations = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (locations[i].outer != w->main) {
            continue;
        }

        if (ngx_http_xet_warn_returns(w, &locations[i], 0)) {
            return 1;
        }

        found = ngx_http_xet_conf_location_find(w->xmcf, &locations[i], &uri);

        if (found
            && (found->conf->data
                || (found->core->handler
                    && found->core->handler != ngx_http_xet_api_handler)
                || ngx_http_xet_warn_returns(w, found, 0)))
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_xet_warn_leads(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc, const char *path)
{
    u_char     buf[NGX_HTTP_XET_URI_MAX], *p;
    ngx_str_t  uri;

    p = ngx_slprintf(buf, buf + sizeof(buf) - 1, "%V%s",
                     &loc->conf->api_base, path);
    *p = '\0';

    uri.data = buf;
    uri.len = p - buf;

    return ngx_http_xet_conf_location_find(w->xmcf, server, &uri) == loc;
}


ngx_uint_t
ngx_http_xet_warn_has_name(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_str_t *name)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *p;

    p = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (p[i].server == server->server && p[i].core->named
            && p[i].core->name.len == name->len
            && ngx_strncmp(p[i].core->name.data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_xet_warn_returns(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc, ngx_uint_t first)
{
    void                     **confs;
    ngx_uint_t                 i;
    ngx_array_t              **conf;
    ngx_module_t             **modules;
    ngx_http_script_code_pt   *code;

    /*
     * nginx may be built without the rewrite module, so look up the module by
     * name; its configuration starts with the array of codes in all versions
     */

    modules = w->cf->cycle->modules;

    /* the core configuration of a server has no loc_conf */

    confs = loc->core->loc_conf ? loc->core->loc_conf
                                  : loc->server->ctx->loc_conf;

    for (i = 0; modules[i]; i++) {

        if (ngx_strcmp(modules[i]->name, "ngx_http_rewrite_module") == 0) {
            conf = confs[modules[i]->ctx_index];

            if (conf == NULL || *conf == NULL || (*conf)->nelts == 0) {
                return 0;
            }

            code = (*conf)->elts;

            return !first || *code == ngx_http_script_return_code;
        }
    }

    return 0;
}


ngx_http_conf_addr_t *
ngx_http_xet_warn_addr(ngx_http_xet_warn_t *w, ngx_http_core_srv_conf_t *cscf,
    ngx_uint_t n)
{
    ngx_uint_t                  i, j, k;
    ngx_http_conf_port_t       *port;
    ngx_http_conf_addr_t       *addr;
    ngx_http_core_srv_conf_t  **servers;

    if (w->ports == NULL) {
        return NULL;
    }

    port = w->ports->elts;

    for (i = 0; i < w->ports->nelts; i++) {

        addr = port[i].addrs.elts;

        for (j = 0; j < port[i].addrs.nelts; j++) {

            servers = addr[j].servers.elts;

            for (k = 0; k < addr[j].servers.nelts; k++) {

                if (servers[k] == cscf && n-- == 0) {
                    return &addr[j];
                }
            }
        }
    }

    return NULL;
}
