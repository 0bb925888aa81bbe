/* filters/filter.h - filters: checked when created, immutable afterwards.
 *
 * The members are explained in docs/filters.md, sections 6 to 11. The text of a filter may come
 * from a URL, a form or JSON. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/slice.h"
#include "filters/event_view.h"
#include "filters/words.h"

struct sl_filter;

/* A filter as its owner wrote it. A slice without data is an absent member. All strings must be
 * valid UTF-8 without U+0000. */
struct sl_filter_text {
    struct sl_slice track, follow, locations, rule; /* selectors: at least one of them must match */
    bool firehose;                                  /* selector: everything */
    bool authors_only; /* `follow` has ids, of any bytes but commas and white space, and selects
                          only what is by these users */
    struct sl_slice language, sample, partition, types; /* restrictors: all of them must match */
    /* Parse `track` like Twitter's Streaming API 1.1: docs/dialects/twitter1.md. */
    bool track_is_verbatim;
};

struct sl_filter_limits {
    uint32_t track;  /* phrases */
    uint32_t follow; /* users */
    uint32_t boxes;
    uint32_t rules;      /* filters of a client; counted by their owner */
    uint32_t sample_ppm; /* largest sample, in parts per million; checked by whoever grants it */
    /* Rules may also be anchored by lang: and country:. For uses where many matching events are no
     * problem, because they are only counted or thinned out. */
    bool allows_wide;
};

#define SL_FILTER_LIMITS_DEFAULT ((struct sl_filter_limits){400, 5000, 25, 25, 1000000, false})

enum { SL_FILTER_MESSAGE_SIZE = 384 };

/* Why a filter was refused. */
struct sl_filter_error {
    const char *code;  /* "empty_track", ...; static */
    const char *param; /* the wrong member: "track", ...; NULL: the filter as a whole; static */
    int status;        /* HTTP status: 400 or 413 */
    /* The position of the error in the text of the member, in characters (Unicode code points) from
     * 1, at most one after the last; 0: the error has no position. An error in a rule always has
     * one. */
    size_t place;
    /* For humans, without a full stop: valid UTF-8 without control characters, truncated if too
     * long. It shows the wrong item; for a rule, the surrounding text with `^` before the
     * position. */
    char message[SL_FILTER_MESSAGE_SIZE];
};

enum { SL_FILTER_WARNINGS_MAX = 4, SL_FILTER_LOGINS_MAX = 8, SL_FILTER_LOGIN_SIZE = 64 };

struct sl_filter_login {
    const char *param; /* "follow", "rule" */
    char text[SL_FILTER_LOGIN_SIZE + 1];
};

/* Hints that an accepted filter may not mean what its owner intended. Each code occurs once, for
 * its first position. */
struct sl_filter_warnings {
    size_t count;
    struct sl_filter_error list[SL_FILTER_WARNINGS_MAX]; /* status 0 */
    /* The first logins named in the filter, in normal form; a caller with access to the users may
     * check that they exist. */
    size_t login_count;
    struct sl_filter_login logins[SL_FILTER_LOGINS_MAX];
};

enum sl_filter_kind {
    SL_FILTER_FIREHOSE = 1, /* has firehose */
    SL_FILTER_SAMPLE = 2,   /* has sample or partition */
    SL_FILTER_SELECTIVE = 4 /* has track, follow, locations or rule */
};

/* 0; -EINVAL: refused, *reterr says why; -ENOMEM: *reterr is unchanged. */
SL_EXPORT int sl_filter_new(const struct sl_filter_text *text,
                            const struct sl_filter_limits *limits, struct sl_filter **ret_filter,
                            struct sl_filter_error *reterr);
/* The same; also fills *ret_warnings on success. This is slightly more expensive. */
SL_EXPORT int sl_filter_new_warned(const struct sl_filter_text *text,
                                   const struct sl_filter_limits *limits,
                                   struct sl_filter **ret_filter, struct sl_filter_error *reterr,
                                   struct sl_filter_warnings *ret_warnings);
SL_EXPORT struct sl_filter *sl_filter_ref(struct sl_filter *filter);
SL_EXPORT void sl_filter_unref(struct sl_filter *filter);

/* An OR of enum sl_filter_kind, which decides the permissions needed. */
SL_EXPORT unsigned sl_filter_kinds(const struct sl_filter *filter);
SL_EXPORT uint32_t sl_filter_sample_ppm(const struct sl_filter *filter); /* 1000000: no sample */
/* A bit for each enum sl_event_type: 1 << SL_EVENT_POST, ... */
SL_EXPORT unsigned sl_filter_types(const struct sl_filter *filter);

/* How much the text uses of what is limited. */
struct sl_filter_sizes {
    uint32_t track, follow, boxes;
};
SL_EXPORT struct sl_filter_sizes sl_filter_sizes(const struct sl_filter *filter);

/* Bytes that are equal for filters that match the same events for the same reasons, apart from the
 * order of alternatives and letter case. Clients with equal keys can share a filter. Valid as long
 * as the filter. */
SL_EXPORT struct sl_slice sl_filter_key(const struct sl_filter *filter);

/* Whether the filter matches. `words` must have been read by sl_words_read() from the same `event`.
 * Always agrees with the index. Cannot fail. */
SL_EXPORT bool sl_filter_matches(const struct sl_filter *filter, const struct sl_event_view *event,
                                 const struct sl_words *words);
