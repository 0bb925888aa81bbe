/* gateway/metrics/slow_board.h - the slowest clients of all workers, in shared memory.
 *
 * Each worker regularly publishes which of its clients have waited longest for what they are owed;
 * readers combine the lists of all. A list that is being written, or that a crash left half
 * written, counts as empty, so a reader never sees a partial one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/metrics/stream_kind.h"

enum {
    SLOW_CLIENT_LATE_MS = 5000,    /* a client is late if it is this far behind and does not catch
                                      up */
    SLOW_BOARD_CLIENTS = 10,       /* of a worker, and of the combined list */
    SLOW_CLIENT_SUBJECT_SIZE = 65, /* as of a token */
    SLOW_CLIENT_FILTER_BYTES = 120 /* of the description of its filter, including "..." if it was
                                      cut */
};

struct slow_client {
    char subject[SLOW_CLIENT_SUBJECT_SIZE];
    char filter[SLOW_CLIENT_FILTER_BYTES + 1]; /* description of its filter; empty: not known */
    enum stream_kind stream;
    enum stream_format format;
    unsigned worker; /* set by slow_board_read() */
    bool is_catching_up;
    bool is_late;         /* behind, and not catching up: see METRIC_STREAMS_LATE */
    uint64_t lag_ms;      /* age of the first event it is owed; while catching up, of the newest
                             event that it has been given */
    uint64_t owed_events; /* while catching up: estimated, including events that its filter does not
                             match */
    uint64_t owed_bytes;  /* waiting for its socket */
    uint64_t reads;       /* bytes per second */
    uint64_t needs;       /* bytes per second that it must read not to fall further behind; 0: not
                             known */
    uint64_t late_ms;     /* for how long it has been late */
    uint64_t connected_ms; /* age of its stream */
};

/* Late clients first, then by the longest lag; at most SLOW_BOARD_CLIENTS. */
struct slow_list {
    unsigned count;
    struct slow_client clients[SLOW_BOARD_CLIENTS];
};

/* Inserts the client at its position, and returns it, valid until the next call; NULL: left out. */
struct slow_client *slow_list_add(struct slow_list *list, const struct slow_client *client);

struct slow_board;

/* In memory that fork() shares. NULL: out of memory. */
struct slow_board *slow_board_new(unsigned workers);
void slow_board_free(struct slow_board *board);

void slow_board_write(struct slow_board *board, unsigned worker, const struct slow_list *list);
/* The worker has died, and its connections with it. */
void slow_board_forget_worker(struct slow_board *board, unsigned worker);
/* Combines the lists of all workers. */
void slow_board_read(const struct slow_board *board, struct slow_list *ret_list);
