
/*
 * A library for LD_PRELOAD that makes system calls of a server hang.  A call
 * hangs as long as the folder $XET_STALL has a file with the call's name; each
 * call that hangs adds one byte to NAME.hangs.  time() is ahead by the number
 * of seconds in the file "clock" of this folder.  The constructor reads
 * $XET_STALL, because nginx clears its environment later.
 */


#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


static char  stall_dir[4096];


__attribute__((constructor))
static void
stall_init(void)
{
    const char  *dir;

    dir = getenv("XET_STALL");

    if (dir) {
        (void) snprintf(stall_dir, sizeof(stall_dir), "%s", dir);
    }
}


static void
stall(const char *call)
{
    int   fd;
    char  path[sizeof(stall_dir) + 32], mark[sizeof(path) + 8];

    if (stall_dir[0] == '\0') {
        return;
    }

    (void) snprintf(path, sizeof(path), "%s/%s", stall_dir, call);

    if (access(path, F_OK) == -1) {
        return;
    }

    (void) snprintf(mark, sizeof(mark), "%s.hangs", path);

    fd = open(mark, O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666);

    if (fd == -1 || write(fd, ".", 1) != 1 || close(fd) == -1) {
        abort();
    }

    while (access(path, F_OK) == 0) {
        (void) usleep(10000);
    }
}


int
fdatasync(int fd)
{
    int  (*next)(int);

    stall("fdatasync");

    *(void **) &next = dlsym(RTLD_NEXT, "fdatasync");

    return next(fd);
}


int
fsync(int fd)
{
    int  (*next)(int);

    stall("fsync");

    *(void **) &next = dlsym(RTLD_NEXT, "fsync");

    return next(fd);
}


int
syncfs(int fd)
{
    int  (*next)(int);

    stall("syncfs");

    *(void **) &next = dlsym(RTLD_NEXT, "syncfs");

    return next(fd);
}


int
getaddrinfo(const char *node, const char *service,
    const struct addrinfo *hints, struct addrinfo **res)
{
    int  (*next)(const char *, const char *, const struct addrinfo *,
                 struct addrinfo **);

    stall("getaddrinfo");

    *(void **) &next = dlsym(RTLD_NEXT, "getaddrinfo");

    return next(node, service, hints, res);
}


/*
 * The server calls lstat() on the path of a copy to check that the copy exists.
 */

int
lstat64(const char *path, struct stat64 *st)
{
    int  (*next)(const char *, struct stat64 *);

    if (strstr(path, "/xorbs/")) {
        stall("stat");
    }

    *(void **) &next = dlsym(RTLD_NEXT, "lstat64");

    return next(path, st);
}


time_t
time(time_t *t)
{
    char             path[sizeof(stall_dir) + 32];
    FILE            *file;
    long             ahead;
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);
    (void) snprintf(path, sizeof(path), "%s/clock", stall_dir);

    file = stall_dir[0] ? fopen(path, "re") : NULL;

    if (file) {

        if (fscanf(file, "%ld", &ahead) == 1) {
            ts.tv_sec += ahead;
        }

        (void) fclose(file);
    }

    if (t) {
        *t = ts.tv_sec;
    }

    return ts.tv_sec;
}


/* Only large reads hang: the server uses these to check copies. */

ssize_t
pread64(int fd, void *buf, size_t len, off_t offset)
{
    ssize_t  (*next)(int, void *, size_t, off_t);

    if (len >= 262144) {
        stall("read");
    }

    *(void **) &next = dlsym(RTLD_NEXT, "pread64");

    return next(fd, buf, len, offset);
}
