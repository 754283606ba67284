
/*
 * Reports request outcomes to the metrics callback.
 */

#include "xet_s3_base.h"


static xet_s3_method_t xet_s3_report_method(const char *method);
static xet_s3_end_t xet_s3_report_end(const xet_s3_transfer_t *t);


void
xet_s3_report_transfer(xet_s3_report_pt report, const xet_s3_transfer_t *t)
{
    xet_s3_report_t  one;

    if (report == NULL) {
        return;
    }

    one.method = xet_s3_report_method(t->net.method);
    one.end = xet_s3_report_end(t);
    one.again = (t->again || t->net.tries > 1);
    one.ms = t->net.took;
    one.sent = t->net.up;
    one.received = t->net.down;

    report(&one);
}


void
xet_s3_report_withheld(xet_s3_report_pt report, const char *method)
{
    xet_s3_report_t  one;

    if (report == NULL) {
        return;
    }

    memset(&one, 0, sizeof(xet_s3_report_t));

    one.method = xet_s3_report_method(method);
    one.end = XET_S3_END_WITHHELD;

    report(&one);
}


static xet_s3_method_t
xet_s3_report_method(const char *method)
{
    size_t  i;

    static const char *const  methods[XET_S3_METHODS] = {
        "GET", "HEAD", "PUT", "POST", "DELETE"
    };

    for (i = 0; i < XET_S3_METHODS - 1; i++) {
        if (strcmp(method, methods[i]) == 0) {
            break;
        }
    }

    return (xet_s3_method_t) i;
}


/* A truncated response counts as no response. */

static xet_s3_end_t
xet_s3_report_end(const xet_s3_transfer_t *t)
{
    if (t->net.rc != XET_NET_OK) {
        return t->net.late ? XET_S3_END_TIMEOUT : XET_S3_END_LOST;
    }

    switch (t->net.status / 100) {

    case 2:
        return XET_S3_END_2XX;

    case 3:
        return XET_S3_END_3XX;

    case 4:
        return XET_S3_END_4XX;

    default:
        return XET_S3_END_5XX;
    }
}
