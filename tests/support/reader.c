#include "tests/support/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/delivery/home_parts.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/wish.h"

enum reader_relation { FOLLOWED, MUTED, HIDDEN, RELATIONS };

/* An event that changes a relation of the reader, and all of them afterwards, in Redis. */
struct change {
    uint64_t id;
    enum reader_relation relation;
    unsigned author;
    bool on;
    unsigned after[RELATIONS]; /* authors, as bits */
};

static struct change changes[HISTORY_CHANGES]; /* the first one is the beginning */
static size_t change_count;
/* The relations of the reader as the gateway knows them. */
static struct {
    bool is_asked; /* for all of them */
    uint64_t load;
    size_t changes;                  /* at that time */
    size_t waiting[HISTORY_CHANGES]; /* changes that have passed since */
    size_t waiting_count;
    unsigned now[RELATIONS];
    struct wish shown; /* authors instead of words */
} reader;

const struct wish *reader_shown(void)
{
    return &reader.shown;
}

static void note_shown(void)
{
    unsigned shown = reader.now[FOLLOWED] & ~reader.now[MUTED] & ~reader.now[HIDDEN];

    wish_change(&reader.shown, shown | 1u << HISTORY_READER);
}

/* The last event about two users decides. */
static void apply(const struct change *change)
{
    unsigned bit = 1u << change->author, *authors = &reader.now[change->relation];

    *authors = change->on ? *authors | bit : *authors & ~bit;
    note_shown();
}

static void on_load(void *owner, const char *user, uint64_t load)
{
    const struct home_feed *feed = hash_map_get(deliver_home(deliver)->feeds, sl_slice_str(user));

    (void)owner;
    assert_string_equal(user, history_author(HISTORY_READER));
    if (feed->waiting_count == 0)
        reader.waiting_count = 0;
    reader.is_asked = true;
    reader.load = load;
    reader.changes = change_count - 1;
}

void reader_begin(void)
{
    memset(&reader, 0, sizeof(reader));
    changes[0] = (struct change){.after[FOLLOWED] = 0x6};
    change_count = 1;
    reader.shown = wish_new(WISH_HOME, 0);
    home_on_load(deliver_home(deliver), on_load, NULL);
}

void reader_publish(struct fact *fact)
{
    static const char *const types[RELATIONS][2] = {
        {"unfollow", "follow"}, {"unmute", "mute"}, {"unhide", "hide"}};
    struct change *change = &changes[change_count];
    const char *of, *to;

    assert_true(change_count < HISTORY_CHANGES);
    *change = changes[change_count++ - 1];
    change->id = fact->id;
    change->relation = one_in(2) ? FOLLOWED : (enum reader_relation)(MUTED + below(2));
    change->author = 1 + (unsigned)below(HISTORY_AUTHORS - 1);
    change->after[change->relation] ^= 1u << change->author;
    change->on = change->after[change->relation] >> change->author & 1;
    of = history_author(change->relation == HIDDEN ? change->author : HISTORY_READER);
    to = history_author(change->relation == HIDDEN ? HISTORY_READER : change->author);
    fact->kind = FACT_RELATION;
    snprintf(fact->json, sizeof(fact->json),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"%s\",\"user\":{\"id\":\"%s\"},"
             "\"target\":{\"id\":\"%s\"}}",
             fact->id, types[change->relation][change->on], of, to);
}

void reader_note_passed(uint64_t id)
{
    for (size_t i = 1; i < change_count; i++) {
        if (changes[i].id != id)
            continue;
        if (reader.is_asked)
            reader.waiting[reader.waiting_count++] = i;
        else
            apply(&changes[i]);
    }
}

bool reader_is_awaited(void)
{
    return reader.is_asked;
}

static struct home_set set_of(unsigned bits, struct sl_slice room[static HISTORY_AUTHORS])
{
    struct home_set set = {.users = room};

    for (unsigned author = 0; author < HISTORY_AUTHORS; author++) {
        if (bits >> author & 1)
            room[set.count++] = sl_slice_str(history_author(author));
    }
    return set;
}

/* They were read at some moment since they were asked for. */
bool answer_home(void)
{
    struct sl_slice followed[HISTORY_AUTHORS], muted[HISTORY_AUTHORS], hidden[HISTORY_AUTHORS];
    const struct change *read;
    struct home_sets sets;

    if (!reader.is_asked)
        return false;
    reader.is_asked = false;
    read = &changes[reader.changes + below(change_count - reader.changes)];
    memcpy(reader.now, read->after, sizeof(reader.now));
    now++;
    note_shown();
    for (size_t i = 0; i < reader.waiting_count; i++)
        apply(&changes[reader.waiting[i]]);
    reader.waiting_count = 0;
    sets.followed = set_of(read->after[FOLLOWED], followed);
    sets.muted = set_of(read->after[MUTED], muted);
    sets.hidden_by = set_of(read->after[HIDDEN], hidden);
    home_loaded(deliver_home(deliver), history_author(HISTORY_READER), reader.load, &sets);
    end_turn();
    return true;
}
