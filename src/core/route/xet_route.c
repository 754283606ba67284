
/*
 * Request paths.
 *
 * Purpose:    matches a path against a route, and parses the names in it.
 * States:     none.
 * Ownership:  decoded names are in the caller's buffer.
 * Threads:    any.
 *
 * A path is split before it is decoded, because a revision may contain a "/",
 * sent as %2F: after decoding, the end of the revision could not be found.
 * But some clients and proxies do not encode this "/".  If no path follows the
 * revision, the rest of the request path is the revision.  If a path follows,
 * the revision is only the first part of the request path.  xet.hub_rev() then
 * corrects the split, since it knows the existing revisions
 * (sql/hub_revisions.sql; docs/hub.md has the rules).
 */


#include "xet_route.h"


typedef struct {
    const uint8_t  *p;
    const uint8_t  *end;
    int             last;              /* the form has no later part */
    int             bare;              /* repos are named without an owner */
} xet_route_cut_t;


static int xet_route_walk(const char *form, int bare, const uint8_t *raw,
    size_t len, xet_route_args_t *args);
static int xet_route_step(xet_route_cut_t *cut, const char *form, size_t n,
    xet_route_args_t *args);
static int xet_route_part(xet_route_cut_t *cut, xet_hub_text_t *part);
static int xet_route_hash(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_prefix(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_grant(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_type(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_id(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_repo(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_git(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_owner(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_rev(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_path(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_root(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_view(xet_route_cut_t *cut, xet_route_args_t *args);
static int xet_route_is(const xet_hub_text_t *part, const char *text,
    size_t len);
static xet_status_t xet_route_check(xet_route_args_t *args);
static xet_status_t xet_route_name(xet_hub_text_t *name, uint8_t **room);
static uint8_t *xet_route_decode(xet_hub_text_t *text, uint8_t *room);


/*
 * Maps each part of a form to the function that parses the matching name in a
 * path.  The functions return 0 if the path does not match the form.
 */

static const struct {
    const char   *name;
    int         (*cut)(xet_route_cut_t *cut, xet_route_args_t *args);
} xet_route_parts[] = {
    { ":hash", xet_route_hash },
    { ":prefix", xet_route_prefix },
    { ":grant", xet_route_grant },
    { ":type", xet_route_type },
    { ":id", xet_route_id },
    { ":repo", xet_route_repo },
    { ":git", xet_route_git },
    { ":owner", xet_route_owner },
    { ":rev", xet_route_rev },
    { ":path", xet_route_path },
    { ":root", xet_route_root },
    { ":view", xet_route_view }
};


int
xet_route_match(const char *form, int bare, const uint8_t *raw, size_t len)
{
    xet_route_args_t  args;

    return xet_route_walk(form, bare, raw, len, &args);
}


xet_status_t
xet_route_parse(const char *form, int bare, const uint8_t *raw, size_t len,
    uint8_t *room, xet_route_args_t *args)
{
    xet_status_t       rc;
    xet_hub_target_t  *target;

    target = &args->target;

    if (!xet_route_walk(form, bare, raw, len, args)) {
        return XET_HUB_PATH;
    }

    rc = xet_route_check(args);

    if (rc != XET_OK) {
        return rc;
    }

    if (target->owner.data && target->name.data) {
        target->id.data = target->owner.data;
        target->id.len = (size_t) (target->name.data + target->name.len
                                   - target->owner.data);
    }

    if (xet_route_name(&target->owner, &room) != XET_OK
        || xet_route_name(&target->name, &room) != XET_OK)
    {
        return XET_HUB_NAME;
    }

    if (target->rev.data) {
        room = xet_route_decode(&target->rev, room);

        if (room == NULL
            || !xet_hub_rev_ok(target->rev.data, target->rev.len))
        {
            return XET_HUB_REV;
        }
    }

    if (target->path.len) {
        room = xet_route_decode(&target->path, room);

        if (room == NULL) {
            return XET_HUB_PATH;
        }

        /* a folder may have a trailing "/", even an encoded one */

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
xet_route_walk(const char *form, int bare, const uint8_t *raw, size_t len,
    xet_route_args_t *args)
{
    size_t            n;
    const char       *end;
    xet_route_cut_t   cut;

    memset(args, 0, sizeof(xet_route_args_t));

    cut.p = raw;
    cut.end = raw + len;
    cut.bare = bare;

    for ( ;; ) {
        end = strchr(form, '/');
        n = end ? (size_t) (end - form) : strlen(form);

        cut.last = (end == NULL);

        if (!xet_route_step(&cut, form, n, args)) {
            return 0;
        }

        if (end == NULL) {
            return cut.p == cut.end;
        }

        form = end + 1;
    }
}


/*
 * Matches one part of a route's form against the path at cut->p, and moves
 * cut->p past the matched bytes.  The part is n bytes at form: literal text, or
 * a name such as ":repo", whose value is stored in args.  Returns 0 if the path
 * does not match.
 */

static int
xet_route_step(xet_route_cut_t *cut, const char *form, size_t n,
    xet_route_args_t *args)
{
    size_t           i;
    const char      *name;
    xet_hub_text_t   part;

    for (i = 0; i < sizeof(xet_route_parts) / sizeof(xet_route_parts[0]); i++) {
        name = xet_route_parts[i].name;

        if (strlen(name) == n && memcmp(form, name, n) == 0) {
            return xet_route_parts[i].cut(cut, args);
        }
    }

    if (!xet_route_part(cut, &part) || !xet_route_is(&part, form, n)) {
        return 0;
    }

    if (xet_route_is(&part, "buckets", 7)) {
        args->target.kind = XET_HUB_BUCKET;
    }

    return 1;
}


/* Sets *part to the next component of the path; returns 0 at the end. */

static int
xet_route_part(xet_route_cut_t *cut, xet_hub_text_t *part)
{
    const uint8_t  *slash;

    if (cut->p == cut->end || *cut->p != '/') {
        return 0;
    }

    part->data = ++cut->p;

    slash = memchr(cut->p, '/', (size_t) (cut->end - cut->p));
    cut->p = slash ? slash : cut->end;

    part->len = (size_t) (cut->p - part->data);

    return 1;
}


static int
xet_route_hash(xet_route_cut_t *cut, xet_route_args_t *args)
{
    return xet_route_part(cut, &args->digits);
}


static int
xet_route_prefix(xet_route_cut_t *cut, xet_route_args_t *args)
{
    return xet_route_part(cut, &args->prefix);
}


static int
xet_route_grant(xet_route_cut_t *cut, xet_route_args_t *args)
{
    return xet_route_part(cut, &args->grant);
}


static int
xet_route_type(xet_route_cut_t *cut, xet_route_args_t *args)
{
    int              kind;
    const char      *name;
    xet_hub_text_t   part;

    if (!xet_route_part(cut, &part)) {
        return 0;
    }

    for (kind = XET_HUB_MODEL; kind <= XET_HUB_SPACE; kind++) {
        name = xet_hub_kind_plural(kind);

        if (xet_route_is(&part, name, strlen(name))) {
            args->target.kind = kind;
            return 1;
        }
    }

    return 0;
}


static int
xet_route_id(xet_route_cut_t *cut, xet_route_args_t *args)
{
    if (cut->bare) {
        return args->target.kind != XET_HUB_BUCKET
               && xet_route_owner(cut, args);
    }

    return xet_route_owner(cut, args)
           && xet_route_part(cut, &args->target.name)
           && args->target.name.len;
}


static int
xet_route_repo(xet_route_cut_t *cut, xet_route_args_t *args)
{
    xet_route_cut_t  first;

    first = *cut;

    if (xet_route_type(&first, args) && args->target.kind != XET_HUB_MODEL) {
        *cut = first;
    }

    return xet_route_id(cut, args);
}


static int
xet_route_git(xet_route_cut_t *cut, xet_route_args_t *args)
{
    xet_hub_text_t  *name;

    name = cut->bare ? &args->target.owner : &args->target.name;

    if (!xet_route_repo(cut, args) || name->len < 5
        || memcmp(name->data + name->len - 4, ".git", 4) != 0)
    {
        return 0;
    }

    name->len -= 4;

    return 1;
}


static int
xet_route_owner(xet_route_cut_t *cut, xet_route_args_t *args)
{
    return xet_route_part(cut, &args->target.owner) && args->target.owner.len;
}


static int
xet_route_rev(xet_route_cut_t *cut, xet_route_args_t *args)
{
    xet_hub_text_t  *rev;

    rev = &args->target.rev;

    if (!xet_route_part(cut, rev) || rev->len == 0) {
        return 0;
    }

    /* no path follows, so any "/" belongs to the revision */

    if (cut->last) {
        rev->len = (size_t) (cut->end - rev->data);
        cut->p = cut->end;
    }

    return 1;
}


static int
xet_route_path(xet_route_cut_t *cut, xet_route_args_t *args)
{
    if (cut->p == cut->end) {
        return 1;
    }

    if (*cut->p != '/') {
        return 0;
    }

    args->target.path.data = cut->p + 1;
    args->target.path.len = (size_t) (cut->end - cut->p) - 1;
    cut->p = cut->end;

    return 1;
}


static int
xet_route_root(xet_route_cut_t *cut, xet_route_args_t *args)
{
    xet_hub_text_t  part;

    (void) args;

    return xet_route_part(cut, &part) && part.len == 0;
}


static int
xet_route_view(xet_route_cut_t *cut, xet_route_args_t *args)
{
    size_t           i;
    xet_hub_text_t   part;

    static const char *const  views[] = {
        "tree", "blob", "commits", "commit", "compare", "settings", "upload",
        "edit"
    };

    (void) args;

    if (!xet_route_part(cut, &part)) {
        return 0;
    }

    for (i = 0; i < sizeof(views) / sizeof(views[0]); i++) {

        if (xet_route_is(&part, views[i], strlen(views[i]))) {
            return 1;
        }
    }

    return 0;
}


static int
xet_route_is(const xet_hub_text_t *part, const char *text, size_t len)
{
    return part->len == len && memcmp(part->data, text, len) == 0;
}


/* Checks the prefix and parses the hash. */

static xet_status_t
xet_route_check(xet_route_args_t *args)
{
    size_t                 i;
    uint8_t                ch;
    const xet_hub_text_t  *prefix;

    prefix = &args->prefix;

    if (prefix->data) {

        if (prefix->len == 0 || prefix->len > XET_SIGN_NS_MAX) {
            return XET_PREFIX;
        }

        for (i = 0; i < prefix->len; i++) {
            ch = prefix->data[i];

            if ((ch < 'a' || ch > 'z') && (ch < 'A' || ch > 'Z')
                && (ch < '0' || ch > '9') && ch != '-' && ch != '_'
                && ch != '.')
            {
                return XET_PREFIX;
            }
        }
    }

    return args->digits.data ? xet_hash_parse(&args->hash, args->digits.data,
                                              args->digits.len)
                             : XET_OK;
}


/* Decodes the name of an owner or a repo, if the path has one. */

static xet_status_t
xet_route_name(xet_hub_text_t *name, uint8_t **room)
{
    if (name->data == NULL) {
        return XET_OK;
    }

    *room = xet_route_decode(name, *room);

    return (*room && xet_hub_name_ok(name->data, name->len)) ? XET_OK
                                                             : XET_HUB_NAME;
}


/*
 * Decodes *text into room and points it there.  Returns the end of the decoded
 * text, or NULL for a malformed escape.
 */

static uint8_t *
xet_route_decode(xet_hub_text_t *text, uint8_t *room)
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
