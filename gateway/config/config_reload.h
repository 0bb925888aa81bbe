/* gateway/config/config_reload.h - reloads the settings at runtime, on SIGHUP.
 *
 * The parent and each worker read their original sources again: the same command line and
 * environment, and the file as it is now. The parent does so first; if it refuses the settings, the
 * workers are not told to read them. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "gateway/config/config.h"

/* Updates `config` in place: the settings that can change (keys, certificates, origins, limits of
 * streams, the log; listed in sluiced(8)) get the values of their sources, including level and
 * format of the log. All pointers obtained from `config` before become invalid. The name of any
 * other setting that differs is appended to *ret_left, after a comma and a space; it needs a
 * restart or a takeover. 0; a negative errno: *reterr says why, and nothing has changed. */
int config_reload(struct config *config, struct buffer *ret_left, struct failure *reterr);
