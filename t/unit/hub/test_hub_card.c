
/*
 * Tests the metadata of a README.md: where its head begins and ends, the JSON
 * of each kind of value, the errors of broken YAML with their lines, and the
 * limits.
 */


#include "xet_test.h"
#include "xet_hub.h"


static xet_hub_card_error_t  error;


/* Returns the JSON of a README, "none" or the error, valid until the next. */

static const char *
card(const char *text, size_t len)
{
    size_t               n;
    xet_status_t         rc;
    xet_hub_card_head_t  head;

    static char  *json;

    free(json);
    json = NULL;

    if (!xet_hub_card_find((const uint8_t *) text, len, &head)) {
        return "none";
    }

    rc = xet_hub_card_parse(&head, &json, &n, &error);

    if (rc == XET_HUB_CARD) {
        return error.text;
    }

    xet_ok(rc == XET_OK, "parsed");

    if (json == NULL) {
        return "empty";
    }

    json = realloc(json, n + 1);
    json[n] = '\0';

    return json;
}


static void
test_head(void)
{
    size_t               i;
    xet_hub_card_head_t  head;

    static const struct {
        const char  *text;
        const char  *json;
    } heads[] = {
        { "", "none" },
        { "# m\n", "none" },
        { "---", "none" },
        { "---\n", "none" },
        { "---\na: b\n", "none" },
        { "--- \na: b\n---\n", "none" },
        { "x\n---\na: b\n---\n", "none" },
        { "----\na: b\n---\n", "none" },
        { "---\na: b\n----\n", "none" },
        { "---\na: b\n --- \n", "none" },
        { "---\n---", "empty" },
        { "---\n\n---\n# m", "empty" },
        { "---\n# a comment\n---\n# m", "empty" },
        { "---\na: b\n---", "{\"a\":\"b\"}" },
        { "---\na: b\n---\n---\nc: d\n---\n", "{\"a\":\"b\"}" },
        { "\xef\xbb\xbf\n\n  ---\r\na: b\r\n---\r\n# m", "{\"a\":\"b\"}" },
        { "---\ra: b\r---\r", "{\"a\":\"b\"}" }
    };

    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        xet_ok(strcmp(card(heads[i].text, strlen(heads[i].text)),
                      heads[i].json)
               == 0, "head %u: %s", (unsigned) i, heads[i].json);
    }

    xet_ok(!xet_hub_card_find((const uint8_t *) "---\na: b\n", 9, &head)
           && head.begins && !head.complete, "a head without its end");
}


static void
test_values(void)
{
    char         text[512], json[512];
    size_t       i;
    const char  *got;

    static const struct {
        const char  *yaml;
        const char  *json;
    } values[] = {
        { "mit", "\"mit\"" },
        { "no", "\"no\"" }, { "Yes", "\"Yes\"" }, { "off", "\"off\"" },
        { "true", "true" }, { "FALSE", "false" }, { "tRue", "\"tRue\"" },
        { "\"true\"", "\"true\"" }, { "!!str true", "\"true\"" },
        { "! 12", "\"12\"" },
        { "", "null" }, { "~", "null" }, { "null", "null" },
        { "''", "\"\"" },
        { "0", "0" }, { "-12", "-12" }, { "+7", "7" }, { "007", "7" },
        { "0x1F", "31" }, { "0o17", "15" }, { "0b101", "5" },
        { "0x", "\"0x\"" }, { "0b12", "\"0b12\"" }, { "--1", "\"--1\"" },
        { "12a", "\"12a\"" }, { "1_000", "\"1_000\"" },
        { "9223372036854775807", "9223372036854775807" },
        { "9223372036854775808", "9.2233720368547758e18" },
        { "0.1", "0.1" }, { "3.14", "3.14" }, { "1e3", "1000.0" },
        { "1.", "1.0" }, { ".5", "0.5" }, { ".", "\".\"" },
        { "1e", "\"1e\"" }, { "1e400", "null" },
        { ".inf", "null" }, { "-.INF", "null" }, { ".nan", "null" },
        { "2024-01-01", "\"2024-01-01\"" }, { "1:30", "\"1:30\"" },
        { "!!int 5", "5" }, { "!!float 5", "5.0" }, { "!!null ''", "null" },
        { "[a, 1, [b], {c: d}]", "[\"a\",1,[\"b\"],{\"c\":\"d\"}]" },
        { "[]", "[]" }, { "{}", "{}" },
        { "{1: a, true: b, null: c}", "{\"1\":\"a\",\"true\":\"b\","
                                      "\"null\":\"c\"}" },
        { "|\n  x\n  y", "\"x\\ny\\n\"" },
        { ">-\n  x\n  y", "\"x y\"" },
        { "\"\\u00e9\"", "\"\xc3\xa9\"" },
        { "&x [1]\nb: *x", "[1],\"b\":[1]" },
        { "&x {p: 1}\nb: {<<: *x, q: 2}", "{\"p\":1},\"b\":{\"q\":2,\"p\":1}" },
        { "&x {p: 1}\nb:\n  <<: [*x, {p: 3, r: 4}]\n  p: 2",
          "{\"p\":1},\"b\":{\"p\":2,\"r\":4}" },
        { "&x {p: 1}\nb: {'<<': *x}", "{\"p\":1},\"b\":{\"<<\":{\"p\":1}}" }
    };

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(text, sizeof(text), "---\na: %s\n---\n", values[i].yaml);
        snprintf(json, sizeof(json), "{\"a\":%s}", values[i].json);

        got = card(text, strlen(text));

        xet_ok(strcmp(got, json) == 0, "value %s: %s", values[i].yaml, got);
    }

    got = "---\na: 0.30000000000000004\n---";
    xet_ok(strcmp(card(got, strlen(got)), "{\"a\":0.30000000000000004}") == 0,
           "17 digits");
}


static void
test_errors(void)
{
    size_t       i;
    const char  *text, *got;

    static const struct {
        const char  *text;
        const char  *error;
    } errors[] = {
        { "---\nlicense: [mit\n---\n", "(line 3)" },
        { "---\na: b\na: c\n---\n", "duplicated mapping key (line 3)" },
        { "\n\n---\na: b\na: c\n---\n", "duplicated mapping key (line 5)" },
        { "---\n- a\n---\n", "must be a mapping" },
        { "---\nabc\n---\n", "must be a mapping" },
        { "---\na: b: c\n---\n", "(line 2)" },
        { "---\na:\n\t- b\n---\n", "(line 3)" },
        { "---\na: !!python/name:os.system\n---\n", "unknown tag" },
        { "---\na: !x b\n---\n", "unknown tag" },
        { "---\na: !!int b\n---\n", "match its tag" },
        { "---\na: !!set {b}\n---\n", "unknown tag" },
        { "---\n[a]: b\n---\n", "a key must be a scalar" },
        { "---\n? {a: b}\n: c\n---\n", "a key must be a scalar" },
        { "---\na: &x b\n*x : c\n---\n", "a key must be a scalar" },
        { "---\na: *x\n---\n", "unknown alias" },
        { "---\na: &x [*x]\n---\n", "unknown alias" },
        { "---\n&x a: b\n---\n", "a key has an anchor" },
        { "---\na: {<<: 1}\n---\n", "only mappings can be merged" },
        { "---\na: {<<: [1]}\n---\n", "only mappings can be merged" },
        { "---\na: \"\\0\"\n---\n", "a NUL character" },
        { "---\n\"\\0\": a\n---\n", "a NUL character" },
        { "---\na: b\n...\n--- c\n---\n", "several documents" },
        { "---\na: \xff\n---\n", "(line " },
        { "---\na: \x01\n---\n", "(line " }
    };

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        text = errors[i].text;
        got = card(text, strlen(text));

        xet_ok(strstr(got, errors[i].error) != NULL, "error %u: %s",
               (unsigned) i, got);
    }
}


/* Appends text n times. */

static void
repeat(char *to, const char *text, size_t n)
{
    to += strlen(to);

    while (n--) {
        to += sprintf(to, "%s", text);
    }
}


static void
test_limits(void)
{
    int      i;
    char    *text;
    size_t   size;

    size = 2 * XET_HUB_CARD_MAX;
    text = malloc(size);

    strcpy(text, "---\na: ");
    repeat(text, "[", XET_HUB_CARD_DEPTH - 1);
    repeat(text, "]", XET_HUB_CARD_DEPTH - 1);
    strcat(text, "\n---\n");
    xet_ok(card(text, strlen(text))[0] == '{', "%d levels",
           XET_HUB_CARD_DEPTH);

    strcpy(text, "---\na: ");
    repeat(text, "[", XET_HUB_CARD_DEPTH);
    strcat(text, "\n---\n");
    xet_ok(strstr(card(text, strlen(text)), "too many levels") != NULL,
           "one level more");

    /* levels made by aliases */

    strcpy(text, "---\na0: &a0 []\n");

    for (i = 1; i < XET_HUB_CARD_DEPTH; i++) {
        sprintf(text + strlen(text), "a%d: &a%d [*a%d]\n", i, i, i - 1);
    }

    /* the bytes of a comment count for the limit of repetitions */

    repeat(text, "# comment\n", 2000);
    strcat(text, "---\n");
    xet_ok(strstr(card(text, strlen(text)), "too many levels") != NULL,
           "levels made by aliases");

    /* each level repeats the previous one nine times */

    strcpy(text, "---\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");

    for (i = 1; i < 12; i++) {
        sprintf(text + strlen(text), "a%d: &a%d [", i, i);

        for (size = 0; size < 9; size++) {
            sprintf(text + strlen(text), "*a%d, ", i - 1);
        }

        strcat(text, "]\n");
    }

    strcat(text, "---\n");
    xet_ok(strstr(card(text, strlen(text)), "repeat too much") != NULL,
           "a billion laughs");

    strcpy(text, "---\na: &a x\nb: [");
    repeat(text, "*a,", 10001);
    strcat(text, "]\n---\n");
    xet_ok(strstr(card(text, strlen(text)), "too many aliases") != NULL,
           "many aliases");

    strcpy(text, "---\na: [");
    repeat(text, "&a x,", 1001);
    strcat(text, "]\n---\n");
    xet_ok(strstr(card(text, strlen(text)), "too many anchors") != NULL,
           "many anchors");

    strcpy(text, "---\na: ");
    memset(text + 7, 'x', XET_HUB_CARD_MAX - 5);
    strcpy(text + 7 + XET_HUB_CARD_MAX - 5, "\n---\n");
    xet_ok(card(text, strlen(text))[0] == '{', "the longest head");
    strcpy(text + 7 + XET_HUB_CARD_MAX - 5, "x\n---\n");
    xet_ok(strstr(card(text, strlen(text)), "longer than") != NULL,
           "a long head");

    /* many values, and no alias */

    strcpy(text, "---\na:\n");
    repeat(text, "- {}\n", 200000);
    strcat(text, "---\n");
    xet_ok(card(text, strlen(text))[0] == '{', "many values");

    free(text);
    (void) card("", 0);
}


static void
test_check(void)
{
    size_t  i;

    static const struct {
        const char    *body;
        xet_status_t   rc;
    } bodies[] = {
        { "{\"content\":\"# m\",\"repoType\":\"model\"}", XET_OK },
        { "{\"content\":\"---\\na: b\\n---\\n\"}", XET_OK },
        { "{\"content\":\"---\\na: [b\\n---\\n\"}", XET_HUB_CARD },
        { "{\"content\":\"---\\na: \\u0000\\n---\\n\"}", XET_BODY_SYNTAX },
        { "{}", XET_BODY_SYNTAX },
        { "{\"content\":1}", XET_BODY_SYNTAX },
        { "", XET_BODY_SYNTAX }
    };

    for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        xet_ok(xet_hub_card_check((const uint8_t *) bodies[i].body,
                                  strlen(bodies[i].body), &error)
               == bodies[i].rc, "body %u", (unsigned) i);
    }
}


int
main(void)
{
    test_head();
    test_values();
    test_errors();
    test_limits();
    test_check();

    return xet_done();
}
