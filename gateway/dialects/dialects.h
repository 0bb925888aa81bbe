/* gateway/dialects/dialects.h - the protocols of other services that sluiced can speak. */
#pragma once

#include "gateway/front/dialect.h"

extern dialect_table dialects;

extern const struct dialect twitter1, mastodon, twitter2, jetstream;
