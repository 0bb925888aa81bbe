/* gateway/access/revocation_list.h - keeps a worker's set of revocations equal to the list in
 * Redis.
 *
 * The list is read when the live channels are first received, and whenever events may have been
 * lost; in between, events change the set at once. Until the first reading has succeeded, tokens
 * cannot be checked and nobody should be admitted. This must not last for ever: after
 * REVOCATION_TIMEOUT_MS the set is declared known all the same, and that is counted. Belongs to
 * the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/front/token.h"
#include "gateway/intake/event.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

enum { REVOCATION_TIMEOUT_MS = 5000, REVOCATION_RETRY_MS = 200, REVOCATION_PAGE = 1000 };

struct revocation_list;

struct revocation_list_settings {
    uv_loop_t *loop;
    struct redis_commands *commands;
    struct metrics *metrics;
    /* Tokens that were valid may be revoked now. */
    void (*changed)(void *context);
    /* Whether all revocations are known has changed; initially they are not. */
    void (*known)(void *context, bool is_known);
    void *context;
};

/* NULL: out of memory. */
struct revocation_list *revocation_list_new(const struct revocation_list_settings *settings);
/* Must be called after freeing the commands, which ends outstanding requests. The loop must run
 * once more. */
void revocation_list_free(struct revocation_list *list);

/* The live channels are received from now on; what was missed before is unknown. */
void revocation_list_begin(struct revocation_list *list);
/* Events may have been lost: reads the list again, without calling known(). */
void revocation_list_read(struct revocation_list *list);
/* The live channels are no longer received, but clients are still served: reads the list again and
 * again. */
void revocation_list_poll(struct revocation_list *list, uint32_t every_ms);
/* Applies an event about revocations. */
void revocation_list_take(struct revocation_list *list, const struct event *event);

/* A token_revoked_fn; `context` is the list. */
bool revocation_list_has(void *context, const struct token *token, uint64_t now_ms);
