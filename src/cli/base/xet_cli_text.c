
/* Escapes untrusted strings for a terminal; formats hashes and numbers. */


#include <inttypes.h>
#include <string.h>

#include "xet_cli.h"
#include "xet_base.h"


static size_t xet_cli_text_char(const uint8_t *p, size_t len, uint32_t *c);
static int xet_cli_text_plain(uint32_t c);


size_t
xet_cli_text_escape(char *out, size_t size, const char *text, size_t len)
{
    size_t          n, i, pos;
    uint32_t        c;
    const uint8_t  *p, *end;

    static const char  digits[] = "0123456789abcdef";

    p = (const uint8_t *) text;
    end = p + len;

    for (pos = 0; p < end; p += n) {
        n = xet_cli_text_char(p, (size_t) (end - p), &c);

        if (n && c != '\\' && xet_cli_text_plain(c)) {

            if (n >= size - pos) {
                break;
            }

            memcpy(out + pos, p, n);
            pos += n;

            continue;
        }

        n = n ? n : 1;

        if (4 * n >= size - pos) {
            break;
        }

        for (i = 0; i < n; i++) {
            out[pos++] = '\\';
            out[pos++] = 'x';
            out[pos++] = digits[p[i] >> 4];
            out[pos++] = digits[p[i] & 15];
        }
    }

    out[pos] = '\0';

    return (size_t) (p - (const uint8_t *) text);
}


/*
 * Decodes the UTF-8 character at p: sets *c to its code point and returns its
 * length in bytes.  Returns 0 if the bytes are invalid.
 */

static size_t
xet_cli_text_char(const uint8_t *p, size_t len, uint32_t *c)
{
    size_t  i, n;

    if (!xet_utf8_character(p, len, &n)) {
        return 0;
    }

    /* the leading bits of the first byte encode the length */

    *c = (n == 1) ? p[0] : p[0] & (0x7f >> n);

    for (i = 1; i < n; i++) {
        *c = *c << 6 | (p[i] & 0x3f);
    }

    return n;
}


static int
xet_cli_text_plain(uint32_t c)
{
    unsigned  i;

    static const struct {
        uint32_t  first;
        uint32_t  last;
    } ranges[] = {
        { 0x0000, 0x001f },
        { 0x007f, 0x009f },
        { 0x061c, 0x061c },            /* direction of writing */
        { 0x200e, 0x200f },
        { 0x2028, 0x202e },            /* line breaks, direction */
        { 0x2066, 0x2069 },
        { 0xfff9, 0xfffb }             /* annotations */
    };

    for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return 0;
        }
    }

    return 1;
}


void
xet_cli_text_write(FILE *out, const char *text, size_t len)
{
    char    buffer[512];
    size_t  n;

    while (len) {
        n = xet_cli_text_escape(buffer, sizeof(buffer), text, len);

        fputs(buffer, out);

        text += n;
        len -= n;
    }
}


void
xet_cli_text_print(FILE *out, const char *text)
{
    text = text ? text : "-";

    xet_cli_text_write(out, text, strlen(text));
}


void
xet_cli_text_json(FILE *out, const char *text, size_t len)
{
    size_t          n;
    uint32_t        c;
    const uint8_t  *p, *run, *end;

    p = (const uint8_t *) text;
    end = p + len;

    for (run = p; p < end; p += n) {

        /* the JSON writer has escaped only controls below 0x20 */

        n = xet_cli_text_char(p, (size_t) (end - p), &c);

        if (n && xet_cli_text_plain(c)) {
            continue;
        }

        fwrite(run, 1, (size_t) (p - run), out);
        fprintf(out, "\\u%04x", n ? (unsigned) c : 0xfffd);

        n = n ? n : 1;
        run = p + n;
    }

    fwrite(run, 1, (size_t) (end - run), out);
}


int
xet_cli_text_valid(const char *text, size_t len)
{
    xet_utf8_t  u;

    xet_utf8_init(&u);

    return xet_utf8_feed(&u, (const uint8_t *) text, len) == len
           && u.need == 0;
}


const char *
xet_cli_hash_string(const xet_hash_t *hash, char text[XET_HASH_STR_LEN + 1])
{
    *xet_hash_print((uint8_t *) text, hash) = '\0';

    return text;
}


const char *
xet_cli_text_count(char *text, size_t size, uint64_t n)
{
    int     i, len;
    char    digits[24];
    size_t  pos;

    len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
    pos = 0;

    for (i = 0; i < len && pos + 2 < size; i++) {

        if (i && (len - i) % 3 == 0) {
            text[pos++] = ',';
        }

        text[pos++] = digits[i];
    }

    text[pos] = '\0';

    return text;
}


const char *
xet_cli_text_size(char *text, size_t size, uint64_t bytes)
{
    return xet_cli_text_part(text, size, bytes, 0);
}


const char *
xet_cli_text_part(char *text, size_t size, uint64_t bytes, uint64_t total)
{
    int       digits;
    double    unit, n;
    unsigned  i;

    static const char *const  units[] = { "B", "kB", "MB", "GB", "TB", "PB" };

    unit = 1;
    n = (double) (total ? total : bytes);

    /* 999.95 would be rounded to 1000.0 */

    for (i = 0; n / unit >= (i ? 999.95 : 1000) && i < 5; i++) {
        unit *= 1000;
    }

    digits = i ? 1 : 0;

    if (total) {
        snprintf(text, size, "%.*f/%.*f %s", digits, (double) bytes / unit,
                 digits, n / unit, units[i]);
    } else {
        snprintf(text, size, "%.*f %s", digits, n / unit, units[i]);
    }

    return text;
}
