/* gateway/config/config_files.h - checks the files that the settings name.
 *
 * Every worker reads them itself. They are checked before there are any workers, so that an error
 * is reported once and with its option. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"

/* Checks secret, public keys, certificate and its key. 0; a negative errno: *reterr names the
 * setting. */
int config_check_files(const struct config *config, struct failure *reterr);
