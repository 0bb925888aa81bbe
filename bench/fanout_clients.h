/* bench/fanout_clients.h - the clients of bench/fanout: they open streams on one server, read them,
 * and check that each gets its own posts, in order and none twice.
 *
 * All of them run in the calling thread, and only within clients_open() and clients_turn(). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/fanout_publish.h"
#include "bench/fanout_wire.h"
#include "bench/latencies.h"

struct client_settings {
    uint16_t port;
    bool is_tls; /* with any certificate */
    enum stream_format format;
    const char *path;       /* %d: the number of the client's keyword, or of the client */
    bool is_compressed;     /* requests compression, and requires it */
    const char *header;     /* an additional header line of the request; NULL: none */
    const char *hello;      /* first WebSocket message; %d as in the path; NULL: none */
    const char *token_file; /* one token per line, used in turn; NULL: none */
    uint32_t count, at_once;
    uint64_t churn; /* handshakes to make and close; 0: streams that stay */
};

struct client_counts {
    _Atomic uint64_t delivered; /* read by the publisher */
    uint64_t bytes, missing, repeated, foreign, unreadable, pongs;
    uint64_t open, refused, closed, handshakes;
    uint64_t first_ns, last_ns; /* of the deliveries */
    struct latencies latencies;
    char complaint[160]; /* the last error */
};

/* Both pointers to settings must stay valid; the counts belong to the clients. */
const struct client_counts *clients_init(const struct client_settings *settings,
                                         const struct publish_settings *publish);

/* Opens all streams, or makes all handshakes. */
void clients_open(void);

/* Does what is due, waiting for it up to `wait_ms`. */
void clients_turn(int wait_ms);
void clients_turn_for(uint64_t ms);

/* Returns how many posts the clients with open streams are to receive in all. */
uint64_t clients_expected(void);
