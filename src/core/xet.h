
/*
 * The protocol core, whole.  No nginx, no libpq, no I/O, no logging, no
 * global state; every object belongs to one thread at a time.
 */

#ifndef _XET_H_INCLUDED_
#define _XET_H_INCLUDED_


#include "xet_base.h"
#include "xet_json.h"
#include "xet_s3xml.h"
#include "xet_hash.h"
#include "xet_chunk.h"
#include "xet_xorb.h"
#include "xet_access.h"
#include "xet_plan.h"
#include "xet_shard.h"
#include "xet_ingest.h"
#include "xet_hub.h"
#include "xet_route.h"

/* a module that is built with XET_ZTENSOR=NO does not have these */

#if (NGX_HTTP_XET_ZTENSOR)
#include "xet_ztensor.h"
#endif


#endif /* _XET_H_INCLUDED_ */
