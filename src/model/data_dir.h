/* src/model/data_dir.h - where the embedded Redis of sluiced lives when nobody says otherwise.
 *
 * The gateway creates it, the command line looks for its socket there; one rule serves both:
 * $SLUICE_DATA_DIR; else $XDG_STATE_HOME/sluice; else /var/lib/sluice for root and
 * ~/.local/state/sluice for everyone else. Both programs must find the same folder from wherever
 * they were started: a relative SLUICE_DATA_DIR is refused, a relative XDG_STATE_HOME ignored, as
 * the XDG base directory specification asks. */
#pragma once

#include <stddef.h>

#include "base/export.h"
#include "base/failure.h"

/* The unix socket of the embedded Redis, a file in the data directory. */
#define SL_DATA_DIR_SOCKET "redis.sock"

enum { SL_DATA_DIR_SIZE = 1024 };

/* 0; -EINVAL: SLUICE_DATA_DIR is relative, or the path is too long; -ENOENT: no home
 * directory to go by. */
SL_EXPORT int sl_data_dir(char ret_path[static SL_DATA_DIR_SIZE], struct failure *reterr);
