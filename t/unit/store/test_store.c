
/*
 * Tests a store in a folder: writes, reads, lists, renames and removes.  The
 * tests of a store in an S3 bucket are in t/s3.
 */


#include <fcntl.h>
#include <sys/stat.h>
#include <utime.h>

#include "xet_store.h"
#include "xet_test.h"


#define COPY   "xorbs/default/00/copy"
#define OTHER  "xorbs/default/01/other"


static char               folder[64];
static xet_store_t       *store;
static xet_store_error_t  error;


static const char *
path(const char *name)
{
    static char  text[512];

    (void) snprintf(text, sizeof(text), "%s/%s", folder, name);

    return text;
}


static xet_store_item_t
look(const char *name)
{
    xet_store_item_t  item;

    memset(&item, 0, sizeof(item));
    item.name = name;

    store->ops->stat(store, &item, 1, &error);

    return item;
}


static unsigned
names(const char *name)
{
    unsigned          n;
    xet_status_t      rc;
    xet_store_list_t  list;
    xet_store_item_t  item;

    n = 0;

    for (rc = xet_store_list_open(&list, store, name, &error); rc == XET_OK;
         n++)
    {
        rc = store->ops->next(&list, &item, &error);
    }

    xet_store_list_close(&list);

    xet_is_u64(rc, XET_DONE, "a list has an end");

    return n ? n - 1 : 0;
}


static void
put(const char *name, const char *text)
{
    xet_is_u64(xet_store_put(store, name, text, strlen(text), 1, &error),
               XET_OK, name);
}


static void
test_identity(void)
{
    char  identity[XET_STORE_IDENTITY_LEN + 1];

    xet_is_u64(xet_store_identity(store, identity, &error), XET_DONE,
               "no identity");
    xet_is_u64(xet_store_identify(store, "0123456789abcdef0123456789abcdef",
                                  &error), XET_OK, "one is made");
    xet_is_u64(xet_store_identify(store, "ffffffffffffffffffffffffffffffff",
                                  &error), XET_OK, "another one");
    xet_is_u64(xet_store_identity(store, identity, &error), XET_OK, "read");
    xet_ok(strcmp(identity, "0123456789abcdef0123456789abcdef") == 0,
           "the first one stays");

    put("identity", "0123456789abcdef0123456789abcdef");
    xet_is_u64(xet_store_identity(store, identity, &error), XET_STORE_FAILED,
               "without a newline");
    xet_ok(error.ours && identity[0] == '\0', "which is said");

    put("identity", "0123456789abcdef0123456789abcdef\n\n");
    xet_is_u64(xet_store_identity(store, identity, &error), XET_STORE_FAILED,
               "with two");
}


static void
test_writer(int named)
{
    xet_store_writer_t  *writer;

    store->named = named;

    xet_is_u64(xet_store_writer_open(store, COPY, &writer, &error), XET_OK,
               "a writer");
    xet_is_u64(xet_store_writer_write(writer, "012", 3, &error), XET_OK, "one");
    xet_is_u64(xet_store_writer_write(writer, "345", 3, &error), XET_OK, "two");
    xet_is_u64(look(COPY).status, XET_DONE, "nothing has the name");
    xet_is_u64(names("tmp"), writer->temp[0] != '\0', "nor another one");

    xet_is_u64(store->ops->keep(writer, COPY, 0, 0, &error), XET_OK, "kept");
    xet_ok(writer->kept, "known");
    xet_is_u64(xet_store_writer_close(writer, &error), XET_OK, "closed");
    xet_is_u64(look(COPY).size, 6, "all of it");
    xet_is_u64(look(COPY).links, 1, "under one name");

    xet_is_u64(xet_store_writer_open(store, COPY, &writer, &error), XET_OK,
               "another one");
    xet_is_u64(xet_store_writer_write(writer, "x", 1, &error), XET_OK, "one");
    xet_is_u64(store->ops->keep(writer, COPY, 0, 0, &error), XET_AGAIN,
               "there is one");
    xet_ok(!writer->kept, "which stays");
    xet_is_u64(look(COPY).size, 6, "as it is");
    xet_is_u64(store->ops->keep(writer, COPY, 1, 0, &error), XET_OK,
               "replaced");
    xet_is_u64(look(COPY).size, 1, "now");
    xet_is_u64(xet_store_writer_close(writer, &error), XET_OK, "closed");

    xet_is_u64(xet_store_writer_open(store, COPY, &writer, &error), XET_OK,
               "one that is dropped");
    xet_is_u64(xet_store_writer_close(writer, &error), XET_OK, "closed");
    xet_is_u64(names("tmp"), 0, "nothing is left");
    xet_is_u64(xet_store_remove(store, COPY, &error), XET_OK, "removed");
    xet_is_u64(look(COPY).status, XET_DONE, "it is");
    xet_is_u64(xet_store_remove(store, COPY, &error), XET_OK, "once more");
}


static void
test_reader(void)
{
    int                 past;
    char                buf[8];
    xet_store_reader_t  reader;

    put(COPY, "01234567");

    for (past = 0; past < 2; past++) {
        xet_store_reader_init(&reader, store);
        (void) snprintf(reader.name, sizeof(reader.name), "%s", COPY);
        reader.past = past;

        xet_is_u64(store->ops->open(&reader, &error), XET_OK, "open");
        xet_is_u64(reader.size, 8, "its size");
        xet_is_u64(store->ops->read(&reader, buf, 5, 3, &error), XET_OK, "end");
        xet_ok(memcmp(buf, "34567", 5) == 0, "what is there");
        xet_is_u64(store->ops->read(&reader, buf, 6, 3, &error), XET_AGAIN,
                   "one more");
        xet_store_reader_close(&reader);
    }

    (void) unlink(path(COPY));
    xet_is_u64(store->ops->open(&reader, &error), XET_DONE, "no file");
    xet_store_reader_close(&reader);

    (void) mkfifo(path(COPY), 0600);
    xet_is_u64(store->ops->open(&reader, &error), XET_STORE_DAMAGED, "a pipe");
    xet_store_reader_close(&reader);
    xet_is_u64(look(COPY).status, XET_STORE_DAMAGED, "by a look");
    (void) unlink(path(COPY));

    (void) symlink("/etc/passwd", path(COPY));
    xet_is_u64(store->ops->open(&reader, &error), XET_STORE_DAMAGED, "a link");
    xet_store_reader_close(&reader);
    xet_is_u64(look(COPY).status, XET_STORE_DAMAGED, "by a look");
    (void) unlink(path(COPY));
}


static void
test_names(void)
{
    xet_store_item_t  items[3];

    put(COPY, "x");

    xet_is_u64(store->ops->link(store, COPY, OTHER, &error), XET_OK, "linked");
    xet_is_u64(look(COPY).id, look(OTHER).id, "the same file");
    xet_is_u64(store->ops->link(store, COPY, OTHER, &error), XET_AGAIN,
               "not again");
    xet_is_u64(store->ops->link(store, "tmp/no", OTHER, &error), XET_DONE,
               "nor from nothing");

    xet_is_u64(store->ops->quarantine(store, COPY, "tmp/aside", &error), XET_OK,
               "aside");
    xet_is_u64(look(COPY).status, XET_DONE, "it is");
    xet_is_u64(store->ops->back(store, "tmp/aside", COPY, &error), XET_OK,
               "back");
    xet_is_u64(store->ops->back(store, "tmp/aside", COPY, &error), XET_DONE,
               "once");
    xet_is_u64(store->ops->quarantine(store, "tmp/no", "tmp/aside", &error),
               XET_DONE, "nothing to take");

    memset(items, 0, sizeof(items));
    items[0].name = COPY;
    items[1].name = "xorbs/default/00/none";
    items[2].name = OTHER;

    xet_is_u64(store->ops->remove(store, items, 3, &error), XET_OK, "removed");
    xet_ok(look(COPY).status == XET_DONE && look(OTHER).status == XET_DONE,
           "both");
    xet_is_u64(names("xorbs/default"), 256, "folders");
    xet_is_u64(names("xorbs/none"), 0, "none of that name");

    items[0].name = "xorbs";
    xet_is_u64(store->ops->remove(store, items, 3, &error), XET_STORE_FAILED,
               "a folder is not removed");
    xet_ok(items[2].status == XET_STORE_FAILED && error.err
           && strcmp(error.call, "unlink") == 0, "nor what is behind it");
}


static void
test_sweep(void)
{
    size_t          n;
    unsigned        i;
    struct utimbuf  old;

    static const char *const  left[] = {
        "tmp/copy.1.1", "tmp/file.1.2", "tmp/.nfs1", "tmp/orphan.1.x", "tmp/x"
    };

    memset(&old, 0, sizeof(old));

    for (i = 0; i < 5; i++) {
        put(left[i], "x");
        (void) utime(path(left[i]), &old);
    }

    put("tmp/copy.2.1", "x");

    xet_is_u64(store->ops->sweep(store, 3600, &n, &error), XET_OK, "a sweep");
    xet_is_u64(n, 3, "those of a crash");
    xet_is_u64(names("tmp"), 3, "young ones and others stay");

    xet_is_u64(store->ops->lock(store, "lock", 1, &error), XET_OK, "a lock");
    xet_is_u64(store->ops->lock(store, "lock", 1, &error), XET_AGAIN,
               "for one");
    xet_is_u64(store->ops->sync(store, NULL, &error), XET_OK, "synced");
}


int
main(void)
{
    char         command[128];
    const char  *dir;

    dir = getenv("TMPDIR");

    (void) snprintf(folder, sizeof(folder), "%.32s/xet_store.XXXXXX",
                    dir ? dir : "/tmp");

    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }

    store = xet_store_files(folder);

    xet_is_u64(store->ops->folders(store, -1, -1, &error), XET_OK, "folders");
    xet_is_u64(store->ops->folders(store, -1, -1, &error), XET_OK, "again");
    xet_ok(xet_store_same(store, store), "one store");

    test_identity();
    test_writer(0);
    test_writer(1);
    test_reader();
    test_names();
    test_sweep();

    xet_store_destroy(store);

    (void) snprintf(command, sizeof(command), "rm -rf %s", folder);
    xet_is_u64((uint64_t) system(command), 0, "cleared");

    return xet_done();
}
