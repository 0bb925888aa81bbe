/* gateway/streams/late_answer.h - internal to streams: answers that need the events of the past.
 *
 * The number of answers of a kind in progress is limited, for a subject and for the worker. An
 * answer that makes no progress for LATE_ANSWER_STALL_MS, for example because Redis does not
 * answer, is refused; so are all when the server loses Redis. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/http/http_server.h"
#include "gateway/http/turn.h"
#include "gateway/streams/stream.h"

enum { LATE_ANSWER_STALL_MS = 5000 };

struct late_answer;

struct late_answer_kind {
    const char *code, *what;  /* of the refusal if there are too many */
    unsigned per_holder, max; /* in progress, on a worker */
    /* Prints the body. 0; a negative errno: not possible. */
    int (*print)(struct late_answer *answer, struct buffer *ret_json);
    /* The answer was sent, or the client has left: frees it. */
    void (*done)(struct late_answer *answer);
    /* Any number that changes as long as there is progress. */
    uint64_t (*progress)(const struct late_answer *answer);
};

struct late_answer {
    const struct late_answer_kind *kind;
    struct streams *streams;
    struct http_connection *connection;
    const char *holder; /* the token's subject */
    struct turn_task turn_end;
    struct list_node node; /* in streams->late_answers */
    uint64_t progress, moved_ms;
    bool is_there;
};

/* 0; -EPROTO: *refusal says that there are too many. */
int late_answer_check_room(const struct streams *streams, const struct late_answer_kind *kind,
                           const char *holder, struct http_refusal *refusal);
/* It counts as in progress from now on. Call late_answer_done() if it fails before
 * late_answer_wait(). */
void late_answer_init(struct late_answer *answer, const struct late_answer_kind *kind,
                      struct streams *streams, struct http_connection *connection,
                      const char *holder);
/* To be called by kind->done(). */
void late_answer_done(struct late_answer *answer);
/* The connection waits for the answer. */
void late_answer_wait(struct late_answer *answer);
/* The answer can be printed, or never will be (`is_there` is false): it is sent at the end of the
 * turn. */
void late_answer_end(struct late_answer *answer, bool is_there);

/* To be called regularly: ends those that make no progress. */
void late_answers_check(struct streams *streams);
void late_answers_end_all(struct streams *streams);
