
/*
 * The part of "xet info" that asks a server, and what prints the findings.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_verify.h"


/* Bytes of the file that are asked for in one reconstruction. */

#define XET_CLI_INFO_WINDOW  (UINT64_C(1) << 30)
#define XET_CLI_INFO_LEAST   2048


typedef struct {
    uint64_t  terms;
    uint64_t  stored;                  /* bytes to fetch */
    uint64_t  xorbs;                   /* ranges of xorbs */
} xet_cli_info_plan_t;


static int xet_cli_info_server(xet_cli_info_t *in);
static int xet_cli_info_xorb_size(xet_cli_info_t *in, const xet_hash_t *hash,
    uint64_t *size);
static int xet_cli_info_plans(xet_cli_info_t *in, const xet_hash_t *hash,
    uint64_t size, xet_cli_info_plan_t *sum);
static int xet_cli_info_plan(xet_cli_info_t *in, const xet_hash_t *hash,
    uint64_t *pos, uint64_t *window, xet_cli_info_plan_t *sum);
static void xet_cli_info_add(const xet_cli_plan_t *plan,
    xet_cli_info_plan_t *sum);


int
xet_cli_info_remote(xet_cli_info_t *in, const xet_hash_t *hash)
{
    int                   rc;
    uint64_t              size;
    xet_cli_info_plan_t   sum;

    rc = xet_cli_info_server(in);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    rc = xet_cli_download_size(in->http, hash, 1, &size);

    if (rc == XET_CLI_FAULT) {
        rc = xet_cli_info_xorb_size(in, hash, &size);

        if (rc != XET_CLI_OK) {
            return rc;
        }

        xet_cli_info_begin(in, "remote xorb");
        xet_cli_info_hash(in, "hash", hash);
        xet_cli_info_u64(in, "stored_size", size);

        return xet_cli_info_end(in, XET_OK);
    }

    memset(&sum, 0, sizeof(sum));

    if (rc == XET_CLI_OK) {
        rc = xet_cli_info_plans(in, hash, size, &sum);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    xet_cli_info_begin(in, "remote file");
    xet_cli_info_hash(in, "hash", hash);
    xet_cli_info_u64(in, "size", size);
    xet_cli_info_u64(in, "terms", sum.terms);
    xet_cli_info_u64(in, "ranges", sum.xorbs);
    xet_cli_info_u64(in, "stored_size", sum.stored);

    return xet_cli_info_end(in, XET_OK);
}


static int
xet_cli_info_server(xet_cli_info_t *in)
{
    int  rc;

    if (in->http == NULL) {
        in->http = xet_cli_http_create(in->args, &rc);

        if (in->http == NULL) {
            return rc;
        }
    }

    return XET_CLI_OK;
}


static int
xet_cli_info_xorb_size(xet_cli_info_t *in, const xet_hash_t *hash,
    uint64_t *size)
{
    int                rc;
    char               text[XET_HASH_STR_LEN + 1];
    xet_cli_request_t  r;

    rc = xet_cli_http_ask(in->http, &r, "HEAD",
                          xet_cli_http_url(in->http, "/v1/xorbs/default/%s",
                                           xet_cli_hash_string(hash, text)));

    if (rc == XET_CLI_OK) {

        if (r.status == 200 && r.length >= 0) {
            *size = (uint64_t) r.length;

        } else if (r.status == 404) {
            rc = xet_cli_fail(XET_CLI_FAULT, in->name, "is neither a file "
                              "here nor a file or a xorb of the server");

        } else {
            rc = xet_cli_http_fail(&r);
        }
    }

    xet_cli_http_free(&r);

    return rc;
}


static int
xet_cli_info_plans(xet_cli_info_t *in, const xet_hash_t *hash, uint64_t size,
    xet_cli_info_plan_t *sum)
{
    int       rc;
    uint64_t  pos, window;

    rc = XET_CLI_OK;
    window = XET_CLI_INFO_WINDOW;

    for (pos = 0; pos < size && rc == XET_CLI_OK; /* void */ ) {

        if (window > size - pos) {
            window = size - pos;
        }

        rc = xet_cli_info_plan(in, hash, &pos, &window, sum);
    }

    return rc;
}


/*
 * Adds one reconstruction to *sum, and moves *pos to its end: the end of a
 * chunk, where the next reconstruction begins.  A plan that is too large is not
 * added: *window becomes half as large instead.
 */

static int
xet_cli_info_plan(xet_cli_info_t *in, const xet_hash_t *hash, uint64_t *pos,
    uint64_t *window, xet_cli_info_plan_t *sum)
{
    int                rc, answered;
    char               text[XET_HASH_STR_LEN + 1];
    const char        *error;
    xet_cli_plan_t     plan;
    xet_cli_request_t  r;

    memset(&r, 0, sizeof(r));
    memset(&plan, 0, sizeof(plan));

    r.url = xet_cli_http_url(in->http, "/v1/reconstructions/%s",
                             xet_cli_hash_string(hash, text));
    r.api = 1;
    r.max = XET_CLI_PLAN_BODY;

    snprintf(r.range, sizeof(r.range), "%" PRIu64 "-%" PRIu64, *pos,
             *pos + *window - 1);

    rc = xet_cli_http_call(in->http, &r);

    if (rc == XET_CLI_OK && r.status / 100 == 2 && !r.refused) {
        rc = xet_cli_plan_parse(&plan, 1, r.data, r.len, &error);
        answered = 1;

        if (rc == XET_CLI_OK && plan.raw_length <= plan.offset) {
            error = "the reconstruction is of another range";
            rc = XET_CLI_NETWORK;
        }

    } else {
        answered = 0;
    }

    if ((r.large || plan.large) && *window > XET_CLI_INFO_LEAST) {
        *window /= 2;
        rc = XET_CLI_OK;

    } else if (rc == XET_CLI_OK && !answered) {
        rc = xet_cli_http_fail(&r);

    } else if (rc == XET_CLI_OK) {
        xet_cli_info_add(&plan, sum);

        *pos += plan.raw_length - plan.offset;
        *window *= (*window < XET_CLI_INFO_WINDOW) ? 2 : 1;

    } else if (answered) {
        rc = xet_cli_fail(rc, "server", error);
    }

    xet_cli_plan_free(&plan);
    xet_cli_http_free(&r);

    return rc;
}


static void
xet_cli_info_add(const xet_cli_plan_t *plan, xet_cli_info_plan_t *sum)
{
    size_t  i;

    sum->terms += plan->nterms;
    sum->xorbs += plan->nranges;

    for (i = 0; i < plan->nranges; i++) {
        sum->stored += plan->ranges[i].byte_end - plan->ranges[i].byte_start;
    }
}


void
xet_cli_info_begin(xet_cli_info_t *in, const char *kind)
{
    if (!in->json) {
        xet_cli_text_print(stdout, in->name);
        printf(": %s\n", kind);
        return;
    }

    in->j = xet_cli_json_begin(&in->out);

    xet_cli_json_put_string(in->j, "name", in->name);
    xet_cli_json_put_string(in->j, "kind", kind);
}


void
xet_cli_info_string(xet_cli_info_t *in, const char *key, const char *value)
{
    if (in->json) {
        xet_cli_json_put_string(in->j, key, value);

    } else {
        printf("  %-12s %s\n", key, value);
    }
}


void
xet_cli_info_u64(xet_cli_info_t *in, const char *key, uint64_t value)
{
    if (in->json) {
        xet_cli_json_put_u64(in->j, key, value);

    } else {
        printf("  %-12s %" PRIu64 "\n", key, value);
    }
}


void
xet_cli_info_hash(xet_cli_info_t *in, const char *key, const xet_hash_t *hash)
{
    char  text[XET_HASH_STR_LEN + 1];

    xet_cli_info_string(in, key, xet_cli_hash_string(hash, text));
}


int
xet_cli_info_end(xet_cli_info_t *in, xet_status_t status)
{
    int  rc;

    if (in->json) {
        xet_json_key(in->j, "ok");
        xet_json_bool(in->j, status == XET_OK);

        rc = xet_cli_json_end(&in->out);

    } else {
        rc = xet_cli_flush();
    }

    if (status != XET_OK) {
        rc = xet_cli_worse(rc, xet_cli_fail(XET_CLI_FAULT, in->name,
                                            xet_status_text(status)));
    }

    return rc;
}
