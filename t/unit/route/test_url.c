
/*
 * Tests the URLs of a server: which are accepted, and their parts.
 */


#include "xet_test.h"
#include "xet_route.h"


/* Returns the parts of a URL, or of a host with a port, as one string. */

static const char *
parts(const char *text, int whole)
{
    size_t      len;
    uint8_t    *copy;
    xet_url_t   url;

    static char  out[512];

    len = strlen(text);
    copy = malloc(len + !len);
    memcpy(copy, text, len);

    if (!(whole ? xet_url_parse(&url, copy, len)
                : xet_url_authority(&url, copy, len)))
    {
        strcpy(out, "-");

    } else {
        snprintf(out, sizeof(out), "%d %.*s %.*s %u %u%.*s", url.tls,
                 (int) url.authority.len, (const char *) url.authority.data,
                 (int) url.host.len, (const char *) url.host.data,
                 url.port, xet_url_port_of(&url, url.tls),
                 (int) url.path.len, (const char *) url.path.data);
    }

    free(copy);

    return out;
}


static void
test_urls(void)
{
    size_t       i;
    const char  *got;

    static const struct {
        const char  *text;
        const char  *want;
    } rows[] = {
        { "http://h", "0 h h 0 80" },
        { "HTTPS://Hub.example.com/", "1 Hub.example.com Hub.example.com 0 443"
        },
        { "https://h:8443/a/b//", "1 h:8443 h 8443 8443/a/b" },
        { "http://[::1]:80/x", "0 [::1]:80 [::1] 80 80/x" },
        { "http://[::ffff:1.2.3.4]", "0 [::ffff:1.2.3.4] [::ffff:1.2.3.4] 0 80"
        },
        { "http://a_b-c.d", "0 a_b-c.d a_b-c.d 0 80" },
        { "", "-" },
        { "h", "-" },
        { "h:80", "-" },
        { "//h", "-" },
        { "/x", "-" },
        { "ftp://h", "-" },
        { "http:/h", "-" },
        { "http://", "-" },
        { "http:///x", "-" },
        { "https://", "-" },
        { "http://h:", "-" },
        { "http://h:0", "-" },
        { "http://h:65536", "-" },
        { "http://h:99999999999999999999", "-" },
        { "http://h:65535", "0 h:65535 h 65535 65535" },
        { "http://h:8x", "-" },
        { "http://h:8:8", "-" },
        { "http://u@h", "-" },
        { "http://[::1", "-" },
        { "http://[]", "-" },
        { "http://[::1]x", "-" },
        { "http://::1", "-" },
        { "http://h?x", "-" },
        { "http://h/a?x", "-" },
        { "http://h/a#x", "-" },
        { "http://h/a%20", "-" },
        { "http://h/\"", "-" },
        { "http://h\\x", "-" },
        { " http://h", "-" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        got = parts(rows[i].text, 1);

        if (!xet_ok(strcmp(got, rows[i].want) == 0, "url: %s", rows[i].text)) {
            printf("#   got: %s\n#   want: %s\n", got, rows[i].want);
        }
    }

    xet_ok(strcmp(parts("h:8", 0), "0 h:8 h 8 8") == 0, "host and port");
    xet_ok(strcmp(parts("[::1]", 0), "0 [::1] [::1] 0 80") == 0, "address");
    xet_ok(strcmp(parts("h/x", 0), "-") == 0, "host with a path");
    xet_ok(strcmp(parts("", 0), "-") == 0, "no host");
}


static void
test_hosts(void)
{
    xet_url_t  one, other;

    (void) xet_url_authority(&one, (const uint8_t *) "A.b:1", 5);
    (void) xet_url_authority(&other, (const uint8_t *) "a.B", 3);
    xet_ok(xet_url_same_host(&one, &other), "the same host");

    (void) xet_url_authority(&other, (const uint8_t *) "a.bc", 4);
    xet_ok(!xet_url_same_host(&one, &other), "a longer host");
}


int
main(void)
{
    test_urls();
    test_hosts();

    return xet_done();
}
