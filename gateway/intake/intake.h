/* gateway/intake/intake.h - a worker's path from the live channels to events in order.
 *
 * What is received (by subscriber.h; by relay.h if an intake process receives for all workers)
 * passes through repair.h, event_decode.h and the order over all shards (id_order.h) to delivery.
 * Rounds (round.h) determine how far each shard was received, and shard_clocks.h keeps the shards'
 * clocks together. Belongs to the thread of its loop. */
#pragma once

#include <stdint.h>

#include "gateway/intake/event_decode.h"
#include "gateway/intake/id_order.h"
#include "gateway/intake/log_reader.h"
#include "gateway/intake/subscriber.h"
#include "src/model/database.h"
#include "src/redis/cluster_map.h"

struct broadcast;
struct intake;

struct intake_settings {
    struct subscriber_settings hearing; /* its loop, metrics and commands are used by all parts */
    struct broadcast *broadcast;        /* of the intake process; NULL: there is none */
    unsigned worker;                    /* our slot in it */
    struct log_reader *log;
    struct event_decoder *decoder;
    uint64_t order_wait_ms; /* id_order_settings.wait_ms */
};

struct intake_callbacks {
    /* As in subscriber_callbacks. */
    void (*subscribed)(void *context, const struct sl_meta *meta);
    void (*lost)(void *context, const char *reason);
    void (*heard_again)(void *context, uint32_t shard);

    /* The events of the shard begin after the event `id`. Called once for each shard, before the
     * following callbacks. */
    void (*begin_shard)(void *context, uint32_t shard, uint64_t id);
    /* As in id_order_callbacks. */
    void (*pass)(void *context, const struct order_item *item);
    void (*watermark)(void *context, uint64_t id);
    /* Only what is at or below `low` has passed of this shard; called again when that changes. */
    void (*behind)(void *context, uint32_t shard, uint64_t low);
    void (*whole)(void *context, uint32_t shard);
    /* A log event about revoked tokens: called as soon as it arrives, without waiting for other
     * shards. It also passes in its turn. */
    void (*access)(void *context, const struct event *event);
    /* Everything that passes in this turn of the loop has passed. */
    void (*turn_end)(void *context);
    /* All shards are received and known equally far, so a cursor holds for all of them. Called at
     * the beginning of the subscription, if that was so before; otherwise as soon as it is so. */
    void (*complete)(void *context);
};

/* Starts at once; all callbacks are called from the loop, or from intake_set_map(). NULL: out of
 * memory. */
struct intake *intake_new(const struct intake_settings *settings,
                          const struct intake_callbacks *callbacks, void *context);
/* Stops receiving, and passes on nothing that still waits. */
void intake_stop(struct intake *intake);
/* Call it after freeing the commands, which answer what is outstanding, and after intake_stop().
 * The loop must run once more to close the handles. */
void intake_free(struct intake *intake);

/* For a cluster: sets which node has which shard. */
void intake_set_map(struct intake *intake, const struct sl_cluster_map *map);
