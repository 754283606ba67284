
/* Exit codes, error messages and growable arrays. */


#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli.h"


volatile sig_atomic_t  xet_cli_interrupted;


int
xet_cli_fail(int code, const char *name, const char *text)
{
    return xet_cli_failf(code, name, "%s", text);
}


/*
 * Escapes the name and the text, which are untrusted, so the message is always
 * one line.
 */

int
xet_cli_failf(int code, const char *name, const char *fmt, ...)
{
    char     text[4096];
    size_t   len;
    va_list  ap;

    len = (size_t) snprintf(text, sizeof(text), "xet: %.1024s%s",
                            name ? name : "", name ? ": " : "");

    va_start(ap, fmt);
    vsnprintf(text + len, sizeof(text) - len, fmt, ap);
    va_end(ap);

    flockfile(stderr);

    xet_cli_progress_clear();
    xet_cli_text_print(stderr, text);
    fputc('\n', stderr);

    funlockfile(stderr);

    return code;
}


int
xet_cli_fail_errno(const char *name)
{
    return xet_cli_fail(XET_CLI_ERROR, name, strerror(errno));
}


/*
 * A reader that closes the pipe, such as head(1), has read enough, so no error
 * is printed.
 */

int
xet_cli_flush(void)
{
    struct pollfd    out;
    static unsigned  reported;

    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return XET_CLI_OK;
    }

    memset(&out, 0, sizeof(out));

    out.fd = STDOUT_FILENO;

    if (poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP))) {
        return XET_CLI_CLOSED;
    }

    if (!reported) {
        reported = 1;
        (void) xet_cli_fail(XET_CLI_ERROR, "standard output",
                            "cannot be written");
    }

    return XET_CLI_ERROR;
}


int
xet_cli_worse(int a, int b)
{
    return (a > b) ? a : b;
}


int
xet_cli_no_memory(void)
{
    return xet_cli_fail(XET_CLI_ERROR, NULL, "out of memory");
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
