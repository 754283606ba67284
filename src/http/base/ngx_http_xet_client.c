
/*
 * Detects whether the client of a request is still waiting, and whether the
 * worker was halted.  Both are checked before each statement that must run only
 * for a waiting client (ngx_http_xet_query_send.c).
 *
 * A process may be frozen by SIGSTOP, a paused machine or a hanging disk.  When
 * the process wakes up, its sockets contain requests whose clients have given
 * up, and may have sent the requests to another node.  A request whose client
 * has given up is detected by:
 *
 *     a FIN      The kernel reports a FIN even behind unread bytes.  A client
 *                that shuts down its sending side and waits for a response
 *                counts as gone, as in nginx's proxy.
 *     late beat  If the timer fires so late that clients may have given up, the
 *                worker was halted.  Requests that arrived before or shortly
 *                after the worker woke up are rejected, because a client whose
 *                machine or network is down sends no FIN.
 *
 * Each worker has one timer.  All functions run in the event loop.
 */

#include "ngx_http_xet.h"

#include <poll.h>


#define NGX_HTTP_XET_BEAT    500       /* interval of the timer, ms */
#define NGX_HTTP_XET_HALT   5000       /* ms; if the timer is later than that,
                                          the worker was halted */
#define NGX_HTTP_XET_WAKING 1000       /* ms; requests that arrive within that
                                          time after a halt are rejected */


static void ngx_http_xet_beat_handler(ngx_event_t *ev);
static uint64_t ngx_http_xet_beat_look(void);


static ngx_event_t       ngx_http_xet_beat_event;
static ngx_connection_t  ngx_http_xet_beat_dummy;

static uint64_t          ngx_http_xet_beat;        /* time of the last beat */
static uint64_t          ngx_http_xet_woke;        /* end of a halt; 0: none */


void
ngx_http_xet_client_init(ngx_cycle_t *cycle)
{
    ngx_http_xet_beat = ngx_http_xet_clock();

    /* nginx logs the fd of a timer's connection in debug logs */

    ngx_http_xet_beat_dummy.fd = (ngx_socket_t) -1;

    ngx_http_xet_beat_event.handler = ngx_http_xet_beat_handler;
    ngx_http_xet_beat_event.data = &ngx_http_xet_beat_dummy;
    ngx_http_xet_beat_event.log = cycle->log;
    ngx_http_xet_beat_event.cancelable = 1;

    ngx_add_timer(&ngx_http_xet_beat_event, NGX_HTTP_XET_BEAT);
}


static void
ngx_http_xet_beat_handler(ngx_event_t *ev)
{
    (void) ngx_http_xet_beat_look();

    ngx_add_timer(ev, NGX_HTTP_XET_BEAT);
}


/*
 * Detects a halt, and returns the current time in ms.  Also called for each
 * request, because nginx processes events before timers.
 */

static uint64_t
ngx_http_xet_beat_look(void)
{
    uint64_t  now, gap;

    now = ngx_http_xet_clock();
    gap = now - ngx_http_xet_beat;

    if (gap > NGX_HTTP_XET_BEAT + NGX_HTTP_XET_HALT) {
        ngx_http_xet_woke = now;

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: the worker was halted for %uL ms: write requests "
                      "that arrived in that time are rejected", gap);
    }

    ngx_http_xet_beat = now;

    return now;
}


ngx_uint_t
ngx_http_xet_halted(uint64_t began)
{
    (void) ngx_http_xet_beat_look();

    return ngx_http_xet_woke
           && began < ngx_http_xet_woke + NGX_HTTP_XET_WAKING;
}


ngx_uint_t
ngx_http_xet_client_gone(ngx_http_request_t *r)
{
    ngx_connection_t  *c;
#ifdef POLLRDHUP
    struct pollfd      p;
#else
    char               buf[1];
#endif

    c = r->connection;

    if (c->error) {
        return 1;
    }

#if (NGX_HTTP_V2)
    if (r->stream) {
        c = r->stream->connection->connection;
    }
#endif

    if (c->error || c->fd == (ngx_socket_t) -1) {
        return c->error;
    }

#ifdef POLLRDHUP

    p.fd = c->fd;
    p.events = POLLRDHUP;
    p.revents = 0;

    return poll(&p, 1, 0) == 1
           && (p.revents & (POLLRDHUP|POLLHUP|POLLERR)) != 0;

#else

    /* recv() does not detect a FIN behind unread bytes */

    return recv(c->fd, buf, 1, MSG_PEEK) == 0;

#endif
}


/*
 * Returns milliseconds of a clock that is never set.  If the system supports
 * it, the clock also runs while the machine is suspended.
 */

uint64_t
ngx_http_xet_clock(void)
{
    struct timespec  ts;

#ifdef CLOCK_BOOTTIME
    (void) clock_gettime(CLOCK_BOOTTIME, &ts);
#else
    (void) clock_gettime(CLOCK_MONOTONIC, &ts);
#endif

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
