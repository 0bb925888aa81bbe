/* key_roll.c - a list: a server has a few dozen keys, and rarely learns of another.
 *
 * A key that returns is treated as if it had never been missing. Limited by what the settings and
 * the sets may contain, and by the keys that were removed within the last minute. */
#include "gateway/front/key_roll.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/front/token_name.h"

struct entry {
    char issuer[TOKEN_NAME_SIZE], kid[TOKEN_NAME_SIZE];
    uint64_t number;
    bool is_seen;
    uint64_t missing_ms; /* since; 0: present */
    uint64_t known_ms;   /* time of the answer in which it was first missing, or of a later one */
    uint64_t gone_ms;    /* since; 0: not removed */
};

struct key_roll {
    struct entry *entries;
    unsigned count, capacity;
};

struct key_roll *key_roll_new(void)
{
    return mem_zalloc(sizeof(struct key_roll));
}

void key_roll_free(struct key_roll *roll)
{
    if (!roll)
        return;
    mem_free(roll->entries);
    mem_free(roll);
}

static bool has_name(const struct entry *entry, const struct key_roll_key *key)
{
    return strcmp(entry->kid, key->kid) == 0 && strcmp(entry->issuer, key->issuer) == 0;
}

static struct entry *find(const struct key_roll *roll, const struct key_roll_key *key)
{
    for (unsigned i = 0; i < roll->count; i++) {
        struct entry *entry = &roll->entries[i];

        if (entry->number == key->number && has_name(entry, key))
            return entry;
    }
    return NULL;
}

void key_roll_begin(struct key_roll *roll)
{
    for (unsigned i = 0; i < roll->count; i++)
        roll->entries[i].is_seen = false;
}

static int grow(struct key_roll *roll)
{
    unsigned capacity = roll->capacity ? 2 * roll->capacity : 8;
    struct entry *entries;

    if (roll->count < roll->capacity)
        return 0;
    entries = mem_realloc(roll->entries, mem_array_size(capacity, sizeof(*entries)));
    if (!entries)
        return -ENOMEM;
    roll->entries = entries;
    roll->capacity = capacity;
    return 0;
}

int key_roll_see(struct key_roll *roll, const struct key_roll_key *key)
{
    struct entry *entry = find(roll, key);

    if (!entry) {
        if (grow(roll) < 0)
            return -ENOMEM;
        entry = &roll->entries[roll->count++];
        strcpy(entry->issuer, key->issuer);
        strcpy(entry->kid, key->kid);
        entry->number = key->number;
    }
    entry->is_seen = true;
    entry->missing_ms = entry->known_ms = entry->gone_ms = 0;
    return 0;
}

static void judge(struct entry *entry, const struct key_roll_now *now)
{
    uint64_t known_ms;

    if (entry->is_seen || entry->gone_ms)
        return;
    known_ms = now->known_ms(now->context, entry->issuer, now->ms);
    if (!entry->missing_ms) {
        entry->missing_ms = now->ms;
        entry->known_ms = known_ms;
    }
    if (now->ms < entry->missing_ms + now->after_ms)
        return;
    if (known_ms >= entry->known_ms + now->after_ms)
        entry->gone_ms = now->ms;
    else
        now->want(now->context, entry->issuer);
}

unsigned key_roll_end(struct key_roll *roll, const struct key_roll_now *now)
{
    unsigned gone = 0;

    for (unsigned i = 0; i < roll->count; i++) {
        judge(&roll->entries[i], now);
        gone += roll->entries[i].gone_ms != 0;
    }
    return gone;
}

bool key_roll_is_gone(const struct key_roll *roll, const struct key_roll_key *key,
                      uint64_t *ret_since_ms)
{
    uint64_t since_ms = 0;

    for (unsigned i = 0; i < roll->count; i++) {
        const struct entry *entry = &roll->entries[i];

        if (!has_name(entry, key) || (key->number && entry->number != key->number))
            continue;
        if (!entry->gone_ms)
            return false;
        if (entry->gone_ms > since_ms)
            since_ms = entry->gone_ms;
    }
    if (since_ms)
        *ret_since_ms = since_ms;
    return since_ms != 0;
}

void key_roll_forget(struct key_roll *roll, uint64_t since_ms)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < roll->count; i++) {
        const struct entry *entry = &roll->entries[i];

        if (!entry->gone_ms || entry->gone_ms > since_ms)
            roll->entries[kept++] = *entry;
    }
    roll->count = kept;
}
