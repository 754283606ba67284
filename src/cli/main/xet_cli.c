
/*
 * xet: the protocol on the command line.
 *
 * The table of verbs, help, and what is done once for all of them.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli.h"


static const xet_cli_verb_t  xet_cli_verbs[] = {

    { "get", "HASH|MANIFEST",
      "Downloads a file, or those of a manifest, and verifies them.",
      XET_CLI_TAKES_SERVER | xet_cli_takes(JSON) | xet_cli_takes(OUTPUT)
      | xet_cli_takes(PARALLEL) | xet_cli_takes(QUIET)
      | xet_cli_takes(RANGE) | xet_cli_takes(RECURSIVE),
      1, 1, xet_cli_get },

    { "hash", "FILE...",
      "Prints the hash that a file has in a store, its size and its name.",
      xet_cli_takes(JSON),
      1, -1, xet_cli_hash },

    { "info", "FILE|HASH...",
      "Tells what a xorb, a shard or a file is, here or on a server.",
      XET_CLI_TAKES_SERVER | xet_cli_takes(JSON),
      1, -1, xet_cli_info },

    { "ls", "",
      "Lists the files of a store, or of a repository, from the database.",
      xet_cli_takes(JSON) | xet_cli_takes(POSTGRES) | xet_cli_takes(REPO),
      0, 0, xet_cli_ls },

    { "migrate", "",
      "Brings a database to the schema of this version.",
      xet_cli_takes(JSON) | xet_cli_takes(POSTGRES) | xet_cli_takes(SQL),
      0, 0, xet_cli_migrate },

    { "put", "FILE...|FOLDER",
      "Uploads files; what the server has already is not sent.",
      XET_CLI_TAKES_SERVER | xet_cli_takes(JSON) | xet_cli_takes(PARALLEL)
      | xet_cli_takes(QUIET) | xet_cli_takes(RECURSIVE),
      1, -1, xet_cli_put },

    { "repo", "ls|add|rm|public|private|files [NAME [HASH...]]",
      "Administers repositories, in the database.",
      xet_cli_takes(JSON) | xet_cli_takes(POSTGRES),
      1, -1, xet_cli_repo },

    { "rm", "HASH...",
      "Takes files out of the repository that the token is for.",
      XET_CLI_TAKES_SERVER | xet_cli_takes(JSON),
      1, -1, xet_cli_rm },

    { "token", "",
      "Makes an access token with --key, or fetches one from --url.",
      xet_cli_takes(AUDIENCE) | xet_cli_takes(CACERT)
      | xet_cli_takes(INSECURE_TOKEN) | xet_cli_takes(ISSUER)
      | xet_cli_takes(JSON) | xet_cli_takes(KEY)
      | xet_cli_takes(LIFETIME) | xet_cli_takes(REPO)
      | xet_cli_takes(RETRIES) | xet_cli_takes(SCOPE)
      | xet_cli_takes(SUBJECT) | xet_cli_takes(TOKEN_FILE)
      | xet_cli_takes(URL),
      0, 0, xet_cli_token },

    { "url", "HASH.TAG",
      "Signs a data URL of a copy of a xorb, by the name that its file has in\n"
      "the store, and prints it: for --range or for all of it.",
      xet_cli_takes(BASE) | xet_cli_takes(JSON) | xet_cli_takes(KEY)
      | xet_cli_takes(LIFETIME) | xet_cli_takes(RANGE),
      1, 1, xet_cli_url },

    { "verify", "[HASH...]",
      "Reads files of a server, or with --store a whole store beside its\n"
      "database, and looks whether all is right.",
      XET_CLI_TAKES_SERVER | xet_cli_takes(JSON) | xet_cli_takes(OLDER)
      | xet_cli_takes(ORPHANS) | xet_cli_takes(PARALLEL)
      | xet_cli_takes(POSTGRES) | xet_cli_takes(QUIET)
      | xet_cli_takes(REMOVE) | xet_cli_takes(SHA256)
      | xet_cli_takes(STORE),
      0, -1, xet_cli_verify },

    { "zt", "ls|get|verify HASH [NAME]",
      "Lists, fetches and verifies objects of zTensor files.",
      XET_CLI_TAKES_SERVER | xet_cli_takes(DECODED) | xet_cli_takes(INDEX)
      | xet_cli_takes(JSON) | xet_cli_takes(OUTPUT) | xet_cli_takes(PREFIX)
      | xet_cli_takes(QUIET) | xet_cli_takes(RANGE) | xet_cli_takes(ROLE)
      | xet_cli_takes(ROWS),
      2, 3, xet_cli_zt },

    { NULL, NULL, NULL, 0, 0, 0, NULL }
};


volatile sig_atomic_t  xet_cli_interrupted;


static int xet_cli_standard(void);
static int xet_cli_run(int argc, char **argv);
static void xet_cli_signal(int signo);
static void xet_cli_signals(void);
static const xet_cli_verb_t *xet_cli_find(const char *name);
static int xet_cli_help(FILE *out, int code);
static int xet_cli_help_verb(int argc, char **argv);


int
main(int argc, char **argv)
{
    int  rc;

    if (xet_cli_standard() != XET_CLI_OK) {
        return XET_CLI_ERROR;
    }

    xet_cli_signals();

    rc = xet_cli_run(argc, argv);
    rc = xet_cli_worse(rc, xet_cli_flush());

    if (rc == XET_CLI_CLOSED) {

        /* end as a program that does not catch SIGPIPE */

        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


/*
 * The number of a standard stream that is closed at the start would become the
 * number of the first file or socket that is opened, and output would go there.
 * So /dev/null gets the number: open for writing as an input and for reading as
 * an output, so that reads and writes fail.
 */

static int
xet_cli_standard(void)
{
    int  fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {

        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF
            && open("/dev/null", (fd == STDIN_FILENO) ? O_WRONLY : O_RDONLY)
               != fd)
        {
            return XET_CLI_ERROR;
        }
    }

    return XET_CLI_OK;
}


static int
xet_cli_run(int argc, char **argv)
{
    int                    rc;
    xet_cli_args_t         args;
    const xet_cli_verb_t  *verb;

    if (argc < 2) {
        return xet_cli_help(stderr, XET_CLI_USAGE);
    }

    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0
        || strcmp(argv[1], "-h") == 0)
    {
        return xet_cli_help_verb(argc, argv);
    }

    if (strcmp(argv[1], "--version") == 0) {
        printf("xet %s\n", XET_CLI_VERSION);
        return XET_CLI_OK;
    }

    verb = xet_cli_find(argv[1]);

    if (verb == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, argv[1],
                            "no such verb, see \"xet help\"");
    }

    rc = xet_cli_args_parse(&args, verb, argc - 1, argv + 1);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    if (args.value[XET_CLI_OPT_HELP]) {
        xet_cli_args_help(stdout, verb);
        return XET_CLI_OK;
    }

    return verb->run(&args);
}


/* The second signal ends the process, whatever it is doing. */

static void
xet_cli_signal(int signo)
{
    xet_cli_interrupted = 1;
}


static void
xet_cli_signals(void)
{
    struct sigaction  sa;

    memset(&sa, 0, sizeof(sa));

    sigemptyset(&sa.sa_mask);
    sa.sa_handler = xet_cli_signal;
    sa.sa_flags = SA_RESETHAND;

    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);

    /* a reader that goes away is noticed by EPIPE of write() */

    sa.sa_handler = SIG_IGN;
    sa.sa_flags = 0;

    sigaction(SIGPIPE, &sa, NULL);
}


static const xet_cli_verb_t *
xet_cli_find(const char *name)
{
    const xet_cli_verb_t  *verb;

    for (verb = xet_cli_verbs; verb->name; verb++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }

    return NULL;
}


static int
xet_cli_help(FILE *out, int code)
{
    uint64_t               options;
    const xet_cli_verb_t  *verb;

    options = XET_CLI_TAKES_ALL;

    for (verb = xet_cli_verbs; verb->name; verb++) {
        fprintf(out, "%s ", (verb == xet_cli_verbs) ? "usage:" : "      ");
        xet_cli_args_synopsis(out, verb);

        options |= verb->options;
    }

    fprintf(out, "       xet help [VERB]\n       xet --version\n\n");
    xet_cli_args_options(out, options);

    return code;
}


static int
xet_cli_help_verb(int argc, char **argv)
{
    const xet_cli_verb_t  *verb;

    if (argc < 3) {
        return xet_cli_help(stdout, XET_CLI_OK);
    }

    verb = xet_cli_find(argv[2]);

    if (verb == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, argv[2], "no such verb");
    }

    xet_cli_args_help(stdout, verb);

    return XET_CLI_OK;
}


void *
xet_cli_grow(void *array, size_t n, size_t *room, size_t size)
{
    void    *grown;
    size_t   more;

    if (n < *room) {
        return array;
    }

    more = *room ? *room * 2 : 64;
    grown = realloc(array, more * size);

    if (grown) {
        *room = more;
    }

    return grown;
}


const char *
xet_cli_hash_string(const xet_hash_t *hash, char text[XET_HASH_STR_LEN + 1])
{
    *xet_hash_print((uint8_t *) text, hash) = '\0';

    return text;
}
