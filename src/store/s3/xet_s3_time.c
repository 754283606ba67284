
/*
 * Times in the formats of HTTP and S3, independent of the locale and the time
 * zone of the process.
 */

#include <stdio.h>
#include <time.h>

#include "xet_s3_base.h"


static int64_t xet_s3_time_days(int64_t year, unsigned month, unsigned day);
static int64_t xet_s3_time_of(unsigned year, unsigned month, unsigned day,
    unsigned hour, unsigned min, unsigned sec);


uint64_t
xet_s3_time_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


int64_t
xet_s3_time_http(const char *text)
{
    char         name[4];
    unsigned     day, month, year, hour, min, sec;
    const char  *at;

    static const char  months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    if (sscanf(text, "%*3[A-Za-z], %2u %3[A-Za-z] %4u %2u:%2u:%2u GMT",
               &day, name, &year, &hour, &min, &sec)
        != 6)
    {
        return -1;
    }

    at = strlen(name) == 3 ? strstr(months, name) : NULL;

    if (at == NULL || (at - months) % 3) {
        return -1;
    }

    month = (unsigned) (at - months) / 3 + 1;

    return xet_s3_time_of(year, month, day, hour, min, sec);
}


int64_t
xet_s3_time_iso(const char *text)
{
    unsigned  day, month, year, hour, min, sec;

    if (sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u", &year, &month, &day, &hour,
               &min, &sec)
        != 6)
    {
        return -1;
    }

    return xet_s3_time_of(year, month, day, hour, min, sec);
}


void
xet_s3_time_amz(char *dst, int64_t seconds)
{
    time_t     t;
    struct tm  tm;

    t = (time_t) seconds;
    memset(&tm, 0, sizeof(struct tm));

    if (gmtime_r(&t, &tm) == NULL
        || strftime(dst, XET_SIGV4_DATE_LEN + 1, "%Y%m%dT%H%M%SZ", &tm)
           != XET_SIGV4_DATE_LEN)
    {
        memcpy(dst, "19700101T000000Z", XET_SIGV4_DATE_LEN + 1);
    }
}


static int64_t
xet_s3_time_of(unsigned year, unsigned month, unsigned day, unsigned hour,
    unsigned min, unsigned sec)
{
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31
        || hour > 23 || min > 59 || sec > 60)
    {
        return -1;
    }

    return ((xet_s3_time_days(year, month, day) * 24 + hour) * 60 + min) * 60
           + sec;
}


/*
 * Returns the days since 1970.  Years begin in March here, so that a leap day
 * is the last day of its year.
 */

static int64_t
xet_s3_time_days(int64_t year, unsigned month, unsigned day)
{
    int64_t  m;

    if (month > 2) {
        m = month - 3;

    } else {
        m = month + 9;
        year--;
    }

    return year * 365 + year / 4 - year / 100 + year / 400
           + (m * 153 + 2) / 5 + day - 1 - 719468;
}
