/* gateway/config/config_files.h - are the files that the settings name there, and what they should
 * be?
 *
 * Every worker reads them for itself. This is asked before there are any, so that a wrong one is
 * told once and together with its option. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"

/* Secret, public keys, certificate and its key. 0; a negative errno: *reterr names the setting. */
int config_check_files(const struct config *config, struct failure *reterr);
