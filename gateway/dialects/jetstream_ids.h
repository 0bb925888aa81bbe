/* gateway/dialects/jetstream_ids.h - users, events and times as Jetstream names them.
 *
 * All of it is computed from what an event says, so every gateway gives the same names, and the
 * way back needs no memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* A user id that is a DID is itself; of any other, `did:sluice:` and the id, where bytes that a DID
 * cannot have are escaped by %. */
void jetstream_append_did(struct sl_slice user, struct buffer *text);
/* The user whose DID this is, appended. false: it is no DID. */
bool jetstream_append_user(struct sl_slice did, struct buffer *user);

/* A handle is a host name. A login that is one is itself; another that can be part of one, with
 * hyphens for its underscores, stands before `.sluice.invalid`; of any other it is
 * `handle.invalid`, which means that none is known. In lower case. */
void jetstream_append_handle(struct sl_slice login, struct buffer *text);

/* The key of a record that is named by a user: the id, where bytes that a key cannot have are
 * escaped by ~. */
void jetstream_append_key(struct sl_slice user, struct buffer *text);

enum { JETSTREAM_TID_SIZE = 14 }; /* 13 characters and a NUL */

/* A timestamp identifier, of microseconds and ten bits more. Sorted as text they are sorted by id,
 * and each id has its own. */
void jetstream_tid(uint64_t id, char ret_text[static JETSTREAM_TID_SIZE]);

/* A cursor of microseconds: who has this one has come as far as `id`, which is of a database with
 * so many shards. In each millisecond the shards have ranges of their own, one behind the other. Up
 * to 15 of them have room for all their ids; with more, the last few ids that a shard can have in a
 * millisecond have one cursor together. */
uint64_t jetstream_time_us(uint64_t id, uint32_t shards);
/* The id behind which the cursor goes on: the one that has it, or that before the first of them, so
 * that nothing is lost. Of a time that is no event's, the last before it. */
uint64_t jetstream_id_at(uint64_t time_us, uint32_t shards);
