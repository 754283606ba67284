
/*
 * xet_tables: prints tables of the module as JSON, for the documentation tests.
 *
 *     xet_tables routes        [{"form","versions","methods","access","act",
 *                                "handler"}], the routes of the API
 *     xet_tables hub           the same for the routes of the Hub
 *     xet_tables statements    [{"name","params","long","again","client",
 *                                "sql"}]
 *     xet_tables directives    [{"name","context","kind","default","post"}]
 *     xet_tables postgres      [{"name","kind","default","min","max","must"}]
 *
 * The rows come from the sources from which the module is built: routes.def,
 * statements.def and directives.def.  The comments at the beginning of these
 * files explain the columns ("access" is "right", "must" is WORDS).
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

#define NGX_HTTP_XET_ANY              "any"
#define NGX_HTTP_XET_READS            "reads"
#define NGX_HTTP_XET_BROWSES          "browses"
#define NGX_HTTP_XET_KNOWN            "known"
#define NGX_HTTP_XET_WRITES           "writes"
#define NGX_HTTP_XET_DELETES          "deletes"

#define NGX_HTTP_XET_IDLE             "idle"
#define NGX_HTTP_XET_LOOK             "look"
#define NGX_HTTP_XET_ACT              "act"
#define NGX_HTTP_XET_MINT             "mint"

#define NGX_HTTP_XET_ZTENSOR          1


static const char  *const methods[] = {
    "GET", "HEAD", "POST", "PUT", "DELETE", NULL
};

static const char  *const versions[] = { "", "v1", "v2", NULL };


/* Prints the names of the set bits as an array. */

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
print_route(const char *form, unsigned version, unsigned method,
    const char *access, const char *act, const char *handler)
{
    static const char  *comma = "[";

    printf("%s{\"form\":\"%s\",", comma, form);
    print_flags("versions", version, versions);
    print_flags("methods", method, methods);
    printf("\"access\":\"%s\",\"act\":\"%s\",\"handler\":\"%s\"}",
           access, act, handler);

    comma = ",\n";
}


/*
 * Prints a row of statements.def, with the SQL that ngx_http_xet_statements.c
 * builds for it.  If all is set, the row describes the statement NAME_all.
 * asked is the number of members of XET_ASKED, or 0.  columns ends with NULL,
 * and is empty if the SQL function returns one value.  If text is not NULL, it
 * is the SQL text of the row's XET_SQL.
 */

static void
print_statement(const char *name, unsigned all, unsigned params,
    unsigned asked, const char *way, const char *again, const char *client,
    const char *const *columns, const char *text)
{
    unsigned  i;

    static const char  *comma = "[";

    printf("%s{\"name\":\"%s%s\",\"params\":%u,\"long\":%s,\"again\":\"%s\","
           "\"client\":\"%s\",\"sql\":\"", comma, name, all ? "_all" : "",
           params, strncmp(way, "LONG", 4) == 0 ? "true" : "false", again,
           client);

    comma = ",\n";

    if (text != NULL) {
        printf("%s\"}", text);
        return;
    }

    printf("SELECT ");

    for (i = 0; columns[i] != NULL; i++) {
        printf("%s%s", (i == 0) ? "" : ", ", columns[i]);
    }

    printf("%sxet.%s(", (i == 0) ? "" : " FROM ", name);

    for (i = 1; i <= params; i++) {
        printf("%s%s$%u%s", (i == 1) ? "" : ", ",
               (i == 1 && asked) ? "ROW(" : "", i, (i == asked) ? ")" : "");
    }

    printf("%s)\"}", all ? ", true, ''" : "");
}


/* Prints a directive; value and post are C source text from the table row. */

static void
print_directive(const char *name, const char *context, const char *kind,
    const char *value, const char *post)
{
    static const char  *comma = "[";

    printf("%s{\"name\":\"%s\",\"context\":\"%s\",\"kind\":\"%s\",", comma,
           name, context, kind);
    printf("\"default\":\"");

    for (; *value != '\0'; value++) {
        printf("%s%c", (*value == '"') ? "\\" : "", *value);
    }

    printf("\",\"post\":\"%s\"}", post);

    comma = ",\n";
}


static void
print_param(const char *name, const char *kind, long value, long min,
    long max, const char *must)
{
    static const char  *comma = "[";

    printf("%s{\"name\":\"%s\",\"kind\":\"%s\",\"default\":%ld,\"min\":%ld,"
           "\"max\":%ld,\"must\":\"%s\"}", comma, name, kind, value, min, max,
           must);

    comma = ",\n";
}


/*
 * Returns the SQL text in the XET_SQL of a statement, or NULL if it has none.
 */

static const char *
statement_text(const char *name)
{
#define XET_SQL(statement, text)                                              \
    if (strcmp(name, #statement) == 0) {                                      \
        return text;                                                          \
    }

#include "../../src/http/query/statements.def"

    return NULL;
}


static void
print_statements(void)
{
    const char  *again, *way;

    unsigned            params = 0;
    const char *const  *columns = NULL;

#define XET_TYPE(type)         + 1
#define XET_PARAM(type, name)  + 1
#define XET_FROM(what, types)  types
#define XET_MEMBER(what, type, name, types)  types
#define XET_COLUMN(type, name)  #name,
#define XET_CELL(type, name)   #name,
#define XET_CELLS(what, type, name, cells)  cells
#define XET_STATEMENT(name, how, why, client, types, names)                   \
    params = 0 types;                                                         \
    columns = (const char *const[]) { names NULL };                           \
    way = #how;                                                               \
    again = #why;                                                             \
    print_statement(#name, 0, params,                                         \
                    strncmp(#types, "XET_ASKED", 9) ? 0 : 7, way, again,      \
                    #client, columns, statement_text(#name));
#define XET_ALL_OF(name)                                                      \
    print_statement(#name, 1, params - 2, 0, way, again, "ANY", columns, NULL);

#include "../../src/http/query/statements.def"
}


#define XET_ANYWHERE         "http, server, location"
#define XET_HTTP_SERVER      "http, server"
#define XET_SERVER_LOCATION  "server, location"

#define XET_DIRECTIVE(name, context, kind, member, value, post)               \
    print_directive(name, context, #kind, #value, #post);
#define XET_HTTP_DIRECTIVE(name, kind, member, value, post)                   \
    print_directive(name, "http", #kind, #value, #post);


int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "routes") == 0) {
#define XET_API(form, version, method, access, act, action, label, name)     \
        print_route(form, version, method, access, act, #name);
#include "../../src/http/routes/routes.def"

    } else if (argc == 2 && strcmp(argv[1], "hub") == 0) {
#define XET_HUB(form, method, access, act, action, label, name)              \
        print_route(form, 0, method, access, act, #name);
#include "../../src/http/routes/routes.def"

    } else if (argc == 2 && strcmp(argv[1], "statements") == 0) {
        print_statements();

    } else if (argc == 2 && strcmp(argv[1], "directives") == 0) {
#include "../../src/http/base/directives.def"

    } else if (argc == 2 && strcmp(argv[1], "postgres") == 0) {
#define XET_POSTGRES_PARAM(name, kind, member, value, min, max, must)         \
        print_param(name, #kind, value, min, max, must);
#include "../../src/http/base/directives.def"

    } else {
        fprintf(stderr, "usage: xet_tables routes | hub | statements"
                        " | directives | postgres\n");
        return 1;
    }

    printf("]\n");

    return 0;
}
