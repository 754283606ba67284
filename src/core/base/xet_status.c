
/*
 * The table of status codes.
 *
 * Purpose:    maps a status to its name in JSON, its HTTP status and its
 *             human-readable message.
 * States:     none; one constant table is generated from XET_STATUS_MAP, so
 *             every code has a row.
 * Ownership:  the strings are constants.
 * Threads:    any; the table is never written to.
 *
 * A number outside the table can only come from a corrupted or uninitialized
 * status.  It is treated as XET_INTERNAL.
 */


#include "xet_base.h"


typedef struct {
    const char  *code;
    const char  *text;
    unsigned     http;
} xet_status_row_t;


#define xet_status_row(name, code, http, text)  { code, text, http },

static const xet_status_row_t  xet_status_rows[] = {
    XET_STATUS_MAP(xet_status_row)
};

#undef xet_status_row


static const xet_status_row_t *
xet_status_find(xet_status_t status)
{
    /* cast, because the type of an enum may be signed */

    if ((unsigned) status >= (unsigned) XET_STATUS_MAX) {
        status = XET_INTERNAL;
    }

    return &xet_status_rows[status];
}


const char *
xet_status_code(xet_status_t status)
{
    return xet_status_find(status)->code;
}


const char *
xet_status_text(xet_status_t status)
{
    return xet_status_find(status)->text;
}


unsigned
xet_status_http(xet_status_t status)
{
    return xet_status_find(status)->http;
}
