/* filters/language.h - is that the tag of a language, and which one was meant if not? Internal. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* `subtag`, in lower case and of at least two letters: the first of a language range. Has it the
 * form of a code of ISO 639-3, or is it one of 639-1? */
bool sl_language_is_known(struct sl_slice subtag);

/* The code of a language that was named in English, or by what is often taken for its code; NULL.
 */
const char *sl_language_meant(struct sl_slice subtag);
