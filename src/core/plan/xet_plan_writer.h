
/*
 * The body of a reconstruction answer, written piece by piece: a plan of
 * 100,000 terms prints as some 50 MB, which never need be in memory at once.
 *
 *     xet_plan_writer_init(&w, plan, XET_PLAN_V2, url, ctx, group);
 *
 *     do {
 *         xet_buf_init(&b, ...);
 *         status = xet_plan_writer_next(&w, &b, 32768);
 *         ... send b, wait until its memory is free again
 *     } while (status == XET_AGAIN);
 *
 * The pieces put together do not depend on where they end.
 */

#ifndef _XET_PLAN_WRITER_H_INCLUDED_
#define _XET_PLAN_WRITER_H_INCLUDED_


#include "xet_plan.h"
#include "xet_json.h"


#define XET_PLAN_GROUP_MAX   512
#define XET_PLAN_GROUP_TEXT  7168      /* of "0-4095,100-199" */


typedef enum {
    XET_PLAN_V1 = 1,
    XET_PLAN_V2,
    XET_PLAN_BATCH                     /* several files, v1 entries */
} xet_plan_kind_t;


/*
 * Writes the URL for ranges of a xorb, n >= 1: characters that need no escape
 * in JSON, onto b.  XET_AGAIN and XET_DONE are no errors and not to be
 * returned.
 *
 * The URLs of different ranges must differ as text: clients know a download by
 * its URL (hf_xet up to 1.2 even over several answers, where the bytes of one
 * range would be taken for another range).  Where ranges are not signed, a
 * fragment that names them is enough, as in "...#0-4095": clients do not send
 * the fragment, so servers and caches see one URL per xorb.
 */
typedef xet_status_t (*xet_plan_url_pt)(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);


/* What the next step writes. */

typedef enum {
    XET_PLAN_WRITE_BEGIN = 0,
    XET_PLAN_WRITE_FILE,
    XET_PLAN_WRITE_TERM,
    XET_PLAN_WRITE_XORB,
    XET_PLAN_WRITE_ENTRY,
    XET_PLAN_WRITE_RANGE,
    XET_PLAN_WRITE_DONE,
    XET_PLAN_WRITE_FAILED
} xet_plan_write_e;


typedef struct {
    const xet_plan_t  *plan;
    xet_plan_url_pt    url;
    void              *ctx;            /* of url */

    xet_json_t         json;

    uint32_t           next;           /* next term, then next range */
    uint32_t           end;            /* of a file's terms, or of an entry */
    uint32_t           file;           /* next file */
    uint32_t           group;
    xet_plan_kind_t    kind;
    xet_plan_write_e   state;
} xet_plan_writer_t;


/*
 * The plan is finished, and with ctx stays as it is until the last piece is
 * written; several writers may share it.  Plans of xet_plan_init_files() are
 * for XET_PLAN_BATCH, all others for the other two kinds.
 *
 * group: the most ranges in one v2 entry, so the largest n of url;
 * XET_PLAN_GROUP_MAX for anything above.  An entry has fewer ranges where the
 * list of them would be longer than XET_PLAN_GROUP_TEXT: a URL with this list,
 * or a Range header, stays under the 8 KiB that most servers and proxies
 * accept.  The other kinds have one URL per range and ignore group.
 */
void xet_plan_writer_init(xet_plan_writer_t *w, const xet_plan_t *plan,
    xet_plan_kind_t kind, xet_plan_url_pt url, void *ctx, size_t group);

/*
 * Appends whole elements to b, one at least, until limit bytes or more have
 * been added or all is written.  Beyond limit go less than 512 bytes and what
 * url writes once.  b is used during the call only; it has just been
 * initialised, or is the buffer of the piece before.
 *
 * XET_AGAIN: there is more to come.  XET_OK: b has the last byte; further
 * calls add nothing.  Else an error, after which the whole body is of no use:
 * XET_NOMEM, what url returned, the error of a plan's file that can't be read,
 * or XET_INTERNAL for a kind that is not the plan's, for a v2 group of 0, and
 * for a call after an error.
 */
xet_status_t xet_plan_writer_next(xet_plan_writer_t *w, xet_buf_t *b,
    size_t limit);


#endif /* _XET_PLAN_WRITER_H_INCLUDED_ */
