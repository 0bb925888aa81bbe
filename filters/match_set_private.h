/* filters/match_set_private.h - the inside of a match set, which the index fills; internal. */
#pragma once

#include "filters/match_set.h"

struct sl_match_set {
    uint32_t *subscriptions;
    size_t count, capacity;
};

/* 0; -ENOMEM: unchanged. */
int sl_match_set_add(struct sl_match_set *matches, const uint32_t *subscriptions, size_t count);
