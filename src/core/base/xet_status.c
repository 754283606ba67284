
/*
 * The table behind the status codes.
 *
 * Purpose:    what a status is called in JSON, which HTTP status suits it and
 *             how it reads to people.
 * States:     none, one constant table made from XET_STATUS_MAP, so that a
 *             code can't be without its row.
 * Ownership:  the strings are constants and live as long as the program.
 * Threads:    any, nothing is ever written.
 *
 * A number outside the table can only come from a damaged or uninitialised
 * status; it reads as XET_INTERNAL and never indexes past the table.
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
    /* the type of an enum may be signed */

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
