/* gateway/streams/kept_rules.h - inside streams: streams whose filters are the rules that their
 * subject keeps (front/subject_rules.h). */
#pragma once

#include "gateway/front/subject_rules.h"
#include "gateway/streams/stream.h"

/* What a stream has of them. */
struct kept_rules {
    struct stream *stream;
    struct list_node node; /* in streams->kept_streams */
    uint64_t version;
    uint64_t *ids; /* in order; also of those that its token does not permit */
    size_t count;
};

/* Rules that are to be given to a stream: those of subject_rules whose ids are above a number. */
struct ready_rules {
    size_t first; /* in subject_rules.list */
    size_t count;
    struct sl_filter **filters; /* NULL: the token does not permit it */
};

/* Reads rules with ids above `after`, and takes what their filters cost into `share`. With
 * `is_strict`, one that is not permitted is refused. 0: end *ret_ready with ready_rules_done();
 * -EPROTO: *refusal; -ENOMEM. */
int ready_rules_read(struct streams *streams, const struct stream_request *request,
                     const struct subject_rules *rules, uint64_t after, bool is_strict,
                     struct filter_share *share, struct ready_rules *ret_ready,
                     struct http_refusal *refusal);
void ready_rules_done(struct ready_rules *ready);

/* From the next event on the stream, whose share has what that costs, has these rules and no
 * others: those that were there and still are stay as they are. On failure it ends. */
void kept_rules_put(struct stream *stream, const struct subject_rules *rules,
                    const struct ready_rules *ready);
/* Reads what is new, and puts it. */
void kept_rules_follow(struct stream *stream, const struct subject_rules *rules);
/* NULL: out of memory. */
struct kept_rules *kept_rules_new(void);
/* They are the stream's from now on, which begins; it frees them when it has ended. */
void kept_rules_join(struct kept_rules *kept, struct stream *stream);
/* NULL is none. */
void kept_rules_free(struct kept_rules *kept);

/* --- kept_reading.c --- */

/* Who waits for rules to begin with: not with older ones than somebody has been told are there. */
struct rule_wait {
    struct list_node node; /* in streams->rule_waits */
    const char *holder;
    uint64_t version; /* that there is by now; 0: nothing has been said of it */
};

/* How many streams have older rules of `holder` than those of `version`, or wait for theirs: they
 * are read for them. */
uint64_t kept_rules_reach(struct streams *streams, const char *holder, uint64_t version);
/* Every second: some of the streams ask, each time others, whether theirs are old. */
void kept_rules_check(struct streams *streams);
