/* gateway/metrics/slow_board.h - the slowest clients of all workers, in memory that they share.
 *
 * Each worker writes down now and then which of its clients have waited longest for what they are
 * owed; whoever is asked reads all of it. A reader never sees half of a list: one that is being
 * written, or that a crash left half written, counts as empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/metrics/stream_kind.h"

enum {
    SLOW_CLIENT_LATE_MS = 5000,   /* who is so far behind, and does not catch up */
    SLOW_BOARD_CLIENTS = 10,      /* of a worker, and in what is read */
    SLOW_CLIENT_SUBJECT_SIZE = 65, /* as of a token */
    SLOW_CLIENT_FILTER_BYTES = 120 /* of its filter's words, with the dots of what is left out */
};

struct slow_client {
    char subject[SLOW_CLIENT_SUBJECT_SIZE];
    char filter[SLOW_CLIENT_FILTER_BYTES + 1]; /* what it asks for, in words; empty: not known */
    enum stream_kind stream;
    enum stream_format format;
    unsigned worker; /* set by slow_board_read() */
    bool is_catching_up;
    bool is_late;         /* behind, and does not catch up: see METRIC_STREAMS_LATE */
    uint64_t lag_ms;      /* age of the first event it is owed; or, while catching up, of the newest
                             that it has been given */
    uint64_t owed_events; /* while catching up: about, and whether its filter wants them or not */
    uint64_t owed_bytes;  /* that wait for its socket */
    uint64_t reads;       /* bytes a second */
    uint64_t needs;       /* bytes a second to stay where it is; 0: not known */
    uint64_t late_ms;     /* for how long it has been late */
    uint64_t connected_ms; /* how long its stream stands */
};

/* Those that are late first, and of them the longest lag, at most SLOW_BOARD_CLIENTS of them. */
struct slow_list {
    unsigned count;
    struct slow_client clients[SLOW_BOARD_CLIENTS];
};

/* Puts the client where it belongs: there it is, until the next is added; or leaves it out: NULL. */
struct slow_client *slow_list_add(struct slow_list *list, const struct slow_client *client);

struct slow_board;

/* In memory that fork() shares. NULL: out of memory. */
struct slow_board *slow_board_new(unsigned workers);
void slow_board_free(struct slow_board *board);

void slow_board_write(struct slow_board *board, unsigned worker, const struct slow_list *list);
/* The worker is dead: so are its connections. */
void slow_board_forget_worker(struct slow_board *board, unsigned worker);
/* The slowest of all workers. */
void slow_board_read(const struct slow_board *board, struct slow_list *ret_list);
