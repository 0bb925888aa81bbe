/* bench/fanout_clients.h - the clients of bench/fanout: they open streams on one server, read them,
 * and check that each gets the posts that are its own, in order and none twice.
 *
 * All of them run in the thread that calls: nothing happens but in clients_open() and
 * clients_turn(). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/fanout_publish.h"
#include "bench/fanout_wire.h"
#include "bench/latencies.h"

struct client_settings {
    uint16_t port;
    bool is_tls; /* whatever the certificate says */
    enum stream_format format;
    const char *path;       /* %d: the number of the client's keyword, or its own */
    bool is_compressed;     /* asks for it, and has to get it */
    const char *header;     /* one line more of the request; NULL: none */
    const char *hello;      /* of WebSocket: what is said first; %d as in the path; NULL: nothing */
    const char *token_file; /* a token a line, dealt out in turn; NULL: none */
    uint32_t count, at_once;
    uint64_t churn; /* handshakes to make and close; 0: streams that stay */
};

struct client_counts {
    _Atomic uint64_t delivered; /* the publisher looks */
    uint64_t bytes, missing, repeated, foreign, unreadable, pongs;
    uint64_t open, refused, closed, handshakes;
    uint64_t first_ns, last_ns; /* of what was delivered */
    struct latencies latencies;
    char complaint[160]; /* the last thing that went wrong */
};

/* Both settings are kept; the counts are the clients' own. */
const struct client_counts *clients_init(const struct client_settings *settings,
                                         const struct publish_settings *publish);

/* Opens all streams, or makes all handshakes. */
void clients_open(void);

/* Does what there is to do, waiting for it up to `wait_ms`. */
void clients_turn(int wait_ms);
void clients_turn_for(uint64_t ms);

/* How many posts those whose streams are open are to get in all. */
uint64_t clients_expected(void);
