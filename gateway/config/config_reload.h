/* gateway/config/config_reload.h - the settings once more, while everything runs: SIGHUP.
 *
 * The parent and each worker read for themselves what they began with: the same command line and
 * environment, and the file as it is now. The parent goes first; what it refuses the workers are
 * not asked to read. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "gateway/config/config.h"

/* Brings `config` up to date, in place: those settings that can change (keys, certificates,
 * origins, limits of streams, the log; sluiced(8) lists them) are what the sources say now, level
 * and form of the log included. Everything that was handed out of `config` before is void. Where
 * another setting differs its name is appended to *ret_left, behind a comma and a space; that takes
 * a restart or a takeover. 0; a negative errno: *reterr says why, and nothing has changed. */
int config_reload(struct config *config, struct buffer *ret_left, struct failure *reterr);
