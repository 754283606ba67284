
/*
 * What a kind of place does, see xet_cli.h: a folder, or a bucket.
 */

#ifndef _XET_CLI_PLACE_H_INCLUDED_
#define _XET_CLI_PLACE_H_INCLUDED_


#include "xet_cli.h"


typedef struct {
    xet_cli_place_t *(*open)(const char *text, int flags,
                             int *rc);
    void             (*close)(xet_cli_place_t *place);

    int              (*list)(xet_cli_place_t *place, const char *folder,
                             xet_cli_place_name_pt handler, void *ctx);
    int              (*stat)(xet_cli_place_t *place, const char *name,
                             xet_cli_entry_t *entry);
    int              (*link)(xet_cli_place_t *place, const char *from,
                             const char *to);
    int              (*back)(xet_cli_place_t *place, const char *aside,
                             const char *name);
    int              (*remove)(xet_cli_place_t *place, const char *name);
    int              (*remove_all)(xet_cli_place_t *place,
                                   char (*names)[XET_CLI_PLACE_NAME],
                                   size_t n);
    int              (*sync)(xet_cli_place_t *place, const char *folder);
    int              (*sweep)(xet_cli_place_t *place, uint64_t age);
    int              (*make)(xet_cli_place_t *place, const char *folder);
    int              (*folders)(xet_cli_place_t *place, int make);
    int              (*settled)(xet_cli_place_t *place);
    int              (*empty)(xet_cli_place_t *place,
                              const char *const *but, int *empty);
    int              (*lock)(xet_cli_place_t *place, const char *name,
                             int exclusive, int *had);

    int              (*read_open)(xet_cli_reader_t *reader, const char *name);
    int              (*read)(xet_cli_reader_t *reader, uint8_t *buf,
                             size_t len, uint64_t offset, size_t *n);
    void             (*read_close)(xet_cli_reader_t *reader);

    /* sets the descriptor; what grows; all of it, durable, under its name */
    int              (*write_open)(xet_cli_writer_t *writer);
    void             (*write_grown)(xet_cli_writer_t *writer);
    int              (*write_keep)(xet_cli_writer_t *writer, int replace);
    void             (*write_close)(xet_cli_writer_t *writer);
} xet_cli_place_ops_t;


/* The first member of what a kind has. */

struct xet_cli_place_s {
    const xet_cli_place_ops_t  *ops;
    char                       *name;  /* for messages */
    char                       *id;    /* the same for the same place */
    unsigned                    parallel;
    unsigned                    batch;
};


struct xet_cli_reader_s {
    xet_cli_place_t            *place;
    uint64_t                    size;
    char                       *name;
    int                         fd;    /* of a folder */
    uint8_t                    *ahead; /* of a bucket */
    uint64_t                    start;
    size_t                      len;
};


struct xet_cli_writer_s {
    xet_cli_place_t            *place;
    char                       *name;
    char                       *temp;  /* a name that it has meanwhile */
    int                         fd;
    uint64_t                    size;
    void                       *data;  /* of the kind */
};


extern const xet_cli_place_ops_t  xet_cli_folder_ops;
extern const xet_cli_place_ops_t  xet_cli_bucket_ops;


#endif /* _XET_CLI_PLACE_H_INCLUDED_ */
