
/*
 * Copyright (C) the ngx_http_xet_module authors
 */


/*
 * Runs a fuzz target with files and folders of files as inputs.  This program
 * replaces libFuzzer, so that a corpus can be replayed with any compiler and in
 * any test run.
 *
 * Each input is in a heap block of exactly its size, so that AddressSanitizer
 * detects a read past its end.  The corpora do not contain the empty input, so
 * it is run first.  The last line printed is "N files".
 */


#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static int replay_path(const char *path, unsigned *n);
static int replay_dir(const char *path, unsigned *n);
static int replay_file(const char *path, size_t size);


int
main(int argc, char *const *argv)
{
    int       i;
    unsigned  n;

    static const uint8_t  end[1];

    if (argc < 2) {
        fprintf(stderr, "usage: %s file|folder ...\n", argv[0]);
        return 2;
    }

    /* the pointer is one past an object, so any read is an error */

    (void) LLVMFuzzerTestOneInput(end + 1, 0);

    n = 0;

    for (i = 1; i < argc; i++) {
        if (replay_path(argv[i], &n) != 0) {
            return 2;
        }
    }

    printf("%u files\n", n);

    return n == 0;
}


static int
replay_path(const char *path, unsigned *n)
{
    struct stat  sb;

    if (stat(path, &sb) == -1) {
        perror(path);
        return -1;
    }

    if (S_ISDIR(sb.st_mode)) {
        return replay_dir(path, n);
    }

    if (!S_ISREG(sb.st_mode)) {
        return 0;
    }

    (*n)++;

    return replay_file(path, (size_t) sb.st_size);
}


static int
replay_dir(const char *path, unsigned *n)
{
    int              i, count, len, rc;
    char             name[4096];
    struct dirent  **entries;

    /* sorted by name, so that a crash is reproducible */

    count = scandir(path, &entries, NULL, alphasort);
    if (count == -1) {
        perror(path);
        return -1;
    }

    rc = 0;

    for (i = 0; i < count; i++) {

        if (rc == 0 && entries[i]->d_name[0] != '.') {
            len = snprintf(name, sizeof(name), "%s/%s", path,
                           entries[i]->d_name);

            rc = (len < 0 || (size_t) len >= sizeof(name))
                 ? -1 : replay_path(name, n);
        }

        free(entries[i]);
    }

    free(entries);

    return rc;
}


static int
replay_file(const char *path, size_t size)
{
    int       rc;
    FILE     *f;
    uint8_t  *data;

    f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return -1;
    }

    rc = -1;

    data = malloc(size ? size : 1);

    if (data != NULL && fread(data, 1, size, f) == size) {

        /* stderr is unbuffered, so the name is printed before a crash */

        fprintf(stderr, "# %s\n", path);

        (void) LLVMFuzzerTestOneInput(data, size);

        rc = 0;

    } else {
        perror(path);
    }

    free(data);
    fclose(f);

    return rc;
}
