
/*
 * Scans: reads a copy to its end, or to its first fault, and passes the data
 * to the checksum and the verifier of the core.
 */


#include <errno.h>

#include "xet_cli_verify.h"


int
xet_cli_scan(xet_cli_scan_t *s)
{
    int     rc;
    size_t  n, stored;

    s->size = 0;
    s->status = XET_OK;

    xet_checksum_reset(s->checksum);

    for ( ;; ) {
        rc = xet_cli_reader_read(s->reader, s->buffer, XET_CLI_STORE_BUFFER,
                                 s->size, &n);

        if (xet_cli_interrupted) {
            return XET_CLI_INTERRUPTED;
        }

        if (rc == XET_CLI_UNREADABLE) {
            s->status = XET_STORE_FAILED;
            return XET_CLI_OK;
        }

        if (rc != XET_CLI_OK || n == 0) {
            break;
        }

        s->size += n;

        xet_checksum_update(s->checksum, s->buffer, n);

        if (s->verifier) {
            s->status = xet_xorb_verifier_feed(s->verifier, s->buffer, n,
                                               &stored);

            /* a stored xorb has no footer */

            if (s->status == XET_OK && stored != n) {
                s->status = XET_XORB_FOOTER;
            }
        }

        if (s->status != XET_OK) {
            break;
        }

        rc = s->piece(s->data, s->buffer, n);

        if (rc != XET_CLI_OK) {
            return rc;
        }
    }

    if (rc == XET_CLI_OK && s->status == XET_OK && s->verifier) {
        s->status = xet_xorb_verifier_finish(s->verifier);
    }

    return (s->status == XET_NOMEM) ? xet_cli_no_memory() : rc;
}
