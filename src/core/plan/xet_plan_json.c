
/*
 * The bodies of a reconstruction answer in one piece, for those who have the
 * memory: everything is the writer's, its states, rules and errors too.
 */


#include "xet_plan_writer.h"


xet_status_t
xet_plan_json_v1(const xet_plan_t *p, xet_buf_t *b, xet_plan_url_pt url,
    void *ctx)
{
    xet_plan_writer_t  w;

    xet_plan_writer_init(&w, p, XET_PLAN_V1, url, ctx, 1);

    return xet_plan_writer_next(&w, b, SIZE_MAX);
}


xet_status_t
xet_plan_json_v2(const xet_plan_t *p, xet_buf_t *b, xet_plan_url_pt url,
    void *ctx, size_t group)
{
    xet_plan_writer_t  w;

    xet_plan_writer_init(&w, p, XET_PLAN_V2, url, ctx, group);

    return xet_plan_writer_next(&w, b, SIZE_MAX);
}
