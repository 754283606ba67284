
/*
 * Lists of copies, and notes about listed copies.
 *
 * A line of a list: NAME SIZE DIGEST, with "-" for no digest.  Lines of notes:
 *
 *     lost NAME                          the copy is missing or damaged
 *     healed NAME NAME2 SIZE2 DIGEST2    an upload has replaced the copy by
 *                                        NAME2 while the backup was made
 */


#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_backup.h"


#define XET_CLI_LIST_LINE  320         /* size of a line */


static int xet_cli_list_copy(char **text, xet_cli_copy_t *copy);
static int xet_cli_list_name(char **text, xet_cli_copy_t *copy);
static int xet_cli_list_digest(const char *text, xet_cli_copy_t *copy);
static int xet_cli_list_note(xet_cli_list_t *l, char *line);


const char *
xet_cli_copy_path(const xet_cli_copy_t *copy, char path[XET_CLI_BACKUP_PATH])
{
    char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) name, &copy->hash, copy->copy_id) = '\0';

    snprintf(path, XET_CLI_BACKUP_PATH, XET_CLI_BACKUP_COPIES "/%.2s/%s",
             name, name);

    return path;
}


void
xet_cli_copy_row(xet_cli_copy_t *copy, const xet_cli_pg_row_t *row,
    int column)
{
    size_t          len;
    const uint8_t  *digest;

    copy->copy_id = (uint32_t) xet_cli_pg_u64(row, column);
    copy->size = xet_cli_pg_u64(row, column + 1);

    digest = xet_cli_pg_bytes(row, column + 2, &len);
    copy->digested = (len == XET_CHECKSUM_LEN);

    if (copy->digested) {
        memcpy(copy->digest.bytes, digest, XET_CHECKSUM_LEN);
    }
}


void
xet_cli_list_put(FILE *file, const xet_cli_copy_t *copy)
{
    int   i;
    char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print((uint8_t *) name, &copy->hash, copy->copy_id) = '\0';

    fprintf(file, "%s %" PRIu64 " ", name, copy->size);

    for (i = 0; copy->digested && i < XET_CHECKSUM_LEN; i++) {
        fprintf(file, "%02x", copy->digest.bytes[i]);
    }

    fputs(copy->digested ? "\n" : "-\n", file);
}


/*
 * The name of a copy's folder is the first two hex digits of the hash string,
 * which are byte 7 of the hash.  The statement in xet_cli_backup_snapshot()
 * sorts in the same order.
 */

int
xet_cli_list_order(const xet_cli_copy_t *one, const xet_cli_copy_t *two)
{
    int  order;

    order = one->hash.bytes[7] - two->hash.bytes[7];

    return order ? order
                 : memcmp(one->hash.bytes, two->hash.bytes, XET_HASH_LEN);
}


int
xet_cli_list_open(xet_cli_list_t *l, xet_store_t *storage,
    const char *generation, int notes)
{
    int   rc, fd;
    char  path[XET_CLI_BACKUP_PATH];

    memset(l, 0, sizeof(xet_cli_list_t));

    l->notes = notes;
    l->name = generation;

    xet_cli_manifest_path(generation, notes ? "notes" : "list", path);

    rc = xet_cli_storage_fetch(storage, path, &fd);

    if (rc == XET_CLI_GONE) {
        errno = ENOENT;
    }

    if (rc == XET_CLI_GONE || rc == XET_CLI_UNREADABLE) {
        return xet_cli_fail_errno(path);
    }

    if (rc != XET_CLI_OK) {
        return rc;
    }

    l->file = fdopen(fd, "r");

    if (l->file == NULL) {
        rc = xet_cli_fail_errno(path);
        close(fd);
        return rc;
    }

    return xet_cli_list_next(l);
}


void
xet_cli_list_close(xet_cli_list_t *l)
{
    if (l->file) {
        fclose(l->file);
        l->file = NULL;
    }
}


int
xet_cli_list_next(xet_cli_list_t *l)
{
    int    bad;
    char   line[XET_CLI_LIST_LINE], *text;

    if (fgets(line, sizeof(line), l->file) == NULL) {
        l->ended = 1;
        return ferror(l->file) ? xet_cli_fail_errno(l->name) : XET_CLI_OK;
    }

    text = line;
    bad = l->notes ? xet_cli_list_note(l, line)
                   : xet_cli_list_copy(&text, &l->copy);

    return bad ? xet_cli_fail(XET_CLI_FAULT, l->name,
                              "is not a valid backup list")
               : XET_CLI_OK;
}


int
xet_cli_list_find(xet_cli_list_t *l, const xet_cli_copy_t *copy, int *found)
{
    int  rc;

    rc = XET_CLI_OK;

    while (rc == XET_CLI_OK && !l->ended
           && xet_cli_list_order(&l->copy, copy) < 0)
    {
        rc = xet_cli_list_next(l);
    }

    *found = rc == XET_CLI_OK && !l->ended
             && xet_cli_list_order(&l->copy, copy) == 0
             && l->copy.copy_id == copy->copy_id;

    return rc;
}


/*
 * xet_cli_list_note() and the parsers below return 0, or 1 for invalid input.
 */

static int
xet_cli_list_note(xet_cli_list_t *l, char *line)
{
    l->healed = strncmp(line, "healed ", 7) == 0;

    if (!l->healed && strncmp(line, "lost ", 5) != 0) {
        return 1;
    }

    line += l->healed ? 7 : 5;

    if (xet_cli_list_name(&line, &l->copy)) {
        return 1;
    }

    return l->healed ? xet_cli_list_copy(&line, &l->other) : 0;
}


static int
xet_cli_list_copy(char **text, xet_cli_copy_t *copy)
{
    char  *end;

    if (xet_cli_list_name(text, copy)) {
        return 1;
    }

    errno = 0;
    copy->size = strtoull(*text, &end, 10);

    if (**text < '0' || **text > '9' || *end != ' ' || errno) {
        return 1;
    }

    return xet_cli_list_digest(end + 1, copy);
}


static int
xet_cli_list_name(char **text, xet_cli_copy_t *copy)
{
    size_t  len;

    len = strcspn(*text, " \n");

    if (xet_xorb_name_parse(&copy->hash, &copy->copy_id, (uint8_t *) *text, len)
        != XET_OK)
    {
        return 1;
    }

    *text += len + ((*text)[len] != '\0');

    return 0;
}


static int
xet_cli_list_digest(const char *text, xet_cli_copy_t *copy)
{
    int       i;
    unsigned  byte;

    copy->digested = strcmp(text, "-\n") != 0;

    if (!copy->digested) {
        return 0;
    }

    if (strlen(text) != 2 * XET_CHECKSUM_LEN + 1
        || strspn(text, "0123456789abcdef") != 2 * XET_CHECKSUM_LEN
        || text[2 * XET_CHECKSUM_LEN] != '\n')
    {
        return 1;
    }

    for (i = 0; i < XET_CHECKSUM_LEN; i++) {
        (void) sscanf(text + 2 * i, "%2x", &byte);
        copy->digest.bytes[i] = (uint8_t) byte;
    }

    return 0;
}
