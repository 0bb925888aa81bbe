#include "gateway/dialects/dialects.h"

dialect_table dialects = {
    [DIALECT_TWITTER1] = &twitter1,
    [DIALECT_MASTODON] = &mastodon,
    [DIALECT_TWITTER2] = &twitter2,
    [DIALECT_JETSTREAM] = &jetstream,
};
