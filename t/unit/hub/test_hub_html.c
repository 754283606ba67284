
/*
 * Tests the HTML of the Hub: the text of each value, escaping (a value never
 * adds markup), numbers and sizes.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_hub.h"


static xet_buf_t        b;
static xet_test_pool_t  pool;
static char             text[8192];


static void
xet_is_str(const char *got, const char *want, const char *name)
{
    xet_ok(strcmp(got, want) == 0, "%s: %s", name, got);
}


/* Returns the contents of the buffer as a string, and empties the buffer. */

static const char *
flat(void)
{
    size_t           len;
    xet_buf_node_t  *node;

    len = 0;

    for (node = b.first; node; node = node->next) {
        memcpy(text + len, node->start, (size_t) (node->pos - node->start));
        len += (size_t) (node->pos - node->start);
    }

    text[len] = '\0';

    xet_buf_init(&b, xet_test_alloc, &pool, 64);

    return text;
}


#define is_text(s, expected)                                                  \
    do {                                                                      \
        xet_hub_html(&b, "%t", sizeof(s) - 1, (const uint8_t *) (s));         \
        xet_ok(strcmp(flat(), expected) == 0, "text: %s", #s);                \
    } while (0)


static void
test_text(void)
{
    unsigned  c;
    uint8_t   byte;

    is_text("", "");
    is_text("plain \t\r\n", "plain \t\r\n");
    is_text("<a href=\"x\" b='y'>&amp;",
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
    is_text("\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80",
            "\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80");
    is_text("a\0b", "a\xef\xbf\xbd" "b");
    is_text("\x1b\x7f\xc2\x85",
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    is_text("\xe2\x80\xaegpj.exe", "\xef\xbf\xbdgpj.exe");
    is_text("\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xaf",
            "\xe2\x80\xa9\xef\xbf\xbd\xe2\x80\xaf");
    is_text("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
            "\xe2\x81\xa5\xef\xbf\xbd\xef\xbf\xbd\xe2\x81\xaa");
    is_text("\xc3", "\xef\xbf\xbd");
    is_text("\xc3<", "\xef\xbf\xbd&lt;");
    is_text("\xe4\xb8\"", "\xef\xbf\xbd&quot;");
    is_text("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    is_text("\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd");

    for (c = 0; c < 256; c++) {
        byte = (uint8_t) c;

        xet_hub_html(&b, "%t", (size_t) 1, &byte);
        (void) flat();

        xet_ok(text[0] != '\0'
               && (c != '&' || strcmp(text, "&amp;") == 0)
               && strpbrk(text, "<>\"'") == NULL,
               "text: byte %u", c);
    }
}


static void
test_values(void)
{
    xet_hub_html(&b, "<i>%t</i>%%", (size_t) 3, (const uint8_t *) "a<b");
    xet_is_str(flat(), "<i>a&lt;b</i>%", "a text in markup");

    xet_hub_html(&b, "%n %n %n", (uint64_t) 0, (uint64_t) 1234,
                 UINT64_MAX);
    xet_is_str(flat(), "0 1,234 18,446,744,073,709,551,615", "numbers");

    xet_hub_html(&b, "%b|%b|%b|%b|%b", (uint64_t) 0, (uint64_t) 1,
                 (uint64_t) 999, (uint64_t) 1234567, UINT64_MAX);
    xet_is_str(flat(), "0 bytes|1 byte|999 bytes|1.2 MB|18.4 EB", "sizes");

    xet_hub_html(&b, "100%");
    xet_is_str(flat(), "100%", "a format that ends in a percent sign");
}


int
main(void)
{
    xet_buf_init(&b, xet_test_alloc, &pool, 64);

    test_text();
    test_values();

    xet_test_pool_free(&pool);

    return xet_done();
}
