
/*
 * Key files.
 */


#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xet_cli_admin.h"


static int xet_cli_key_line(xet_cli_key_t *key, const char *line,
    size_t len);


int
xet_cli_key_read(xet_cli_key_t *key, const xet_cli_args_t *args)
{
    int          fd;
    ssize_t      n;
    const char  *name;

    memset(key, 0, sizeof(xet_cli_key_t));

    name = args->value[XET_CLI_OPT_KEY];

    if (name == NULL) {
        return xet_cli_fail(XET_CLI_USAGE, args->verb, "needs --key");
    }

    key->file = malloc(XET_JWK_DOCUMENT_MAX + 1);

    if (key->file == NULL) {
        return xet_cli_no_memory();
    }

    fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return xet_cli_fail_errno(name);
    }

    n = 0;

    while (key->len <= XET_JWK_DOCUMENT_MAX
           && (n = read(fd, key->file + key->len,
                        XET_JWK_DOCUMENT_MAX + 1 - key->len)) > 0)
    {
        key->len += (size_t) n;
    }

    close(fd);

    if (n < 0) {
        return xet_cli_fail_errno(name);
    }

    if (key->len > XET_JWK_DOCUMENT_MAX) {
        return xet_cli_fail(XET_CLI_ERROR, name, "is too long for a key");
    }

    return XET_CLI_OK;
}


int
xet_cli_key_secret(xet_cli_key_t *key, const xet_cli_args_t *args)
{
    int          number;
    size_t       len;
    const char  *line, *end, *next;

    line = (const char *) key->file;
    end = line + key->len;

    for (number = 1; line < end; number++, line = next) {
        next = memchr(line, '\n', (size_t) (end - line));
        next = next ? next + 1 : end;

        len = (size_t) (next - line);

        while (len && strchr(" \t\r\n", line[len - 1])) {
            len--;
        }

        if (len == 0 || *line == '#') {
            continue;
        }

        if (xet_cli_key_line(key, line, len)) {
            return XET_CLI_OK;
        }

        return xet_cli_failf(XET_CLI_ERROR, args->value[XET_CLI_OPT_KEY],
                             "line %d is not \"id:hex\"", number);
    }

    return xet_cli_fail(XET_CLI_ERROR, args->value[XET_CLI_OPT_KEY],
                        "there is no key in it");
}


static int
xet_cli_key_line(xet_cli_key_t *key, const char *line, size_t len)
{
    size_t       i;
    unsigned     high, low;
    const char  *colon;

    colon = memchr(line, ':', len);

    if (colon == NULL || colon == line
        || colon - line > XET_CLI_KEY_ID_MAX)
    {
        return 0;
    }

    key->id_len = (size_t) (colon - line);
    memcpy(key->id, line, key->id_len);

    len -= key->id_len + 1;
    line = colon + 1;

    if (len == 0 || len % 2 || len / 2 > XET_CLI_KEY_SECRET_MAX) {
        return 0;
    }

    for (i = 0; i < len / 2; i++) {
        high = xet_get_hex_digit((uint8_t) line[2 * i]);
        low = xet_get_hex_digit((uint8_t) line[2 * i + 1]);

        if (high > 15 || low > 15) {
            return 0;
        }

        key->secret[i] = (uint8_t) (high << 4 | low);
    }

    key->secret_len = len / 2;

    return 1;
}


void
xet_cli_key_free(xet_cli_key_t *key)
{
    if (key->file) {
        explicit_bzero(key->file, key->len);
        free(key->file);
    }

    explicit_bzero(key, sizeof(xet_cli_key_t));
}
