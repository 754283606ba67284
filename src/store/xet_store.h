
/*
 * The storage of copies of xorbs: a folder, or a bucket of an object store.
 * This code uses neither nginx nor libpq.  The module and the command line
 * call the functions of store->ops; store->s3 is NULL for a folder.
 *
 *     <store>/xorbs/<namespace>/<aa>/<hash>.<copy id>    copies
 *     <store>/identity                               identity of the store
 *     <folder>/tmp/                                  temporary files
 *
 * Folders and buckets use the same names, so generic tools can copy one to the
 * other.  A name is the path below the store, without a leading slash.
 *
 * Functions block unless their comment says otherwise.  Any number of threads
 * may use a store at once; a reader, a writer or a list has one owner at a
 * time.  This code logs nothing: the caller reports the error.
 */

#ifndef _XET_STORE_H_INCLUDED_
#define _XET_STORE_H_INCLUDED_


#include "xet.h"
#include "xet_s3.h"

#include <dirent.h>
#include <limits.h>
#include <sys/types.h>


#define XET_STORE_NAMESPACE     "default"
#define XET_STORE_FOLDERS       256            /* copy folders: 00 to ff */
#define XET_STORE_IDENTITY_LEN  32             /* hex digits */
#define XET_STORE_NAME_MAX      XET_S3_NAME_MAX        /* incl. a zero byte */
#define XET_STORE_UNKNOWN       UINT64_MAX     /* the size is not known */

/* Room for "xorbs/default/aa/" and the name of a copy, with a zero byte. */
#define XET_STORE_COPY_MAX                                                    \
    (sizeof("xorbs/" XET_STORE_NAMESPACE "/aa/") + XET_XORB_NAME_MAX)

/*
 * The maximum age, in seconds, of the parts of an upload when the object is
 * assembled from them.  An object is as old as its first part, and a copy
 * without a row is removed when it is XET_XORB_ORPHAN_AGE old.
 */
#define XET_STORE_UPLOAD_AGE    (XET_XORB_ORPHAN_AGE / 4)


typedef struct xet_store_s      xet_store_t;
typedef struct xet_store_ops_s  xet_store_ops_t;


/*
 * The error of a function that failed.  If err is set, the system call "call"
 * failed for path; otherwise text explains the error.
 */

typedef struct {
    int          err;                  /* errno, or 0 */
    const char  *call;                 /* the system call that failed */
    char         path[PATH_MAX];       /* the full path of the name */
    char         text[XET_S3_TEXT_MAX];
    unsigned     ours:1;               /* text has no path: print path first */
    unsigned     local:1;              /* local error, not a network error */
    unsigned     ended:1;              /* this process is shutting down */
} xet_store_error_t;


struct xet_store_s {
    const xet_store_ops_t  *ops;
    xet_s3_t               *s3;        /* NULL: a folder */
    char                   *name;      /* the folder, or "s3://..." */
    char                   *temp;      /* the folder of temporary files */
    char                   *endpoint;  /* a bucket's endpoint, or NULL */
    unsigned                parallel;  /* useful number of threads */

    /* set by the caller before the first use */

    uid_t                   uid;       /* owner of new files; -1: no chown() */
    gid_t                   gid;
    unsigned                named:1;   /* temporary files have names */
    unsigned                waits:1;   /* opening a FIFO may block */
    unsigned                lax:1;     /* ignore EINVAL of fsync(folder) */
};


/*
 * One name in a store: an argument of stat and remove, or an entry of a list.
 * Times are seconds since 1970.  modified is a time of the local clock; for an
 * object, it is computed: the local time minus the object's age by the store's
 * clock.  changed is a time of the store's clock: the ctime of a file, or the
 * time when an object was stored.
 */

typedef struct {
    const char    *name;
    uint64_t       size;               /* bytes */
    int64_t        modified;
    int64_t        changed;
    uint64_t       id;                 /* inode of a file */
    uint64_t       links;              /* number of names of a file */
    xet_status_t   status;
} xet_store_item_t;


/*
 * A reader of one name:
 *
 *     init -> open -> (ahead, read*)* -> close -> open ...
 *
 * In a bucket, open sends no request, and the size is not known before
 * ops->size().
 */

typedef struct {
    xet_store_t  *store;
    char          name[XET_STORE_NAME_MAX];
    uint64_t      size;                /* bytes, or XET_STORE_UNKNOWN */
    uint64_t      start;               /* start of the range to be read next */
    uint64_t      end;

    int           fd;                  /* open file of a folder, or -1 */
    uint8_t      *buf;                 /* bytes read ahead from a bucket */
    size_t        room;
    unsigned      came:1;              /* buf holds bytes [start, end) */
    unsigned      past:1;              /* bypass the page cache */
    unsigned      direct:1;            /* O_DIRECT is set */
} xet_store_reader_t;


/*
 * A writer.  Until ops->keep(), its bytes are in a temporary file on this
 * machine:
 *
 *     open -> write* -> keep -> close
 *                    -> close                   no copy is made
 */

typedef struct {
    xet_store_t      *store;
    int               fd;              /* callers may read and write it, too */
    uint64_t          size;            /* bytes appended */
    uint64_t          flushed;         /* bytes handed to the disk */
    int64_t           made;            /* set by keep: earliest time of the
                                          copy, s since 1970 */
    xet_s3_upload_t  *upload;          /* upload to a bucket, or NULL */
    unsigned          kept:1;          /* a copy may exist */
    char              name[XET_STORE_NAME_MAX];        /* reserved name or "" */
    char              temp[PATH_MAX];  /* path of the file; "": no name */
} xet_store_writer_t;


/* A list of the names below a folder, in no particular order. */

typedef struct {
    xet_store_t    *store;
    char            folder[XET_STORE_NAME_MAX];
    DIR            *dir;

    xet_s3_name_t  *names;             /* current page of a bucket's list */
    size_t          n;
    size_t          i;
    int64_t         ahead;             /* our clock minus the store's, s */
    char            after[XET_S3_NAME_MAX];    /* last name of the page */
    unsigned        last:1;            /* this is the last page */
} xet_store_list_t;


/*
 * The functions of a kind of store.  An unsupported function is NULL.
 *
 * The functions return XET_OK; XET_DONE if the name does not exist; XET_AGAIN
 * if the name exists already, or the file is too short; XET_STORE_DAMAGED if
 * the name is not a regular file.  After any other status nothing is known
 * about the name, and error has the reason: XET_STORE_FULL, XET_STORE_FILES
 * (this machine is out of descriptors or memory), XET_STORE_AWAY,
 * XET_STORE_FAILED, XET_NOMEM.
 */

struct xet_store_ops_s {
    const char     *kind;              /* name of the kind, in messages */
    unsigned        batch;             /* files that are synced together */

    /*
     * Creates the missing folders of copies and of temporary files, durably.
     * uid and gid own the new folders (-1: no chown()).  Returns XET_OK even
     * if no folder is missing.
     */
    xet_status_t  (*folders)(xet_store_t *store, uid_t uid, gid_t gid,
                             xet_store_error_t *error);

    /*
     * Sets the status of all n items.  For a bucket, several requests are in
     * flight at once, and times are set only if n is 1.
     */
    void          (*stat)(xet_store_t *store, xet_store_item_t *items,
                          size_t n, xet_store_error_t *error);

    /*
     * Reads a small file.  *len is the size of buf, and is set to the number
     * of bytes read.  If the file is longer than buf, a folder reads the start
     * of the file, and a bucket fails.
     */
    xet_status_t  (*small)(xet_store_t *store, const char *name, void *buf,
                           size_t *len, xet_store_error_t *error);

    xet_status_t  (*open)(xet_store_reader_t *reader,
                          xet_store_error_t *error);
    xet_status_t  (*size)(xet_store_reader_t *reader,
                          xet_store_error_t *error);

    /* reads exactly len bytes; XET_DONE: failed, the file was removed */
    xet_status_t  (*read)(xet_store_reader_t *reader, void *buf, size_t len,
                          uint64_t offset, xet_store_error_t *error);

    /* starts to send or flush appended bytes; ops->keep() returns errors */
    void          (*grown)(xet_store_writer_t *writer, const void *data,
                           size_t len);

    /*
     * Stores the bytes of writer->fd durably under name.  If late is set, the
     * name is not yet durable: the caller syncs the folders of many names
     * later.  Returns XET_AGAIN, and changes nothing, if name exists and
     * replace is not set.
     */
    xet_status_t  (*keep)(xet_store_writer_t *writer, const char *name,
                          int replace, int late, xet_store_error_t *error);

    /*
     * Removes n names, grouped by folder, durably.  A missing name is not an
     * error.  Sets the status of all items, and returns the first error.
     */
    xet_status_t  (*remove)(xet_store_t *store, xet_store_item_t *items,
                            size_t n, xet_store_error_t *error);

    /* adds a second name, durably; XET_AGAIN: the second name exists */
    xet_status_t  (*link)(xet_store_t *store, const char *from,
                          const char *to, xet_store_error_t *error);

    /*
     * ops->quarantine() renames a copy from "name" to "quarantine", its name in
     * quarantine; ops->back() renames it back.  If "name" exists already,
     * ops->back() makes "name" durable, and only removes "quarantine".
     */
    xet_status_t  (*quarantine)(xet_store_t *store, const char *name,
                           const char *quarantine, xet_store_error_t *error);
    xet_status_t  (*back)(xet_store_t *store, const char *quarantine,
                          const char *name, xet_store_error_t *error);

    /*
     * Starts a listing; the caller has set list->store and list->folder.
     * XET_DONE: the folder does not exist.
     */
    xet_status_t  (*list)(xet_store_list_t *list, xet_store_error_t *error);

    /*
     * Sets item to the next name; returns XET_DONE at the end of the list.
     * item->name is the part below the folder, valid until the next call.  A
     * bucket also sets size and times.
     */
    xet_status_t  (*next)(xet_store_list_t *list, xet_store_item_t *item,
                          xet_store_error_t *error);

    /*
     * Removes abandoned temporary files of a folder, or aborts abandoned
     * uploads to a bucket, if they are at least age seconds old.  Sets *n to
     * their number.
     */
    xet_status_t  (*sweep)(xet_store_t *store, uint64_t age, size_t *n,
                           xet_store_error_t *error);

    /* makes all names directly in a folder durable; NULL: in all folders */
    xet_status_t  (*sync)(xet_store_t *store, const char *folder,
                          xet_store_error_t *error);

    /* locks name until this process ends; XET_AGAIN: the lock is in use */
    xet_status_t  (*lock)(xet_store_t *store, const char *name, int exclusive,
                          xet_store_error_t *error);
};


/*
 * Create the object for a store in a folder or in a bucket; do not access the
 * folder or bucket.  temp is the folder of temporary files of a bucket.
 * Return NULL if out of memory, or if conf is invalid; then error->text says
 * why.  Strings are copied.
 */
xet_store_t *xet_store_files(const char *path);
xet_store_t *xet_store_s3(const xet_s3_conf_t *conf, const char *temp,
    xet_s3_error_t *error);
void xet_store_destroy(xet_store_t *store);

/* Returns whether two stores are known to be the same. */
int xet_store_same(const xet_store_t *one, const xet_store_t *two);

/* Writes a copy's name, at most XET_STORE_COPY_MAX bytes; returns name. */
char *xet_store_copy(char *name, const xet_hash_t *xorb, uint32_t copy_id);

/*
 * Read and write the identity: XET_STORE_IDENTITY_LEN hex digits and a zero
 * byte.  XET_DONE: the store has no identity.  XET_STORE_FAILED: an error, or
 * the file is not an identity.  xet_store_identify() keeps an existing
 * identity and returns XET_OK; the caller must then read the identity again.
 */
xet_status_t xet_store_identity(xet_store_t *store, char *identity,
    xet_store_error_t *error);
xet_status_t xet_store_identify(xet_store_t *store, const char *identity,
    xet_store_error_t *error);

/* Stores data as name; XET_AGAIN: name exists, and replace is not set. */
xet_status_t xet_store_put(xet_store_t *store, const char *name,
    const void *data, size_t len, int replace, xet_store_error_t *error);

/* Returns the status for an errno. */
xet_status_t xet_store_status(int err);

/* Removes one name. */
xet_status_t xet_store_remove(xet_store_t *store, const char *name,
    xet_store_error_t *error);


/*
 * xet_store_reader.c: readers.  xet_store_reader_init() and
 * xet_store_reader_ahead() do not block.
 */

void xet_store_reader_init(xet_store_reader_t *reader, xet_store_t *store);

/*
 * Announces that the bytes [start, end) will be read next, in order.  A bucket
 * gets one request for them, and the reader holds the response until the next
 * announcement.  An empty range frees the held bytes.
 */
void xet_store_reader_ahead(xet_store_reader_t *reader, uint64_t start,
    uint64_t end);

void xet_store_reader_close(xet_store_reader_t *reader);


/*
 * xet_store_writer.c
 */

/*
 * Opens a temporary file, with O_TMPFILE if it is supported.  name is the name
 * reserved for the copy, or "".  If a name is given, parts of the file are
 * sent to a bucket while the file is written.
 */
xet_status_t xet_store_writer_open(xet_store_t *store, const char *name,
    xet_store_writer_t **writer, xet_store_error_t *error);

/* Appends len bytes. */
xet_status_t xet_store_writer_write(xet_store_writer_t *writer,
    const void *data, size_t len, xet_store_error_t *error);

/*
 * Writes len bytes at offset, but does not change size: for files that never
 * become copies.
 */
xet_status_t xet_store_writer_patch(xet_store_writer_t *writer,
    const void *data, size_t len, uint64_t offset, xet_store_error_t *error);

/* Reads exactly len bytes; XET_AGAIN: the temporary file is too short. */
xet_status_t xet_store_writer_read(xet_store_writer_t *writer, void *data,
    size_t len, uint64_t offset, xet_store_error_t *error);

/* Frees the writer, even on errors, and removes its temporary file. */
xet_status_t xet_store_writer_close(xet_store_writer_t *writer,
    xet_store_error_t *error);

/*
 * Removes temporary files that were not modified for age seconds, and sets *n
 * to their number.  A crash leaves temporary files on file systems where they
 * must have names.
 */
xet_status_t xet_store_writer_sweep(xet_store_t *store, uint64_t age,
    size_t *n, xet_store_error_t *error);


/*
 * xet_store_reader.c: listings of folders
 */

/* Starts a listing; returns the same statuses as ops->list(). */
xet_status_t xet_store_list_open(xet_store_list_t *list, xet_store_t *store,
    const char *folder, xet_store_error_t *error);
void xet_store_list_close(xet_store_list_t *list);


#endif /* _XET_STORE_H_INCLUDED_ */
