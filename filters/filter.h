/* filters/filter.h - one standing filter: checked when made, then never changed.
 *
 * What the members mean is in docs/filters.md, sections 6 to 11. The text of a filter comes from
 * an URL, a form or JSON; this module does not care which. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/slice.h"
#include "filters/event_view.h"
#include "filters/words.h"

struct sl_filter;

/* A filter as its owner wrote it. A slice without data is an absent member. All strings are
 * valid UTF-8 (no lone surrogates, no U+0000). */
struct sl_filter_text {
    struct sl_slice track, follow, locations, rule; /* selectors: any of them may match */
    bool firehose;                                  /* selector: everything */
    bool authors_only; /* `follow` has ids, any bytes but commas and white space: what is by these,
                          and nothing else */
    struct sl_slice language, sample, partition, types; /* restrictors: all of them must match */
    /* `track` is read as by Twitter's Streaming API 1.1: docs/dialects/twitter1.md. */
    bool track_is_verbatim;
};

struct sl_filter_limits {
    uint32_t track;  /* phrases */
    uint32_t follow; /* users */
    uint32_t boxes;
    uint32_t rules;      /* filters a client may hold; whoever holds them counts */
    uint32_t sample_ppm; /* largest sample, in parts per million; whoever grants it checks */
    /* Rules may be anchored by lang: and country:, too: for those to whom it does not matter how
     * many events match, since they are counted, or thinned. */
    bool allows_wide;
};

#define SL_FILTER_LIMITS_DEFAULT ((struct sl_filter_limits){400, 5000, 25, 25, 1000000, false})

enum { SL_FILTER_MESSAGE_SIZE = 384 };

/* Why a filter was refused. */
struct sl_filter_error {
    const char *code;  /* "empty_track", ...; static */
    const char *param; /* the member at fault: "track", ...; NULL: the filter as a whole; static */
    int status;        /* HTTP: 400 or 413 */
    /* Where the fault is in the text of the member: in characters (Unicode code points), from 1,
     * at most one behind the last; 0: it is not at one place. A rule always has one. */
    size_t place;
    /* For humans, without a full stop: valid UTF-8 without control characters, cut off when too
     * long. It shows the item at fault; in a rule, its place, with `^` in front of it. */
    char message[SL_FILTER_MESSAGE_SIZE];
};

enum { SL_FILTER_WARNINGS_MAX = 4, SL_FILTER_LOGINS_MAX = 8, SL_FILTER_LOGIN_SIZE = 64 };

struct sl_filter_login {
    const char *param; /* "follow", "rule" */
    char text[SL_FILTER_LOGIN_SIZE + 1];
};

/* What a filter that is accepted may not have meant. Each code comes once, for the first place. */
struct sl_filter_warnings {
    size_t count;
    struct sl_filter_error list[SL_FILTER_WARNINGS_MAX]; /* status 0 */
    /* The first logins that it names, in normal form; who knows the users may look for them. */
    size_t login_count;
    struct sl_filter_login logins[SL_FILTER_LOGINS_MAX];
};

enum sl_filter_kind {
    SL_FILTER_FIREHOSE = 1, /* asked for by name */
    SL_FILTER_SAMPLE = 2,   /* has sample or partition */
    SL_FILTER_SELECTIVE = 4 /* has track, follow, locations or rule */
};

/* 0; -EINVAL: refused, *reterr says why; -ENOMEM: *reterr untouched. */
SL_EXPORT int sl_filter_new(const struct sl_filter_text *text,
                            const struct sl_filter_limits *limits, struct sl_filter **ret_filter,
                            struct sl_filter_error *reterr);
/* The same; *ret_warnings is filled on success. It costs a little more. */
SL_EXPORT int sl_filter_new_warned(const struct sl_filter_text *text,
                                   const struct sl_filter_limits *limits,
                                   struct sl_filter **ret_filter, struct sl_filter_error *reterr,
                                   struct sl_filter_warnings *ret_warnings);
SL_EXPORT struct sl_filter *sl_filter_ref(struct sl_filter *filter);
SL_EXPORT void sl_filter_unref(struct sl_filter *filter);

/* An OR of enum sl_filter_kind: which permissions it takes. */
SL_EXPORT unsigned sl_filter_kinds(const struct sl_filter *filter);
SL_EXPORT uint32_t sl_filter_sample_ppm(const struct sl_filter *filter); /* 1000000: no sample */
/* A bit per enum sl_event_type: 1 << SL_EVENT_POST, ... */
SL_EXPORT unsigned sl_filter_types(const struct sl_filter *filter);

/* How much of what is limited its text asked for. */
struct sl_filter_sizes {
    uint32_t track, follow, boxes;
};
SL_EXPORT struct sl_filter_sizes sl_filter_sizes(const struct sl_filter *filter);

/* Bytes that are equal for filters that match the same events for the same reasons (same
 * conditions, order of alternatives and letter case aside): what clients may share. Valid as long
 * as the filter. */
SL_EXPORT struct sl_slice sl_filter_key(const struct sl_filter *filter);

/* Does this one filter match? `words` holds what sl_words_read() made of the same `event`.
 * Agrees with the index on everything. Cannot fail. */
SL_EXPORT bool sl_filter_matches(const struct sl_filter *filter, const struct sl_event_view *event,
                                 const struct sl_words *words);
