/* archive_identity.c - makes the identity of a new archive. */
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "src/archive/archive_backend.h"

void sl_archive_make_identity(char room[static SL_ARCHIVE_IDENTITY_SIZE])
{
    struct hash_key random = hash_key_random();

    snprintf(room, SL_ARCHIVE_IDENTITY_SIZE, "%016" PRIx64 "%016" PRIx64, random.k0, random.k1);
}
