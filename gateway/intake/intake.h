/* gateway/intake/intake.h - all of a worker's way from the live channels to events in order.
 *
 * What is heard (subscriber.h; relay.h where an intake process hears for all workers) goes by way
 * of repair.h, event_decode.h and the order over all shards (id_order.h) to whoever delivers it.
 * Rounds (round.h) say how far each shard has been heard, and shard_clocks.h keeps the shards'
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
    struct subscriber_settings hearing; /* its loop, metrics and commands are those of all parts */
    struct broadcast *broadcast;        /* of the intake process; NULL: there is none */
    unsigned worker;                    /* whose seat in it is ours */
    struct log_reader *log;
    struct event_decoder *decoder;
    uint64_t order_wait_ms; /* id_order_settings.wait_ms */
};

struct intake_callbacks {
    /* As in subscriber_callbacks. */
    void (*subscribed)(void *context, const struct sl_meta *meta);
    void (*lost)(void *context, const char *reason);
    void (*heard_again)(void *context, uint32_t shard);

    /* The first of the shard comes after the event `id`. Once for each, before anything else of
     * what follows. */
    void (*begin_shard)(void *context, uint32_t shard, uint64_t id);
    /* As in id_order_callbacks. */
    void (*pass)(void *context, const struct order_item *item);
    void (*watermark)(void *context, uint64_t id);
    /* Only what is at or below `low` has passed of this shard; said again when that has changed. */
    void (*behind)(void *context, uint32_t shard, uint64_t low);
    void (*whole)(void *context, uint32_t shard);
    /* An event of a log that tells which tokens are taken back: as soon as it is heard, for it waits
     * for no other shard. It passes in its turn, too. */
    void (*access)(void *context, const struct event *event);
    /* What has passed in this turn of the loop is all there. */
    void (*turn_end)(void *context);
    /* All shards are heard, and known equally far: a cursor is true of all of them. Comes when
     * hearing begins, if that was so before; else as soon as it is so. */
    void (*complete)(void *context);
};

/* Begins at once; all callbacks come from the loop, or from intake_set_map(). NULL: out of memory.
 */
struct intake *intake_new(const struct intake_settings *settings,
                          const struct intake_callbacks *callbacks, void *context);
/* Hears no more, and passes nothing on of what still waits for its turn. */
void intake_stop(struct intake *intake);
/* After the commands, which answer what is under way, and after intake_stop(). The loop must run
 * once more to let go of the handles. */
void intake_free(struct intake *intake);

/* Of a cluster: who has which shard. */
void intake_set_map(struct intake *intake, const struct sl_cluster_map *map);
