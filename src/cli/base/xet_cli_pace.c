
/* A rate limit in bytes per second, shared by threads. */


#include <string.h>
#include <time.h>

#include "xet_cli.h"


void
xet_cli_pace_begin(xet_cli_pace_t *pace, uint64_t rate)
{
    memset(pace, 0, sizeof(xet_cli_pace_t));

    pthread_mutex_init(&pace->mutex, NULL);

    pace->rate = rate;
    pace->began = xet_cli_now();
}


void
xet_cli_pace_wait(xet_cli_pace_t *pace, uint64_t bytes)
{
    uint64_t         due, now;
    struct timespec  ts;

    if (pace == NULL || pace->rate == 0) {
        return;
    }

    pthread_mutex_lock(&pace->mutex);

    pace->moved += bytes;

    due = pace->began + pace->moved / pace->rate * 1000
          + pace->moved % pace->rate * 1000 / pace->rate;

    pthread_mutex_unlock(&pace->mutex);

    now = xet_cli_now();

    while (now < due && !xet_cli_interrupted) {
        ts.tv_sec = (time_t) ((due - now) / 1000);
        ts.tv_nsec = (long) ((due - now) % 1000) * 1000000;

        (void) nanosleep(&ts, NULL);

        now = xet_cli_now();
    }
}
