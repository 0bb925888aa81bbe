/* cli/refusal.h - why a server has refused, told to a person.
 *
 *     sluice: refused with status 400: rule: a term is missing at the end: tea OR^; ...
 *         tea OR
 *               ^ */
#pragma once

#include "base/slice.h"
#include "cli/cli.h"

/* What was given for the parameter; NULL: it was not. */
typedef const char *(*refusal_value_fn)(const void *owner, const char *param);

/* Prints to standard error. `answer` is the body of the answer, of any kind. */
void refusal_tell(const struct cli *cli, long status, struct sl_slice answer,
                  refusal_value_fn value_of, const void *owner);
