
/*
 * AWS Signature Version 4 with the rules of S3: a path is encoded once, and
 * neither dot segments nor double slashes are normalized.
 *
 * The canonical request is never in memory as a whole: only its hash is
 * signed, so the text is hashed while it is generated.  Arguments are sorted
 * by their encoded form ("%7B" sorts before "a", "{" would not).  Arguments
 * with equal names are sorted by their values.  The values of headers with the
 * same name are joined with commas.
 */


#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "xet_base.h"
#include "xet_access.h"


#define XET_SIGV4_ALGORITHM  "AWS4-HMAC-SHA256"
#define XET_SIGV4_REQUEST    "aws4_request"
#define XET_SIGV4_HASH_LEN   32
#define XET_SIGV4_TEXT_MAX   512       /* bytes of a string to sign or scope */
#define XET_SIGV4_ID_MAX     256
#define XET_SIGV4_NAMES_MAX  1024      /* bytes of the list of signed headers */
#define XET_SIGV4_QUERY_MAX  6         /* query arguments of a signature */


/* The output: a hash, if md is set, or else a buffer that ends with a NUL. */

typedef struct {
    EVP_MD_CTX  *md;
    char        *pos;
    size_t       room;
    unsigned     failed:1;
} xet_sigv4_out_t;


static void xet_sigv4_out(xet_sigv4_out_t *out, char *dst, size_t size);
static void xet_sigv4_put(xet_sigv4_out_t *out, const char *data, size_t len);
static void xet_sigv4_puts(xet_sigv4_out_t *out, const char *text);
static void xet_sigv4_put_hex(xet_sigv4_out_t *out, const uint8_t *data,
    size_t len);
static xet_status_t xet_sigv4_done(xet_sigv4_out_t *out);
static size_t xet_sigv4_escape(char *dst, unsigned c, int slash);
static void xet_sigv4_encode(xet_sigv4_out_t *out, const char *text,
    int slash);
static int xet_sigv4_compare(const char *a, const char *b);
static int xet_sigv4_before(const xet_sigv4_pair_t *a,
    const xet_sigv4_pair_t *b, int args);
static void xet_sigv4_sort(uint8_t *order, const xet_sigv4_pair_t *pairs,
    size_t n, int args);
static void xet_sigv4_put_args(xet_sigv4_out_t *out,
    const xet_sigv4_pair_t *args, size_t n);
static void xet_sigv4_put_headers(xet_sigv4_out_t *out, const xet_sigv4_t *r);
static void xet_sigv4_put_value(xet_sigv4_out_t *out, const char *value);
static void xet_sigv4_put_names(xet_sigv4_out_t *out, const xet_sigv4_t *r);
static void xet_sigv4_put_scope(xet_sigv4_out_t *out, const xet_sigv4_t *r);
static xet_status_t xet_sigv4_hash(uint8_t *hash, const xet_sigv4_t *r);
static xet_status_t xet_sigv4_sign(uint8_t *mac, const xet_sigv4_t *r,
    const uint8_t *key);
static xet_status_t xet_sigv4_mac(uint8_t *mac, const uint8_t *key,
    size_t key_len, const char *text, size_t len);


xet_status_t
xet_sigv4_key(uint8_t *key, const char *secret, const char *date,
    const char *region, const char *service)
{
    char          first[XET_SIGV4_ID_MAX];
    size_t        len;
    xet_status_t  rc;

    len = strlen(secret);

    if (len > sizeof(first) - 4) {
        return XET_INTERNAL;
    }

    memcpy(first, "AWS4", 4);
    memcpy(first + 4, secret, len);

    rc = xet_sigv4_mac(key, (uint8_t *) first, len + 4, date,
                       XET_SIGV4_DAY_LEN);

    OPENSSL_cleanse(first, sizeof(first));

    if (rc != XET_OK
        || xet_sigv4_mac(key, key, XET_SIGV4_KEY_LEN, region, strlen(region))
           != XET_OK
        || xet_sigv4_mac(key, key, XET_SIGV4_KEY_LEN, service,
                         strlen(service))
           != XET_OK)
    {
        return XET_INTERNAL;
    }

    return xet_sigv4_mac(key, key, XET_SIGV4_KEY_LEN, XET_SIGV4_REQUEST,
                         sizeof(XET_SIGV4_REQUEST) - 1);
}


xet_status_t
xet_sigv4_path(char *dst, size_t size, const char *path)
{
    xet_sigv4_out_t  out;

    xet_sigv4_out(&out, dst, size);
    xet_sigv4_encode(&out, path, 1);

    return xet_sigv4_done(&out);
}


xet_status_t
xet_sigv4_args(char *dst, size_t size, const xet_sigv4_pair_t *args, size_t n)
{
    xet_sigv4_out_t  out;

    if (n > XET_SIGV4_PAIRS_MAX) {
        return XET_INTERNAL;
    }

    xet_sigv4_out(&out, dst, size);
    xet_sigv4_put_args(&out, args, n);

    return xet_sigv4_done(&out);
}


xet_status_t
xet_sigv4_text(char *dst, size_t size, const xet_sigv4_t *r)
{
    uint8_t          hash[XET_SIGV4_HASH_LEN];
    xet_status_t     rc;
    xet_sigv4_out_t  out;

    rc = xet_sigv4_hash(hash, r);

    if (rc != XET_OK) {
        return rc;
    }

    xet_sigv4_out(&out, dst, size);

    xet_sigv4_puts(&out, XET_SIGV4_ALGORITHM "\n");
    xet_sigv4_puts(&out, r->date);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_put_scope(&out, r);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_put_hex(&out, hash, XET_SIGV4_HASH_LEN);

    return xet_sigv4_done(&out);
}


xet_status_t
xet_sigv4_header(char *dst, size_t size, const xet_sigv4_t *r,
    const uint8_t *key, const char *id)
{
    uint8_t          mac[XET_SIGV4_HASH_LEN];
    xet_status_t     rc;
    xet_sigv4_out_t  out;

    rc = xet_sigv4_sign(mac, r, key);

    if (rc != XET_OK) {
        return rc;
    }

    xet_sigv4_out(&out, dst, size);

    xet_sigv4_puts(&out, XET_SIGV4_ALGORITHM " Credential=");
    xet_sigv4_puts(&out, id);
    xet_sigv4_puts(&out, "/");
    xet_sigv4_put_scope(&out, r);
    xet_sigv4_puts(&out, ",SignedHeaders=");
    xet_sigv4_put_names(&out, r);
    xet_sigv4_puts(&out, ",Signature=");
    xet_sigv4_put_hex(&out, mac, XET_SIGV4_HASH_LEN);

    return xet_sigv4_done(&out);
}


xet_status_t
xet_sigv4_query(char *dst, size_t size, const xet_sigv4_t *r,
    const uint8_t *key, const char *id, const char *token, uint32_t expires)
{
    char               credential[XET_SIGV4_ID_MAX + XET_SIGV4_TEXT_MAX];
    char               names[XET_SIGV4_NAMES_MAX];
    char               seconds[XET_DECIMAL_MAX + 1];
    size_t             n;
    uint8_t            mac[XET_SIGV4_HASH_LEN];
    xet_status_t       rc;
    xet_sigv4_t        url;
    xet_sigv4_out_t    out;
    xet_sigv4_pair_t   args[XET_SIGV4_PAIRS_MAX];

    n = r->nargs;

    if (n > XET_SIGV4_PAIRS_MAX - XET_SIGV4_QUERY_MAX
        || r->nheaders > XET_SIGV4_PAIRS_MAX)
    {
        return XET_INTERNAL;
    }

    xet_sigv4_out(&out, credential, sizeof(credential));
    xet_sigv4_puts(&out, id);
    xet_sigv4_puts(&out, "/");
    xet_sigv4_put_scope(&out, r);

    if (xet_sigv4_done(&out) != XET_OK) {
        return XET_INTERNAL;
    }

    xet_sigv4_out(&out, names, sizeof(names));
    xet_sigv4_put_names(&out, r);

    if (xet_sigv4_done(&out) != XET_OK) {
        return XET_INTERNAL;
    }

    *xet_put_decimal((uint8_t *) seconds, expires) = '\0';

    if (n) {
        memcpy(args, r->args, n * sizeof(xet_sigv4_pair_t));
    }

    args[n++] = (xet_sigv4_pair_t) { "X-Amz-Algorithm", XET_SIGV4_ALGORITHM };
    args[n++] = (xet_sigv4_pair_t) { "X-Amz-Credential", credential };
    args[n++] = (xet_sigv4_pair_t) { "X-Amz-Date", r->date };
    args[n++] = (xet_sigv4_pair_t) { "X-Amz-Expires", seconds };
    args[n++] = (xet_sigv4_pair_t) { "X-Amz-SignedHeaders", names };

    if (token && *token) {
        args[n++] = (xet_sigv4_pair_t) { "X-Amz-Security-Token", token };
    }

    url = *r;
    url.args = args;
    url.nargs = n;

    rc = xet_sigv4_sign(mac, &url, key);

    if (rc != XET_OK) {
        return rc;
    }

    xet_sigv4_out(&out, dst, size);
    xet_sigv4_put_args(&out, args, n);
    xet_sigv4_puts(&out, "&X-Amz-Signature=");
    xet_sigv4_put_hex(&out, mac, XET_SIGV4_HASH_LEN);

    return xet_sigv4_done(&out);
}


static void
xet_sigv4_out(xet_sigv4_out_t *out, char *dst, size_t size)
{
    out->md = NULL;
    out->pos = dst;
    out->room = size;
    out->failed = 0;
}


static void
xet_sigv4_put(xet_sigv4_out_t *out, const char *data, size_t len)
{
    if (out->failed) {
        return;
    }

    if (out->md) {
        out->failed = !EVP_DigestUpdate(out->md, data, len);
        return;
    }

    /* leave one byte for the NUL */

    if (len >= out->room) {
        out->failed = 1;
        return;
    }

    memcpy(out->pos, data, len);
    out->pos += len;
    out->room -= len;
}


static void
xet_sigv4_puts(xet_sigv4_out_t *out, const char *text)
{
    xet_sigv4_put(out, text, strlen(text));
}


static void
xet_sigv4_put_hex(xet_sigv4_out_t *out, const uint8_t *data, size_t len)
{
    char    hex[2];
    size_t  i;

    static const char  digits[] = "0123456789abcdef";

    for (i = 0; i < len; i++) {
        hex[0] = digits[data[i] >> 4];
        hex[1] = digits[data[i] & 15];
        xet_sigv4_put(out, hex, 2);
    }
}


static xet_status_t
xet_sigv4_done(xet_sigv4_out_t *out)
{
    if (out->failed || out->room == 0) {
        return XET_INTERNAL;
    }

    *out->pos = '\0';

    return XET_OK;
}


/*
 * Writes a byte as it is (1 character) or escaped (3 characters).  Returns the
 * number of characters written.
 */

static size_t
xet_sigv4_escape(char *dst, unsigned c, int slash)
{
    static const char  digits[] = "0123456789ABCDEF";

    if (xet_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~'
        || (c == '/' && slash))
    {
        dst[0] = (char) c;
        return 1;
    }

    dst[0] = '%';
    dst[1] = digits[c >> 4];
    dst[2] = digits[c & 15];

    return 3;
}


static void
xet_sigv4_encode(xet_sigv4_out_t *out, const char *text, int slash)
{
    char    part[96];
    size_t  n;

    n = 0;

    for ( /* void */ ; *text; text++) {

        if (n > sizeof(part) - 3) {
            xet_sigv4_put(out, part, n);
            n = 0;
        }

        n += xet_sigv4_escape(part + n, (unsigned char) *text, slash);
    }

    xet_sigv4_put(out, part, n);
}


/* Compares the encoded forms of two texts, as strcmp() would. */

static int
xet_sigv4_compare(const char *a, const char *b)
{
    int     diff;
    char    x[3], y[3];
    size_t  n, m;

    while (*a && *a == *b) {
        a++;
        b++;
    }

    if (*a == '\0' || *b == '\0') {
        return (*a != '\0') - (*b != '\0');
    }

    n = xet_sigv4_escape(x, (unsigned char) *a, 0);
    m = xet_sigv4_escape(y, (unsigned char) *b, 0);

    diff = memcmp(x, y, n < m ? n : m);

    return diff;
}


static int
xet_sigv4_before(const xet_sigv4_pair_t *a, const xet_sigv4_pair_t *b,
    int args)
{
    int  diff;

    if (!args) {
        return strcmp(a->name, b->name) < 0;
    }

    diff = xet_sigv4_compare(a->name, b->name);

    return (diff ? diff : xet_sigv4_compare(a->value, b->value)) < 0;
}


/* Sorts indexes of pairs, keeping the order of equal pairs. */

static void
xet_sigv4_sort(uint8_t *order, const xet_sigv4_pair_t *pairs, size_t n,
    int args)
{
    size_t  i, k;

    for (i = 0; i < n; i++) {

        k = i;

        while (k && xet_sigv4_before(&pairs[i], &pairs[order[k - 1]], args)) {
            order[k] = order[k - 1];
            k--;
        }

        order[k] = (uint8_t) i;
    }
}


static void
xet_sigv4_put_args(xet_sigv4_out_t *out, const xet_sigv4_pair_t *args,
    size_t n)
{
    size_t   i;
    uint8_t  order[XET_SIGV4_PAIRS_MAX];

    xet_sigv4_sort(order, args, n, 1);

    for (i = 0; i < n; i++) {

        if (i) {
            xet_sigv4_put(out, "&", 1);
        }

        xet_sigv4_encode(out, args[order[i]].name, 0);
        xet_sigv4_put(out, "=", 1);
        xet_sigv4_encode(out, args[order[i]].value, 0);
    }
}


static void
xet_sigv4_put_headers(xet_sigv4_out_t *out, const xet_sigv4_t *r)
{
    size_t                   i;
    uint8_t                  order[XET_SIGV4_PAIRS_MAX];
    const char              *last;
    const xet_sigv4_pair_t  *h;

    xet_sigv4_sort(order, r->headers, r->nheaders, 0);

    last = NULL;

    for (i = 0; i < r->nheaders; i++) {
        h = &r->headers[order[i]];

        if (last && strcmp(last, h->name) == 0) {
            xet_sigv4_put(out, ",", 1);

        } else {
            xet_sigv4_puts(out, last ? "\n" : "");
            xet_sigv4_puts(out, h->name);
            xet_sigv4_put(out, ":", 1);
        }

        xet_sigv4_put_value(out, h->value);
        last = h->name;
    }

    xet_sigv4_puts(out, last ? "\n" : "");
}


/* Trims the value and writes a run of spaces as one space. */

static void
xet_sigv4_put_value(xet_sigv4_out_t *out, const char *value)
{
    size_t  n;

    value += strspn(value, " ");

    while (*value) {
        n = strcspn(value, " ");
        xet_sigv4_put(out, value, n);

        value += n;
        value += strspn(value, " ");

        if (*value) {
            xet_sigv4_put(out, " ", 1);
        }
    }
}


static void
xet_sigv4_put_names(xet_sigv4_out_t *out, const xet_sigv4_t *r)
{
    size_t       i;
    uint8_t      order[XET_SIGV4_PAIRS_MAX];
    const char  *name, *last;

    xet_sigv4_sort(order, r->headers, r->nheaders, 0);

    last = NULL;

    for (i = 0; i < r->nheaders; i++) {
        name = r->headers[order[i]].name;

        if (last && strcmp(last, name) == 0) {
            continue;
        }

        xet_sigv4_puts(out, last ? ";" : "");
        xet_sigv4_puts(out, name);
        last = name;
    }
}


static void
xet_sigv4_put_scope(xet_sigv4_out_t *out, const xet_sigv4_t *r)
{
    xet_sigv4_put(out, r->date, XET_SIGV4_DAY_LEN);
    xet_sigv4_puts(out, "/");
    xet_sigv4_puts(out, r->region);
    xet_sigv4_puts(out, "/");
    xet_sigv4_puts(out, r->service);
    xet_sigv4_puts(out, "/" XET_SIGV4_REQUEST);
}


static xet_status_t
xet_sigv4_hash(uint8_t *hash, const xet_sigv4_t *r)
{
    int              ok;
    xet_sigv4_out_t  out;

    if (r->nargs > XET_SIGV4_PAIRS_MAX || r->nheaders > XET_SIGV4_PAIRS_MAX
        || strlen(r->date) != XET_SIGV4_DATE_LEN)
    {
        return XET_INTERNAL;
    }

    xet_sigv4_out(&out, NULL, 0);

    out.md = EVP_MD_CTX_new();
    if (out.md == NULL) {
        return XET_INTERNAL;
    }

    out.failed = !EVP_DigestInit_ex(out.md, EVP_sha256(), NULL);

    xet_sigv4_puts(&out, r->method);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_encode(&out, r->path, 1);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_put_args(&out, r->args, r->nargs);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_put_headers(&out, r);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_put_names(&out, r);
    xet_sigv4_puts(&out, "\n");
    xet_sigv4_puts(&out, r->payload);

    ok = !out.failed && EVP_DigestFinal_ex(out.md, hash, NULL);

    EVP_MD_CTX_free(out.md);

    return ok ? XET_OK : XET_INTERNAL;
}


static xet_status_t
xet_sigv4_sign(uint8_t *mac, const xet_sigv4_t *r, const uint8_t *key)
{
    char          text[XET_SIGV4_TEXT_MAX];
    xet_status_t  rc;

    rc = xet_sigv4_text(text, sizeof(text), r);

    if (rc != XET_OK) {
        return rc;
    }

    return xet_sigv4_mac(mac, key, XET_SIGV4_KEY_LEN, text, strlen(text));
}


/* Computes HMAC-SHA256; mac and key may be the same buffer. */

static xet_status_t
xet_sigv4_mac(uint8_t *mac, const uint8_t *key, size_t key_len,
    const char *text, size_t len)
{
    unsigned  n;
    uint8_t   out[EVP_MAX_MD_SIZE];

    n = 0;

    if (HMAC(EVP_sha256(), key, (int) key_len, (const uint8_t *) text, len,
             out, &n)
        == NULL
        || n != XET_SIGV4_HASH_LEN)
    {
        return XET_INTERNAL;
    }

    memcpy(mac, out, XET_SIGV4_HASH_LEN);
    OPENSSL_cleanse(out, sizeof(out));

    return XET_OK;
}
