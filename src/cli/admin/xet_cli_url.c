
/*
 * xet url: a signed data URL of a copy of a xorb, as reconstructions have
 * them.  The copy is named as its file is: nobody is asked, so nobody knows
 * whether it is there.
 */


#include <string.h>
#include <time.h>

#include "xet_cli_admin.h"


#define XET_CLI_URL_LIFETIME  3600     /* s */


static int xet_cli_url_ranges(const xet_cli_args_t *args,
    xet_range_t *ranges, size_t *n);
static int xet_cli_url_sign(const xet_cli_args_t *args,
    const xet_sign_url_t *url);
static int xet_cli_url_print(const xet_cli_args_t *args, xet_buf_t *b,
    uint64_t expires);


int
xet_cli_url(const xet_cli_args_t *args)
{
    int             rc;
    uint64_t        lifetime;
    xet_range_t     ranges[XET_SIGN_RANGES_MAX];
    xet_sign_url_t  url;

    memset(&url, 0, sizeof(url));

    rc = XET_CLI_OK;

    if (xet_xorb_name_parse(&url.xorb, &url.tag,
                            (const uint8_t *) args->operands[0],
                            strlen(args->operands[0]))
        != XET_OK)
    {
        rc = xet_cli_fail(XET_CLI_USAGE, args->operands[0],
                          "is no HASH.TAG, as files in the store are named");
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_args_time(args, XET_CLI_OPT_LIFETIME,
                               XET_CLI_URL_LIFETIME, &lifetime);
    }

    if (rc == XET_CLI_OK) {
        rc = xet_cli_url_ranges(args, ranges, &url.n);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    url.ns = (const uint8_t *) "default";
    url.ns_len = sizeof("default") - 1;
    url.expires = (uint64_t) time(NULL) + lifetime;
    url.ranges = ranges;

    return xet_cli_url_sign(args, &url);
}


/* Without --range there are none: the URL is valid for any range then. */

static int
xet_cli_url_ranges(const xet_cli_args_t *args, xet_range_t *ranges,
    size_t *n)
{
    const char  *list;

    *n = 0;
    list = args->value[XET_CLI_OPT_RANGE];

    if (list == NULL) {
        return XET_CLI_OK;
    }

    *n = XET_SIGN_RANGES_MAX;

    if (xet_range_list_parse((const uint8_t *) list, strlen(list), ranges, n)
        != XET_OK)
    {
        return xet_cli_fail(XET_CLI_USAGE, list,
                            "ranges are A-B, several with commas, ascending");
    }

    return XET_CLI_OK;
}


static int
xet_cli_url_sign(const xet_cli_args_t *args, const xet_sign_url_t *url)
{
    int              rc;
    size_t           len;
    xet_buf_t        b;
    const char      *base;
    xet_status_t     status;
    xet_cli_key_t    key;
    xet_sign_key_t  *signer;

    signer = NULL;

    rc = xet_cli_key_read(&key, args);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_key_secret(&key, args);
    }

    if (rc == XET_CLI_OK) {
        signer = xet_sign_key_create(key.id, key.id_len, key.secret,
                                     key.secret_len);

        if (signer == NULL) {
            rc = xet_cli_fail(XET_CLI_ERROR, args->value[XET_CLI_OPT_KEY],
                              "has an id over 16 characters, or a secret of "
                              "another length than 32 to 64 bytes");
        }
    }

    xet_cli_key_free(&key);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    base = args->value[XET_CLI_OPT_BASE];
    base = base ? base : "";

    for (len = strlen(base); len && base[len - 1] == '/'; len--) {
        /* void */
    }

    xet_buf_init(&b, xet_cli_buf_alloc, NULL, 16384);
    xet_buf_write(&b, base, len);

    status = xet_sign_url(signer, url, &b);

    if (status != XET_OK) {
        rc = xet_cli_fail(XET_CLI_USAGE, "url",
                          "the ranges overlap, or do not ascend");

    } else {
        rc = xet_cli_url_print(args, &b, url->expires);
    }

    xet_sign_key_destroy(signer);
    xet_cli_buf_free(&b);

    return rc;
}


static int
xet_cli_url_print(const xet_cli_args_t *args, xet_buf_t *b, uint64_t expires)
{
    xet_json_t      *j;
    xet_buf_node_t  *node;
    xet_cli_json_t   out;

    if (!args->value[XET_CLI_OPT_JSON]) {

        for (node = b->first; node; node = node->next) {
            fwrite(node->start, 1, (size_t) (node->pos - node->start),
                   stdout);
        }

        printf("\n");

        return XET_CLI_OK;
    }

    j = xet_cli_json_begin(&out);

    xet_json_key(j, "url");
    xet_json_string_begin(j);

    for (node = b->first; node; node = node->next) {
        xet_buf_write(&out.buf, node->start,
                      (size_t) (node->pos - node->start));
    }

    xet_json_string_end(j);
    xet_cli_json_put_u64(j, "expires", expires);

    return xet_cli_json_end(&out);
}
