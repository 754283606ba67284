
/*
 * Error messages.  They may contain text from the store and are logged, so
 * characters other than printable ASCII become "?".
 */

#include <stdarg.h>
#include <stdio.h>

#include "xet_s3_base.h"


xet_s3_rc_t
xet_s3_error(xet_s3_error_t *error, xet_s3_rc_t rc, int status,
    const char *fmt, ...)
{
    char     *p;
    va_list   args;

    if (error == NULL) {
        return rc;
    }

    error->status = status;

    va_start(args, fmt);
    (void) vsnprintf(error->text, XET_S3_TEXT_MAX, fmt, args);
    va_end(args);

    for (p = error->text; *p; p++) {
        if ((unsigned char) *p < ' ' || (unsigned char) *p > '~') {
            *p = '?';
        }
    }

    return rc;
}


void
xet_s3_hex(char *dst, const uint8_t *src, size_t len)
{
    size_t  i;

    static const char  digits[] = "0123456789abcdef";

    for (i = 0; i < len; i++) {
        *dst++ = digits[src[i] >> 4];
        *dst++ = digits[src[i] & 15];
    }

    *dst = '\0';
}
