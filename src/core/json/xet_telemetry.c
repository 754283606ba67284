
/*
 * Transfer reports sent by clients.
 *
 * Purpose:    checks a report: its members, their types and their limits.
 * States:     none.
 * Ownership:  xet_telemetry_check() frees the parsed document before it
 *             returns and keeps nothing of the report.
 * Threads:    any.
 */


#include "xet_json.h"


#define XET_TELEMETRY_DEPTH  8


static xet_status_t xet_telemetry_strings(const json_t *doc);
static xet_status_t xet_telemetry_metrics(const json_t *doc);


xet_status_t
xet_telemetry_check(const uint8_t *text, size_t len)
{
    json_t        *doc;
    xet_status_t   rc;

    if (len > XET_TELEMETRY_MAX) {
        return XET_BODY_SIZE;
    }

    rc = xet_json_parse(&doc, text, len, XET_TELEMETRY_DEPTH);

    if (rc != XET_OK) {
        return rc;
    }

    rc = xet_telemetry_strings(doc);

    if (rc == XET_OK) {
        rc = xet_telemetry_metrics(doc);
    }

    json_decref(doc);

    return rc;
}


/* Checks the strings: "event" is required; others may be absent or null. */

static xet_status_t
xet_telemetry_strings(const json_t *doc)
{
    size_t   i;
    json_t  *member;

    static const struct {
        const char  *name;
        size_t       max;
    } strings[] = {
        { "event", XET_TELEMETRY_NAME_MAX },
        { "session_id", XET_TELEMETRY_NAME_MAX },
        { "user_agent", XET_TELEMETRY_AGENT_MAX },
        { "userAgent", XET_TELEMETRY_AGENT_MAX }
    };

    for (i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        member = json_object_get(doc, strings[i].name);

        if (i > 0 && (member == NULL || json_is_null(member))) {
            continue;
        }

        if (!json_is_string(member)) {
            return XET_BODY_SYNTAX;
        }

        if (json_string_length(member) > strings[i].max) {
            return XET_BODY_SIZE;
        }
    }

    return XET_OK;
}


/* Checks the size of the metrics as compact JSON. */

static xet_status_t
xet_telemetry_metrics(const json_t *doc)
{
    json_t  *member;

    member = json_object_get(doc, "metrics");

    if (member == NULL || json_is_null(member)) {
        return XET_OK;
    }

    if (!json_is_object(member)) {
        return XET_BODY_SYNTAX;
    }

    return (json_dumpb(member, NULL, 0, JSON_COMPACT)
            > XET_TELEMETRY_METRICS_MAX) ? XET_BODY_SIZE : XET_OK;
}
