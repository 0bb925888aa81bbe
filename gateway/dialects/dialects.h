/* gateway/dialects/dialects.h - the table of the other services' protocols that sluiced
 * supports. */
#pragma once

#include "gateway/front/dialect.h"

extern dialect_table dialects;

extern const struct dialect twitter1, mastodon, twitter2, jetstream;
