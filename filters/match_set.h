/* filters/match_set.h - the subscriptions that matched an event, each once, in no particular
 * order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"

struct sl_match_set;

SL_EXPORT struct sl_match_set *sl_match_set_new(void);
SL_EXPORT void sl_match_set_free(struct sl_match_set *matches);

SL_EXPORT size_t sl_match_set_count(const struct sl_match_set *matches);
/* sl_match_set_count() subscription numbers; valid until the next match into the same set. */
SL_EXPORT const uint32_t *sl_match_set_subscriptions(const struct sl_match_set *matches);
