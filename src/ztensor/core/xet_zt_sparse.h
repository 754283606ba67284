
/*
 * The indices of sparse objects held against the shape and each other, as the
 * decoded bytes of one component after the other come.
 */

#ifndef _XET_ZT_SPARSE_H_INCLUDED_
#define _XET_ZT_SPARSE_H_INCLUDED_


#include "xet_zt_object.h"


/* Whether the object has a sparse format, whose components are compared. */
int xet_zt_object_sparse(const xet_zt_object_t *o);


typedef struct xet_zt_sparse_s  xet_zt_sparse_t;


/*
 * memory: bytes that comparing elements with each other, which only container 2
 * demands, may take.  NULL when out of memory.
 */
xet_zt_sparse_t *xet_zt_sparse_create(size_t memory);
void xet_zt_sparse_destroy(xet_zt_sparse_t *s);

/*
 * Begins with component c of o, an object that has been checked; both stay
 * until the end.  What is known of o's other components is kept until a
 * component of another object begins.  Returns 0 when there is nothing to
 * check.  "values" should come before "coords": without them the number of
 * coordinates may not be known.
 */
int xet_zt_sparse_start(xet_zt_sparse_t *s, xet_zt_container_t container,
    const xet_zt_object_t *o, const xet_zt_component_t *c);

/*
 * Takes the next decoded bytes.  XET_OK, XET_NOMEM; errors in the data are
 * returned by xet_zt_sparse_finish().
 */
xet_status_t xet_zt_sparse_feed(xet_zt_sparse_t *s, const uint8_t *data,
    size_t len);

/* Bytes of memory that were cleared for it since this was asked last. */
size_t xet_zt_sparse_cleared(xet_zt_sparse_t *s);

/*
 * Called after all bytes.  XET_OK; XET_ZT_INDICES; XET_ZT_UNCHECKED when the
 * check would take too much memory, or when the number of values is not known.
 */
xet_status_t xet_zt_sparse_finish(xet_zt_sparse_t *s);


#endif /* _XET_ZT_SPARSE_H_INCLUDED_ */
