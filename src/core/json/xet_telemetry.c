
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

#include "xet_json_parse.h"
#include "xet_telemetry.h"


#define XET_TELEMETRY_DEPTH  8


static xet_status_t xet_telemetry_string(const xet_telemetry_t *t,
    const char *name, size_t max, const char **value, size_t *len);
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

    rc = xet_telemetry_string(t, "event", XET_TELEMETRY_NAME_MAX, &t->event,
                              &t->event_len);

    if (rc == XET_OK && t->event == NULL) {
        rc = XET_BODY_SYNTAX;
    }

    if (rc == XET_OK) {
        rc = xet_telemetry_string(t, "session_id", XET_TELEMETRY_NAME_MAX,
                                  &t->session, &t->session_len);
    }

    if (rc == XET_OK) {
        rc = xet_telemetry_string(t, "user_agent", XET_TELEMETRY_AGENT_MAX,
                                  &t->agent, &t->agent_len);
    }

    if (rc == XET_OK && t->agent == NULL) {
        rc = xet_telemetry_string(t, "userAgent", XET_TELEMETRY_AGENT_MAX,
                                  &t->agent, &t->agent_len);
    }

    if (rc == XET_OK) {
        rc = xet_telemetry_metrics(t);
    }

    if (rc != XET_OK) {
        xet_telemetry_free(t);
    }

    return rc;
}


/* Gets a string; *value stays NULL where the member is absent or null. */

static xet_status_t
xet_telemetry_string(const xet_telemetry_t *t, const char *name, size_t max,
    const char **value, size_t *len)
{
    json_t  *member;

    member = json_object_get(t->doc, name);

    if (member == NULL || json_is_null(member)) {
        return XET_OK;
    }

    if (!json_is_string(member)) {
        return XET_BODY_SYNTAX;
    }

    if (json_string_length(member) > max) {
        return XET_BODY_SIZE;
    }

    *value = json_string_value(member);
    *len = json_string_length(member);

    return XET_OK;
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
