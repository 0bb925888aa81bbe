/* gateway/streams/late_answer.h - inside streams: an answer that takes reading of what has passed.
 *
 * So many of a kind are worked on at a time, for a subject and for all. Who gets no further for
 * LATE_ANSWER_STALL_MS, since Redis does not answer for instance, is told so, and so are all when
 * the server loses Redis. */
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
    const char *code, *what;  /* of the refusal when there are too many: code, and "estimates" */
    unsigned per_holder, max; /* at a time, on a worker */
    /* The body. 0; a negative errno: it cannot be had. */
    int (*print)(struct late_answer *answer, struct buffer *ret_json);
    /* It is answered, or nobody waits for it any more. */
    void (*done)(struct late_answer *answer);
    /* Any number that changes as long as it gets on. */
    uint64_t (*progress)(const struct late_answer *answer);
};

struct late_answer {
    const struct late_answer_kind *kind;
    struct streams *streams;
    struct http_connection *connection;
    const char *holder; /* of the token */
    struct turn_task turn_end;
    struct list_node node; /* of streams */
    uint64_t progress, moved_ms;
    bool is_there;
};

/* 0; -EPROTO: *refusal says too many. */
int late_answer_check_room(const struct streams *streams, const struct late_answer_kind *kind,
                           const char *holder, struct http_refusal *refusal);
/* It counts as one of those from now on. End it with late_answer_done() if it comes to nothing. */
void late_answer_init(struct late_answer *answer, const struct late_answer_kind *kind,
                      struct streams *streams, struct http_connection *connection,
                      const char *holder);
/* For kind->done(). */
void late_answer_done(struct late_answer *answer);
/* The connection waits for it. */
void late_answer_wait(struct late_answer *answer);
/* It can be printed, or (`is_there` false) will never be: at the end of the turn it is answered. */
void late_answer_end(struct late_answer *answer, bool is_there);

/* Now and then: those that get no further end. */
void late_answers_check(struct streams *streams);
void late_answers_end_all(struct streams *streams);
