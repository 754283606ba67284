
/*
 * The statements that a session prepares when it connects.  Each is one call
 * of a function of sql/functions.sql, under the function's name, binary both
 * ways.  Those of a name with "_all" are for stores without repos: a NULL that
 * PostgreSQL knows when it plans takes the conditions on repos out of the
 * plan, where a parameter leaves them, and a third more work for a file.
 */

#include "ngx_http_xet_query_stmt.h"


#define NGX_HTTP_XET_BATCH_PARAMS                                             \
    "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15"


const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[] = {

    { "file_terms",
      "SELECT size, first_offset, packed FROM xet.file_terms($1, $2, $3, $4)",
      4 },

    { "file_terms_all",
      "SELECT size, first_offset, packed"
      "  FROM xet.file_terms($1, $2, $3, NULL)",
      3 },

    { "file_open",
      "SELECT size, sha256, first_offset, packed"
      "  FROM xet.file_open($1, $2, $3)",
      3 },

    { "file_open_all",
      "SELECT size, sha256, first_offset, packed"
      "  FROM xet.file_open($1, $2, NULL)",
      2 },

    { "files_terms",
      "SELECT n, size, first_offset, packed"
      "  FROM xet.files_terms($1, $2, $3, $4)",
      4 },

    { "files_terms_all",
      "SELECT n, size, first_offset, packed"
      "  FROM xet.files_terms($1, $2, $3, NULL)",
      3 },

    { "xorb_slices",
      "SELECT chunk_count, hashes, raw_ends, stored_ends, tag, stored_size,"
      "       whole FROM xet.xorb_slices($1, $2, $3, $4)",
      4 },

    { "shard_slices",
      "SELECT chunk_count, hashes, raw_ends, stored_ends, tag, stored_size,"
      "       whole, own FROM xet.shard_slices($1, $2, $3, $4, $5, $6, $7)",
      7 },

    { "xorb_put",
      "SELECT the_tag, the_size, the_digest, whole, news"
      "  FROM xet.xorb_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
      11 },

    { "xorb_heal",
      "SELECT the_tag, the_size, the_digest, whole, false"
      "  FROM xet.xorb_heal($1, $2, $3, $4, $5, $6)",
      6 },

    { "xorb_damaged",
      "SELECT xet.xorb_damaged($1, $2)",
      2 },

    { "shard_doubts",
      "SELECT hash, tag, stored_size, file, xorb"
      "  FROM xet.shard_doubts($1, $2, $3, $4)",
      4 },

    { "xorb_get",
      "SELECT stored_size, tag, whole FROM xet.xorb_get($1, $2, $3)",
      3 },

    { "xorb_grant",
      "SELECT stored_size, tag, whole, noted"
      "  FROM xet.xorb_grant($1, $2, $3, $4)",
      4 },

    { "chunk_find",
      "SELECT hash, chunk_count, raw_size, stored_size, hashes, raw_ends,"
      "       noted, tag, seen FROM xet.chunk_find($1, $2, $3, $4)",
      4 },

    { "xorb_advertised",
      "SELECT xet.xorb_advertised($1)",
      1 },

    { "shard_stage",
      "SELECT xet.shard_stage(" NGX_HTTP_XET_BATCH_PARAMS ")",
      15 },

    { "shard_put",
      "SELECT xet.shard_put(" NGX_HTTP_XET_BATCH_PARAMS ", $16, $17)",
      17 },

    { "file_prove",
      "SELECT xet.file_prove($1, $2)",
      2 },

    { "repo_forget",
      "SELECT xet.repo_forget($1, $2)",
      2 },

    { "shard_unstage",
      "SELECT xet.shard_unstage($1)",
      1 },

    { "telemetry_put",
      "SELECT xet.telemetry_put($1, $2, $3, $4)",
      4 },

    { "zt_get",
      "SELECT verdict, attributes FROM xet.zt_get($1, $2, $3)",
      3 },

    { "zt_put",
      "SELECT xet.zt_put($1, $2, $3, $4)",
      4 },

    { "zt_reports_get",
      "SELECT object, report FROM xet.zt_reports_get($1, $2, $3, $4)",
      4 },

    { "zt_reports_put",
      "SELECT xet.zt_reports_put($1, $2, $3, $4)",
      4 },

    { "sweep",
      "SELECT xet.sweep()",
      0 },

    { "ping",
      "SELECT 1",
      0 },

    { NULL, NULL, 0 }
};
