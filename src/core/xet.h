
/*
 * Includes the whole protocol core.  The core uses neither nginx nor libpq,
 * does no I/O and no logging, and has no global state.  Every object belongs
 * to one thread at a time.
 */

#ifndef _XET_H_INCLUDED_
#define _XET_H_INCLUDED_


#include "xet_base.h"
#include "xet_json.h"
#include "xet_s3xml.h"
#include "xet_history.h"
#include "xet_hash.h"
#include "xet_chunk.h"
#include "xet_xorb.h"
#include "xet_access.h"
#include "xet_plan.h"
#include "xet_shard.h"
#include "xet_ingest.h"
#include "xet_hub.h"
#include "xet_route.h"

/* a module built with XET_ZTENSOR=NO has no ztensor code */

#if (NGX_HTTP_XET_ZTENSOR)
#include "xet_ztensor.h"
#endif


#endif /* _XET_H_INCLUDED_ */
