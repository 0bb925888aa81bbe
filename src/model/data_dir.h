/* src/model/data_dir.h - the default directory of sluiced's private Redis.
 *
 * The gateway creates it, and the command line looks for the socket in it. The directory is
 * $SLUICE_DATA_DIR; else $XDG_STATE_HOME/sluice; else /var/lib/sluice for root and
 * ~/.local/state/sluice for other users. Both programs must find the same directory, wherever they
 * were started. Therefore a relative SLUICE_DATA_DIR is refused, and a relative XDG_STATE_HOME is
 * ignored, as the XDG base directory specification requires. */
#pragma once

#include <stddef.h>

#include "base/export.h"
#include "base/failure.h"

/* The Unix socket of the private Redis, a file in the data directory. */
#define SL_DATA_DIR_SOCKET "redis.sock"

enum { SL_DATA_DIR_SIZE = 1024 };

/* 0; -EINVAL: SLUICE_DATA_DIR is relative, or the path is too long; -ENOENT: there is no home
 * directory. */
SL_EXPORT int sl_data_dir(char ret_path[static SL_DATA_DIR_SIZE], struct failure *reterr);
