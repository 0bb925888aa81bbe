/* filters/language.h - checks language tags and suggests corrections; internal. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Whether `subtag`, the first subtag of a language range, in lower case and of at least two
 * letters, has the form of an ISO 639-3 code or is an ISO 639-1 code. */
bool sl_language_is_known(struct sl_slice subtag);

/* The code of a language given by its English name, or by a common wrong code; NULL: unknown. */
const char *sl_language_meant(struct sl_slice subtag);
