/* src/database/revocations.h - tokens that were taken back before their end.
 *
 * A revocation names tokens by what they say of themselves: all that it has must hold of a token.
 * Shard 0 has them, until the time from which on they matter no more. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

struct sl_revocation {
    uint64_t id;                   /* of the event that told it */
    uint64_t before_ms;            /* Unix time: tokens issued before that; 0: whenever */
    uint64_t until_ms;             /* Unix time: it matters so long */
    struct sl_slice sub, jti, kid; /* without data: whatever it is */
};
