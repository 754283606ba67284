
/*
 * Options and operands of the command line.
 *
 * One table has all options; a verb says which of them it takes.  If an
 * option is given several times, the last one counts.
 */

#ifndef _XET_CLI_ARGS_H_INCLUDED_
#define _XET_CLI_ARGS_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <stdio.h>


/* X(symbol, name, value, short option or 0, text of the help) */

#define XET_CLI_OPTION_MAP(X)                                                 \
    X(AUDIENCE, "audience", "TEXT", 0,                                        \
      "claim of a token")                                                     \
    X(BASE, "base", "URL", 0,                                                 \
      "in front of /xorbs/, where the server is")                             \
    X(CACERT, "cacert", "FILE", 0,                                            \
      "certificates to trust instead of the system's")                        \
    X(DECODED, "decoded", NULL, 0,                                            \
      "values as they are when decompressed")                                 \
    X(ENDPOINT, "endpoint", "URL", 0,                                         \
      "of the API; or XET_ENDPOINT")                                          \
    X(HELP, "help", NULL, 'h',                                                \
      "what you read")                                                        \
    X(INDEX, "index", "N", 0,                                                 \
      "the object of this number, from 0")                                    \
    X(INSECURE_TOKEN, "insecure-token", NULL, 0,                              \
      "tokens may be sent without TLS")                                       \
    X(ISSUER, "issuer", "TEXT", 0,                                            \
      "claim of a token")                                                     \
    X(JSON, "json", NULL, 0,                                                  \
      "results as JSON, one object a line")                                   \
    X(KEY, "key", "FILE", 0,                                                  \
      "as xet_url_key or xet_token_key have it")                              \
    X(LIFETIME, "lifetime", "TIME", 0,                                        \
      "90s, 15m, 2h or 7d; 1h")                                               \
    X(OLDER, "older", "TIME", 0,                                              \
      "of files without a row: 1h, 7d")                                       \
    X(ORPHANS, "orphans", NULL, 0,                                            \
      "looks for files without a row, and for nothing else")                  \
    X(OUTPUT, "output", "FILE", 'o',                                          \
      "- is the standard output")                                             \
    X(PARALLEL, "parallel", "N", 0,                                           \
      "transfers or threads at a time")                                       \
    X(POSTGRES, "postgres", "CONNINFO", 0,                                    \
      "of the database; or XET_POSTGRES")                                     \
    X(PREFIX, "prefix", "TEXT", 0,                                            \
      "objects whose name begins so")                                         \
    X(QUIET, "quiet", NULL, 'q',                                              \
      "no progress bar")                                                      \
    X(RANGE, "range", "A-B", 0,                                               \
      "bytes, from 0, B included; of files A- and -N, too")                   \
    X(RECURSIVE, "recursive", NULL, 'r',                                      \
      "a folder with all that is in it, or the manifest of one")              \
    X(REMOVE, "remove", NULL, 0,                                              \
      "removes files without a row that are --older; 1d")                     \
    X(REPO, "repo", "NAME", 0,                                                \
      "a repository")                                                         \
    X(RETRIES, "retries", "N", 0,                                             \
      "how often a request is sent again; 5")                                 \
    X(ROLE, "role", "TEXT", 0,                                                \
      "the component of the object")                                          \
    X(ROWS, "rows", "A:B", 0,                                                 \
      "rows of a tensor, B not included")                                     \
    X(SCOPE, "scope", "SCOPE", 0,                                             \
      "read or write; read")                                                  \
    X(SHA256, "sha256", NULL, 0,                                              \
      "holds the contents against the claimed SHA-256")                       \
    X(SQL, "sql", "DIR", 0,                                                   \
      "folder of the migrations")                                             \
    X(STORE, "store", "DIR", 0,                                               \
      "of xet_store: all of it is verified")                                  \
    X(SUBJECT, "subject", "TEXT", 0,                                          \
      "claim of a token: who it is")                                          \
    X(TOKEN_FILE, "token-file", "FILE", 0,                                    \
      "with the access token; or XET_TOKEN")                                  \
    X(URL, "url", "URL", 0,                                                   \
      "a place that gives out tokens")


#define XET_CLI_OPTION_ENUM(symbol, name, value, letter, text)                \
    XET_CLI_OPT_##symbol,

typedef enum {
    XET_CLI_OPTION_MAP(XET_CLI_OPTION_ENUM)
    XET_CLI_OPT_MAX
} xet_cli_option_t;

#undef XET_CLI_OPTION_ENUM


#define xet_cli_takes(symbol)  ((uint64_t) 1 << XET_CLI_OPT_##symbol)

/* Options of every verb, and options of the verbs that talk to a server. */

#define XET_CLI_TAKES_ALL     xet_cli_takes(HELP)
#define XET_CLI_TAKES_SERVER                                                  \
    (xet_cli_takes(CACERT) | xet_cli_takes(ENDPOINT)                          \
     | xet_cli_takes(INSECURE_TOKEN) | xet_cli_takes(RETRIES)                 \
     | xet_cli_takes(TOKEN_FILE))


typedef struct xet_cli_args_s  xet_cli_args_t;


typedef struct {
    const char   *name;
    const char   *operands;            /* for the help */
    const char   *text;
    uint64_t      options;             /* xet_cli_takes() */
    int           min;                 /* operands, at least */
    int           max;                 /* operands, at most; -1: any number */
    int         (*run)(const xet_cli_args_t *args);
} xet_cli_verb_t;


struct xet_cli_args_s {
    const char           *value[XET_CLI_OPT_MAX];  /* NULL: not given */
    char                **operands;
    int                   count;
    const xet_cli_verb_t *verb;
};


#define xet_cli_quiet(args)  ((args)->value[XET_CLI_OPT_QUIET] != NULL)


/*
 * Reads the arguments of a verb; argv[0] is its name.  The strings are not
 * copied.  With --help the number of operands is not checked.  XET_CLI_OK, or
 * XET_CLI_USAGE, reported.
 */
int xet_cli_args_parse(xet_cli_args_t *args, const xet_cli_verb_t *verb,
    int argc, char **argv);

/*
 * Sets *number to the value of an option, from min to max, or to def if the
 * option is not given.  XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_args_number(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t min, uint64_t max, uint64_t def, uint64_t *number);

/*
 * Sets *seconds to the value of an option, as "90", "90s", "15m", "2h" or
 * "7d", from 1 second to 36,500 days, or to def if the option is not given.
 * XET_CLI_OK, or XET_CLI_USAGE, reported.
 */
int xet_cli_args_time(const xet_cli_args_t *args, xet_cli_option_t option,
    uint64_t def, uint64_t *seconds);

/* Parses a hash string.  XET_CLI_OK, or XET_CLI_USAGE, reported. */
int xet_cli_args_hash(const char *text, void *hash);

/* Print the synopsis of a verb, or its help with all of its options. */
void xet_cli_args_synopsis(FILE *out, const xet_cli_verb_t *verb);
void xet_cli_args_help(FILE *out, const xet_cli_verb_t *verb);

/* Prints the options of a mask of xet_cli_takes(), one line each. */
void xet_cli_args_options(FILE *out, uint64_t options);


#endif /* _XET_CLI_ARGS_H_INCLUDED_ */
