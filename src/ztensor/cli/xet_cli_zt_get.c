
/*
 * xet zt get: the bytes of a component, or of rows of a tensor.
 *
 * A transfer that breaks off goes on with a range.  Decoded bytes have no
 * ranges: their transfer begins anew, if it goes to a file.  The SHA-256 that
 * the server sends in Repr-Digest is held against the bytes that came.
 */


#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "xet_cli_zt.h"


#define XET_CLI_ZT_DIGEST  "sha-256=:"


typedef struct {
    xet_cli_zt_t  *zt;
    const char    *output;
    char          *part;               /* file to be renamed; NULL: a stream */
    int            fd;
    uint64_t       first;              /* of --range */
    uint64_t       last;               /* of --range, or UINT64_MAX */
    uint64_t       pos;                /* bytes that came */
    unsigned       ranged:1;
    unsigned       decoded:1;
    int            rc;
    EVP_MD_CTX    *sha256;
} xet_cli_zt_get_t;


static int xet_cli_zt_get_range(xet_cli_zt_get_t *g);
static int xet_cli_zt_get_open(xet_cli_zt_get_t *g);
static int xet_cli_zt_get_send(xet_cli_zt_get_t *g);
static void xet_cli_zt_get_restart(xet_cli_request_t *r);
static int xet_cli_zt_get_write(xet_cli_request_t *r, const uint8_t *data,
    size_t len);
static int xet_cli_zt_get_digest(xet_cli_zt_get_t *g, xet_cli_request_t *r);
static int xet_cli_zt_get_close(xet_cli_zt_get_t *g, int rc);
static int xet_cli_zt_get_print(xet_cli_zt_get_t *g);


int
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

    rc = xet_cli_zt_get_close(&g, rc);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_zt_get_print(&g);
    }

    EVP_MD_CTX_free(g.sha256);
    free(g.part);

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
                            "a range of an object is A-B, in bytes");
    }

    if (g->decoded) {
        return xet_cli_fail(XET_CLI_USAGE, "zt",
                            "there are no ranges of --decoded");
    }

    g->ranged = 1;
    g->first = range.start;
    g->last = range.end - 1;

    return XET_CLI_OK;
}


static int
xet_cli_zt_get_open(xet_cli_zt_get_t *g)
{
    int          stream;
    struct stat  st;

    g->output = g->zt->args->value[XET_CLI_OPT_OUTPUT];

    if (g->output == NULL || strcmp(g->output, "-") == 0) {

        if (g->output == NULL && isatty(STDOUT_FILENO)) {
            return xet_cli_fail(XET_CLI_USAGE, "zt", "give --output: this "
                                "is a terminal, and they are bytes");
        }

        g->output = "standard output";
        g->fd = STDOUT_FILENO;

        return XET_CLI_OK;
    }

    stream = (stat(g->output, &st) == 0 && !S_ISREG(st.st_mode));

    g->fd = stream ? xet_cli_output_stream(g->output)
                   : xet_cli_output_create(AT_FDCWD, g->output, &g->part);

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
    long               status;
    xet_cli_zt_get_t  *g;

    g = r->ctx;

    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);

    if (*r->range && status != 206) {
        g->rc = xet_cli_failf(XET_CLI_NETWORK, "server",
                              "%ld where a range was asked for", status);
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
 * Repr-Digest (RFC 9530) is the digest of all bytes of the component, so it is
 * not checked with --range.
 */

static int
xet_cli_zt_get_digest(xet_cli_zt_get_t *g, xet_cli_request_t *r)
{
    uint8_t              digest[XET_CLI_SHA256_LEN];
    uint8_t              text[4 * ((XET_CLI_SHA256_LEN + 2) / 3) + 1];
    const char          *value;
    struct curl_header  *header;

    if (g->ranged
        || curl_easy_header(r->easy, "Repr-Digest", 0, CURLH_HEADER, -1,
                            &header)
           != CURLHE_OK)
    {
        return XET_CLI_OK;
    }

    value = strstr(header->value, XET_CLI_ZT_DIGEST);

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
                            "the bytes have another SHA-256 than the server "
                            "says");
    }

    return XET_CLI_OK;
}


static int
xet_cli_zt_get_close(xet_cli_zt_get_t *g, int rc)
{
    if (g->part && g->fd >= 0) {
        return xet_cli_output_finish(g->fd, g->part, g->output, rc);
    }

    if (g->fd >= 0 && g->fd != STDOUT_FILENO && close(g->fd) != 0
        && rc == XET_CLI_OK)
    {
        rc = xet_cli_fail(XET_CLI_ERROR, g->output, strerror(errno));
    }

    return rc;
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

    xet_cli_json_put_string(j, "file", g->output);
    xet_cli_json_put_u64(j, "size", g->pos);

    return xet_cli_json_end(&out);
}
