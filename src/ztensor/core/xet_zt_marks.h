
/*
 * Marks in the manifest of a file: every stride-th object of xet_zt_info_t has
 * one, and names where they are in order.
 */

#ifndef _XET_ZT_MARKS_H_INCLUDED_
#define _XET_ZT_MARKS_H_INCLUDED_


#include "xet_ztensor.h"


#define XET_ZT_MARK_NAME  127          /* bytes of a mark's name at most */


/* The name of the object at a mark. */

typedef struct {
    uint8_t              len;
    uint8_t              data[XET_ZT_MARK_NAME];
} xet_zt_mark_name_t;


/* What marks need besides xet_zt_info_t; zeroed before the first object. */

typedef struct {
    xet_zt_mark_name_t  *names;        /* XET_ZT_MARKS; NULL: no order */
    uint8_t             *last;         /* the name of the object before */
    size_t               last_len;
} xet_zt_marks_t;


/*
 * Adds the next object, whose name has name_max bytes at most, to the marks and
 * the order in info.  XET_OK, XET_NOMEM.
 */
xet_status_t xet_zt_marks_add(xet_zt_marks_t *m, xet_zt_info_t *info,
    const xet_zt_object_t *o, size_t name_max);

/* No object follows: releases the last name, and unordered names of marks. */
void xet_zt_marks_end(xet_zt_marks_t *m, const xet_zt_info_t *info);

/*
 * The number of the last mark at or before an object of this name; 0 where
 * names have no order.
 */
uint64_t xet_zt_marks_find(const xet_zt_marks_t *m,
    const xet_zt_info_t *info, const xet_zt_text_t *name);

void xet_zt_marks_destroy(xet_zt_marks_t *m);


/*
 * Compares names by order, XET_ZT_ORDER_*: < 0 when a comes before b, 0 when
 * they are equal, > 0 when a comes after b.
 */
int xet_zt_order(unsigned order, const xet_zt_text_t *a,
    const xet_zt_text_t *b);


#endif /* _XET_ZT_MARKS_H_INCLUDED_ */
