
/*
 * Readers and lists: the code that both kinds of store share.  A reader or a
 * list owns a descriptor, or a buffer of data from a bucket.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_store.h"


void
xet_store_reader_init(xet_store_reader_t *reader, xet_store_t *store)
{
    memset(reader, 0, sizeof(xet_store_reader_t));

    reader->store = store;
    reader->size = XET_STORE_UNKNOWN;
    reader->fd = -1;
}


void
xet_store_reader_ahead(xet_store_reader_t *reader, uint64_t start,
    uint64_t end)
{
    reader->start = start;
    reader->end = end;
    reader->came = 0;

    if (start == end) {
        free(reader->buf);
        reader->buf = NULL;
        reader->room = 0;
    }
}


void
xet_store_reader_close(xet_store_reader_t *reader)
{
    if (reader->fd >= 0) {
        (void) close(reader->fd);
        reader->fd = -1;
    }

    reader->size = XET_STORE_UNKNOWN;

    xet_store_reader_ahead(reader, 0, 0);
}


xet_status_t
xet_store_list_open(xet_store_list_t *list, xet_store_t *store,
    const char *folder, xet_store_error_t *error)
{
    memset(list, 0, sizeof(xet_store_list_t));

    list->store = store;
    (void) snprintf(list->folder, sizeof(list->folder), "%s", folder);

    return store->ops->list(list, error);
}


void
xet_store_list_close(xet_store_list_t *list)
{
    if (list->dir) {
        (void) closedir(list->dir);
        list->dir = NULL;
    }

    free(list->names);
    list->names = NULL;
}
