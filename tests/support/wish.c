#include "tests/support/wish.h"

#include "tests/support/cmocka_all.h"
#include "tests/support/reader.h"

struct wish wish_new(enum wish_kind kind, unsigned words)
{
    return (struct wish){.kind = kind, .count = 1, .changes[0].bits = words};
}

static unsigned bits_now(const struct wish *wish)
{
    return wish->changes[wish->count - 1].bits;
}

void wish_change(struct wish *wish, unsigned bits)
{
    assert_true(wish->count < HISTORY_CHANGES);
    wish->changes[wish->count].since = now;
    wish->changes[wish->count++].bits = bits;
}

static struct sl_filter *filter_of(const char *track)
{
    struct sl_filter_text text = {.firehose = !track,
                                  .track = track ? sl_slice_str(track) : SL_SLICE_NONE};
    struct sl_filter_error error;
    struct sl_filter *filter;

    assert_int_equal(sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error), 0);
    return filter;
}

static void put_rule(struct rule_set *rules, unsigned word)
{
    struct sl_filter *filter = filter_of(history_words[word]);

    assert_int_equal(rule_set_put(rules, sl_slice_str(history_words[word]), SL_SLICE_NONE, filter),
                     0);
    sl_filter_unref(filter);
}

void wish_subscribe(const struct wish *wish, struct client *client, struct rule_set **ret_rules)
{
    const unsigned words = bits_now(wish);
    struct sl_filter *filter;

    switch (wish->kind) {
    case WISH_FILTER:
        filter = filter_of(words == 1 ? history_words[0] : NULL);
        assert_int_equal(deliver_subscribe(deliver, client, filter, -1), 0);
        sl_filter_unref(filter);
        break;
    case WISH_RULES:
        assert_int_equal(deliver_subscribe_rules(deliver, client, -1, ret_rules), 0);
        for (unsigned word = 0; word < HISTORY_WORDS; word++) {
            if (words >> word & 1)
                put_rule(*ret_rules, word);
        }
        break;
    case WISH_HOME:
        assert_int_equal(deliver_subscribe_home(deliver, client,
                                                sl_slice_str(history_author(HISTORY_READER)),
                                                1u << SL_EVENT_POST, -1),
                         0);
        break;
    }
}

void wish_change_rules(struct wish *wish, struct client *client, struct rule_set *rules)
{
    unsigned word = (unsigned)below(HISTORY_WORDS), words = bits_now(wish);

    if (words >> word & 1)
        assert_int_equal(rule_set_remove(rules, sl_slice_str(history_words[word])), 0);
    else
        put_rule(rules, word);
    deliver_rules_changed(client);
    wish_change(wish, words ^ 1u << word);
}

const struct wish *wish_history(const struct wish *wish)
{
    return wish->kind == WISH_HOME ? reader_shown() : wish;
}

bool wish_was_valid(const struct wish *history, size_t change, uint64_t from, uint64_t to)
{
    return history->changes[change].since <= to &&
           (change + 1 == history->count || history->changes[change + 1].since > from);
}

bool wish_has(const struct wish *history, size_t change, const struct fact *fact)
{
    unsigned bit = history->kind == WISH_HOME ? fact->author : fact->word;

    return fact->kind == FACT_POST && history->changes[change].bits >> bit & 1;
}

bool wish_ever(const struct wish *wish, const struct fact *fact, uint64_t from, uint64_t to)
{
    const struct wish *history = wish_history(wish);

    for (size_t i = 0; i < history->count; i++) {
        if (wish_was_valid(history, i, from, to) && wish_has(history, i, fact))
            return true;
    }
    return false;
}

bool wish_always(const struct wish *wish, const struct fact *fact, uint64_t from, uint64_t to)
{
    const struct wish *history = wish_history(wish);

    for (size_t i = 0; i < history->count; i++) {
        if (wish_was_valid(history, i, from, to) && !wish_has(history, i, fact))
            return false;
    }
    return true;
}
