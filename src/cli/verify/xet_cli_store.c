
/*
 * The store that is verified: names of its files, its identity, and the faults
 * that threads find.
 */


#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_verify.h"


void
xet_cli_store_identity(const char *folder, char identity[64])
{
    char  *path;
    FILE  *file;

    identity[0] = '\0';

    if (asprintf(&path, "%s/identity", folder) < 0) {
        return;
    }

    file = fopen(path, "re");

    if (file) {
        if (fscanf(file, "%63s", identity) != 1) {
            identity[0] = '\0';
        }

        fclose(file);
    }

    free(path);
}


char *
xet_cli_store_path(const xet_cli_store_t *s, const xet_hash_t *hash,
    uint32_t tag)
{
    char   text[XET_XORB_NAME_MAX + 1];
    char  *path;

    *xet_xorb_name_print((uint8_t *) text, hash, tag) = '\0';

    if (asprintf(&path, "%s/xorbs/default/%.2s/%s", s->folder, text, text)
        < 0)
    {
        (void) xet_cli_no_memory();
        return NULL;
    }

    return path;
}


void
xet_cli_store_name(uint8_t *name, const xet_hash_t *hash, uint32_t tag)
{
    memcpy(name, hash->bytes, XET_HASH_LEN);
    xet_put_u32(name + XET_HASH_LEN, tag);
}


void
xet_cli_store_read(xet_cli_store_t *s, uint64_t bytes)
{
    pthread_mutex_lock(&s->mutex);

    s->bytes += bytes;
    xet_cli_progress_set(s->bytes);

    pthread_mutex_unlock(&s->mutex);
}


void
xet_cli_store_fault(xet_cli_store_t *s, const char *kind,
    const xet_hash_t *hash, const char *fmt, ...)
{
    char     name[XET_HASH_STR_LEN + 1], text[256];
    va_list  ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    pthread_mutex_lock(&s->mutex);

    s->faults++;
    xet_cli_store_report(s, kind, xet_cli_hash_string(hash, name), text);

    pthread_mutex_unlock(&s->mutex);
}


void
xet_cli_store_report(xet_cli_store_t *s, const char *kind, const char *name,
    const char *text)
{
    xet_json_t      *j;
    xet_cli_json_t   out;

    xet_cli_progress_clear();

    if (!s->json) {
        printf("%s ", kind);
        xet_cli_text_print(stdout, name);
        fputs(": ", stdout);
        xet_cli_text_print(stdout, text);
        putchar('\n');
        fflush(stdout);
        return;
    }

    j = xet_cli_json_begin(&out);

    xet_cli_json_put_string(j, "kind", kind);
    xet_cli_json_put_string(j, "name", name);
    xet_cli_json_put_string(j, "fault", text);

    (void) xet_cli_json_end(&out);
}


int
xet_cli_store_named(xet_cli_pg_t *pg, const xet_hash_t *hash, uint64_t *tag)
{
    xet_cli_pg_param_t  param;

    param.value = hash->bytes;
    param.len = XET_HASH_LEN;

    *tag = UINT64_MAX;

    return xet_cli_pg_number(pg, "SELECT tag FROM xet.xorb_get($1)", &param,
                             1, tag);
}
