
/*
 * The xorbs that a shard will list: xorbs that this run has sent, and xorbs of
 * an earlier run that files refer to.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


int
xet_cli_xorbs_add(xet_cli_xorbs_t *x, const xet_xorb_list_t *list,
    int resumed)
{
    size_t           n;
    uint8_t         *hashes;
    xet_cli_xorb_t  *all;

    all = xet_cli_grow(x->all, x->n, &x->room, sizeof(xet_cli_xorb_t));

    if (all == NULL) {
        return xet_cli_no_memory();
    }

    x->all = all;

    n = list->chunk_count;
    hashes = malloc(n * (XET_HASH_LEN + 4));

    if (hashes == NULL) {
        return xet_cli_no_memory();
    }

    memcpy(hashes, list->hashes, n * XET_HASH_LEN);
    memcpy(hashes + n * XET_HASH_LEN, list->raw_ends, n * 4);

    all += x->n++;

    all->list = *list;
    all->list.hashes = hashes;
    all->list.raw_ends = hashes + n * XET_HASH_LEN;

    all->resumed = (resumed != 0);
    all->wanted = !resumed;

    return XET_CLI_OK;
}


/*
 * Resumed xorbs come first in the list; xorbs of this run are always wanted.
 */

void
xet_cli_xorbs_want(xet_cli_xorbs_t *x, const xet_hash_t *hash)
{
    size_t  i;

    for (i = 0; i < x->n && x->all[i].resumed; i++) {
        if (xet_hash_equal(&x->all[i].list.hash, hash)) {
            x->all[i].wanted = 1;
            return;
        }
    }
}


void
xet_cli_xorbs_drop(xet_cli_xorbs_t *x, unsigned wanted, unsigned resumed)
{
    size_t           i, n;
    xet_cli_xorb_t  *xorb;

    n = 0;

    for (i = 0; i < x->n; i++) {
        xorb = &x->all[i];

        if ((xorb->wanted && wanted) || (xorb->resumed && resumed)) {
            free((void *) xorb->list.hashes);
            continue;
        }

        x->all[n++] = *xorb;
    }

    x->n = n;
}
