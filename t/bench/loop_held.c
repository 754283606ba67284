
/*
 * A library for LD_PRELOAD that measures how long a worker's event loop is
 * blocked: the CPU time of the worker's thread from one epoll_wait() to the
 * next.  CPU time is used because wall time grows on a busy machine.  The
 * results are u64 numbers in the file that XET_LOOP_HELD names: the maximum in
 * microseconds, and the counts above 1 ms, above 5 ms, and in total.  A test
 * may reset them.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>


static volatile uint64_t  *held;
static int               (*wait_next)(int, struct epoll_event *, int, int);


static void __attribute__ ((constructor))
held_init(void)
{
    int          fd;
    void        *p;
    const char  *name;

    wait_next = (int (*)(int, struct epoll_event *, int, int))
                (uintptr_t) dlsym(RTLD_NEXT, "epoll_wait");

    /*
     * PostgreSQL also calls epoll_wait(), and is started with the same
     * environment variables
     */

    if (strcmp(program_invocation_short_name, "nginx") != 0) {
        return;
    }

    name = getenv("XET_LOOP_HELD");
    fd = name ? open(name, O_RDWR) : -1;

    if (fd == -1) {
        return;
    }

    p = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);

    held = (p == MAP_FAILED) ? NULL : p;
}


static uint64_t
held_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


int
epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    int                        rc;
    uint64_t                   us;
    static __thread uint64_t   since;

    if (held && since) {
        us = held_now() - since;

        held[0] = (us > held[0]) ? us : held[0];
        held[1] += us > 1000;
        held[2] += us > 5000;
        held[3]++;
    }

    rc = wait_next(fd, events, n, timeout);

    since = held_now();

    return rc;
}
