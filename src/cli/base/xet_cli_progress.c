
/*
 * The progress bar of a transfer, on the standard error.
 */


#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli.h"


#define XET_CLI_PROGRESS_WIDTH  24


static struct {
    const char  *name;
    uint64_t     total;                /* bytes; 0: unknown */
    uint64_t     start;                /* time of the start, ms */
    uint64_t     first;                /* bytes done at the start */
    uint64_t     drawn;                /* time of the last redraw, ms */
    unsigned     active:1;             /* output is a terminal, no --quiet */
    unsigned     begun:1;              /* first is set */
    unsigned     shown:1;              /* the bar is on the terminal */
} xet_cli_progress;


static void xet_cli_progress_draw(uint64_t done, uint64_t now);
static const char *xet_cli_progress_bytes(char *text, size_t size,
    double bytes);


uint64_t
xet_cli_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


void
xet_cli_progress_begin(int quiet, const char *name, uint64_t total)
{
    memset(&xet_cli_progress, 0, sizeof(xet_cli_progress));

    xet_cli_progress.name = name;
    xet_cli_progress.total = total;
    xet_cli_progress.start = xet_cli_now();
    xet_cli_progress.active = !quiet && isatty(STDERR_FILENO);
}


void
xet_cli_progress_total(uint64_t total)
{
    xet_cli_progress.total = total;
}


void
xet_cli_progress_set(uint64_t done)
{
    uint64_t  now;

    if (!xet_cli_progress.active) {
        return;
    }

    if (!xet_cli_progress.begun) {
        xet_cli_progress.begun = 1;
        xet_cli_progress.first = done;
    }

    now = xet_cli_now();

    if (now - xet_cli_progress.drawn < 100) {
        return;
    }

    xet_cli_progress.drawn = now;

    xet_cli_progress_draw(done, now);
}


static void
xet_cli_progress_draw(uint64_t done, uint64_t now)
{
    char      bar[XET_CLI_PROGRESS_WIDTH + 1], name[25], a[24], b[24];
    double    rate;
    unsigned  n;
    uint64_t  total, ms;

    total = xet_cli_progress.total;
    ms = now - xet_cli_progress.start;

    rate = ms ? (double) (done - xet_cli_progress.first) * 1000 / (double) ms
              : 0;

    n = total ? (unsigned) ((double) done / (double) total
                            * XET_CLI_PROGRESS_WIDTH)
              : 0;

    if (n > XET_CLI_PROGRESS_WIDTH) {
        n = XET_CLI_PROGRESS_WIDTH;
    }

    memset(bar, '.', sizeof(bar) - 1);
    memset(bar, '#', n);
    bar[sizeof(bar) - 1] = '\0';

    xet_cli_text_escape(name, sizeof(name), xet_cli_progress.name,
                        strlen(xet_cli_progress.name));

    fprintf(stderr, "\r\033[K%s ", name);

    if (total) {
        fprintf(stderr, "[%s] %3u%% ", bar,
                (unsigned) ((double) done / (double) total * 100));
    }

    fprintf(stderr, "%s %s/s",
            xet_cli_progress_bytes(a, sizeof(a), (double) done),
            xet_cli_progress_bytes(b, sizeof(b), rate));

    if (total > done && rate > 0) {
        ms = (uint64_t) ((double) (total - done) / rate);
        fprintf(stderr, " %llu:%02llu", (unsigned long long) (ms / 60),
                (unsigned long long) (ms % 60));
    }

    fflush(stderr);

    xet_cli_progress.shown = 1;
}


void
xet_cli_progress_clear(void)
{
    if (xet_cli_progress.shown) {
        fprintf(stderr, "\r\033[K");
        xet_cli_progress.shown = 0;
    }
}


void
xet_cli_progress_end(void)
{
    xet_cli_progress_clear();
    xet_cli_progress.active = 0;
}


static const char *
xet_cli_progress_bytes(char *text, size_t size, double bytes)
{
    unsigned  i;

    static const char *const  units[] = { "B", "KiB", "MiB", "GiB", "TiB" };

    for (i = 0; bytes >= 1000 && i < 4; i++) {
        bytes /= 1024;
    }

    snprintf(text, size, "%.*f %s", i ? 1 : 0, bytes, units[i]);

    return text;
}
