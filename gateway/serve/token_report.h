/* gateway/serve/token_report.h - sluiced --check-token: what would be said of a token, by the
 * settings, without serving anybody. `sluice token check` runs it. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"

/* Reads the token from standard input, white space around it aside, and prints the verdict. 0: it is
 * good; -EACCES: it is refused; another errno: the settings are wrong. *reterr is set but for 0. */
int token_report(const struct config *config, struct failure *reterr);
