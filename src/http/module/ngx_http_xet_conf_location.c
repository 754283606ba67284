
/*
 * The positions of directives and locations in the configuration files, for
 * errors that are found after these files are parsed.
 *
 * While nginx parses, its errors contain the current line.  But conflicts
 * between directives are found when blocks are merged, and wrong targets of
 * URLs after all merges, when the current line is the end of "http".  So each
 * directive of this module records its file and line here, for the
 * configuration that the directive sets.  Every location is recorded when it
 * is merged, with its outer location.  Both lists are in the temporary pool of
 * the configuration, and are freed after loading.
 *
 * ngx_http_xet_conf_location_find() finds the location of a URI as nginx does
 * at run time: longest prefix, nested locations, regular expressions in their
 * order.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_COMPLAINT_MAX  2048


/* The position of a directive in a location, a server or "http". */

typedef struct {
    const void                *conf;
    ngx_str_t                  name;
    u_char                    *file;
    ngx_uint_t                 line;
} ngx_http_xet_line_t;


static ngx_http_xet_line_t *ngx_http_xet_conf_line(
    ngx_http_xet_main_conf_t *xmcf, const void *conf, const char *name);
static ngx_http_xet_conf_location_t *ngx_http_xet_conf_location_inner(
    ngx_http_xet_main_conf_t *xmcf, const void *outer, ngx_str_t *uri,
    ngx_uint_t *final);
#if (NGX_PCRE)
static ngx_http_xet_conf_location_t *ngx_http_xet_conf_location_regex(
    ngx_http_xet_main_conf_t *xmcf, const void *outer, ngx_str_t *uri);
#endif
static ngx_http_xet_conf_location_t *ngx_http_xet_conf_location_prefix(
    ngx_http_xet_main_conf_t *xmcf, const void *outer, ngx_str_t *uri);


ngx_int_t
ngx_http_xet_conf_lists(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    xmcf->lines = ngx_array_create(cf->temp_pool, 16,
                                   sizeof(ngx_http_xet_line_t));
    xmcf->locations = ngx_array_create(cf->temp_pool, 16,
                                       sizeof(ngx_http_xet_conf_location_t));

    return (xmcf->lines && xmcf->locations) ? NGX_OK : NGX_ERROR;
}


char *
ngx_http_xet_conf_keep(ngx_conf_t *cf, ngx_command_t *cmd, const void *conf)
{
    ngx_http_xet_line_t       *line;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    line = ngx_array_push(xmcf->lines);
    if (line == NULL) {
        return NGX_CONF_ERROR;
    }

    line->conf = conf;
    line->name = cmd->name;
    line->file = cf->conf_file->file.name.data;
    line->line = cf->conf_file->line;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_xet_conf_location(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *outer,
    ngx_http_xet_loc_conf_t *conf)
{
    ngx_http_xet_conf_location_t  *loc;
    ngx_http_xet_main_conf_t      *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    loc = ngx_array_push(xmcf->locations);
    if (loc == NULL) {
        return NGX_ERROR;
    }

    loc->conf = conf;
    loc->outer = outer;
    loc->core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    loc->server = ngx_http_conf_get_module_srv_conf(cf,
                                                    ngx_http_core_module);

    return NGX_OK;
}


/* Returns the first directive of this name in a block, or NULL. */

static ngx_http_xet_line_t *
ngx_http_xet_conf_line(ngx_http_xet_main_conf_t *xmcf, const void *conf,
    const char *name)
{
    size_t                len;
    ngx_uint_t            i;
    ngx_http_xet_line_t  *lines;

    len = ngx_strlen(name);
    lines = xmcf->lines->elts;

    for (i = 0; i < xmcf->lines->nelts; i++) {

        if (lines[i].conf == conf && lines[i].name.len == len
            && ngx_strncmp(lines[i].name.data, name, len) == 0)
        {
            return &lines[i];
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_xet_conf_written(ngx_http_xet_main_conf_t *xmcf, const void *conf,
    const char *name)
{
    return ngx_http_xet_conf_line(xmcf, conf, name) != NULL;
}


ngx_http_xet_conf_location_t *
ngx_http_xet_conf_location_of(ngx_http_xet_main_conf_t *xmcf, const void *conf)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *locations;

    locations = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {
        if (locations[i].conf == conf) {
            return &locations[i];
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_xet_conf_within(ngx_http_xet_main_conf_t *xmcf, const void *conf,
    const char *name)
{
    ngx_http_xet_conf_location_t  *loc;

    for ( ;; ) {

        loc = ngx_http_xet_conf_location_of(xmcf, conf);
        if (loc == NULL) {
            return 0;
        }

        if (ngx_http_xet_conf_line(xmcf, conf, name)) {
            return 1;
        }

        conf = loc->outer;
    }
}


void ngx_cdecl
ngx_http_xet_conf_say(ngx_conf_t *cf, ngx_uint_t level, const void *conf,
    const char *name, const char *fmt, ...)
{
    u_char                         text[NGX_HTTP_XET_COMPLAINT_MAX], *last;
    va_list                        args;
    ngx_uint_t                     i;
    const void                    *at;
    const char                    *names[6];
    ngx_conf_file_t                file, *saved;
    ngx_http_xet_line_t           *line;
    ngx_http_xet_conf_location_t  *loc;
    ngx_http_xet_main_conf_t      *xmcf;

    va_start(args, fmt);
    last = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    /* a default has no position: use the directive that needs the default */

    names[0] = name;
    names[1] = "xet_api";
    names[2] = "xet_data";
    names[3] = "xet_token";
    names[4] = "xet_verify_body";
    names[5] = "xet_hub";

    line = NULL;

    for (i = 0; line == NULL && i < sizeof(names) / sizeof(names[0]); i++) {

        for (at = conf; line == NULL && at; at = loc ? loc->outer : NULL) {
            line = ngx_http_xet_conf_line(xmcf, at, names[i]);
            loc = ngx_http_xet_conf_location_of(xmcf, at);
        }
    }

    saved = cf->conf_file;

    if (line) {
        ngx_memzero(&file, sizeof(ngx_conf_file_t));

        file.file.name.data = line->file;
        file.line = line->line;

        cf->conf_file = &file;
    }

    ngx_conf_log_error(level, cf, 0, "%*s", (size_t) (last - text), text);

    cf->conf_file = saved;
}


ngx_http_xet_conf_location_t *
ngx_http_xet_conf_location_find(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_conf_location_t *server, ngx_str_t *uri)
{
    ngx_uint_t  final;

    return ngx_http_xet_conf_location_inner(xmcf, server->conf, uri, &final);
}


/*
 * Finds the location of a URI below outer, or returns NULL.  Sets *final if
 * nginx would not continue with the regular expressions of outer levels.
 */

static ngx_http_xet_conf_location_t *
ngx_http_xet_conf_location_inner(ngx_http_xet_main_conf_t *xmcf, const void
    *outer, ngx_str_t *uri, ngx_uint_t *final)
{
    ngx_http_xet_conf_location_t  *found, *inner;

    *final = 0;

    found = ngx_http_xet_conf_location_prefix(xmcf, outer, uri);

    if (found && found->core->exact_match) {
        *final = 1;
        return found;
    }

    inner = found ? ngx_http_xet_conf_location_inner(xmcf, found->conf, uri,
                                                     final) : NULL;

    if (*final) {
        return inner;
    }

#if (NGX_PCRE)

    if (found == NULL || !found->core->noregex) {

        ngx_http_xet_conf_location_t  *match;

        match = ngx_http_xet_conf_location_regex(xmcf, outer, uri);

        if (match) {
            inner = ngx_http_xet_conf_location_inner(xmcf, match->conf, uri,
                                                     final);
            *final = 1;

            return inner ? inner : match;
        }
    }

#endif

    return inner ? inner : found;
}


#if (NGX_PCRE)

/* Returns the first location of a level whose regular expression matches. */

static ngx_http_xet_conf_location_t *
ngx_http_xet_conf_location_regex(ngx_http_xet_main_conf_t *xmcf, const void
    *outer, ngx_str_t *uri)
{
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *locations;

    locations = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if (locations[i].outer == outer && locations[i].core->regex
            && ngx_regex_exec(locations[i].core->regex->regex, uri, NULL, 0)
               >= 0)
        {
            return &locations[i];
        }
    }

    return NULL;
}

#endif


/*
 * Returns the location of a level that matches exactly, or with the longest
 * prefix.
 */

static ngx_http_xet_conf_location_t *
ngx_http_xet_conf_location_prefix(ngx_http_xet_main_conf_t *xmcf, const void
    *outer, ngx_str_t *uri)
{
    ngx_str_t                     *name;
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *locations, *found;

    locations = xmcf->locations->elts;
    found = NULL;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if (locations[i].outer != outer ||
            !ngx_http_xet_conf_location_plain(&locations[i]))
        {
            continue;
        }

        name = &locations[i].core->name;

        if (name->len > uri->len
            || ngx_strncmp(name->data, uri->data, name->len) != 0)
        {
            continue;
        }

        if (locations[i].core->exact_match) {

            if (name->len == uri->len) {
                return &locations[i];
            }

            continue;
        }

        if (found == NULL || name->len > found->core->name.len) {
            found = &locations[i];
        }
    }

    return found;
}


ngx_uint_t
ngx_http_xet_conf_location_plain(ngx_http_xet_conf_location_t *loc)
{
#if (NGX_PCRE)

    if (loc->core->regex) {
        return 0;
    }

#endif

    return !loc->core->noname && !loc->core->named;
}
