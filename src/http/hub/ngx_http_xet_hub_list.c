
/*
 * Lists of repos: the repos of a kind, the buckets of an owner, and all repos
 * of an owner with their sizes.
 *
 *     handler -> arguments -> one statement, which returns the response body
 *
 * Each argument has a row in a table.  An argument that is not in the table,
 * or a value that this server does not support, is an error: a filter that is
 * ignored would return repos that do not match it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_LIST_PAGE  100
#define NGX_HTTP_XET_HUB_ARGS       100        /* arguments of a request */

#define NGX_HTTP_XET_HUB_MODELS     (1 << XET_HUB_MODEL)
#define NGX_HTTP_XET_HUB_DATASETS   (1 << XET_HUB_DATASET)
#define NGX_HTTP_XET_HUB_SPACES     (1 << XET_HUB_SPACE)
#define NGX_HTTP_XET_HUB_BUCKETS    (1 << XET_HUB_BUCKET)
#define NGX_HTTP_XET_HUB_REPOS                                                \
    (NGX_HTTP_XET_HUB_MODELS|NGX_HTTP_XET_HUB_DATASETS                        \
     |NGX_HTTP_XET_HUB_SPACES)
#define NGX_HTTP_XET_HUB_ALL                                                  \
    (NGX_HTTP_XET_HUB_REPOS|NGX_HTTP_XET_HUB_BUCKETS)


typedef struct {
    ngx_http_xet_array_t  marks;       /* values that the repos must have */
    ngx_http_xet_array_t  words;       /* parts of their names */
    ngx_str_t             after;
    ngx_str_t             sort;        /* see xet.hub_newest() */
    ngx_uint_t            most;
    unsigned              whole:1;     /* with the cards */
    unsigned              siblings:1;  /* with the files */
    unsigned              expand:1;
} ngx_http_xet_hub_list_t;


typedef struct ngx_http_xet_hub_list_arg_s  ngx_http_xet_hub_list_arg_t;

/*
 * Takes a value.  Returns NGX_OK; NGX_DECLINED if the value is not supported;
 * or NGX_ERROR if out of memory.
 */
typedef ngx_int_t (*ngx_http_xet_hub_list_pt)(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);

struct ngx_http_xet_hub_list_arg_s {
    const char                *name;
    ngx_uint_t                 kinds;  /* bits of the kinds with the argument */
    ngx_http_xet_hub_list_pt   take;
    const char                *before; /* beginning of the mark */
};


static ngx_http_xet_hub_list_t *ngx_http_xet_hub_list(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static void ngx_http_xet_hub_list_cleanup(void *data);
static ngx_int_t ngx_http_xet_hub_list_args(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *table);
static ngx_int_t ngx_http_xet_hub_list_one(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *table,
    ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_refuse(ngx_http_request_t *r,
    const char *what, const ngx_str_t *name);
static ngx_int_t ngx_http_xet_hub_list_decode(ngx_http_request_t *r,
    ngx_str_t *text);
static ngx_uint_t ngx_http_xet_hub_list_is(const ngx_str_t *value,
    const char *words);
static ngx_int_t ngx_http_xet_hub_list_mark(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_word(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_author(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_limit(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_cursor(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_sort(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_direction(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_gated(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_full(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_cards(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_expand(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_flag(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_hub_list_no(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value);


static const ngx_http_xet_hub_list_arg_t  ngx_http_xet_hub_list_table[] = {

    { "filter", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_mark, "" },
    { "tags", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_mark, "" },
    { "other", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_mark, "" },
    { "pipeline_tag", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_mark,
      "pipeline_tag:" },
    { "library", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_mark,
      "library:" },
    { "language", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_mark, "" },
    { "language", NGX_HTTP_XET_HUB_DATASETS, ngx_http_xet_hub_list_mark,
      "language:" },
    { "license", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_mark,
      "license:" },
    { "dataset", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_mark,
      "dataset:" },
    { "base_model", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_mark,
      "base_model:" },
    { "task_categories", NGX_HTTP_XET_HUB_DATASETS, ngx_http_xet_hub_list_mark,
      "task_categories:" },
    { "task_ids", NGX_HTTP_XET_HUB_DATASETS, ngx_http_xet_hub_list_mark,
      "task_ids:" },
    { "size_categories", NGX_HTTP_XET_HUB_DATASETS, ngx_http_xet_hub_list_mark,
      "size_categories:" },
    { "sdk", NGX_HTTP_XET_HUB_SPACES, ngx_http_xet_hub_list_mark, "" },

    { "search", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_word, NULL },
    { "author", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_author, NULL },
    { "limit", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_limit, NULL },
    { "cursor", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_cursor, NULL },
    { "sort", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_sort, NULL },
    { "direction", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_direction,
      NULL },
    { "gated", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_gated, NULL },
    { "full", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_full, NULL },
    { "cardData", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_cards, NULL },
    { "expand", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_expand, NULL },
    { "expand[]", NGX_HTTP_XET_HUB_REPOS, ngx_http_xet_hub_list_expand, NULL },
    { "config", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_no, NULL },
    { "fetch_config", NGX_HTTP_XET_HUB_MODELS, ngx_http_xet_hub_list_no,
      NULL },
    { "linked", NGX_HTTP_XET_HUB_SPACES, ngx_http_xet_hub_list_no, NULL },

    { NULL, 0, NULL, NULL }
};


/* The arguments of the description of one repo. */

static const ngx_http_xet_hub_list_arg_t  ngx_http_xet_hub_info_table[] = {

    { "blobs", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_flag, NULL },
    { "full", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_flag, NULL },
    { "cardData", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_flag, NULL },
    { "expand", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_expand, NULL },
    { "expand[]", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_expand, NULL },
    { "securityStatus", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_no, NULL },
    { "config", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_no, NULL },

    { NULL, 0, NULL, NULL }
};


/* The arguments of the list of all repos of an owner. */

static const ngx_http_xet_hub_list_arg_t  ngx_http_xet_hub_own_table[] = {

    { "limit", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_limit, NULL },
    { "cursor", NGX_HTTP_XET_HUB_ALL, ngx_http_xet_hub_list_cursor, NULL },

    { NULL, 0, NULL, NULL }
};


ngx_int_t
ngx_http_xet_hub_list_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_int_t                 rc;
    ngx_http_xet_hub_list_t  *list;

    list = ngx_http_xet_hub_list(r, hub);
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_hub_list_args(r, list, ngx_http_xet_hub_list_table);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_xet_hub_list_upstream(r, hub);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_xet_hub_cursor_arg(r, &list->after);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_list, ngx_http_xet_hub_listed,
                                  .asked = &hub->asked, .most = list->most,
                                  .after = list->after, .marks = &list->marks,
                                  .words = &list->words,
                                  .sort = list->sort,
                                  .whole = list->whole,
                                  .siblings = list->siblings));
}


ngx_int_t
ngx_http_xet_hub_own_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_int_t                 rc;
    ngx_http_xet_hub_list_t  *list;

    list = ngx_http_xet_hub_list(r, hub);
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (hub->asked.owner.data == NULL) {
        hub->asked.owner = hub->who;
    }

    rc = ngx_http_xet_hub_list_args(r, list, ngx_http_xet_hub_own_table);

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_cursor_arg(r, &list->after);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_own, ngx_http_xet_hub_paged,
                                  .asked = &hub->asked, .most = list->most,
                                  .after = list->after));
}


ngx_int_t
ngx_http_xet_hub_info_args(ngx_http_request_t *r, ngx_uint_t *siblings)
{
    ngx_int_t                 rc;
    ngx_http_xet_hub_list_t  *list;

    list = ngx_http_xet_hub_list(r, ngx_http_xet_hub_get(r));
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_hub_list_args(r, list, ngx_http_xet_hub_info_table);

    *siblings = (!list->expand || list->siblings);

    return rc;
}


static ngx_http_xet_hub_list_t *
ngx_http_xet_hub_list(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_list_t  *list;

    list = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_list_t),
                              ngx_http_xet_hub_list_cleanup);
    if (list) {
        list->most = NGX_HTTP_XET_HUB_LIST_PAGE;
        ngx_str_set(&list->sort, "changed_at");
    }

    return list;
}


static void
ngx_http_xet_hub_list_cleanup(void *data)
{
    ngx_http_xet_hub_list_t *list = data;

    ngx_http_xet_array_destroy(&list->marks);
    ngx_http_xet_array_destroy(&list->words);
}


/*
 * Takes all arguments of the request by a table, and sets hub->filters, which
 * the cursors of the list depend on.  Returns NGX_OK, or the result of the
 * content handler after an error.
 */

static ngx_int_t
ngx_http_xet_hub_list_args(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *table)
{
    u_char      *p, *last, *next, *equals;
    ngx_int_t    rc;
    ngx_str_t    name, value, *filters;
    ngx_uint_t   n;

    p = r->args.data;
    last = p + r->args.len;

    filters = &ngx_http_xet_hub_get(r)->filters;

    filters->len = 0;
    filters->data = ngx_pnalloc(r->pool, r->args.len + 1);

    if (filters->data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (n = 0; p < last; p = next + 1) {
        next = ngx_strlchr(p, last, '&');
        next = next ? next : last;

        if (p == next) {
            continue;
        }

        if (n++ == NGX_HTTP_XET_HUB_ARGS) {
            return ngx_http_xet_hub_deny(r, NGX_HTTP_BAD_REQUEST,
                                         "invalid_argument",
                                         "Too many arguments");
        }

        equals = ngx_strlchr(p, next, '=');
        equals = equals ? equals : next;

        name.data = p;
        name.len = equals - p;

        value.data = ngx_min(equals + 1, next);
        value.len = next - value.data;

        rc = ngx_http_xet_hub_list_one(r, list, table, &name, &value);

        if (rc != NGX_OK) {
            return rc;
        }

        if (!ngx_http_xet_hub_list_is(&name, "cursor limit ")) {
            ngx_memcpy(filters->data + filters->len, p, next - p);
            filters->len += next - p;
            filters->data[filters->len++] = '&';
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_list_one(ngx_http_request_t *r, ngx_http_xet_hub_list_t *list,
    const ngx_http_xet_hub_list_arg_t *table, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_int_t                           rc;
    ngx_uint_t                          kind;
    const ngx_http_xet_hub_list_arg_t  *arg;

    kind = 1 << ngx_http_xet_hub_get(r)->asked.kind;

    if (ngx_http_xet_hub_list_decode(r, name) != NGX_OK
        || ngx_http_xet_hub_list_decode(r, value) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (arg = table; arg->name; arg++) {

        if (!(arg->kinds & kind)
            || ngx_strlen(arg->name) != name->len
            || ngx_memcmp(arg->name, name->data, name->len) != 0)
        {
            continue;
        }

        if (arg->take != ngx_http_xet_hub_list_cursor
            && !xet_hub_text_ok(value->data, value->len))
        {
            return ngx_http_xet_hub_list_refuse(r, "Malformed argument", name);
        }

        rc = arg->take(r, list, arg, value);

        if (rc == NGX_DECLINED) {
            return ngx_http_xet_hub_list_refuse(r, "Unsupported value of the"
                                                   " argument", name);
        }

        return (rc == NGX_OK) ? NGX_OK : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_hub_list_refuse(r, "Unsupported argument", name);
}


/* Sends an error with the name of the argument, if that is a usual name. */

static ngx_int_t
ngx_http_xet_hub_list_refuse(ngx_http_request_t *r, const char *what,
    const ngx_str_t *name)
{
    size_t  i;
    u_char  c, text[128];

    for (i = 0; i < name->len; i++) {
        c = name->data[i];

        if (i == 64
            || !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                 || (c >= '0' && c <= '9')
                 || c == '_' || c == '-' || c == '[' || c == ']'))
        {
            return ngx_http_xet_hub_deny(r, NGX_HTTP_BAD_REQUEST,
                                         "invalid_argument", what);
        }
    }

    *ngx_snprintf(text, sizeof(text) - 1, "%s: %V", what, name) = '\0';

    return ngx_http_xet_hub_deny(r, NGX_HTTP_BAD_REQUEST, "invalid_argument",
                                 (char *) text);
}


/* Decodes a name or value, where "+" is a blank, as clients write it. */

static ngx_int_t
ngx_http_xet_hub_list_decode(ngx_http_request_t *r, ngx_str_t *text)
{
    size_t   i;
    u_char  *src, *dst, *copy;

    copy = ngx_pnalloc(r->pool, text->len + 1);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < text->len; i++) {
        copy[i] = (text->data[i] == '+') ? ' ' : text->data[i];
    }

    src = copy;
    dst = copy;

    ngx_unescape_uri(&dst, &src, text->len, 0);

    text->data = copy;
    text->len = dst - copy;

    return NGX_OK;
}


/* Returns whether the value is one of the words, which end with blanks. */

static ngx_uint_t
ngx_http_xet_hub_list_is(const ngx_str_t *value, const char *words)
{
    size_t  len;

    while (*words) {
        len = ngx_strchr(words, ' ') - words;

        if (value->len == len && ngx_memcmp(value->data, words, len) == 0) {
            return 1;
        }

        words += len + 1;
    }

    return 0;
}


/*
 * Appends each value of a list with commas to list->marks, with the prefix of
 * the argument, such as "license:"; the client may omit this prefix.
 */

static ngx_int_t
ngx_http_xet_hub_list_mark(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    size_t   len;
    u_char  *p, *last, *next, *mark;

    len = ngx_strlen(arg->before);
    last = value->data + value->len;

    for (p = value->data; p < last; p = next + 1) {
        next = ngx_strlchr(p, last, ',');
        next = next ? next : last;

        if ((size_t) (next - p) >= len && ngx_memcmp(p, arg->before, len) == 0)
        {
            ngx_http_xet_array_bytes(&list->marks, p, next - p);

        } else {
            mark = ngx_pnalloc(r->pool, len + (next - p));
            if (mark == NULL) {
                return NGX_ERROR;
            }

            ngx_memcpy(ngx_cpymem(mark, arg->before, len), p, next - p);

            ngx_http_xet_array_bytes(&list->marks, mark, len + (next - p));
        }
    }

    return list->marks.failed ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_list_word(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    if (value->len) {
        ngx_http_xet_array_bytes(&list->words, value->data, value->len);
    }

    return list->words.failed ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_list_author(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    if (hub->asked.owner.data) {
        return NGX_DECLINED;
    }

    hub->asked.owner = *value;
    ngx_http_xet_hub_owner(hub, &hub->asked.owner);

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_list_limit(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    if (n <= 0) {
        return NGX_DECLINED;
    }

    list->most = ngx_min(list->most, (ngx_uint_t) n);

    return NGX_OK;
}


/* The cursor is checked when all other arguments are known. */

static ngx_int_t
ngx_http_xet_hub_list_cursor(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    return NGX_OK;
}


/* The server counts neither downloads nor likes. */

static ngx_int_t
ngx_http_xet_hub_list_sort(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    if (ngx_http_xet_hub_list_is(value, "createdAt created_at ")) {
        ngx_str_set(&list->sort, "created_at");

    } else if (ngx_http_xet_hub_list_is(value, "usedStorage ")) {
        ngx_str_set(&list->sort, "bytes");

    } else if (ngx_http_xet_hub_list_is(value, "id ")) {
        ngx_str_set(&list->sort, "name");

    } else if (!ngx_http_xet_hub_list_is(value, "lastModified last_modified "))
    {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_list_direction(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    return ngx_http_xet_hub_list_is(value, "-1 ") ? NGX_OK : NGX_DECLINED;
}


/* No repo is gated, so "true" matches nothing: no repo has an empty mark. */

static ngx_int_t
ngx_http_xet_hub_list_gated(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    if (ngx_http_xet_hub_list_is(value, "true True 1 ")) {
        ngx_http_xet_array_bytes(&list->marks, "", 0);
        return list->marks.failed ? NGX_ERROR : NGX_OK;
    }

    return ngx_http_xet_hub_list_flag(r, list, arg, value);
}


static ngx_int_t
ngx_http_xet_hub_list_full(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    if (ngx_http_xet_hub_list_is(value, "true True 1 ")) {
        list->siblings = 1;
        list->whole |= (ngx_http_xet_hub_get(r)->asked.kind != XET_HUB_MODEL);
    }

    return ngx_http_xet_hub_list_flag(r, list, arg, value);
}


static ngx_int_t
ngx_http_xet_hub_list_cards(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    if (ngx_http_xet_hub_list_is(value, "true True 1 ")) {
        list->whole = 1;
    }

    return ngx_http_xet_hub_list_flag(r, list, arg, value);
}


/*
 * Accepts the members that responses have, and those that no repo here can
 * have.  Other members are always included, as a client can ignore them.
 */

static ngx_int_t
ngx_http_xet_hub_list_expand(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    list->expand = 1;

    if (ngx_http_xet_hub_list_is(value, "siblings ")) {
        list->siblings = 1;
        return NGX_OK;
    }

    if (ngx_http_xet_hub_list_is(value, "cardData model-index ")) {
        list->whole = 1;
        return NGX_OK;
    }

    /* clients expect that a property is missing if a repo does not have it */

    return ngx_http_xet_hub_list_is(value,
               "_id id author baseModels childrenModelCount citation config"
               " createdAt datasets description disabled downloads"
               " downloadsAllTime evalResults gated gguf gitalyUid inference"
               " inferenceProviderMapping lastModified library_name likes"
               " mainSize mask_token models paperswithcode_id pipeline_tag"
               " private region resourceGroup runtime safetensors sdk sha"
               " spaces subdomain tags transformersInfo trendingScore"
               " usedStorage widgetData xetEnabled ")
           ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_xet_hub_list_flag(ngx_http_request_t *r,
    ngx_http_xet_hub_list_t *list, const ngx_http_xet_hub_list_arg_t *arg,
    ngx_str_t *value)
{
    return ngx_http_xet_hub_list_is(value, "true True 1 false False 0 ")
           ? NGX_OK : NGX_DECLINED;
}


/* Accepts a feature that this server does not have only if it is off. */

static ngx_int_t
ngx_http_xet_hub_list_no(ngx_http_request_t *r, ngx_http_xet_hub_list_t *list,
    const ngx_http_xet_hub_list_arg_t *arg, ngx_str_t *value)
{
    return ngx_http_xet_hub_list_is(value, "false False 0 ") ? NGX_OK
                                                             : NGX_DECLINED;
}
