/* gateway/streams/kept_rules.h - internal to streams: streams whose filters are the kept rules of
 * their subject (front/subject_rules.h). */
#pragma once

#include "gateway/front/subject_rules.h"
#include "gateway/streams/stream.h"

/* The kept rules of a stream. */
struct kept_rules {
    struct stream *stream;
    struct list_node node; /* in streams->kept_streams */
    uint64_t version;
    uint64_t *ids; /* in ascending order; includes rules that the token does not permit */
    size_t count;
};

/* Rules to be given to a stream: those of subject_rules whose ids are above a number. */
struct ready_rules {
    size_t first; /* index in subject_rules.list */
    size_t count;
    struct sl_filter **filters; /* an element is NULL if the token does not permit that rule */
};

/* Parses the rules with ids above `after`, and adds the cost of their filters to `share`. With
 * `is_strict`, a rule that is not permitted is refused. 0: free *ret_ready with ready_rules_done();
 * -EPROTO: *refusal is set; -ENOMEM. */
int ready_rules_read(struct streams *streams, const struct stream_request *request,
                     const struct subject_rules *rules, uint64_t after, bool is_strict,
                     struct filter_share *share, struct ready_rules *ret_ready,
                     struct http_refusal *refusal);
void ready_rules_done(struct ready_rules *ready);

/* From the next event on the stream has exactly these rules; those that it had before are not
 * changed. The cost must be in its share already. On failure the stream ends. */
void kept_rules_put(struct stream *stream, const struct subject_rules *rules,
                    const struct ready_rules *ready);
/* Parses the new rules, and calls kept_rules_put(). */
void kept_rules_follow(struct stream *stream, const struct subject_rules *rules);
/* NULL: out of memory. */
struct kept_rules *kept_rules_new(void);
/* Passes ownership to the stream, which begins now and frees them at its end. */
void kept_rules_join(struct kept_rules *kept, struct stream *stream);
/* NULL is allowed. */
void kept_rules_free(struct kept_rules *kept);

/* --- kept_reading.c --- */

/* A stream that waits for its first rules. It must not get a version older than one that has been
 * reported as complete. */
struct rule_wait {
    struct list_node node; /* in streams->rule_waits */
    const char *holder;
    uint64_t version; /* the current version, if it was reported; 0: unknown */
};

/* Returns how many streams have, or wait for, rules of `holder` older than `version`, and reads the
 * rules for them. */
uint64_t kept_rules_notify(struct streams *streams, const char *holder, uint64_t version);
/* To be called every second: some streams, others each time, check whether their rules are old. */
void kept_rules_check(struct streams *streams);
