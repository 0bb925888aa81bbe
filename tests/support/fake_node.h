/* tests/support/fake_node.h - a cluster node with prepared answers, on its own port, for any number
 * of connections. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "src/redis/redis_address.h"

enum { FAKE_RULES_MAX = 8, FAKE_ANSWERS_MAX = 16, FAKE_CONNECTIONS_MAX = 8 };

struct fake_node {
    struct sl_redis_endpoint endpoint;

    /* private */
    int listener;
    pthread_t thread;
    struct fake_connection {
        int fd; /* -1: none */
        struct redisReader *reader;
    } connections[FAKE_CONNECTIONS_MAX];
    pthread_mutex_t lock; /* protects the following */
    struct {
        char command[16];
        char *answers[FAKE_ANSWERS_MAX];
        unsigned count, used;
    } rules[FAKE_RULES_MAX];
    unsigned rule_count;
    char seen[4096];
};

void fake_node_start(struct fake_node *node);
void fake_node_stop(struct fake_node *node);

/* Adds an answer to commands that begin with this word; the last one is repeated. `format` as in
 * printf, with the bytes of the protocol. On a command without an answer it closes the
 * connection. */
void fake_node_answers(struct fake_node *node, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Answers CLUSTER commands: `master` has all slots. */
void fake_node_names(struct fake_node *node, const struct fake_node *master);
/* The same up to slot 10922; the slots above, including shard 0, are not assigned. */
void fake_node_names_some(struct fake_node *node, const struct fake_node *master);

/* Writes the first words of the commands received since the last call, each followed by a space. */
void fake_node_seen(struct fake_node *node, char *room, size_t room_size);
