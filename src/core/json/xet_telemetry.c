
/*
 * What clients report about their transfers.
 *
 * Purpose:    takes from a report the four members that are kept, checks
 *             their types and bounds, and writes the metrics again in one
 *             line, so that nothing reaches the database as it came.
 * States:     none.
 * Ownership:  the result holds the parsed document and the metrics until
 *             xet_telemetry_free(); after an error there is nothing to free.
 * Threads:    any; a report is parsed by one thread.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_json.h"


#define XET_TELEMETRY_DEPTH  8


static xet_status_t xet_telemetry_strings(xet_telemetry_t *t);
static xet_status_t xet_telemetry_metrics(xet_telemetry_t *t);


xet_status_t
xet_telemetry_parse(xet_telemetry_t *t, const uint8_t *text, size_t len)
{
    xet_status_t  rc;

    memset(t, 0, sizeof(xet_telemetry_t));

    if (len > XET_TELEMETRY_MAX) {
        return XET_BODY_SIZE;
    }

    rc = xet_json_parse(&t->doc, text, len, XET_TELEMETRY_DEPTH);

    if (rc != XET_OK) {
        t->doc = NULL;
        return rc;
    }

    rc = xet_telemetry_strings(t);

    if (rc == XET_OK) {
        rc = xet_telemetry_metrics(t);
    }

    if (rc != XET_OK) {
        xet_telemetry_free(t);
    }

    return rc;
}


/* Gets the strings; one stays NULL where the member is absent or null. */

static xet_status_t
xet_telemetry_strings(xet_telemetry_t *t)
{
    size_t   i;
    json_t  *member;

    const struct {
        const char   *name;
        size_t        max;
        const char  **value;
        size_t       *len;
    } strings[] = {
        { "event", XET_TELEMETRY_NAME_MAX, &t->event, &t->event_len },
        { "session_id", XET_TELEMETRY_NAME_MAX, &t->session,
          &t->session_len },
        { "user_agent", XET_TELEMETRY_AGENT_MAX, &t->agent, &t->agent_len },
        { "userAgent", XET_TELEMETRY_AGENT_MAX, &t->agent, &t->agent_len }
    };

    for (i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        member = json_object_get(t->doc, strings[i].name);

        if (*strings[i].value || member == NULL || json_is_null(member)) {
            continue;
        }

        if (!json_is_string(member)) {
            return XET_BODY_SYNTAX;
        }

        if (json_string_length(member) > strings[i].max) {
            return XET_BODY_SIZE;
        }

        *strings[i].value = json_string_value(member);
        *strings[i].len = json_string_length(member);
    }

    return t->event ? XET_OK : XET_BODY_SYNTAX;
}


static xet_status_t
xet_telemetry_metrics(xet_telemetry_t *t)
{
    json_t  *member;

    member = json_object_get(t->doc, "metrics");

    if (member == NULL || json_is_null(member)) {
        return XET_OK;
    }

    if (!json_is_object(member)) {
        return XET_BODY_SYNTAX;
    }

    t->metrics = json_dumps(member, JSON_COMPACT);

    if (t->metrics == NULL) {
        return XET_NOMEM;
    }

    t->metrics_len = strlen(t->metrics);

    return (t->metrics_len > XET_TELEMETRY_METRICS_MAX) ? XET_BODY_SIZE
                                                        : XET_OK;
}


void
xet_telemetry_free(xet_telemetry_t *t)
{
    if (t->doc) {
        json_decref(t->doc);
    }

    free(t->metrics);

    memset(t, 0, sizeof(xet_telemetry_t));
}
