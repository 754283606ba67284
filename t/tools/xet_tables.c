
/*
 * xet_tables: the tables of the module as JSON, for the tests of documents.
 *
 *     xet_tables routes        [{"name","args","versions","methods","scope",
 *                                "handler"}]
 *     xet_tables hub           [{"form","methods","access","act","handler"}]
 *     xet_tables statements    [{"name","params","long","sql"}]
 *
 * The rows are those that the module is made of.
 */

#include <stdio.h>
#include <string.h>


#define NGX_HTTP_GET                  0x01
#define NGX_HTTP_HEAD                 0x02
#define NGX_HTTP_POST                 0x04
#define NGX_HTTP_PUT                  0x08
#define NGX_HTTP_DELETE               0x10

#define NGX_HTTP_XET_V0               0x01
#define NGX_HTTP_XET_V1               0x02
#define NGX_HTTP_XET_V2               0x04
#define NGX_HTTP_XET_V01              (NGX_HTTP_XET_V0|NGX_HTTP_XET_V1)

#define NGX_HTTP_XET_ARG_NONE         "none"
#define NGX_HTTP_XET_ARG_HASH         "hash"
#define NGX_HTTP_XET_ARG_PREFIX_HASH  "prefix"
#define NGX_HTTP_XET_ARG_HASH_NAME    "hash, name"
#define NGX_HTTP_XET_ARG_NAME         "name"
#define NGX_HTTP_XET_ARG_PREFIX_HASH_NAME_ID  "prefix, name, id"

#define NGX_HTTP_XET_ANY              "any"
#define NGX_HTTP_XET_READS            "reads"
#define NGX_HTTP_XET_WRITES           "writes"
#define NGX_HTTP_XET_DELETES          "deletes"

#define NGX_HTTP_XET_ZTENSOR          1

#define NGX_HTTP_XET_HUB_ANY          "any"
#define NGX_HTTP_XET_HUB_READS        "reads"
#define NGX_HTTP_XET_HUB_BROWSES      "browses"
#define NGX_HTTP_XET_HUB_KNOWN        "known"
#define NGX_HTTP_XET_HUB_WRITES       "writes"
#define NGX_HTTP_XET_HUB_DELETES      "deletes"
#define NGX_HTTP_XET_HUB_ADMINS       "admins"

#define NGX_HTTP_XET_HUB_IDLE         "idle"
#define NGX_HTTP_XET_HUB_LOOK         "look"
#define NGX_HTTP_XET_HUB_ACT          "act"
#define NGX_HTTP_XET_HUB_MINT         "mint"


static const char  *const methods[] = {
    "GET", "HEAD", "POST", "PUT", "DELETE", NULL
};

static const char  *const versions[] = { "", "v1", "v2", NULL };


/* The names of the bits that are set, as an array. */

static void
print_flags(const char *key, unsigned flags, const char *const *names)
{
    unsigned     i;
    const char  *comma;

    printf("\"%s\":[", key);

    comma = "";

    for (i = 0; names[i] != NULL; i++) {
        if (flags & (1u << i)) {
            printf("%s\"%s\"", comma, names[i]);
            comma = ",";
        }
    }

    printf("],");
}


static void
print_route(const char *name, const char *args, unsigned version,
    unsigned method, const char *scope, const char *handler)
{
    static const char  *comma = "[";

    printf("%s{\"name\":\"%s\",\"args\":\"%s\",", comma, name, args);
    print_flags("versions", version, versions);
    print_flags("methods", method, methods);
    printf("\"scope\":\"%s\",\"handler\":\"%s\"}", scope, handler);

    comma = ",\n";
}


static void
print_hub(const char *form, unsigned method, const char *access,
    const char *act, const char *handler)
{
    static const char  *comma = "[";

    printf("%s{\"form\":\"%s\",", comma, form);
    print_flags("methods", method, methods);
    printf("\"access\":\"%s\",\"act\":\"%s\",\"handler\":\"%s\"}",
           access, act, handler);

    comma = ",\n";
}


/* The text as ngx_http_xet_query_send.h makes it; columns NULL: of a value. */

static void
print_statement(const char *name, unsigned all, unsigned params,
    unsigned longs, const char *columns, const char *text)
{
    unsigned  i;

    static const char  *comma = "[";

    printf("%s{\"name\":\"%s%s\",\"params\":%u,\"long\":%s,\"sql\":\"",
           comma, name, all ? "_all" : "", params, longs ? "true" : "false");

    comma = ",\n";

    if (text != NULL) {
        printf("%s\"}", text);
        return;
    }

    if (columns != NULL) {
        printf("SELECT %s FROM ", columns);

    } else {
        printf("SELECT ");
    }

    printf("xet.%s(", name);

    for (i = 1; i <= params; i++) {
        printf("%s$%u", (i == 1) ? "" : ", ", i);
    }

    printf("%s)\"}", all ? ", true, ''" : "");
}


#define XET_ROUTE(name, args, version, method, scope, handler)                \
    print_route(name, args, version, method, scope, #handler);

#define XET_HUB(form, method, access, act, group, handler)                    \
    print_hub(form, method, access, act, #handler);

#define XET_ROWS(name, params, columns)                                       \
    print_statement(#name, 0, params, 0, columns, NULL);
#define XET_LONG(name, params, columns)                                       \
    print_statement(#name, 0, params, 1, columns, NULL);
#define XET_ALL(name, params, columns)                                        \
    print_statement(#name, 1, params, 0, columns, NULL);
#define XET_VALUE(name, params)                                               \
    print_statement(#name, 0, params, 0, NULL, NULL);
#define XET_TEXT(name, params, text)                                          \
    print_statement(#name, 0, params, 0, NULL, text);


int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "routes") == 0) {
#include "../../src/http/routes/routes.def"

    } else if (argc == 2 && strcmp(argv[1], "hub") == 0) {
#include "../../src/http/hub/hub.def"

    } else if (argc == 2 && strcmp(argv[1], "statements") == 0) {
#include "../../src/http/query/statements.def"

    } else {
        fprintf(stderr, "usage: xet_tables routes | hub | statements\n");
        return 1;
    }

    printf("]\n");

    return 0;
}
