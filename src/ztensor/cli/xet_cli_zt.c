
/*
 * xet zt: lists, downloads and verifies zTensor files of a server.
 *
 *     xet zt ls HASH                   lists the objects
 *     xet zt get HASH OBJECT           downloads the bytes of an object
 *     xet zt verify HASH [OBJECT]      requests a check of the digests
 *
 * A Hub name such as me/model/weights.zt may replace the hash: the Hub returns
 * the hash and the server of the file.
 *
 * "get" resumes an interrupted transfer with a range.  Decoded bytes do not
 * support ranges: if the output is a file, their transfer starts over, else it
 * fails.  The SHA-256 of the received bytes is compared with Repr-Digest.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/evp.h>

#include "xet_cli_hub.h"


#define XET_CLI_ZT_PAGE    "1000"      /* objects */
#define XET_CLI_ZT_DIGEST  "sha-256=:"


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    char                   hash[XET_HASH_STR_LEN + 1];
    const char            *name;       /* NULL: --index, or no object */
    int                    json;
} xet_cli_zt_t;


typedef struct {
    xet_cli_zt_t  *zt;
    const char    *output;
    char          *part;               /* temporary file, or NULL */
    int            fd;
    uint64_t       first;              /* first byte of --range */
    uint64_t       last;               /* last byte of --range; UINT64_MAX: no
                                          --range */
    uint64_t       pos;                /* received bytes */
    unsigned       ranged:1;
    unsigned       decoded:1;
    int            rc;
    EVP_MD_CTX    *sha256;
} xet_cli_zt_get_t;


static int xet_cli_zt_hash(xet_cli_zt_t *z, const char *verb);
static int xet_cli_zt_named(xet_cli_zt_t *z, const char *verb);
static int xet_cli_zt_run(xet_cli_zt_t *z, const char *verb);
static char *xet_cli_zt_url(xet_cli_zt_t *z, const char *route);
static char *xet_cli_zt_arg(char *url, const char *key, const char *value);
static char *xet_cli_zt_object(xet_cli_zt_t *z, char *url);
static int xet_cli_zt_ask(xet_cli_zt_t *z, char *url, json_t **answer);
static int xet_cli_zt_ls(xet_cli_zt_t *z);
static int xet_cli_zt_page(xet_cli_zt_t *z, const json_t *page, int first);
static int xet_cli_zt_objects(xet_cli_zt_t *z, const json_t *objects,
    void (*line)(const json_t *object));
static int xet_cli_zt_verify(xet_cli_zt_t *z);
static void xet_cli_zt_object_line(const json_t *object);
static void xet_cli_zt_verify_line(const json_t *object);
static void xet_cli_zt_column(const char *text, int width);
static void xet_cli_zt_name(const json_t *object);
static int xet_cli_zt_json(const json_t *value);
static int xet_cli_zt_get(xet_cli_zt_t *z);
static int xet_cli_zt_get_range(xet_cli_zt_get_t *g);
static int xet_cli_zt_get_open(xet_cli_zt_get_t *g);
static int xet_cli_zt_get_send(xet_cli_zt_get_t *g);
static void xet_cli_zt_get_restart(xet_cli_request_t *r);
static int xet_cli_zt_get_write(xet_cli_request_t *r, const uint8_t *data,
    size_t len);
static int xet_cli_zt_get_digest(xet_cli_zt_get_t *g, xet_cli_request_t *r);
static int xet_cli_zt_get_print(xet_cli_zt_get_t *g);


int
xet_cli_zt(const xet_cli_args_t *args)
{
    int            n;
    const char    *verb;
    xet_cli_zt_t   z;

    verb = args->operands[0];
    n = args->count;

    if ((strcmp(verb, "ls") != 0 || n != 2)
        && (strcmp(verb, "get") != 0 || n > 3)
        && (strcmp(verb, "verify") != 0 || n > 3))
    {
        return xet_cli_fail(XET_CLI_USAGE, "zt",
                            "expected ls HASH, get HASH OBJECT or verify HASH "
                            "[OBJECT]; a Hub name may replace HASH");
    }

    memset(&z, 0, sizeof(z));

    z.args = args;
    z.name = (n == 3) ? args->operands[2] : NULL;
    z.json = args->value[XET_CLI_OPT_JSON] != NULL;

    if (z.name && args->value[XET_CLI_OPT_INDEX]) {
        return xet_cli_fail(XET_CLI_USAGE, "zt",
                            "use either OBJECT or --index");
    }

    return strchr(args->operands[1], '/') ? xet_cli_zt_named(&z, verb)
                                          : xet_cli_zt_hash(&z, verb);
}


static int
xet_cli_zt_hash(xet_cli_zt_t *z, const char *verb)
{
    int          rc;
    xet_hash_t   hash;
    const char  *text;

    text = z->args->operands[1];

    rc = xet_cli_args_hash(text, &hash);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_hub_unnamed(z->args, text);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    (void) xet_cli_hash_string(&hash, z->hash);

    z->http = xet_cli_http_create(z->args, &rc);

    if (z->http == NULL) {
        return rc;
    }

    rc = xet_cli_zt_run(z, verb);

    xet_cli_http_destroy(z->http);

    return rc;
}


static int
xet_cli_zt_named(xet_cli_zt_t *z, const char *verb)
{
    int                  rc;
    const char          *text;
    xet_cli_hub_t        hub;
    xet_cli_hub_file_t   file;

    memset(&file, 0, sizeof(file));

    text = z->args->operands[1];

    rc = xet_cli_hub_open_repo(&hub, z->args, text);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_hub_look(&hub, 0);
    }

    if (rc == XET_CLI_OK) {
        rc = *hub.path ? xet_cli_hub_file(&hub, &file)
                       : xet_cli_fail(XET_CLI_USAGE, text,
                                      "needs a path in the repository");
    }

    if (rc == XET_CLI_OK && !(file.found && file.known)) {
        rc = xet_cli_fail(XET_CLI_FAULT, text, file.found
                          ? "has no Xet hash on this Hub"
                          : "no such file in this repository");
    }

    if (rc == XET_CLI_OK) {
        (void) xet_cli_hash_string(&file.hash, z->hash);
        z->http = xet_cli_hub_cas(&hub, &rc);
    }

    if (z->http) {
        rc = xet_cli_zt_run(z, verb);
    }

    xet_cli_hub_close(&hub);

    return rc;
}


static int
xet_cli_zt_run(xet_cli_zt_t *z, const char *verb)
{
    if (*verb == 'l') {
        return xet_cli_zt_ls(z);
    }

    if (*verb == 'v') {
        return xet_cli_zt_verify(z);
    }

    if (z->name == NULL && z->args->value[XET_CLI_OPT_INDEX] == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, "zt",
                            "get needs OBJECT or --index");
    }

    return xet_cli_zt_get(z);
}


/* Returns the URL of a route, such as "" or "/data"; NULL if out of memory. */

static char *
xet_cli_zt_url(xet_cli_zt_t *z, const char *route)
{
    return xet_cli_http_url(z->http, "/v1/zt/%s%s", z->hash, route);
}


/*
 * Appends a percent-encoded argument, unless value is NULL.  Takes ownership
 * of url.  Returns NULL if out of memory, or if url is NULL.
 */

static char *
xet_cli_zt_arg(char *url, const char *key, const char *value)
{
    char  *escaped, *longer;

    if (url == NULL || value == NULL) {
        return url;
    }

    /* with a length of 0, libcurl calls strlen() */

    escaped = curl_easy_escape(NULL, value, 0);

    if (escaped == NULL
        || asprintf(&longer, "%s%c%s=%s", url, strchr(url, '?') ? '&' : '?',
                    key, escaped) < 0)
    {
        longer = NULL;
    }

    curl_free(escaped);
    free(url);

    return longer;
}


/* Appends the object and role given on the command line to the URL. */

static char *
xet_cli_zt_object(xet_cli_zt_t *z, char *url)
{
    url = xet_cli_zt_arg(url, "name", z->name);
    url = xet_cli_zt_arg(url, "i", z->args->value[XET_CLI_OPT_INDEX]);

    return xet_cli_zt_arg(url, "role", z->args->value[XET_CLI_OPT_ROLE]);
}


/*
 * Sends a GET request for url, and takes ownership of url.  *answer is the
 * JSON of the response; the caller releases it with json_decref().  Returns
 * XET_CLI_OK, or the exit code of an error that was reported.
 */

static int
xet_cli_zt_ask(xet_cli_zt_t *z, char *url, json_t **answer)
{
    int                rc;
    xet_cli_request_t  r;

    memset(&r, 0, sizeof(r));

    r.url = url;
    r.api = 1;
    r.patient = 1;

    rc = xet_cli_http_call(z->http, &r);

    if (rc == XET_CLI_OK && r.status != 200) {
        rc = xet_cli_http_fail(&r);
    }

    if (rc == XET_CLI_OK) {

        /*
         * names may contain zero bytes; invalid shapes may contain numbers too
         * large for int64_t, which the second call parses as reals
         */

        *answer = json_loadb(r.data ? r.data : "", r.len, JSON_ALLOW_NUL,
                             NULL);

        if (*answer == NULL && r.data) {
            *answer = json_loadb(r.data, r.len,
                                 JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
                                 NULL);
        }

        if (*answer == NULL) {
            rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                              "the response is not JSON");
        }
    }

    xet_cli_http_free(&r);

    return rc;
}


static int
xet_cli_zt_ls(xet_cli_zt_t *z)
{
    int      rc, first;
    char    *url, after[32];
    json_t  *page, *next;
    double   last;

    after[0] = '\0';
    first = 1;
    last = -1;

    do {
        url = xet_cli_zt_url(z, "");
        url = xet_cli_zt_arg(url, "limit", XET_CLI_ZT_PAGE);
        url = xet_cli_zt_arg(url, "prefix",
                             z->args->value[XET_CLI_OPT_PREFIX]);
        url = xet_cli_zt_arg(url, "after", *after ? after : NULL);

        rc = xet_cli_zt_ask(z, url, &page);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        rc = xet_cli_zt_page(z, page, first);

        next = json_object_get(page, "next");
        first = !json_is_number(next);

        if (rc == XET_CLI_OK && !first && !(json_number_value(next) > last)) {
            rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                              "the next page does not follow this one");
        }

        last = json_number_value(next);
        snprintf(after, sizeof(after), "%.0f", last);

        json_decref(page);

    } while (rc == XET_CLI_OK && !first);

    return rc;
}


/* Prints a page.  In JSON, a line about the file precedes the first page. */

static int
xet_cli_zt_page(xet_cli_zt_t *z, const json_t *page, int first)
{
    int      rc;
    json_t  *objects, *head;

    objects = json_object_get(page, "objects");

    if (!json_is_array(objects)) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the response has no objects");
    }

    rc = XET_CLI_OK;

    if (first && z->json) {
        head = json_copy((json_t *) page);

        json_object_del(head, "objects");
        json_object_del(head, "next");

        rc = xet_cli_zt_json(head);

        json_decref(head);
    }

    return (rc == XET_CLI_OK)
           ? xet_cli_zt_objects(z, objects, xet_cli_zt_object_line) : rc;
}


/* Prints objects, one per line, as JSON or with line(). */

static int
xet_cli_zt_objects(xet_cli_zt_t *z, const json_t *objects,
    void (*line)(const json_t *object))
{
    int      rc;
    size_t   i;
    json_t  *object;

    rc = XET_CLI_OK;

    json_array_foreach(objects, i, object) {

        if (z->json) {
            rc = xet_cli_zt_json(object);

        } else {
            line(object);
        }

        if (rc != XET_CLI_OK) {
            break;
        }
    }

    return rc;
}


/*
 * Prints one line for an object: its number, status, dtype (of the component
 * "data", else of the first component), shape, stored bytes and name.
 */

static void
xet_cli_zt_object_line(const json_t *object)
{
    size_t       i;
    json_t      *shape, *components, *component, *value;
    const char  *role, *dtype;
    json_int_t   bytes;

    components = json_object_get(object, "components");
    shape = json_object_get(object, "shape");

    dtype = NULL;
    bytes = 0;

    json_object_foreach(components, role, component) {

        if (dtype == NULL || strcmp(role, "data") == 0) {
            dtype = json_string_value(json_object_get(component, "dtype"));
        }

        bytes += (json_int_t) json_number_value(json_object_get(component,
                                                                "length"));
    }

    printf("%6.0f ", json_number_value(json_object_get(object, "i")));
    xet_cli_zt_column(json_string_value(json_object_get(object, "status")),
                      11);
    xet_cli_zt_column(dtype, 8);
    putchar('[');

    json_array_foreach(shape, i, value) {
        printf("%s%.0f", i ? "," : "", json_number_value(value));
    }

    printf("] %lld ", (long long) bytes);

    xet_cli_zt_name(object);
    putchar('\n');
}


static void
xet_cli_zt_column(const char *text, int width)
{
    char  column[64];

    text = text ? text : "-";

    xet_cli_text_escape(column, sizeof(column), text, strlen(text));
    printf("%-*s ", width, column);
}


/* Prints the name of an object, which may contain zero bytes. */

static void
xet_cli_zt_name(const json_t *object)
{
    const json_t  *name;

    name = json_object_get(object, "name");

    if (name) {
        xet_cli_text_write(stdout, json_string_value(name),
                           json_string_length(name));
    }
}


static int
xet_cli_zt_json(const json_t *value)
{
    char  *text;

    text = json_dumps(value, JSON_COMPACT);

    if (text == NULL) {
        return xet_cli_no_memory();
    }

    xet_cli_text_json(stdout, text, strlen(text));
    putchar('\n');

    free(text);

    return xet_cli_flush();
}


static int
xet_cli_zt_verify(xet_cli_zt_t *z)
{
    int      rc, ok;
    json_t  *report, *objects;

    rc = xet_cli_zt_ask(z, xet_cli_zt_object(z, xet_cli_zt_url(z,
                                                               "/verify")),
                        &report);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    objects = json_object_get(report, "objects");
    ok = json_is_true(json_object_get(report, "ok"));

    rc = xet_cli_zt_objects(z, objects, xet_cli_zt_verify_line);

    if (z->json) {
        json_object_del(report, "objects");
        rc = xet_cli_worse(rc, xet_cli_zt_json(report));

    } else {
        printf("%.0f components, %.0f bytes: %s\n",
               json_number_value(json_object_get(report, "checked")),
               json_number_value(json_object_get(report, "bytes")),
               ok ? "ok" : "not ok");
    }

    json_decref(report);

    return (rc == XET_CLI_OK && !ok) ? XET_CLI_FAULT : rc;
}


/*
 * Prints one line for an object: its number, its status, "role=verdict" for
 * each component, its errors, and its name.
 */

static void
xet_cli_zt_verify_line(const json_t *object)
{
    size_t       i;
    json_t      *components, *errors, *value;
    const char  *role;

    components = json_object_get(object, "components");
    errors = json_object_get(object, "errors");

    printf("%6.0f ", json_number_value(json_object_get(object, "i")));
    xet_cli_zt_column(json_string_value(json_object_get(object, "status")),
                      11);

    json_object_foreach(components, role, value) {
        xet_cli_text_print(stdout, role);
        putchar('=');
        xet_cli_text_print(stdout, json_string_value(value));
        putchar(' ');
    }

    json_array_foreach(errors, i, value) {
        xet_cli_text_print(stdout, json_string_value(value));
        putchar(' ');
    }

    xet_cli_zt_name(object);
    putchar('\n');
}


static int
xet_cli_zt_get(xet_cli_zt_t *z)
{
    int               rc;
    xet_cli_zt_get_t  g;

    memset(&g, 0, sizeof(g));

    g.zt = z;
    g.fd = -1;
    g.last = UINT64_MAX;
    g.decoded = (z->args->value[XET_CLI_OPT_DECODED] != NULL);
    g.sha256 = EVP_MD_CTX_new();

    rc = g.sha256 ? xet_cli_zt_get_range(&g) : xet_cli_no_memory();

    if (rc == XET_CLI_OK) {
        rc = xet_cli_zt_get_open(&g);
    }

    if (rc == XET_CLI_OK) {
        xet_cli_progress_begin(xet_cli_quiet(z->args),
                               z->name ? z->name : "object", 0);

        rc = xet_cli_zt_get_send(&g);

        xet_cli_progress_end();
    }

    if (g.fd >= 0) {
        rc = xet_cli_output_finish(g.fd, g.part, g.output, rc);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_zt_get_print(&g);
    }

    EVP_MD_CTX_free(g.sha256);

    return rc;
}


static int
xet_cli_zt_get_range(xet_cli_zt_get_t *g)
{
    size_t        n;
    xet_range_t   range;
    const char   *text;

    text = g->zt->args->value[XET_CLI_OPT_RANGE];

    if (text == NULL) {
        return XET_CLI_OK;
    }

    n = 1;

    if (xet_range_list_parse((const uint8_t *) text, strlen(text), &range, &n)
        != XET_OK)
    {
        return xet_cli_fail(XET_CLI_USAGE, text,
                            "invalid range; expected A-B in bytes");
    }

    if (g->decoded) {
        return xet_cli_fail(XET_CLI_USAGE, "zt",
                            "--range cannot be combined with --decoded");
    }

    g->ranged = 1;
    g->first = range.start;
    g->last = range.end - 1;

    return XET_CLI_OK;
}


static int
xet_cli_zt_get_open(xet_cli_zt_get_t *g)
{
    const char  *output;

    output = g->zt->args->value[XET_CLI_OPT_OUTPUT];

    if (output == NULL && isatty(STDOUT_FILENO)) {
        return xet_cli_fail(XET_CLI_USAGE, "zt",
                            "refusing to write binary data to a terminal; use "
                            "--output");
    }

    output = output ? output : "-";

    g->fd = xet_cli_output_begin(output, xet_cli_output_special(output),
                                 &g->part);

    g->output = (g->fd == STDOUT_FILENO) ? "standard output" : output;

    return (g->fd >= 0) ? XET_CLI_OK : XET_CLI_ERROR;
}


static int
xet_cli_zt_get_send(xet_cli_zt_get_t *g)
{
    int                     rc;
    xet_cli_request_t       r;
    const xet_cli_args_t   *args;

    args = g->zt->args;

    memset(&r, 0, sizeof(r));

    r.url = xet_cli_zt_object(g->zt, xet_cli_zt_url(g->zt, "/data"));
    r.url = xet_cli_zt_arg(r.url, "form", g->decoded ? "decoded" : NULL);
    r.url = xet_cli_zt_arg(r.url, "rows", args->value[XET_CLI_OPT_ROWS]);
    r.api = 1;
    r.restart = xet_cli_zt_get_restart;
    r.write = xet_cli_zt_get_write;
    r.ctx = g;

    EVP_DigestInit_ex(g->sha256, EVP_sha256(), NULL);

    rc = xet_cli_http_call(g->zt->http, &r);

    if (rc == XET_CLI_OK) {

        if (g->rc != XET_CLI_OK) {
            rc = g->rc;

        } else if (r.status / 100 != 2) {
            rc = xet_cli_http_fail(&r);

        } else {
            rc = xet_cli_zt_get_digest(g, &r);
        }
    }

    xet_cli_http_free(&r);

    return rc;
}


static void
xet_cli_zt_get_restart(xet_cli_request_t *r)
{
    xet_cli_zt_get_t  *g;

    g = r->ctx;

    if (g->decoded && g->pos && g->part && ftruncate(g->fd, 0) == 0
        && lseek(g->fd, 0, SEEK_SET) == 0)
    {
        g->pos = 0;
        EVP_DigestInit_ex(g->sha256, EVP_sha256(), NULL);
    }

    if (!g->ranged && g->pos == 0) {
        return;
    }

    if (g->last == UINT64_MAX) {
        snprintf(r->range, sizeof(r->range), "%" PRIu64 "-", g->pos);

    } else {
        snprintf(r->range, sizeof(r->range), "%" PRIu64 "-%" PRIu64,
                 g->first + g->pos, g->last);
    }
}


static int
xet_cli_zt_get_write(xet_cli_request_t *r, const uint8_t *data, size_t len)
{
    xet_cli_zt_get_t  *g;

    g = r->ctx;

    if (*r->range && r->status != 206) {
        g->rc = xet_cli_failf(XET_CLI_NETWORK, "server",
                              "HTTP %ld instead of the requested range",
                              r->status);
        return 1;
    }

    EVP_DigestUpdate(g->sha256, data, len);

    g->rc = xet_cli_output_write(g->fd, g->output, data, len);

    if (g->rc != XET_CLI_OK) {
        return 1;
    }

    g->pos += len;
    r->attempts = 1;

    xet_cli_progress_set(g->pos);

    return 0;
}


/*
 * Compares Repr-Digest (RFC 9530) with the received bytes.  The digest covers
 * all bytes of the component, so it is not checked with --range.
 */

static int
xet_cli_zt_get_digest(xet_cli_zt_get_t *g, xet_cli_request_t *r)
{
    uint8_t      digest[XET_CLI_SHA256_LEN];
    uint8_t      text[4 * ((XET_CLI_SHA256_LEN + 2) / 3) + 1];
    const char  *value;

    value = g->ranged ? NULL : xet_cli_http_header(r, "Repr-Digest");
    value = value ? strstr(value, XET_CLI_ZT_DIGEST) : NULL;

    if (value == NULL) {
        return XET_CLI_OK;
    }

    EVP_DigestFinal_ex(g->sha256, digest, NULL);
    EVP_EncodeBlock(text, digest, XET_CLI_SHA256_LEN);

    if (strncmp(value + strlen(XET_CLI_ZT_DIGEST), (char *) text,
                strlen((char *) text))
        != 0)
    {
        return xet_cli_fail(XET_CLI_FAULT, "damaged",
                            "the SHA-256 of the received bytes differs from "
                            "the server's");
    }

    return XET_CLI_OK;
}


static int
xet_cli_zt_get_print(xet_cli_zt_get_t *g)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    if (!g->zt->json || g->fd == STDOUT_FILENO) {
        return XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_put_cstring(j, "file", g->output);
    xet_json_put_u64(j, "size", g->pos);

    return xet_cli_json_end(&out);
}
