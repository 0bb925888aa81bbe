/* tests/support/wish.h - what a client of a random history (history.h) wants, and what it wanted
 * when. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/delivery/client.h"
#include "gateway/delivery/rule_set.h"
#include "tests/support/history.h"

enum wish_kind {
    WISH_FILTER, /* always the same words */
    WISH_RULES,  /* words that change */
    WISH_HOME    /* authors, by the relations of the reader */
};

/* What somebody wanted when. */
struct wish {
    enum wish_kind kind;
    size_t count;
    struct {
        uint64_t since; /* `now` */
        unsigned bits;  /* of words or authors */
    } changes[HISTORY_CHANGES];
};

/* WISH_FILTER: all words, or the first one. */
struct wish wish_new(enum wish_kind kind, unsigned words);
/* `*ret_rules` is set for WISH_RULES. */
void wish_subscribe(const struct wish *wish, struct client *client, struct rule_set **ret_rules);
/* From now on it wants these. */
void wish_change(struct wish *wish, unsigned bits);
/* One word more or less. */
void wish_change_rules(struct wish *wish, struct client *client, struct rule_set *rules);
/* The same, or for a home stream, the authors that its reader is shown. */
const struct wish *wish_history(const struct wish *wish);
/* Whether the change was the last one at some point from `from` to `to`. */
bool wish_was_valid(const struct wish *history, size_t change, uint64_t from, uint64_t to);
/* Whether the fact is a post that was wanted after that change. */
bool wish_has(const struct wish *history, size_t change, const struct fact *fact);
/* Whether it was wanted at some point from `from` to `to`, or all the time. */
bool wish_ever(const struct wish *wish, const struct fact *fact, uint64_t from, uint64_t to);
bool wish_always(const struct wish *wish, const struct fact *fact, uint64_t from, uint64_t to);
