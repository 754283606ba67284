
/*
 * The progress bar of a transfer, on the standard error:
 *
 *     model  12/2,000 files  [####......]  40%  33.6/84.1 MB  9.1 MB/s  0:05
 *
 * The items that are counted are the files of a folder, or the copies of a
 * store or backup; a single file has no count.
 *
 * One line of the width of the terminal.  In a narrow terminal the least
 * important parts are left out.  While a request waits for a retry, the line
 * also has the reason.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "xet_cli.h"


#define XET_CLI_PROGRESS_PART     96   /* size of the text of a part */
#define XET_CLI_PROGRESS_GAP      2    /* spaces between two parts */
#define XET_CLI_PROGRESS_BAR_MIN  8
#define XET_CLI_PROGRESS_BAR_MAX  26
#define XET_CLI_PROGRESS_SAMPLES  8    /* seconds that the rate is taken of */


/* The parts of the line from left to right. */

typedef enum {
    XET_CLI_PROGRESS_NAME = 0,
    XET_CLI_PROGRESS_COUNT,
    XET_CLI_PROGRESS_BAR,
    XET_CLI_PROGRESS_PERCENT,
    XET_CLI_PROGRESS_BYTES,
    XET_CLI_PROGRESS_RATE,
    XET_CLI_PROGRESS_LEFT,
    XET_CLI_PROGRESS_RETRY,
    XET_CLI_PROGRESS_PARTS
} xet_cli_progress_part_e;


typedef struct {
    char      text[XET_CLI_PROGRESS_PARTS][XET_CLI_PROGRESS_PART];
    unsigned  width[XET_CLI_PROGRESS_PARTS];         /* 0: no such part */
} xet_cli_progress_line_t;


typedef struct {
    uint64_t  time;                    /* ms */
    uint64_t  done;                    /* bytes */
} xet_cli_progress_sample_t;


static struct {
    const char                 *name;
    uint64_t                    total; /* bytes; 0: unknown */
    const char                 *items; /* "files", "copies"; NULL: one file */
    uint64_t                    all;   /* number of items; 0: unknown */
    uint64_t                    base;  /* bytes of the items that are done */
    uint64_t                    count; /* number of items that are done */
    uint64_t                    item;  /* bytes done of the current item */
    uint64_t                    drawn; /* time of the last redraw, ms */
    xet_cli_progress_sample_t   samples[XET_CLI_PROGRESS_SAMPLES];
    unsigned                    nsamples;
    char                        retry[XET_CLI_PROGRESS_PART];

    unsigned                    active:1;  /* the bar may be drawn */
    unsigned                    shown:1;   /* the bar is on the terminal */
} xet_cli_progress;


static void xet_cli_progress_start(int quiet, const char *name,
    uint64_t total);
static void xet_cli_progress_redraw(int always);
static void xet_cli_progress_sample(uint64_t done, uint64_t now);
static double xet_cli_progress_rate(uint64_t done, uint64_t now);
static void xet_cli_progress_parts(xet_cli_progress_line_t *l, uint64_t done,
    double rate);
static void xet_cli_progress_put(xet_cli_progress_line_t *l,
    xet_cli_progress_part_e part, const char *text);
static unsigned xet_cli_progress_fit(xet_cli_progress_line_t *l,
    unsigned columns);
static void xet_cli_progress_bar(xet_cli_progress_line_t *l, uint64_t done,
    unsigned room);
static unsigned xet_cli_progress_columns(void);
static unsigned xet_cli_progress_width(const char *text);


uint64_t
xet_cli_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


int
xet_cli_progress_wanted(int quiet)
{
    const char  *term;

    term = getenv("TERM");

    return !quiet && isatty(STDERR_FILENO)
           && (term == NULL || strcmp(term, "dumb") != 0);
}


void
xet_cli_progress_begin(int quiet, const char *name, uint64_t total)
{
    if (xet_cli_progress.items) {
        xet_cli_progress.item = 0;
        return;
    }

    xet_cli_progress_start(quiet, name, total);
}


void
xet_cli_progress_items(int quiet, const char *name, const char *items,
    uint64_t all, uint64_t bytes)
{
    xet_cli_progress_start(quiet, name, bytes);

    xet_cli_progress.items = items;
    xet_cli_progress.all = all;
}


static void
xet_cli_progress_start(int quiet, const char *name, uint64_t total)
{
    memset(&xet_cli_progress, 0, sizeof(xet_cli_progress));

    xet_cli_progress.name = name;
    xet_cli_progress.total = total;
    xet_cli_progress.active = xet_cli_progress_wanted(quiet);
}


void
xet_cli_progress_total(uint64_t total)
{
    xet_cli_progress.total = total;
}


void
xet_cli_progress_set(uint64_t done)
{
    xet_cli_progress.item = done;

    xet_cli_progress_redraw(0);
}


void
xet_cli_progress_item(uint64_t size)
{
    xet_cli_progress.item = 0;
    xet_cli_progress.base += size;
    xet_cli_progress.count++;

    /* concurrent uploads add copies that the total does not include */

    if (xet_cli_progress.all && xet_cli_progress.all < xet_cli_progress.count) {
        xet_cli_progress.all = xet_cli_progress.count;
    }

    xet_cli_progress_redraw(0);
}


int
xet_cli_progress_retry(const char *text)
{
    if (!xet_cli_progress.active) {
        return 0;
    }

    snprintf(xet_cli_progress.retry, sizeof(xet_cli_progress.retry), "%s",
             text ? text : "");

    xet_cli_progress_redraw(1);

    return 1;
}


static void
xet_cli_progress_redraw(int always)
{
    unsigned                  i, columns, width;
    uint64_t                  now, done;
    xet_cli_progress_line_t   l;

    if (!xet_cli_progress.active) {
        return;
    }

    now = xet_cli_now();

    if (!always && now - xet_cli_progress.drawn < 100) {
        return;
    }

    xet_cli_progress.drawn = now;

    done = xet_cli_progress.base + xet_cli_progress.item;

    xet_cli_progress_sample(done, now);
    xet_cli_progress_parts(&l, done, xet_cli_progress_rate(done, now));

    /* in the last column some terminals begin the next line */

    columns = xet_cli_progress_columns() - 1;
    width = xet_cli_progress_fit(&l, columns);

    if (xet_cli_progress.total) {
        xet_cli_progress_bar(&l, done, columns - width);
    }

    fputs("\r\033[K", stderr);

    width = 0;

    for (i = 0; i < XET_CLI_PROGRESS_PARTS; i++) {

        if (l.width[i]) {
            fprintf(stderr, "%*s%s", width ? XET_CLI_PROGRESS_GAP : 0, "",
                    l.text[i]);
            width = 1;
        }
    }

    fflush(stderr);

    xet_cli_progress.shown = 1;
}


/* Records a sample a second, for the rate. */

static void
xet_cli_progress_sample(uint64_t done, uint64_t now)
{
    unsigned                    n;
    xet_cli_progress_sample_t  *s;

    s = xet_cli_progress.samples;
    n = xet_cli_progress.nsamples;

    if (n && now - s[n - 1].time < 1000) {
        return;
    }

    if (n == XET_CLI_PROGRESS_SAMPLES) {
        n--;
        memmove(s, s + 1, n * sizeof(xet_cli_progress_sample_t));
    }

    s[n].time = now;
    s[n].done = done;

    xet_cli_progress.nsamples = n + 1;
}


/* Returns the rate of the last seconds, in bytes a second. */

static double
xet_cli_progress_rate(uint64_t done, uint64_t now)
{
    const xet_cli_progress_sample_t  *first;

    first = xet_cli_progress.samples;

    return (now > first->time && done > first->done)
           ? (double) (done - first->done) * 1000 / (double) (now - first->time)
           : 0;
}


static void
xet_cli_progress_parts(xet_cli_progress_line_t *l, uint64_t done, double rate)
{
    char      text[XET_CLI_PROGRESS_PART], a[24], b[24];
    uint64_t  total, s;

    memset(l, 0, sizeof(xet_cli_progress_line_t));

    total = xet_cli_progress.total;

    xet_cli_text_escape(text, 25, xet_cli_progress.name,
                        strlen(xet_cli_progress.name));
    xet_cli_progress_put(l, XET_CLI_PROGRESS_NAME, text);

    if (xet_cli_progress.items) {
        snprintf(text, sizeof(text), "%s%s%s %s",
                 xet_cli_text_count(a, sizeof(a), xet_cli_progress.count),
                 xet_cli_progress.all ? "/" : "",
                 xet_cli_progress.all
                 ? xet_cli_text_count(b, sizeof(b), xet_cli_progress.all) : "",
                 xet_cli_progress.items);
        xet_cli_progress_put(l, XET_CLI_PROGRESS_COUNT, text);
    }

    if (total) {
        done = (done < total) ? done : total;

        snprintf(text, sizeof(text), "%3u%%",
                 (unsigned) ((double) done / (double) total * 100));
        xet_cli_progress_put(l, XET_CLI_PROGRESS_PERCENT, text);
    }

    xet_cli_progress_put(l, XET_CLI_PROGRESS_BYTES,
                         xet_cli_text_part(text, sizeof(text), done, total));

    snprintf(text, sizeof(text), "%s/s",
             xet_cli_text_size(a, sizeof(a), (uint64_t) rate));
    xet_cli_progress_put(l, XET_CLI_PROGRESS_RATE, text);

    if (total > done && rate > 0) {
        s = (uint64_t) ((double) (total - done) / rate);

        if (s < 3600) {
            snprintf(text, sizeof(text), "%u:%02u", (unsigned) (s / 60),
                     (unsigned) (s % 60));
        } else {
            snprintf(text, sizeof(text), "%uh%02u",
                     (unsigned) (s / 3600), (unsigned) (s / 60 % 60));
        }

        xet_cli_progress_put(l, XET_CLI_PROGRESS_LEFT, text);
    }

    xet_cli_progress_put(l, XET_CLI_PROGRESS_RETRY, xet_cli_progress.retry);
}


static void
xet_cli_progress_put(xet_cli_progress_line_t *l, xet_cli_progress_part_e part,
    const char *text)
{
    snprintf(l->text[part], sizeof(l->text[part]), "%s", text);

    l->width[part] = xet_cli_progress_width(text);
}


/*
 * Leaves out parts until the line fits; cuts the last one if necessary.
 * Returns the width of the line.
 */

static unsigned
xet_cli_progress_fit(xet_cli_progress_line_t *l, unsigned columns)
{
    unsigned  i, n, width;

    /* the least important parts first */

    static const xet_cli_progress_part_e  order[] = {
        XET_CLI_PROGRESS_NAME, XET_CLI_PROGRESS_RATE, XET_CLI_PROGRESS_LEFT,
        XET_CLI_PROGRESS_BYTES, XET_CLI_PROGRESS_COUNT,
        XET_CLI_PROGRESS_PERCENT, XET_CLI_PROGRESS_RETRY
    };

    for (n = 0; /* void */ ; n++) {
        width = 0;

        for (i = 0; i < XET_CLI_PROGRESS_PARTS; i++) {
            if (l->width[i]) {
                width += l->width[i] + (width ? XET_CLI_PROGRESS_GAP : 0);
            }
        }

        if (width <= columns) {
            return width;
        }

        if (n == sizeof(order) / sizeof(order[0])) {
            return 0;
        }

        if (l->width[order[n]] == width) {

            /* the only part that is left; all but the name are in ASCII */

            l->text[order[n]][columns] = '\0';
            l->width[order[n]] = columns;
            return columns;
        }

        l->width[order[n]] = 0;
    }
}


/* Draws the bar itself, if there is room for it. */

static void
xet_cli_progress_bar(xet_cli_progress_line_t *l, uint64_t done, unsigned room)
{
    char      *text;
    unsigned   n, size;

    if (room < XET_CLI_PROGRESS_GAP + XET_CLI_PROGRESS_BAR_MIN) {
        return;
    }

    size = room - XET_CLI_PROGRESS_GAP;
    size = (size < XET_CLI_PROGRESS_BAR_MAX) ? size : XET_CLI_PROGRESS_BAR_MAX;

    n = (unsigned) ((double) done / (double) xet_cli_progress.total
                    * (size - 2));
    n = (n < size - 2) ? n : size - 2;

    text = l->text[XET_CLI_PROGRESS_BAR];

    memset(text, '.', size);
    memset(text + 1, '#', n);

    text[0] = '[';
    text[size - 1] = ']';
    text[size] = '\0';

    l->width[XET_CLI_PROGRESS_BAR] = size;
}


/* Returns the width of the terminal, at least 2; COLUMNS overrides it. */

static unsigned
xet_cli_progress_columns(void)
{
    int             n;
    const char     *text;
    struct winsize  size;

    text = getenv("COLUMNS");
    n = text ? atoi(text) : 0;

    if (n < 2 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) {
        n = size.ws_col;
    }

    return (n < 2) ? 80 : (unsigned) n;
}


/*
 * Returns the number of columns of a text in UTF-8.  Counts two columns for a
 * character beyond the alphabets of Europe, which may be a wide one.
 */

static unsigned
xet_cli_progress_width(const char *text)
{
    unsigned       width;
    unsigned char  c;

    for (width = 0; *text; text++) {
        c = (unsigned char) *text;

        if ((c & 0xc0) != 0x80) {
            width += (c < 0xe0) ? 1 : 2;
        }
    }

    return width;
}


void
xet_cli_progress_clear(void)
{
    if (xet_cli_progress.shown) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        xet_cli_progress.shown = 0;
    }
}


void
xet_cli_progress_end(void)
{
    if (!xet_cli_progress.items) {
        xet_cli_progress_close();
    }
}


void
xet_cli_progress_close(void)
{
    xet_cli_progress_clear();

    xet_cli_progress.active = 0;
    xet_cli_progress.items = NULL;
}
