
/*
 * xet get: downloads a file, or bytes of a file.
 *
 * A whole file is written to NAME.xet-part, which is renamed to NAME after the
 * file was verified.  A download is resumed if it was interrupted by a signal,
 * the network or a failing server.  Any other failure removes the part file.
 *
 * A range of a file is written to a temporary file, and never resumed.  Data
 * for a pipe or a device is written in order, as it arrives, so a wrong hash
 * of the file is detected only at the end.
 */


#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_transfer.h"


typedef struct {
    const xet_cli_args_t  *args;
    xet_cli_http_t        *http;
    const char            *output;
    int                    fd;         /* output of a stream or a range */
    unsigned               stream:1;
    unsigned               ranged:1;
    uint64_t               size;       /* 0: unknown */
    const xet_cli_want_t  *want;       /* NULL: the operand is a hash */
    xet_cli_download_t     download;
    xet_cli_part_t         part;
} xet_cli_get_t;


static int xet_cli_get_open(xet_cli_get_t *g);
static int xet_cli_get_run(xet_cli_get_t *g);
static int xet_cli_get_range(xet_cli_get_t *g, const char *text);
static int xet_cli_get_bytes(xet_cli_get_t *g);
static int xet_cli_get_sink(void *ctx, uint64_t offset, const uint8_t *data,
    size_t len);
static int xet_cli_get_print(xet_cli_get_t *g);


int
xet_cli_get(const xet_cli_args_t *args)
{
    int             rc;
    xet_cli_get_t  *g;

    if (args->value[XET_CLI_OPT_RECURSIVE]) {
        return xet_cli_get_tree(args);
    }

    g = calloc(1, sizeof(xet_cli_get_t));

    if (g == NULL) {
        return xet_cli_no_memory();
    }

    g->args = args;
    g->fd = -1;

    rc = xet_cli_get_open(g);
    rc = rc ? rc : xet_cli_get_run(g);

    xet_cli_http_destroy(g->http);
    free(g);

    return rc;
}


int
xet_cli_get_file(const xet_cli_args_t *args, xet_cli_http_t *h,
    const xet_cli_want_t *want)
{
    int             rc;
    xet_cli_get_t  *g;

    g = calloc(1, sizeof(xet_cli_get_t));

    if (g == NULL) {
        return xet_cli_no_memory();
    }

    g->args = args;
    g->http = h;
    g->fd = -1;
    g->output = want->path;
    g->stream = want->given && xet_cli_output_special(want->path);
    g->size = want->size;
    g->want = want;

    g->download.hash = want->hash;
    g->download.name = want->path;
    g->download.end = XET_CLI_DOWNLOAD_ALL;
    g->download.most = want->size;

    rc = xet_cli_args_number(args, XET_CLI_OPT_PARALLEL, 1, 64,
                             XET_CLI_DOWNLOAD_PARALLEL,
                             &g->download.parallel);
    rc = rc ? rc : xet_cli_get_run(g);

    free(g);

    return rc;
}


static int
xet_cli_get_run(xet_cli_get_t *g)
{
    int                    rc;
    const xet_cli_args_t  *args;

    rc = XET_CLI_OK;
    args = g->args;

    if (args->value[XET_CLI_OPT_RANGE]) {
        rc = xet_cli_get_range(g, args->value[XET_CLI_OPT_RANGE]);
    }

    if (rc == XET_CLI_OK) {
        xet_cli_progress_begin(xet_cli_quiet(args), g->output,
                               g->ranged ? g->download.end - g->download.first
                                         : g->size);

        if (g->stream || g->ranged) {
            rc = xet_cli_get_bytes(g);

        } else {
            g->download.list = g->want ? "list" : NULL;
            rc = xet_cli_part_fetch(&g->part, g->http, &g->download, AT_FDCWD,
                                    g->output, g->want, 1);
        }

        xet_cli_progress_end();
    }

    return rc ? rc : xet_cli_get_print(g);
}


static int
xet_cli_get_open(xet_cli_get_t *g)
{
    int                    rc;
    const xet_cli_args_t  *args = g->args;

    rc = xet_cli_download_init(&g->download, args, args->operands[0]);

    if (rc == XET_CLI_OK) {
        g->http = xet_cli_http_create(args, &rc);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    g->output = args->value[XET_CLI_OPT_OUTPUT];

    if (g->output == NULL) {
        g->output = args->operands[0];
    }

    /*
     * Only a name that the user gave may be a pipe or a device.  If the
     * default name is a pipe or a device, another user has created it.
     */

    g->stream = args->value[XET_CLI_OPT_OUTPUT]
                && xet_cli_output_special(g->output);

    g->download.name = g->output;

    /*
     * gets the size for the progress bar and to limit the download; a failure
     * is ignored, as not all servers have this route
     */

    if (!args->value[XET_CLI_OPT_RANGE]
        && xet_cli_download_size(g->http, &g->download.hash, 1, &g->size)
           == XET_CLI_INTERRUPTED)
    {
        return XET_CLI_INTERRUPTED;
    }

    if (g->size) {
        g->download.most = g->size;
    }

    return XET_CLI_OK;
}


/* Parses "A-B", "A-" or "-N" with the parser of Range headers. */

static int
xet_cli_get_range(xet_cli_get_t *g, const char *text)
{
    int               rc;
    char             *value;
    size_t            n;
    xet_range_t       range;
    xet_status_t      status;
    xet_range_spec_t  spec;

    if (asprintf(&value, "bytes=%s", text) < 0) {
        return xet_cli_no_memory();
    }

    n = 1;
    status = xet_range_parse((uint8_t *) value, strlen(value), &spec, &n);
    free(value);

    if (status != XET_OK) {
        return xet_cli_fail(XET_CLI_USAGE, text,
                            "invalid range; expected A-B, A- or -N in bytes");
    }

    rc = g->want ? XET_CLI_OK
                 : xet_cli_download_size(g->http, &g->download.hash, 0,
                                         &g->size);

    if (rc != XET_CLI_OK) {
        return rc;
    }

    status = xet_range_resolve(&spec, g->size, &range);

    if (status != XET_OK) {
        return xet_cli_fail(XET_CLI_FAULT, text, xet_status_text(status));
    }

    g->ranged = 1;
    g->download.most = g->size;
    g->download.first = range.start;
    g->download.end = range.end;

    return XET_CLI_OK;
}


/* Downloads to a stream, or a range to a file. */

static int
xet_cli_get_bytes(xet_cli_get_t *g)
{
    int                  rc;
    char                *part;
    xet_cli_download_t  *d = &g->download;

    g->fd = xet_cli_output_begin(g->output, g->stream, &part);

    if (g->fd < 0) {
        return XET_CLI_ERROR;
    }

    d->ordered = g->stream;
    d->sink = xet_cli_get_sink;
    d->ctx = g;

    /* the download verifies the SHA-256 at the end of a stream */

    if (g->stream && g->want && !g->ranged) {
        d->sha256 = g->want->sha256;
    }

    rc = xet_cli_download(g->http, d);

    return xet_cli_output_finish(g->fd, part, g->output, rc);
}


/*
 * Writes data, except the bytes of the first and the last chunk that are
 * outside of the range.
 */

static int
xet_cli_get_sink(void *ctx, uint64_t offset, const uint8_t *data, size_t len)
{
    uint64_t        end;
    xet_cli_get_t  *g = ctx;

    end = offset + len;

    if (offset < g->download.first) {
        data += g->download.first - offset;
        offset = g->download.first;
    }

    if (end > g->download.end) {
        end = g->download.end;
    }

    if (offset >= end) {
        return XET_CLI_OK;
    }

    if (!g->stream
        && lseek(g->fd, (off_t) (offset - g->download.first), SEEK_SET) < 0)
    {
        return xet_cli_fail_errno(g->output);
    }

    return xet_cli_output_write(g->fd, g->output, data,
                                (size_t) (end - offset));
}


/*
 * Prints the result, unless the file was written to the standard output.
 */

static int
xet_cli_get_print(xet_cli_get_t *g)
{
    const xet_cli_download_t  *d = &g->download;

    if (g->fd == STDOUT_FILENO) {
        return XET_CLI_OK;
    }

    return xet_cli_print_row(xet_cli_json(g->args),
               xet_cli_out_hash("hash", &d->hash, NULL),
               xet_cli_out_text("file", g->output, NULL),
               xet_cli_out_number("size", g->ranged ? d->end - d->first
                                                    : d->size, NULL),
               xet_cli_out_number("received_bytes", d->received, NULL),
               xet_cli_out_bool("verified", !g->ranged));
}
