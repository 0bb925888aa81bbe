/* cli/refusal.h - prints why a server has refused a request.
 *
 *     sluice: refused with status 400: --rule: a term is missing at the end: tea OR^; ...
 *         tea OR
 *               ^ */
#pragma once

#include "base/slice.h"
#include "cli/cli.h"

/* Returns the given value of the parameter; NULL: it was not given. If an option sets the
 * parameter, *ret_option is its name without hyphens. */
typedef const char *(*refusal_value_fn)(const void *owner, const char *param,
                                        const char **ret_option);

/* Prints to standard error. `answer` is the body of any kind of answer. */
void refusal_tell(const struct cli *cli, long status, struct sl_slice answer,
                  refusal_value_fn value_of, const void *owner);
