/* gateway/access/revocation_list.h - keeps a worker's set of revocations as Redis has it.
 *
 * The list is read when hearing begins, and whenever something of the log was lost; meanwhile the
 * events that are heard count at once. Until it has been read for the first time after hearing
 * began it is not known who may come in: for so long nobody should, but not for ever, so after
 * REVOCATION_PATIENCE_MS it is said that it is known all the same, and that is counted. Belongs to
 * the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/front/token.h"
#include "gateway/intake/event.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

enum { REVOCATION_PATIENCE_MS = 5000, REVOCATION_RETRY_MS = 200, REVOCATION_PAGE = 1000 };

struct revocation_list;

struct revocation_list_settings {
    uv_loop_t *loop;
    struct redis_commands *commands;
    struct metrics *metrics;
    /* Tokens that were good may be no more. */
    void (*changed)(void *context);
    /* As revocation_list_is_known() is now. */
    void (*known)(void *context, bool is_known);
    void *context;
};

/* NULL: out of memory. */
struct revocation_list *revocation_list_new(const struct revocation_list_settings *settings);
/* After the commands, which answer what is under way. The loop must run once more. */
void revocation_list_free(struct revocation_list *list);

/* Hearing begins: it is not known what has been missed. */
void revocation_list_begin(struct revocation_list *list);
/* Something was missed: reads it anew; it is as known as it was. */
void revocation_list_read(struct revocation_list *list);
/* Nothing is heard any more, and whoever is here still is served: it is read again and again. */
void revocation_list_poll(struct revocation_list *list, uint32_t every_ms);
/* An event about access that was heard. */
void revocation_list_take(struct revocation_list *list, const struct event *event);

bool revocation_list_is_known(const struct revocation_list *list);
/* A token_revoked_fn; `context` is the list. */
bool revocation_list_has(void *context, const struct token *token, uint64_t now_ms);
