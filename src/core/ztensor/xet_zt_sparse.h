
/*
 * The indices of sparse objects held against the shape and each other, as the
 * decoded bytes of one component after the other come.
 */

#ifndef _XET_ZT_SPARSE_H_INCLUDED_
#define _XET_ZT_SPARSE_H_INCLUDED_


#include "xet_zt_object.h"


/* Whether its components are held against each other. */
int xet_zt_object_sparse(const xet_zt_object_t *o);


typedef struct xet_zt_sparse_s  xet_zt_sparse_t;


/*
 * memory: bytes that the comparison of elements with each other may take,
 * which container 2 asks for.  NULL when out of memory.
 */
xet_zt_sparse_t *xet_zt_sparse_create(size_t memory);
void xet_zt_sparse_destroy(xet_zt_sparse_t *s);

/*
 * Begins with component c of o, an object that has been checked; what is known
 * of its other components stays until one of another object begins.  Returns 0
 * when there is nothing to look at.  "values" come before coordinates, which
 * may be countless without them.
 */
int xet_zt_sparse_start(xet_zt_sparse_t *s, xet_zt_container_t container,
    const xet_zt_object_t *o, const xet_zt_component_t *c);

/* Decoded bytes.  XET_OK, XET_NOMEM; what is found stays. */
xet_status_t xet_zt_sparse_feed(xet_zt_sparse_t *s, const uint8_t *data,
    size_t len);

/* Bytes of memory that were cleared for it since this was asked last. */
size_t xet_zt_sparse_cleared(xet_zt_sparse_t *s);

/*
 * All bytes came.  XET_OK; XET_ZT_INDICES; XET_ZT_UNCHECKED when it would have
 * taken more memory, or their number is not known.
 */
xet_status_t xet_zt_sparse_finish(xet_zt_sparse_t *s);


#endif /* _XET_ZT_SPARSE_H_INCLUDED_ */
