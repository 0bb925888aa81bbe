/* gateway/config/config_reload.h - reloads the settings at runtime, on SIGHUP.
 *
 * The parent and each worker read their original sources again: the same command line and
 * environment, and the file as it is now. The parent does so first, at once, and checks the files
 * that the settings name; if it refuses them, the workers are not told to read them. A worker reads
 * in another thread, and applies on its loop:
 *
 *     config_reload_read(config, &fresh, &why);          in any thread, while `config` is in use
 *     config_reload_merge(config, fresh, &merged);       to read the files that it names
 *     config_reload_apply_take(config, fresh, NULL);     on the loop
 */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "gateway/config/config.h"

/* Reads the sources of `config` again, but no files that the settings name. 0; a negative errno:
 * *reterr says why. */
int config_reload_read(const struct config *config, struct config **ret_fresh,
                       struct failure *reterr);

/* The settings as they will be, which borrow from both. */
void config_reload_merge(const struct config *config, const struct config *fresh,
                         struct config *ret_merged);

/* Updates `config` in place: the settings that can change (keys, certificates, origins, limits of
 * streams, the log; listed in sluiced(8)) get the values of `fresh`, including level and format of
 * the log. All pointers obtained from `config` before become invalid. The name of any other setting
 * that differs is appended to *ret_left, unless that is NULL, after a comma and a space; it needs a
 * restart or a takeover. */
void config_reload_apply_take(struct config *config, struct config *fresh, struct buffer *ret_left);

/* All at once, if the files are valid, too. 0; a negative errno: *reterr says why, and nothing has
 * changed. */
int config_reload(struct config *config, struct buffer *ret_left, struct failure *reterr);
