
/* Counts the files of a folder, and prints the result in one line. */


#include <string.h>

#include "xet_cli.h"


void
xet_cli_total_begin(xet_cli_total_t *sum)
{
    memset(sum, 0, sizeof(xet_cli_total_t));

    sum->began = xet_cli_now();
}


void
xet_cli_total_add(xet_cli_total_t *sum, uint64_t size, uint64_t moved)
{
    sum->files++;
    sum->bytes += size;
    sum->moved += moved;
}


int
xet_cli_total_print(const xet_cli_total_t *sum, const char *name,
    const char *moved, const char *more)
{
    char    files[32], bytes[24], new[24];
    double  seconds;

    seconds = (double) (xet_cli_now() - sum->began) / 1000;

    xet_cli_progress_clear();

    if (name) {
        xet_cli_text_print(stdout, name);
        fputs(": ", stdout);
    }

    printf("%s file%s, %s",
           xet_cli_text_count(files, sizeof(files), sum->files),
           (sum->files == 1) ? "" : "s",
           xet_cli_text_size(bytes, sizeof(bytes), sum->bytes));

    if (moved) {
        printf(", %s %s", xet_cli_text_size(new, sizeof(new), sum->moved),
               moved);
    }

    printf(", %.1f s%s\n", seconds, more);

    return xet_cli_flush();
}
