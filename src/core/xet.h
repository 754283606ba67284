
/*
 * The protocol core, whole.  No nginx, no libpq, no I/O, no logging, no
 * global state; every object belongs to one thread at a time.
 */

#ifndef _XET_H_INCLUDED_
#define _XET_H_INCLUDED_


#include "xet_status.h"
#include "xet_bytes.h"
#include "xet_buf.h"
#include "xet_json.h"
#include "xet_range.h"
#include "xet_accept.h"
#include "xet_digest.h"
#include "xet_etag.h"
#include "xet_filename.h"
#include "xet_telemetry.h"
#include "xet_suite.h"
#include "xet_hash.h"
#include "xet_checksum.h"
#include "xet_merkle.h"
#include "xet_chunker.h"
#include "xet_codec.h"
#include "xet_term.h"
#include "xet_seen.h"
#include "xet_xorb.h"
#include "xet_shard.h"
#include "xet_plan.h"
#include "xet_plan_spool.h"
#include "xet_plan_writer.h"
#include "xet_subtree.h"
#include "xet_windows.h"
#include "xet_ingest.h"
#include "xet_cursor.h"
#include "xet_sign.h"
#include "xet_jwk_set.h"
#include "xet_token.h"
#include "xet_bucket.h"

/* a module that is built with XET_ZTENSOR=NO does not have these */

#if (NGX_HTTP_XET_ZTENSOR)
#include "xet_ztensor.h"
#endif


#endif /* _XET_H_INCLUDED_ */
