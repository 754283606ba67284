
/*
 * Paths of a Hub's requests.
 *
 * Purpose:    which route a path is of, and what it names.
 * States:     none.
 * Ownership:  what is decoded is in the caller's room.
 * Threads:    any.
 *
 * A path is cut before it is decoded: a revision may have a "/", which comes
 * as %2F, and with that decoded nobody could tell where the revision ends.
 * Some clients and proxies send the "/" of a revision as it is, though.  Where
 * no path comes behind it all the rest is the revision, else the first part
 * alone, and who knows which revisions there are moves the border
 * (xet.hub_rev() in sql/hub_revisions.sql; the rules are in docs/hub.md).
 */


#include "xet_hub.h"


typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
} xet_hub_cut_t;


static int xet_hub_route_walk(const char *form, const uint8_t *raw, size_t len,
    xet_hub_target_t *target);
static int xet_hub_cut_part(xet_hub_cut_t *cut, xet_hub_text_t *part);
static int xet_hub_cut_type(xet_hub_cut_t *cut, xet_hub_target_t *target);
static int xet_hub_cut_repo(xet_hub_cut_t *cut, xet_hub_target_t *target);
static int xet_hub_cut_id(xet_hub_cut_t *cut, xet_hub_target_t *target);
static int xet_hub_cut_git(xet_hub_target_t *target);
static int xet_hub_is(const xet_hub_text_t *part, const char *text,
    size_t len);
static uint8_t *xet_hub_decode(xet_hub_text_t *text, uint8_t *room);


int
xet_hub_route_match(const char *form, const uint8_t *raw, size_t len)
{
    xet_hub_target_t  target;

    return xet_hub_route_walk(form, raw, len, &target);
}


xet_status_t
xet_hub_route_parse(const char *form, const uint8_t *raw, size_t len,
    uint8_t *room, xet_hub_target_t *target)
{
    if (!xet_hub_route_walk(form, raw, len, target)) {
        return XET_HUB_PATH;
    }

    if (target->owner.data && target->name.data) {
        target->id.data = target->owner.data;
        target->id.len = (size_t) (target->name.data + target->name.len
                                   - target->owner.data);
    }

    if (target->owner.data) {
        room = xet_hub_decode(&target->owner, room);

        if (room == NULL
            || !xet_hub_name_ok(target->owner.data, target->owner.len))
        {
            return XET_HUB_NAME;
        }
    }

    if (target->name.data) {
        room = xet_hub_decode(&target->name, room);

        if (room == NULL
            || !xet_hub_name_ok(target->name.data, target->name.len))
        {
            return XET_HUB_NAME;
        }
    }

    if (target->rev.data) {
        room = xet_hub_decode(&target->rev, room);

        if (room == NULL
            || !xet_hub_rev_ok(target->rev.data, target->rev.len))
        {
            return XET_HUB_REV;
        }
    }

    if (target->path.len) {
        room = xet_hub_decode(&target->path, room);

        if (room == NULL) {
            return XET_HUB_PATH;
        }

        /* a "/" at the end is that of a folder, as it is or encoded */

        if (target->path.data[target->path.len - 1] == '/') {
            target->path.len--;
        }

        if (target->path.len
            && !xet_hub_path_ok(target->path.data, target->path.len))
        {
            return XET_HUB_PATH;
        }
    }

    return XET_OK;
}


static int
xet_hub_route_walk(const char *form, const uint8_t *raw, size_t len,
    xet_hub_target_t *target)
{
    int              ok;
    size_t           n;
    const char      *end;
    xet_hub_cut_t    cut;
    xet_hub_text_t   part;

    memset(target, 0, sizeof(xet_hub_target_t));

    cut.p = raw;
    cut.end = raw + len;

    for ( ;; ) {
        end = strchr(form, '/');
        n = end ? (size_t) (end - form) : strlen(form);

        if (n == 5 && strncmp(form, ":path", n) == 0) {

            if (cut.p < cut.end) {
                target->path.data = cut.p + 1;
                target->path.len = (size_t) (cut.end - cut.p) - 1;

                if (*cut.p != '/') {
                    return 0;
                }
            }

            return 1;
        }

        if (form[0] != ':') {
            ok = xet_hub_cut_part(&cut, &part) && xet_hub_is(&part, form, n);

            if (ok && n == 7 && strncmp(form, "buckets", n) == 0) {
                target->kind = XET_HUB_BUCKET;
            }

        } else if (strncmp(form, ":type", 5) == 0) {
            ok = xet_hub_cut_type(&cut, target);

        } else if (strncmp(form, ":repo", 5) == 0) {
            ok = xet_hub_cut_repo(&cut, target);

        } else if (strncmp(form, ":git", 4) == 0) {
            ok = xet_hub_cut_repo(&cut, target) && xet_hub_cut_git(target);

        } else if (strncmp(form, ":id", 3) == 0) {
            ok = xet_hub_cut_id(&cut, target);

        } else if (strncmp(form, ":root", 5) == 0) {
            ok = (cut.end - cut.p == 1 && *cut.p++ == '/');

        } else if (strncmp(form, ":owner", 6) == 0) {
            ok = xet_hub_cut_part(&cut, &target->owner);

        } else { /* :rev */
            ok = xet_hub_cut_part(&cut, &target->rev);

            /* nothing comes behind it that a "/" could be of */

            if (ok && end == NULL) {
                target->rev.len = (size_t) (cut.end - target->rev.data);
                cut.p = cut.end;
            }
        }

        if (!ok) {
            return 0;
        }

        if (end == NULL) {
            return cut.p == cut.end;
        }

        form = end + 1;
    }
}


/* The next part, which is not empty. */

static int
xet_hub_cut_part(xet_hub_cut_t *cut, xet_hub_text_t *part)
{
    if (cut->end - cut->p < 2 || *cut->p != '/') {
        return 0;
    }

    part->data = ++cut->p;

    while (cut->p < cut->end && *cut->p != '/') {
        cut->p++;
    }

    part->len = (size_t) (cut->p - part->data);

    return part->len != 0;
}


static int
xet_hub_cut_type(xet_hub_cut_t *cut, xet_hub_target_t *target)
{
    int              kind;
    const char      *name;
    xet_hub_text_t   part;

    if (!xet_hub_cut_part(cut, &part)) {
        return 0;
    }

    for (kind = XET_HUB_MODEL; kind <= XET_HUB_SPACE; kind++) {
        name = xet_hub_kind_plural(kind);

        if (xet_hub_is(&part, name, strlen(name))) {
            target->kind = kind;
            return 1;
        }
    }

    return 0;
}


static int
xet_hub_cut_repo(xet_hub_cut_t *cut, xet_hub_target_t *target)
{
    xet_hub_cut_t  first;

    first = *cut;

    if (xet_hub_cut_type(&first, target) && target->kind != XET_HUB_MODEL) {
        *cut = first;
    }

    return xet_hub_cut_id(cut, target);
}


static int
xet_hub_cut_id(xet_hub_cut_t *cut, xet_hub_target_t *target)
{
    return xet_hub_cut_part(cut, &target->owner)
           && xet_hub_cut_part(cut, &target->name);
}


static int
xet_hub_cut_git(xet_hub_target_t *target)
{
    if (target->name.len < 5
        || memcmp(target->name.data + target->name.len - 4, ".git", 4) != 0)
    {
        return 0;
    }

    target->name.len -= 4;

    return 1;
}


static int
xet_hub_is(const xet_hub_text_t *part, const char *text, size_t len)
{
    return part->len == len && memcmp(part->data, text, len) == 0;
}


/* The end of what was decoded, or NULL for a malformed escape. */

static uint8_t *
xet_hub_decode(xet_hub_text_t *text, uint8_t *room)
{
    int             c;
    uint8_t        *start;
    const uint8_t  *p, *end;

    p = text->data;
    end = p + text->len;
    start = room;

    while (p < end) {
        c = xet_percent_byte(&p, end);

        if (c < 0) {
            return NULL;
        }

        *room++ = (uint8_t) c;
    }

    text->data = start;
    text->len = (size_t) (room - start);

    return room;
}
