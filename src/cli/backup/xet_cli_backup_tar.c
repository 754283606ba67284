
/*
 * A stream that tar reads: members with heads of POSIX 1988 (ustar), and the
 * size of a large one as GNU tar has it.  All names are short, and all files
 * are regular.
 */


#include <string.h>

#include "xet_cli_backup.h"


#define XET_CLI_TAR_BLOCK   512
#define XET_CLI_TAR_BUFFER  65536
#define XET_CLI_TAR_LARGE   (UINT64_C(1) << 33)    /* 11 octal digits */


typedef struct {
    char   name[100];
    char   mode[8];
    char   uid[8];
    char   gid[8];
    char   size[12];
    char   mtime[12];
    char   sum[8];
    char   type;
    char   link[100];
    char   magic[8];
    char   rest[247];
} xet_cli_tar_head_t;


int
xet_cli_tar_head(int fd, const char *path, uint64_t size, time_t time)
{
    int                  i;
    unsigned             sum;
    const uint8_t       *p;
    xet_cli_tar_head_t   h;

    memset(&h, 0, sizeof(h));

    strncpy(h.name, path, sizeof(h.name) - 1);
    strcpy(h.mode, "0000644");
    strcpy(h.uid, "0000000");
    strcpy(h.gid, "0000000");
    snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long) time);

    if (size < XET_CLI_TAR_LARGE) {
        snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long) size);

    } else {
        for (i = 11; i > 0; i--, size >>= 8) {
            h.size[i] = (char) size;
        }

        h.size[0] = (char) 0x80;
    }

    h.type = '0';
    memcpy(h.magic, "ustar\0" "00", 8);

    /* the sum is that of a head with blanks in its place */

    memset(h.sum, ' ', sizeof(h.sum));

    sum = 0;

    for (p = (uint8_t *) &h; p < (uint8_t *) (&h + 1); p++) {
        sum += *p;
    }

    snprintf(h.sum, sizeof(h.sum), "%06o", sum);
    h.sum[7] = ' ';

    return xet_cli_output_write(fd, path, (uint8_t *) &h, sizeof(h));
}


int
xet_cli_tar_fill(int fd, uint64_t size)
{
    uint8_t  zeros[XET_CLI_TAR_BLOCK];

    memset(zeros, 0, sizeof(zeros));

    size %= XET_CLI_TAR_BLOCK;

    return size ? xet_cli_output_write(fd, "-", zeros,
                                       XET_CLI_TAR_BLOCK - size)
                : XET_CLI_OK;
}


int
xet_cli_tar_text(int fd, const char *path, const char *text, time_t time)
{
    int     rc;
    size_t  len;

    len = strlen(text);
    rc = xet_cli_tar_head(fd, path, len, time);

    if (rc == XET_CLI_OK) {
        rc = xet_cli_output_write(fd, "-", (const uint8_t *) text, len);
    }

    return (rc == XET_CLI_OK) ? xet_cli_tar_fill(fd, len) : rc;
}


int
xet_cli_tar_file(int fd, const char *path, int from, uint64_t size,
    time_t time)
{
    int       rc;
    ssize_t   n;
    uint8_t   buffer[XET_CLI_TAR_BUFFER];
    uint64_t  pos;

    rc = xet_cli_tar_head(fd, path, size, time);

    for (pos = 0; rc == XET_CLI_OK && pos < size; pos += (uint64_t) n) {
        n = pread(from, buffer, sizeof(buffer), (off_t) pos);

        if (n <= 0) {
            return xet_cli_fail_errno(path);
        }

        rc = xet_cli_output_write(fd, "-", buffer, (size_t) n);
    }

    return (rc == XET_CLI_OK) ? xet_cli_tar_fill(fd, size) : rc;
}


int
xet_cli_tar_end(int fd)
{
    uint8_t  zeros[2 * XET_CLI_TAR_BLOCK];

    memset(zeros, 0, sizeof(zeros));

    return xet_cli_output_write(fd, "-", zeros, sizeof(zeros));
}
