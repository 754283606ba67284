
/*
 * Parser of key files with one key per line.
 *
 * Purpose:    reads keys for the module and the command line tool, so that a
 *             key is never used for a purpose other than its own.
 * States:     a reader reads a file from the start to the end, or to the first
 *             invalid line.
 * Ownership:  the caller owns the text of the file, which must outlive the
 *             reader; xet_key_end() wipes the secrets in the reader.
 * Threads:    one thread per reader.
 *
 * A line names the purpose of its key, so a key that is copied into the wrong
 * file is refused when the file is read.  Two keys of different purposes could
 * still have the same bytes.  Therefore the key of a MAC is derived by HKDF
 * (RFC 5869) with a label for the purpose.  Only tokens use the bytes as they
 * are, because other services that share the secret use HS256 without labels.
 */


#include <stdarg.h>
#include <stdio.h>

#include <openssl/crypto.h>

#include "xet_base.h"
#include "xet_access.h"


#define XET_KEY_MARK  "xet key mark 1"


typedef struct {
    const char  *name;
    const char  *form;                 /* the format, for error messages */
    const char  *label;                /* HKDF label; NULL: no derivation */
    int        (*id_ok)(const uint8_t *id, size_t len);
    size_t       min;                  /* bytes of the secret */
    size_t       max;
} xet_key_kind_t;


static int xet_key_line(xet_key_file_t *f, const uint8_t *p,
    const uint8_t *end);
static int xet_key_parts(xet_key_file_t *f, const uint8_t *p,
    const uint8_t *end);
static int xet_key_found(const uint8_t *p, const uint8_t *end);
static int xet_key_secret(xet_key_file_t *f, const uint8_t *p, size_t len);
static int xet_key_fault(xet_key_file_t *f, const char *fmt, ...);


/* The kinds of keys, indexed by xet_key_purpose_e. */

static const xet_key_kind_t  xet_key_kinds[] = {

    { "url", "url:ID:HEX, with an id of 1 to 16 letters, digits, \"_\" and "
      "\"-\" and 32 to 64 bytes in hex",
      "xet data url 1", xet_sign_id_ok, XET_SIGN_KEY_MIN, XET_SIGN_KEY_MAX },

    { "token", "token:ID:HEX, with an id of 1 to 255 printable characters "
      "and 32 to 1024 bytes in hex",
      NULL, xet_jwk_id_ok, XET_JWK_SECRET_MIN, XET_JWK_SECRET_MAX },

    { "dedup", "dedup:HEX, with 32 bytes in hex",
      "xet dedup 1", NULL, XET_KEY_LEN, XET_KEY_LEN }
};


void
xet_key_begin(xet_key_file_t *f, xet_key_purpose_e purpose,
    const uint8_t *text, size_t len)
{
    memset(f, 0, sizeof(xet_key_file_t));

    f->purpose = purpose;
    f->pos = text;
    f->end = text + len;
}


int
xet_key_next(xet_key_file_t *f)
{
    const uint8_t  *p, *end;

    while (f->pos < f->end) {

        p = f->pos;
        end = memchr(p, '\n', (size_t) (f->end - p));

        f->pos = end ? end + 1 : f->end;
        end = end ? end : f->end;
        f->line++;

        while (end > p && (end[-1] == ' ' || end[-1] == '\t'
                           || end[-1] == '\r'))
        {
            end--;
        }

        if (p == end || *p == '#') {
            continue;
        }

        return xet_key_line(f, p, end);
    }

    return 0;
}


void
xet_key_end(xet_key_file_t *f)
{
    OPENSSL_cleanse(f, sizeof(xet_key_file_t));
}


static int
xet_key_line(xet_key_file_t *f, const uint8_t *p, const uint8_t *end)
{
    int                    found;
    size_t                 len;
    const xet_key_kind_t  *kind;

    kind = &xet_key_kinds[f->purpose];
    found = xet_key_found(p, end);

    if (found == XET_KEY_PURPOSES) {
        return xet_key_fault(f, "the key names no purpose; expected %s",
                             kind->form);
    }

    if (found != (int) f->purpose) {
        return xet_key_fault(f, "the key is of purpose \"%s\"; expected one "
                             "of purpose \"%s\"", xet_key_kinds[found].name,
                             kind->name);
    }

    len = strlen(kind->name);

    if ((size_t) (end - p) <= len || p[len] != ':'
        || !xet_key_parts(f, p + len + 1, end))
    {
        return xet_key_fault(f, "the key is malformed; expected %s",
                             kind->form);
    }

    if (f->n++ && kind->id_ok == NULL) {
        return xet_key_fault(f, "the file contains more than one key");
    }

    if (xet_key_derive(f->mark, f->secret, f->secret_len, XET_KEY_MARK)
        != XET_OK)
    {
        return xet_key_fault(f, "out of memory");
    }

    if (kind->label) {

        if (xet_key_derive(f->secret, f->secret, f->secret_len, kind->label)
            != XET_OK)
        {
            return xet_key_fault(f, "out of memory");
        }

        f->secret_len = XET_KEY_LEN;
    }

    return 1;
}


/*
 * Returns the purpose of a line, or XET_KEY_PURPOSES if it names no purpose.  A
 * line that begins a PEM file or a JSON document has the purpose of token keys.
 */

static int
xet_key_found(const uint8_t *p, const uint8_t *end)
{
    int     i;
    size_t  n, len;

    len = (size_t) (end - p);

    for (i = 0; i < XET_KEY_PURPOSES; i++) {
        n = strlen(xet_key_kinds[i].name);

        if (len > n && p[n] == ':' && memcmp(p, xet_key_kinds[i].name, n) == 0)
        {
            return i;
        }
    }

    if (*p == '{' || (len > 10 && memcmp(p, "-----BEGIN", 10) == 0)) {
        return XET_KEY_TOKEN;
    }

    return XET_KEY_PURPOSES;
}


/* Parses the rest of a line, after the purpose; returns 0 if malformed. */

static int
xet_key_parts(xet_key_file_t *f, const uint8_t *p, const uint8_t *end)
{
    const uint8_t         *colon;
    const xet_key_kind_t  *kind;

    kind = &xet_key_kinds[f->purpose];

    f->id = p;
    f->id_len = 0;

    if (kind->id_ok) {
        colon = memchr(p, ':', (size_t) (end - p));

        if (colon == NULL || !kind->id_ok(p, (size_t) (colon - p))) {
            return 0;
        }

        f->id_len = (size_t) (colon - p);
        p = colon + 1;
    }

    return xet_key_secret(f, p, (size_t) (end - p));
}


static int
xet_key_secret(xet_key_file_t *f, const uint8_t *p, size_t len)
{
    size_t                 i;
    unsigned               high, low;
    const xet_key_kind_t  *kind;

    kind = &xet_key_kinds[f->purpose];

    if (len % 2 || len / 2 < kind->min || len / 2 > kind->max) {
        return 0;
    }

    for (i = 0; i < len / 2; i++) {
        high = xet_get_hex_digit(p[2 * i]);
        low = xet_get_hex_digit(p[2 * i + 1]);

        if (high > 15 || low > 15) {
            return 0;
        }

        f->secret[i] = (uint8_t) (high << 4 | low);
    }

    f->secret_len = len / 2;

    return 1;
}


/*
 * Sets the error message and returns -1.  The message must not quote the line,
 * which may be a secret; it may only contain the names of known purposes.
 */

static int
xet_key_fault(xet_key_file_t *f, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(f->fault, sizeof(f->fault), fmt, args);
    va_end(args);

    OPENSSL_cleanse(f->secret, sizeof(f->secret));

    return -1;
}
