
/*
 * The command xet: client and administration tool of an XET storage server.
 *
 * Parses the command line, runs the verb, and prints the help and the
 * completion scripts for shells.  The table of verbs (verbs.def) and the table
 * of options (xet_cli.h) are the source of the parser, the help and the
 * scripts.
 */


#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli.h"


#define xet_cli_takes(symbol)  ((uint64_t) 1 << XET_CLI_OPT_##symbol)

/* Options of all verbs, and options of the verbs that use a server. */

#define XET_CLI_TAKES_ALL     xet_cli_takes(HELP)
#define XET_CLI_TAKES_SERVER                                                  \
    (xet_cli_takes(CACERT) | xet_cli_takes(ENDPOINT)                          \
     | xet_cli_takes(INSECURE_TOKEN) | xet_cli_takes(RETRIES)                 \
     | xet_cli_takes(TOKEN_FILE))

/* Options of the verbs that also accept Hub names. */

#define XET_CLI_TAKES_HUB                                                     \
    (xet_cli_takes(CACERT) | xet_cli_takes(HUB)                               \
     | xet_cli_takes(INSECURE_TOKEN) | xet_cli_takes(RETRIES)                 \
     | xet_cli_takes(REVISION) | xet_cli_takes(TOKEN_FILE)                    \
     | xet_cli_takes(TYPE))


/* The groups of verbs, in the order of the help. */

typedef enum {
    XET_CLI_GROUP_FILES = 0,
    XET_CLI_GROUP_STORE,
    XET_CLI_GROUP_ADMIN,
    XET_CLI_GROUP_ACCESS,
    XET_CLI_GROUP_OTHER,
    XET_CLI_GROUPS
} xet_cli_group_e;


typedef struct {
    const char   *name;
    const char   *operands;            /* operands, as the help shows them */
    const char   *summary;             /* one line of help */
    const char   *text;
    const char   *examples;
    int           group;               /* xet_cli_group_e */
    uint64_t      options;             /* mask of xet_cli_takes() bits */
    int           min;                 /* minimum number of operands */
    int           max;                 /* maximum number; -1: no limit */
    int         (*run)(const xet_cli_args_t *args);
} xet_cli_verb_t;


/* The options of a verb, in the two formats that getopt_long() requires. */

typedef struct {
    struct option  rows[XET_CLI_OPT_MAX + 1];
    char           letters[2 * XET_CLI_OPT_MAX + 2];
} xet_cli_getopt_t;


static const xet_cli_verb_t  xet_cli_verbs[] = {
#define XET_CLI_VERB(name, run, operands, min, max, options, group, summary,  \
                     text, examples)                                          \
    { name, operands, summary, text, examples, group, options, min, max, run },

#include "verbs.def"

#undef XET_CLI_VERB

    { NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL }
};


typedef struct {
    const char  *name;
    const char  *summary;
    const char  *text;
} xet_cli_topic_t;


static const xet_cli_topic_t  xet_cli_topics[] = {
#define XET_CLI_TOPIC(name, summary, text)  { name, summary, text },

#include "topics.def"

#undef XET_CLI_TOPIC

    { NULL, NULL, NULL }
};


static const char *const  xet_cli_groups[XET_CLI_GROUPS] = {
    "Files", "Store and backup", "Server and database", "Access", "Other"
};


/*
 * The parts of a completion script for one shell.  Between start and end, a
 * "case" statement has one branch for the list of verbs, and for each verb a
 * branch for the list of its options.  The code in end completes a word from
 * the selected list.
 */

typedef struct {
    const char  *name;
    const char  *start;
    const char  *verbs;                /* line: case of the list of verbs */
    const char  *before;               /* text before the name of a verb */
    const char  *after;                /* text after the name of a verb */
    const char  *open;                 /* text before a list of words */
    const char  *close;                /* text after a list of words */
    const char  *end;
} xet_cli_shell_t;


static const xet_cli_shell_t  xet_cli_shells[] = {
    {
        "bash",
        "_xet() {\n"
        "    local list= cur=${COMP_WORDS[COMP_CWORD]}\n\n"
        "    case $COMP_CWORD:${COMP_WORDS[1]} in\n",
        "    1:*|*:help)\n", "    *:", ")\n", "        list=\"", "\" ;;",
        "    esac\n\n"
        "    COMPREPLY=()\n\n"
        "    if [[ $COMP_CWORD = 1 || ${COMP_WORDS[1]} = help"
        " || $cur = -* ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
        "    fi\n"
        "}\n\n"
        "complete -o default -F _xet xet\n"
    },
    {
        "zsh",
        "#compdef xet\n\n"
        "_xet() {\n"
        "    local -a list\n\n"
        "    case $CURRENT:$words[2] in\n",
        "    2:*|*:help)\n", "    *:", ")\n", "        list=(", ") ;;",
        "    esac\n\n"
        "    if [[ $CURRENT = 2 || $words[2] = help || $PREFIX = -* ]]; then\n"
        "        compadd -- $list\n"
        "    else\n"
        "        _files\n"
        "    fi\n"
        "}\n\n"
        "if [ \"$funcstack[1]\" = _xet ]; then\n"
        "    _xet \"$@\"\n"
        "else\n"
        "    compdef _xet xet\n"
        "fi\n"
    },
    {
        "fish",
        "function __xet_words\n"
        "    set -l words (commandline -opc) (commandline -ct)\n"
        "    set -l list\n\n"
        "    switch (math (count $words) - 1):\"$words[2]\"\n",
        "    case '1:*' '*:help'\n", "    case '*:", "'\n",
        "        set list ", "",
        "    end\n\n"
        "    if test (count $words) = 2; or test \"$words[2]\" = help\n"
        "        or string match -q -- '-*' (commandline -ct)\n"
        "        printf '%s\\n' $list\n"
        "    end\n"
        "end\n\n"
        "complete -c xet -a '(__xet_words)'\n"
    },
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
};


static int xet_cli_standard(void);
static void xet_cli_signals(void);
static void xet_cli_signal(int signo);
static int xet_cli_run(int argc, char **argv);
static const xet_cli_verb_t *xet_cli_find(const char *name);
static int xet_cli_parse(xet_cli_args_t *args, const xet_cli_verb_t *verb,
    int argc, char **argv);
static int xet_cli_environment(int c, char **argv);
static void xet_cli_getopt(xet_cli_getopt_t *g, uint64_t options);
static int xet_cli_option(int c);
static int xet_cli_help(FILE *out, int code);
static int xet_cli_help_named(const char *name);
static int xet_cli_help_topics(void);
static int xet_cli_help_verb(const xet_cli_verb_t *verb);
static void xet_cli_synopsis(FILE *out, const xet_cli_verb_t *verb);
static void xet_cli_options_help(FILE *out, uint64_t options);
static void xet_cli_examples(const char *text);


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

        /* die from SIGPIPE, like a program that does not ignore the signal */

        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }

    return xet_cli_interrupted ? XET_CLI_INTERRUPTED : rc;
}


/*
 * If a standard stream is closed at the start, the first file or socket that
 * is opened would get the descriptor of that stream, and could receive its
 * output.  So /dev/null is opened in place of the stream: write-only for the
 * input and read-only for an output, so that reads and writes fail.
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

    /* writing to a pipe without a reader must fail with EPIPE */

    sa.sa_handler = SIG_IGN;
    sa.sa_flags = 0;

    sigaction(SIGPIPE, &sa, NULL);
}


/* SA_RESETHAND: a second signal ends the process immediately. */

static void
xet_cli_signal(int signo)
{
    xet_cli_interrupted = 1;
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

    if (strcmp(argv[1], "--version") == 0) {
        printf("xet %s\n", XET_CLI_VERSION);
        return XET_CLI_OK;
    }

    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0
        || strcmp(argv[1], "-h") == 0)
    {
        return (argc < 3) ? xet_cli_help(stdout, XET_CLI_OK)
                          : xet_cli_help_named(argv[2]);
    }

    verb = xet_cli_find(argv[1]);

    if (verb == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, argv[1],
                            "unknown verb; see \"xet help\"");
    }

    rc = xet_cli_parse(&args, verb, argc - 1, argv + 1);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    return args.value[XET_CLI_OPT_HELP] ? xet_cli_help_verb(verb)
                                        : verb->run(&args);
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


/*
 * Parses the arguments of a verb; argv[0] is the verb.  Strings are not
 * copied.  With --help the number of operands is not checked.
 */

static int
xet_cli_parse(xet_cli_args_t *args, const xet_cli_verb_t *verb,
    int argc, char **argv)
{
    int               c;
    xet_cli_getopt_t  g;

    memset(args, 0, sizeof(xet_cli_args_t));

    args->verb = verb->name;

    xet_cli_getopt(&g, verb->options | XET_CLI_TAKES_ALL);

    opterr = 0;
    optind = 1;

    while ((c = getopt_long(argc, argv, g.letters, g.rows, NULL)) != -1) {

        if (xet_cli_environment(c, argv)) {
            args->value[XET_CLI_OPT_STORE] = getenv("XET_STORE");
            continue;
        }

        if (c == '?' || c == ':') {
            return xet_cli_failf(XET_CLI_USAGE, verb->name,
                                 (c == ':') ? "option %s needs a value"
                                            : "unknown option %s",
                                 argv[optind - 1]);
        }

        args->value[xet_cli_option(c)] = optarg ? optarg : "";
    }

    args->operands = argv + optind;
    args->count = argc - optind;

    if (args->value[XET_CLI_OPT_HELP]) {
        return XET_CLI_OK;
    }

    if (args->count < verb->min) {
        return xet_cli_failf(XET_CLI_USAGE, verb->name,
                             "expected %s; see \"xet help %s\"",
                             verb->operands,
                             verb->name);
    }

    if (verb->max >= 0 && args->count > verb->max) {
        return xet_cli_failf(XET_CLI_USAGE, verb->name,
                             "unexpected operand \"%s\"",
                             args->operands[verb->max]);
    }

    return XET_CLI_OK;
}


/*
 * Returns whether the value of --store is missing and XET_STORE is set.
 * getopt_long() would use the option after --store as the value; in this case
 * optind is moved back, so that the option is parsed.
 */

static int
xet_cli_environment(int c, char **argv)
{
    const char  *store;

    store = getenv("XET_STORE");

    if (store == NULL || *store == '\0') {
        return 0;
    }

    if (c == ':') {
        return optopt == 256 + XET_CLI_OPT_STORE;
    }

    if (c != 256 + XET_CLI_OPT_STORE || optarg == NULL
        || optarg != argv[optind - 1] || *optarg != '-')
    {
        return 0;
    }

    optind--;

    return 1;
}


static void
xet_cli_getopt(xet_cli_getopt_t *g, uint64_t options)
{
    char           *letter;
    unsigned        i;
    struct option  *row;

    memset(g, 0, sizeof(xet_cli_getopt_t));

    row = g->rows;
    letter = g->letters;
    *letter++ = ':';

    for (i = 0; i < XET_CLI_OPT_MAX; i++) {

        if (!(options & ((uint64_t) 1 << i))) {
            continue;
        }

        row->name = xet_cli_options[i].name;
        row->has_arg = xet_cli_options[i].value ? required_argument
                                                : no_argument;
        row->val = 256 + (int) i;
        row++;

        if (xet_cli_options[i].letter) {
            *letter++ = (char) xet_cli_options[i].letter;

            if (xet_cli_options[i].value) {
                *letter++ = ':';
            }
        }
    }
}


static int
xet_cli_option(int c)
{
    int  i;

    if (c >= 256) {
        return c - 256;
    }

    for (i = 0; i < XET_CLI_OPT_MAX; i++) {
        if (xet_cli_options[i].letter == c) {
            break;
        }
    }

    return i;
}


static int
xet_cli_help(FILE *out, int code)
{
    int                    group;
    const xet_cli_verb_t  *verb;

    fprintf(out, "usage: xet VERB [OPTION...] [OPERAND...]\n"
                 "       xet help [VERB|TOPIC|topics]\n"
                 "       xet --version\n");

    for (group = 0; group < XET_CLI_GROUPS; group++) {
        fprintf(out, "\n%s:\n", xet_cli_groups[group]);

        for (verb = xet_cli_verbs; verb->name; verb++) {
            if (verb->group == group) {
                fprintf(out, "  %-11s %s\n", verb->name, verb->summary);
            }
        }
    }

    fprintf(out, "\nRun \"xet help VERB\" for the options of a verb and for"
                 " examples,\n\"xet help topics\" for names, tokens, exit codes"
                 " and more.\n");

    return code;
}


/* Prints the help for a verb or a topic, or the list of topics. */

static int
xet_cli_help_named(const char *name)
{
    const xet_cli_verb_t   *verb;
    const xet_cli_topic_t  *topic;

    verb = xet_cli_find(name);

    if (verb) {
        return xet_cli_help_verb(verb);
    }

    if (strcmp(name, "topics") == 0) {
        return xet_cli_help_topics();
    }

    for (topic = xet_cli_topics; topic->name; topic++) {
        if (strcmp(topic->name, name) == 0) {
            fputs(topic->text, stdout);
            return XET_CLI_OK;
        }
    }

    return xet_cli_fail(XET_CLI_USAGE, name,
                        "unknown verb or topic; see \"xet help\" and "
                        "\"xet help topics\"");
}


static int
xet_cli_help_topics(void)
{
    const xet_cli_topic_t  *topic;

    printf("Topics:\n");

    for (topic = xet_cli_topics; topic->name; topic++) {
        printf("  %-11s %s\n", topic->name, topic->summary);
    }

    printf("\nRun \"xet help TOPIC\" for one of them.\n");

    return XET_CLI_OK;
}


static int
xet_cli_help_verb(const xet_cli_verb_t *verb)
{
    printf("usage: ");
    xet_cli_synopsis(stdout, verb);
    printf("\n%s\n\nOptions:\n", verb->text);
    xet_cli_options_help(stdout, verb->options | XET_CLI_TAKES_ALL);
    printf("\nExamples:\n");
    xet_cli_examples(verb->examples);

    return XET_CLI_OK;
}


static void
xet_cli_synopsis(FILE *out, const xet_cli_verb_t *verb)
{
    fprintf(out, "xet %s%s%s%s\n", verb->name,
            (verb->options & ~XET_CLI_TAKES_ALL) ? " [OPTION...]" : "",
            *verb->operands ? " " : "", verb->operands);
}


/*
 * Prints the help for the options in a mask of xet_cli_takes() bits, one option
 * per line.
 */

static void
xet_cli_options_help(FILE *out, uint64_t options)
{
    char                         name[64];
    unsigned                     i;
    const xet_cli_option_row_t  *row;

    for (i = 0; i < XET_CLI_OPT_MAX; i++) {

        if (!(options & ((uint64_t) 1 << i))) {
            continue;
        }

        row = &xet_cli_options[i];

        snprintf(name, sizeof(name), "--%s%s%s", row->name,
                 row->value ? " " : "", row->value ? row->value : "");

        fprintf(out, "  %c%c%s%-22s %s\n",
                row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
                row->letter ? ", " : "  ", name, row->text);
    }
}


/* Prints each line of text indented; every line must end with "\n". */

static void
xet_cli_examples(const char *text)
{
    int  len;

    for ( /* void */ ; *text; text += len) {
        len = (int) strcspn(text, "\n") + 1;

        printf("  %.*s", len, text);
    }
}


int
xet_cli_completion(const xet_cli_args_t *args)
{
    unsigned                i;
    const xet_cli_verb_t   *verb;
    const xet_cli_shell_t  *shell;

    for (shell = xet_cli_shells; shell->name; shell++) {
        if (strcmp(shell->name, args->operands[0]) == 0) {
            break;
        }
    }

    if (shell->name == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, args->operands[0],
                            "unknown shell; expected bash, zsh or fish");
    }

    printf("%s%s%s", shell->start, shell->verbs, shell->open);

    for (verb = xet_cli_verbs; verb->name; verb++) {
        printf("%s ", verb->name);
    }

    printf("help --version%s\n", shell->close);

    for (verb = xet_cli_verbs; verb->name; verb++) {
        printf("%s%s%s%s", shell->before, verb->name, shell->after,
               shell->open);

        for (i = 0; i < XET_CLI_OPT_MAX; i++) {
            if (verb->options & ((uint64_t) 1 << i)) {
                printf("--%s ", xet_cli_options[i].name);
            }
        }

        printf("--help%s\n", shell->close);
    }

    printf("%s", shell->end);

    return XET_CLI_OK;
}
