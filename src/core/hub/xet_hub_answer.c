
/*
 * Client-side parser of Hub responses.
 *
 * Purpose:    parses names of repos and files from the command line, and list
 *             entries, tokens and the next page from responses.
 * States:     none.
 * Ownership:  texts point into the parsed input.
 * Threads:    any.
 *
 * A Hub is not trusted, and its paths become names of local files.  So a
 * response with a path that xet_hub_path_ok() rejects is refused.
 */


#include "xet_hub.h"


#define XET_HUB_DATE_MAX    32
#define XET_HUB_QUERY_MAX   8192


static int xet_hub_answer_text(const json_t *object, const char *key,
    xet_hub_text_t *text);
static int xet_hub_answer_date(const json_t *object, const char *key,
    xet_hub_text_t *date);
static int xet_hub_operand_part(const char **text, xet_hub_text_t *part);


xet_status_t
xet_hub_operand_parse(const char *text, xet_hub_target_t *target)
{
    size_t       len;
    unsigned     kind;
    const char  *name;

    memset(target, 0, sizeof(xet_hub_target_t));

    target->kind = XET_HUB_KINDS;

    if (strncmp(text, "hf://", 5) == 0) {
        text += 5;
    }

    for (kind = 0; kind < XET_HUB_KINDS; kind++) {
        name = xet_hub_kind_plural((xet_hub_kind_e) kind);
        len = strlen(name);

        if (strncmp(text, name, len) == 0 && text[len] == '/') {
            target->kind = (xet_hub_kind_e) kind;
            text += len + 1;
            break;
        }
    }

    if (!xet_hub_operand_part(&text, &target->owner)
        || !xet_hub_owner_ok(target->owner.data, target->owner.len))
    {
        return XET_HUB_NAME;
    }

    if (*text == '\0') {
        return XET_OK;
    }

    if (!xet_hub_operand_part(&text, &target->name)
        || !xet_hub_name_ok(target->name.data, target->name.len))
    {
        return XET_HUB_NAME;
    }

    /* shells complete the name of a folder with a trailing slash */

    len = strlen(text);
    len -= (len && text[len - 1] == '/');

    target->path.data = (const uint8_t *) text;
    target->path.len = len;

    return (*text == '\0' || xet_hub_path_ok(target->path.data, len))
           ? XET_OK : XET_HUB_PATH;
}


/* Sets part to the text before the next slash, and skips the slash. */

static int
xet_hub_operand_part(const char **text, xet_hub_text_t *part)
{
    const char  *end;

    end = *text + strcspn(*text, "/");

    part->data = (const uint8_t *) *text;
    part->len = (size_t) (end - *text);

    *text = end + (*end == '/');

    return part->len != 0;
}


xet_status_t
xet_hub_entry_read(const json_t *value, xet_hub_entry_t *entry)
{
    const char      *type;
    const json_t    *lfs, *size;
    xet_hub_text_t   text;

    memset(entry, 0, sizeof(xet_hub_entry_t));

    type = json_string_value(json_object_get(value, "type"));

    if (type == NULL
        || !xet_hub_answer_text(value, "path", &entry->path)
        || !xet_hub_path_ok(entry->path.data, entry->path.len))
    {
        return XET_HUB_PATH;
    }

    if (!xet_hub_answer_date(json_object_get(value, "lastCommit"), "date",
                             &entry->date))
    {
        (void) (xet_hub_answer_date(value, "mtime", &entry->date)
                || xet_hub_answer_date(value, "uploadedAt", &entry->date));
    }

    if (strcmp(type, "directory") == 0) {
        entry->folder = 1;
        return XET_OK;
    }

    size = json_object_get(value, "size");

    if (strcmp(type, "file") != 0 || !json_is_integer(size)
        || json_integer_value(size) < 0)
    {
        return XET_BODY_SYNTAX;
    }

    entry->size = (uint64_t) json_integer_value(size);

    if (xet_hub_answer_text(value, "xetHash", &text)) {

        if (xet_hash_parse(&entry->hash, text.data, text.len) != XET_OK) {
            return XET_BODY_SYNTAX;
        }

        entry->known = 1;
    }

    lfs = json_object_get(value, "lfs");

    if (xet_hub_answer_text(lfs, "oid", &text)) {

        if (!xet_hub_sha256_parse(entry->sha256, &text)) {
            return XET_BODY_SYNTAX;
        }

        entry->digested = 1;
    }

    /* the hash of an empty file is zero, even if the response has another */

    if (entry->size == 0) {
        entry->known = 1;
        entry->digested = 0;
        memset(&entry->hash, 0, sizeof(xet_hash_t));
    }

    return XET_OK;
}


xet_status_t
xet_hub_described_read(const json_t *value, xet_hub_described_t *described)
{
    size_t           i;
    const uint8_t   *slash;
    const json_t    *private;

    memset(described, 0, sizeof(xet_hub_described_t));

    if (!xet_hub_answer_text(value, "id", &described->id)) {
        return XET_BODY_SYNTAX;
    }

    slash = memchr(described->id.data, '/', described->id.len);

    if (slash == NULL
        || !xet_hub_owner_ok(described->id.data,
                             (size_t) (slash - described->id.data))
        || !xet_hub_name_ok(slash + 1,
                            described->id.len - 1
                            - (size_t) (slash - described->id.data)))
    {
        return XET_HUB_NAME;
    }

    private = json_object_get(value, "private");
    described->private = json_is_true(private);

    (void) (xet_hub_answer_date(value, "lastModified", &described->date)
            || xet_hub_answer_date(value, "updatedAt", &described->date));

    if (xet_hub_answer_text(value, "sha", &described->oid)) {

        for (i = 0; i < described->oid.len; i++) {
            if (xet_get_hex_digit(described->oid.data[i]) == 16) {
                return XET_BODY_SYNTAX;
            }
        }

        if (described->oid.len != XET_HUB_OID_LEN) {
            return XET_BODY_SYNTAX;
        }
    }

    return XET_OK;
}


xet_status_t
xet_hub_granted_read(const json_t *value, xet_hub_granted_t *granted)
{
    size_t         i;
    const json_t  *exp;

    memset(granted, 0, sizeof(xet_hub_granted_t));

    exp = json_object_get(value, "exp");

    if (!xet_hub_answer_text(value, "casUrl", &granted->url)
        || !xet_hub_answer_text(value, "accessToken", &granted->token)
        || !json_is_integer(exp) || json_integer_value(exp) < 0)
    {
        return XET_BODY_SYNTAX;
    }

    granted->expires = (uint64_t) json_integer_value(exp);

    for (i = 0; i < granted->url.len; i++) {
        if (granted->url.data[i] <= ' ' || granted->url.data[i] >= 0x7f) {
            return XET_BODY_SYNTAX;
        }
    }

    return ((granted->url.len > 7
             && memcmp(granted->url.data, "http://", 7) == 0)
            || (granted->url.len > 8
                && memcmp(granted->url.data, "https://", 8) == 0))
           ? XET_OK : XET_BODY_SYNTAX;
}


/*
 * Parses <URL?arguments>; rel="next".  Only the arguments are used: the client
 * must not send its token to a host that a header names.
 */

int
xet_hub_next_parse(const char *link, xet_hub_text_t *args)
{
    size_t       len;
    const char  *url, *end, *query, *p;

    for (url = strchr(link, '<'); url; url = strchr(end, '<')) {
        end = strchr(url, '>');

        if (end == NULL) {
            break;
        }

        len = strcspn(end, ",");
        p = strstr(end, "rel=\"next\"");
        p = p ? p : strstr(end, "rel=next");

        if (p == NULL || p >= end + len) {
            continue;
        }

        query = memchr(url, '?', (size_t) (end - url));

        if (query == NULL) {
            break;
        }

        args->data = (const uint8_t *) query + 1;
        args->len = (size_t) (end - query - 1);

        for (p = query + 1; p < end; p++) {
            if (*p <= ' ' || *p >= 0x7f || *p == '#') {
                return 0;
            }
        }

        return args->len != 0 && args->len <= XET_HUB_QUERY_MAX;
    }

    return 0;
}


static int
xet_hub_answer_text(const json_t *object, const char *key,
    xet_hub_text_t *text)
{
    const json_t  *value;

    value = json_object_get(object, key);

    if (!json_is_string(value) || json_string_length(value) == 0) {
        return 0;
    }

    text->data = (const uint8_t *) json_string_value(value);
    text->len = json_string_length(value);

    return 1;
}


/* Accepts only digits and separators, because the date is shown unchanged. */

static int
xet_hub_answer_date(const json_t *object, const char *key,
    xet_hub_text_t *date)
{
    size_t          i;
    xet_hub_text_t  text;

    if (!xet_hub_answer_text(object, key, &text)
        || text.len > XET_HUB_DATE_MAX)
    {
        return 0;
    }

    for (i = 0; i < text.len; i++) {
        if (strchr("0123456789-:.+TZ", text.data[i]) == NULL) {
            return 0;
        }
    }

    *date = text;

    return 1;
}
