/* gateway/serve/token_report.h - sluiced --check-token: explains a token by the settings, without
 * serving. `sluice token check` runs it. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"

/* Reads the token from standard input, ignoring white space around it, and prints the verdict. 0:
 * valid; -EACCES: refused; another errno: the settings are invalid. *reterr is set unless 0 is
 * returned. */
int token_report(const struct config *config, struct failure *reterr);
