/* gateway/delivery/lane.h - inside delivery: an outbox and what feeds it.
 *
 * A lane is fed by one subscription (all clients with the same filter share it), by the named
 * rules of one client, or by the home feed of one user. */
#pragma once

#include "gateway/delivery/deliver.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/outbox.h"

struct lane {
    struct outbox outbox;
    struct deliver *deliver;
    char *key; /* under which clients find it; NULL: not shared */
    size_t key_size;
    bool is_subscribed;       /* `subscription` is one */
    uint32_t subscription;    /* of the one filter */
    struct rule_set *rules;   /* or of none, but these */
    struct home_watch watch;  /* or of this feed */
    struct list_node node;    /* of deliver */
    struct list_node touched; /* rules of it have matched the event at hand */
};

/* From now on events that match `filter` go to `lane`; named rules are collected first. 0; -ENOMEM.
 */
int deliver_bind(struct deliver *deliver, struct sl_filter *filter, struct lane *lane,
                 bool *rule_hit, uint32_t *ret_subscription);
void deliver_unbind(struct deliver *deliver, uint32_t subscription);

/* Owes the event to the lane's clients, and evicts them when there is no memory for it. */
void lane_append(struct lane *lane, struct event *event, struct sl_slice tail);

struct rule_set *rule_set_new(struct lane *lane);
void rule_set_free(struct rule_set *rules);
/* Owes the event to the lane with the names of the rules that were hit, and forgets the hits. */
void rule_set_settle(struct rule_set *rules, struct event *event);
