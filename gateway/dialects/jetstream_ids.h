/* gateway/dialects/jetstream_ids.h - converts users, events and times to the identifiers of
 * Jetstream.
 *
 * All conversions only use the event, so every gateway computes the same identifiers, and nothing
 * is stored to convert them back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* A user id that is a DID is used as it is; any other becomes `did:sluice:` and the id, in which
 * bytes that a DID cannot contain are percent-encoded. */
void jetstream_append_did(struct sl_slice user, struct buffer *text);
/* Appends the id of the user with this DID. false: not a DID. */
bool jetstream_append_user(struct sl_slice did, struct buffer *user);

/* A handle is a host name. A login that is a host name is used as it is. Another login that can be
 * a label of one, with hyphens instead of underscores, is put before `.sluice.invalid`. For other
 * logins the handle is `handle.invalid`, which means that none is known. All in lower case. */
void jetstream_append_handle(struct sl_slice login, struct buffer *text);

/* The record key that stands for a user: the id, in which bytes that a key cannot contain are
 * escaped with ~. */
void jetstream_append_key(struct sl_slice user, struct buffer *text);

enum { JETSTREAM_TID_SIZE = 14 }; /* 13 characters and the terminating NUL */

/* The timestamp identifier (TID) of an id: microseconds and ten further bits. It is unique for each
 * id, and TIDs sort like ids. */
void jetstream_tid(uint64_t id, char ret_text[static JETSTREAM_TID_SIZE]);

/* The cursor, in microseconds, of a client that has reached `id`, in a database with this number of
 * shards. Each millisecond is divided into consecutive ranges for the shards. With up to 15 shards
 * every id has its own cursor; with more, the last few possible ids of a shard in a millisecond
 * share one. */
uint64_t jetstream_time_us(uint64_t id, uint32_t shards);
/* The id after which a client with this cursor continues: the id of the cursor, or the id before
 * the first of those that share it, so that nothing is lost. For the time of no event, the last
 * possible id before it. */
uint64_t jetstream_id_at(uint64_t time_us, uint32_t shards);
