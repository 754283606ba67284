
/*
 * Unsafe file names.
 *
 * Purpose:    checks every path that the server stores or its client writes: a
 *             path is refused if any component of it has a special meaning for
 *             git, Windows, macOS or a client.
 * States:     none.
 * Ownership:  a reported component points into the path.
 * Threads:    any.
 *
 * Repos are downloaded into git repos, even on systems that ignore case,
 * trailing spaces and dots, or some Unicode characters.  On such a system, a
 * file "config" in a folder ".GIT" can make the next git command run a
 * program.  Names that some systems merely can't create, such as
 * "2023-07-18T12:33|x?.json", are allowed, because public repos have them.
 */


#include "xet_hub.h"


static xet_hub_risk_e xet_hub_part_risk(const uint8_t *p, size_t len);
static size_t xet_hub_part_plain(const uint8_t *p, size_t len,
    uint8_t *plain, size_t size);
static size_t xet_hub_part_ignored(const uint8_t *p, size_t len);
static int xet_hub_part_control(const uint8_t *p, size_t len);
static void xet_hub_part_show(const xet_hub_text_t *part,
    xet_hub_refusal_t *refusal);
static int xet_hub_part_device(const uint8_t *p, size_t len);
static int xet_hub_part_drive(const uint8_t *p, size_t len);
static int xet_hub_part_stream(const uint8_t *p, size_t len);
static int xet_hub_part_is(const uint8_t *p, size_t len, const char *text);


xet_hub_risk_e
xet_hub_path_risk(const uint8_t *p, size_t len, xet_hub_text_t *part)
{
    size_t          i, start;
    xet_hub_risk_e  risk;

    start = 0;

    for (i = 0; i <= len; i++) {

        if (i < len && p[i] != '/') {
            continue;
        }

        risk = xet_hub_part_risk(p + start, i - start);

        if (risk != XET_HUB_RISK_NONE) {
            part->data = p + start;
            part->len = i - start;

            return risk;
        }

        start = i + 1;
    }

    return XET_HUB_RISK_NONE;
}


const char *
xet_hub_risk_text(xet_hub_risk_e risk)
{
    static const char *const  texts[] = {
        "is safe",
        "is a folder of git",
        "is a folder of clients of a Hub",
        "is a device of Windows",
        "begins with a drive of Windows",
        "is a stream of a file on Windows",
        "has a backslash, which is a slash on Windows",
        "ends with a dot or a blank, which Windows drops",
        "has a control character"
    };

    return texts[risk];
}


xet_status_t
xet_hub_path_check(const xet_hub_text_t *path, xet_hub_refusal_t *refusal)
{
    xet_hub_text_t  part;

    if (!xet_hub_path_ok(path->data, path->len)) {
        xet_hub_refuse_path(refusal, path);
        return XET_HUB_PATH;
    }

    refusal->risk = xet_hub_path_risk(path->data, path->len, &part);

    if (refusal->risk == XET_HUB_RISK_NONE) {
        return XET_OK;
    }

    xet_hub_part_show(&part, refusal);

    return XET_HUB_UNSAFE;
}


/* Replaces terminal control characters and invisible characters with "?". */

static void
xet_hub_part_show(const xet_hub_text_t *part, xet_hub_refusal_t *refusal)
{
    size_t          i, n;
    const uint8_t  *p;

    refusal->len = part->len;

    for (i = 0; i < part->len; i += n) {
        p = part->data + i;
        n = xet_hub_part_ignored(p, part->len - i);

        if (n == 0 && xet_hub_part_control(p, part->len - i)) {
            n = (*p == 0xc2) ? 2 : 1;
        }

        if (n) {
            memset(refusal->part + i, '?', n);

        } else {
            refusal->part[i] = *p;
            n = 1;
        }
    }
}


void
xet_hub_refuse(xet_hub_refusal_t *refusal, const char *key, const char *wants)
{
    xet_hub_text_t  part;

    part.data = (const uint8_t *) key;
    part.len = strlen(key);

    refusal->wants = wants;
    xet_hub_refuse_path(refusal, &part);
}


void
xet_hub_refuse_path(xet_hub_refusal_t *refusal, const xet_hub_text_t *path)
{
    xet_hub_text_t  part;

    part = *path;

    /* do not cut a character of UTF-8 */

    if (part.len > XET_HUB_PART_MAX) {
        part.len = XET_HUB_PART_MAX;

        while (part.len && (part.data[part.len] & 0xc0) == 0x80) {
            part.len--;
        }
    }

    xet_hub_part_show(&part, refusal);
}


static xet_hub_risk_e
xet_hub_part_risk(const uint8_t *p, size_t len)
{
    size_t   i, n;
    uint8_t  plain[8];

    if (len == 0) {
        return XET_HUB_RISK_NONE;
    }

    n = xet_hub_part_plain(p, len, plain, sizeof(plain));

    /* "git~1" and "cache~1" are the short names that NTFS creates */

    if (xet_hub_part_is(plain, n, ".git")
        || xet_hub_part_is(plain, n, "git~1"))
    {
        return XET_HUB_RISK_GIT;
    }

    if (xet_hub_part_is(plain, n, ".cache")
        || xet_hub_part_is(plain, n, "cache~1"))
    {
        return XET_HUB_RISK_CACHE;
    }

    if (xet_hub_part_device(p, len)) {
        return XET_HUB_RISK_DEVICE;
    }

    if (xet_hub_part_drive(p, len)) {
        return XET_HUB_RISK_DRIVE;
    }

    if (xet_hub_part_stream(p, len)) {
        return XET_HUB_RISK_STREAM;
    }

    for (i = 0; i < len; i++) {

        if (p[i] == '\\') {
            return XET_HUB_RISK_BACKSLASH;
        }

        if (xet_hub_part_control(p + i, len - i)) {
            return XET_HUB_RISK_CONTROL;
        }
    }

    return (p[len - 1] == '.' || p[len - 1] == ' ') ? XET_HUB_RISK_END
                                                    : XET_HUB_RISK_NONE;
}


/*
 * Writes to plain, in lower case, the name that a file system may use instead
 * of the component, and returns the length of that name.  Leaves out characters
 * that HFS+ ignores, everything from a colon (an NTFS stream) or backslash on,
 * and trailing dots and spaces.  Returns 0 if the name is longer than size,
 * because all refused names are shorter.
 */

static size_t
xet_hub_part_plain(const uint8_t *p, size_t len, uint8_t *plain, size_t size)
{
    size_t  i, n, end, ignored;

    n = 0;
    end = 0;
    i = 0;

    while (i < len && p[i] != ':' && p[i] != '\\') {
        ignored = xet_hub_part_ignored(p + i, len - i);

        if (ignored) {
            i += ignored;
            continue;
        }

        if (n < size) {
            plain[n] = (uint8_t) ((p[i] >= 'A' && p[i] <= 'Z') ? p[i] | 0x20
                                                               : p[i]);
        }

        n++;

        if (p[i] != '.' && p[i] != ' ') {
            end = n;
        }

        i++;
    }

    return (end <= size) ? end : 0;
}


/*
 * Returns the length of the character at p if HFS+ ignores it, else 0: U+200C
 * to U+200F, U+202A to U+202E, U+206A to U+206F, U+FEFF.
 */

static size_t
xet_hub_part_ignored(const uint8_t *p, size_t len)
{
    if (len < 3) {
        return 0;
    }

    if (p[0] == 0xe2 && p[1] == 0x80) {
        return ((p[2] >= 0x8c && p[2] <= 0x8f)
                || (p[2] >= 0xaa && p[2] <= 0xae)) ? 3 : 0;
    }

    if (p[0] == 0xe2 && p[1] == 0x81) {
        return (p[2] >= 0xaa && p[2] <= 0xaf) ? 3 : 0;
    }

    return (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf) ? 3 : 0;
}


/* Returns whether a character is a control character, even above U+007F. */

static int
xet_hub_part_control(const uint8_t *p, size_t len)
{
    return p[0] < 0x20 || p[0] == 0x7f
           || (p[0] == 0xc2 && len > 1 && p[1] < 0xa0);
}


/*
 * Returns whether the part before the first dot, without trailing spaces, is a
 * device: "CON", "nul.txt", "com1 .tar.gz"; the digit may be a superscript.
 */

static int
xet_hub_part_device(const uint8_t *p, size_t len)
{
    size_t  i, n;

    static const char *const  names[] = {
        "con", "prn", "aux", "nul", "conin$", "conout$"
    };

    for (n = 0; n < len && p[n] != '.' && p[n] != ':'; n++) {
        /* void */
    }

    while (n && p[n - 1] == ' ') {
        n--;
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (xet_hub_part_is(p, n, names[i])) {
            return 1;
        }
    }

    if (n < 4
        || (!xet_hub_part_is(p, 3, "com") && !xet_hub_part_is(p, 3, "lpt")))
    {
        return 0;
    }

    return (n == 4 && p[3] >= '1' && p[3] <= '9')
           || (n == 5 && p[3] == 0xc2
               && (p[4] == 0xb9 || p[4] == 0xb2 || p[4] == 0xb3));
}


/* Returns whether a component starts with a drive: a character and a colon. */

static int
xet_hub_part_drive(const uint8_t *p, size_t len)
{
    size_t  n;

    n = 1;

    while (n < len && (p[n] & 0xc0) == 0x80) {
        n++;
    }

    return n < len && p[n] == ':';
}


/*
 * Returns whether a component is "name:stream:$TYPE".  Without a type, a colon
 * is allowed, because names often include a time of day.
 */

static int
xet_hub_part_stream(const uint8_t *p, size_t len)
{
    size_t  i;

    for (i = len; i > 0 && p[i - 1] != ':'; i--) {
        /* void */
    }

    return i > 0 && len - i > 1 && p[i] == '$' && xet_is_alnum(p[i + 1]);
}


static int
xet_hub_part_is(const uint8_t *p, size_t len, const char *text)
{
    size_t  i;

    for (i = 0; i < len && text[i]; i++) {
        if ((uint8_t) ((p[i] >= 'A' && p[i] <= 'Z') ? p[i] | 0x20 : p[i])
            != (uint8_t) text[i])
        {
            return 0;
        }
    }

    return i == len && text[i] == '\0';
}
