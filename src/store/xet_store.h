
/*
 * Where copies of xorbs are: a folder, or a bucket of an object store.  Free
 * of nginx and of libpq; the module and the command line use the same
 * functions, those of store->ops, and know by store->s3 alone which kind it
 * is.
 *
 *     <store>/xorbs/<namespace>/<aa>/<hash>.<tag>    copies
 *     <store>/identity                               which store it is
 *     <folder>/tmp/                                  what is being written
 *
 * The names are the same in both, so a tool of either kind copies one to the
 * other.  A name is the path below the store, without a slash in front.
 *
 * All functions block but those that say otherwise.  Any number of threads may
 * use a store at once; a reader, a writer or a list has one owner at a time.
 * Nothing is logged here: the caller reports what error says.
 */

#ifndef _XET_STORE_H_INCLUDED_
#define _XET_STORE_H_INCLUDED_


#include "xet.h"
#include "xet_s3.h"

#include <dirent.h>
#include <limits.h>
#include <sys/types.h>


#define XET_STORE_NAMESPACE     "default"
#define XET_STORE_FOLDERS       256            /* of copies: 00 to ff */
#define XET_STORE_IDENTITY_LEN  32             /* hex digits */
#define XET_STORE_NAME_MAX      XET_S3_NAME_MAX        /* with a zero byte */
#define XET_STORE_UNKNOWN       UINT64_MAX     /* a size */

/* "xorbs/default/aa/" and the name of a copy, with a zero byte. */
#define XET_STORE_COPY_MAX                                                    \
    (sizeof("xorbs/" XET_STORE_NAMESPACE "/aa/") + XET_XORB_NAME_MAX)

/*
 * Parts of an upload may lie in a bucket so long, in seconds, before the
 * object is made of them.  An object is as old as its first part, and a copy
 * of XET_XORB_ORPHAN_AGE that has no row is removed.
 */
#define XET_STORE_UPLOAD_AGE    (XET_XORB_ORPHAN_AGE / 4)


typedef struct xet_store_s      xet_store_t;
typedef struct xet_store_ops_s  xet_store_ops_t;


/*
 * Why a function has failed.  With an errno, what failed is call, of path;
 * without one, text says all of it.
 */

typedef struct {
    int          err;                  /* errno, or 0 */
    const char  *call;                 /* with err */
    char         path[PATH_MAX];       /* the whole path of a name */
    char         text[XET_S3_TEXT_MAX];
    unsigned     ours:1;               /* the text, which is about path */
    unsigned     local:1;              /* of this machine, not the network */
    unsigned     ended:1;              /* this process ends */
} xet_store_error_t;


struct xet_store_s {
    const xet_store_ops_t  *ops;
    xet_s3_t               *s3;        /* NULL: a folder */
    char                   *name;      /* the folder, or "s3://..." */
    char                   *temp;      /* the folder of temporary files */
    char                   *endpoint;  /* of a bucket */
    unsigned                parallel;  /* threads that are useful */

    /* set by the caller before the first use */

    uid_t                   uid;       /* owner of new files, -1: ours */
    gid_t                   gid;
    unsigned                named:1;   /* temporary files have names */
    unsigned                waits:1;   /* opens wait at a pipe */
    unsigned                lax:1;     /* some folders can't be synced */
};


/*
 * One name, as stat, remove and lists have it.  Times are seconds since 1970:
 * modified is our time less the age by the clock of the store; changed is what
 * that clock said when the file got its name, or the object its bytes.
 */

typedef struct {
    const char    *name;
    uint64_t       size;               /* bytes */
    int64_t        modified;
    int64_t        changed;
    uint64_t       id;                 /* of a file: the same for all names, */
    uint64_t       links;              /* of which it has so many */
    xet_status_t   status;
} xet_store_item_t;


/*
 * A name that is read:
 *
 *     init -> open -> (ahead, read*)* -> close -> open ...
 *
 * A bucket is asked for nothing before the first read, and has no size until
 * ops->size().
 */

typedef struct {
    xet_store_t  *store;
    char          name[XET_STORE_NAME_MAX];
    uint64_t      size;                /* or XET_STORE_UNKNOWN */
    uint64_t      start;               /* of what was told to be read next */
    uint64_t      end;

    int           fd;                  /* of a folder, else -1 */
    uint8_t      *buf;                 /* of a bucket */
    size_t        room;
    unsigned      came:1;              /* start to end is in buf */
    unsigned      past:1;              /* the page cache stays as it is */
    unsigned      direct:1;            /* O_DIRECT is set */
} xet_store_reader_t;


/*
 * What is written lies in a temporary file of this machine until ops->keep():
 *
 *     open -> write* -> keep -> close
 *                    -> close                   nothing has become a copy
 */

typedef struct {
    xet_store_t      *store;
    int               fd;              /* others may read and write, too */
    uint64_t          size;            /* bytes that were appended */
    uint64_t          flushed;         /* of them handed to the disk */
    int64_t           made;            /* after keep, s: not later than the */
    xet_s3_upload_t  *upload;          /* time that the copy has */
    unsigned          kept:1;          /* there may be a copy */
    char              name[XET_STORE_NAME_MAX];        /* claimed, or "" */
    char              temp[PATH_MAX];  /* of the file, "": it has none */
} xet_store_writer_t;


/* The names below a folder, in no order. */

typedef struct {
    xet_store_t    *store;
    char            folder[XET_STORE_NAME_MAX];
    DIR            *dir;

    xet_s3_name_t  *names;             /* a page of a bucket */
    size_t          n;
    size_t          i;
    int64_t         ahead;             /* our clock of its one, s */
    char            after[XET_S3_NAME_MAX];    /* the next page is behind it */
    unsigned        last:1;            /* no page is behind this one */
} xet_store_list_t;


/*
 * A kind of store.  What it does not do is NULL.
 *
 * Statuses: XET_OK; XET_DONE: there is no such name; XET_AGAIN: there is one
 * already, or it ends before; XET_STORE_DAMAGED: it is no regular file.  All
 * others say nothing about the name, and error says why: XET_STORE_FULL,
 * XET_STORE_FILES (descriptors or memory of this machine), XET_STORE_AWAY,
 * XET_STORE_FAILED, XET_NOMEM.
 */

struct xet_store_ops_s {
    const char     *kind;              /* for people */
    unsigned        batch;             /* files that are synced together */

    /*
     * Makes those of copies and of temporary files that are missing, durably,
     * with that owner (-1: ours).  XET_OK also if there was nothing to do.
     */
    xet_status_t  (*folders)(xet_store_t *store, uid_t uid, gid_t gid,
                             xet_store_error_t *error);

    /*
     * All of n have their status.  In a bucket some are asked for at once, and
     * only one that is alone has a time.
     */
    void          (*stat)(xet_store_t *store, xet_store_item_t *items,
                          size_t n, xet_store_error_t *error);

    /* What a small file begins with: *len is the room, then what came. */
    xet_status_t  (*small)(xet_store_t *store, const char *name, void *buf,
                           size_t *len, xet_store_error_t *error);

    xet_status_t  (*open)(xet_store_reader_t *reader,
                          xet_store_error_t *error);
    xet_status_t  (*size)(xet_store_reader_t *reader,
                          xet_store_error_t *error);

    /* exactly len bytes; XET_DONE: somebody has removed it meanwhile */
    xet_status_t  (*read)(xet_store_reader_t *reader, void *buf, size_t len,
                          uint64_t offset, xet_store_error_t *error);

    /* what has grown goes on its way; what fails shows with keep */
    void          (*grown)(xet_store_writer_t *writer, const void *data,
                           size_t len);

    /*
     * The bytes of writer->fd become name, durably: the name, too, unless it
     * is late, which is for who syncs the folders of many.  XET_AGAIN: there
     * is another one, which stays if it is not to be replaced.
     */
    xet_status_t  (*keep)(xet_store_writer_t *writer, const char *name,
                          int replace, int late, xet_store_error_t *error);

    /*
     * Removes n, in the order of their folders; none comes back.  A name that
     * is not there is XET_OK.  All have their status; the first failure is the
     * result.
     */
    xet_status_t  (*remove)(xet_store_t *store, xet_store_item_t *items,
                            size_t n, xet_store_error_t *error);

    /* a second name that was not there, durably */
    xet_status_t  (*link)(xet_store_t *store, const char *from,
                          const char *to, xet_store_error_t *error);

    /* another name; and back to its own one, durably, unless it has that */
    xet_status_t  (*quarantine)(xet_store_t *store, const char *name,
                           const char *quarantine, xet_store_error_t *error);
    xet_status_t  (*back)(xet_store_t *store, const char *quarantine,
                          const char *name, xet_store_error_t *error);

    /* XET_DONE: no such folder; list is zero but for store and folder */
    xet_status_t  (*list)(xet_store_list_t *list, xet_store_error_t *error);

    /*
     * XET_DONE at the end.  item->name is the part behind the folder, until
     * the next call; a bucket knows size and times, too.
     */
    xet_status_t  (*next)(xet_store_list_t *list, xet_store_item_t *item,
                          xet_store_error_t *error);

    /* drops what uploads of age seconds ago have left; *n: how many */
    xet_status_t  (*sweep)(xet_store_t *store, uint64_t age, size_t *n,
                           xet_store_error_t *error);

    /* the names right below a folder are durable; NULL: all that is there */
    xet_status_t  (*sync)(xet_store_t *store, const char *folder,
                          xet_store_error_t *error);

    /* between programs, until this one ends; XET_AGAIN: another one has it */
    xet_status_t  (*lock)(xet_store_t *store, const char *name, int exclusive,
                          xet_store_error_t *error);
};


/*
 * A store in a folder, or in a bucket; nothing is asked of either.  temp is
 * the folder of temporary files of a bucket.  NULL without memory, and with
 * error->text for what conf has.  Strings are copied.
 */
xet_store_t *xet_store_files(const char *path);
xet_store_t *xet_store_s3(const xet_s3_conf_t *conf, const char *temp,
    xet_s3_error_t *error);
void xet_store_destroy(xet_store_t *store);

/* Whether two are known to be one. */
int xet_store_same(const xet_store_t *one, const xet_store_t *two);

/* Writes the name of a copy, XET_STORE_COPY_MAX bytes with a zero byte. */
char *xet_store_copy(char *name, const xet_hash_t *xorb, uint32_t tag);

/*
 * The identity of a store: XET_STORE_IDENTITY_LEN hex digits and a zero byte.
 * XET_DONE: it has none; XET_STORE_FAILED also for a file that is no identity.
 * An identity that is there stays: XET_OK, and the caller reads it again.
 */
xet_status_t xet_store_identity(xet_store_t *store, char *identity,
    xet_store_error_t *error);
xet_status_t xet_store_identify(xet_store_t *store, const char *identity,
    xet_store_error_t *error);

/* A file of this content; XET_AGAIN: there is one that is not replaced. */
xet_status_t xet_store_put(xet_store_t *store, const char *name,
    const void *data, size_t len, int replace, xet_store_error_t *error);

/* The status of an errno, as above. */
xet_status_t xet_store_status(int err);

/* Removes one name. */
xet_status_t xet_store_remove(xet_store_t *store, const char *name,
    xet_store_error_t *error);


/*
 * xet_store_reader.c: readers.  The first two do not block.
 */

void xet_store_reader_init(xet_store_reader_t *reader, xet_store_t *store);

/*
 * The bytes [start, end) will be read next, in order: a bucket is asked for
 * them once, and they are held until the next ones.  None frees what is held.
 */
void xet_store_reader_ahead(xet_store_reader_t *reader, uint64_t start,
    uint64_t end);

void xet_store_reader_close(xet_store_reader_t *reader);


/*
 * xet_store_writer.c
 */

/*
 * Opens a temporary file, O_TMPFILE where that is possible.  name is what it
 * will be, "" if that is not known: a bucket gets the bytes while they come.
 */
xet_status_t xet_store_writer_open(xet_store_t *store, const char *name,
    xet_store_writer_t **writer, xet_store_error_t *error);

/* Appends len bytes. */
xet_status_t xet_store_writer_write(xet_store_writer_t *writer,
    const void *data, size_t len, xet_store_error_t *error);

/* Writes len bytes at offset, and no more; for what never becomes a copy. */
xet_status_t xet_store_writer_patch(xet_store_writer_t *writer,
    const void *data, size_t len, uint64_t offset, xet_store_error_t *error);

/* Exactly len bytes of what was written; XET_AGAIN: it ends before. */
xet_status_t xet_store_writer_read(xet_store_writer_t *writer, void *data,
    size_t len, uint64_t offset, xet_store_error_t *error);

/* Removes what has not become a copy.  The writer is gone, whatever fails. */
xet_status_t xet_store_writer_close(xet_store_writer_t *writer,
    xet_store_error_t *error);

/*
 * Removes temporary files that nobody has written to for age seconds: those
 * that a crash has left where they have names.
 */
xet_status_t xet_store_writer_sweep(xet_store_t *store, uint64_t age,
    size_t *n, xet_store_error_t *error);


/*
 * xet_store_reader.c, of lists
 */

/* Begins a list: as ops->list(). */
xet_status_t xet_store_list_open(xet_store_list_t *list, xet_store_t *store,
    const char *folder, xet_store_error_t *error);
void xet_store_list_close(xet_store_list_t *list);


#endif /* _XET_STORE_H_INCLUDED_ */
