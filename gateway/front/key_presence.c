/* key_presence.c - a list: a server has a few dozen keys, and rarely learns of another.
 *
 * A key that returns is treated as if it had never been missing. Limited by what the settings and
 * the sets may contain, and by the keys that were removed within the last minute. */
#include "gateway/front/key_presence.h"

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

struct key_presence {
    struct entry *entries;
    unsigned count, capacity;
};

struct key_presence *key_presence_new(void)
{
    return mem_zalloc(sizeof(struct key_presence));
}

void key_presence_free(struct key_presence *presence)
{
    if (!presence)
        return;
    mem_free(presence->entries);
    mem_free(presence);
}

static bool has_name(const struct entry *entry, const struct key_presence_key *key)
{
    return strcmp(entry->kid, key->kid) == 0 && strcmp(entry->issuer, key->issuer) == 0;
}

static struct entry *find(const struct key_presence *presence, const struct key_presence_key *key)
{
    for (unsigned i = 0; i < presence->count; i++) {
        struct entry *entry = &presence->entries[i];

        if (entry->number == key->number && has_name(entry, key))
            return entry;
    }
    return NULL;
}

void key_presence_begin(struct key_presence *presence)
{
    for (unsigned i = 0; i < presence->count; i++)
        presence->entries[i].is_seen = false;
}

static int grow(struct key_presence *presence)
{
    unsigned capacity = presence->capacity ? 2 * presence->capacity : 8;
    struct entry *entries;

    if (presence->count < presence->capacity)
        return 0;
    entries = mem_realloc(presence->entries, mem_array_size(capacity, sizeof(*entries)));
    if (!entries)
        return -ENOMEM;
    presence->entries = entries;
    presence->capacity = capacity;
    return 0;
}

int key_presence_see(struct key_presence *presence, const struct key_presence_key *key)
{
    struct entry *entry = find(presence, key);

    if (!entry) {
        if (grow(presence) < 0)
            return -ENOMEM;
        entry = &presence->entries[presence->count++];
        strcpy(entry->issuer, key->issuer);
        strcpy(entry->kid, key->kid);
        entry->number = key->number;
    }
    entry->is_seen = true;
    entry->missing_ms = entry->known_ms = entry->gone_ms = 0;
    return 0;
}

static void judge(struct entry *entry, const struct key_presence_now *now)
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

unsigned key_presence_end(struct key_presence *presence, const struct key_presence_now *now)
{
    unsigned gone = 0;

    for (unsigned i = 0; i < presence->count; i++) {
        judge(&presence->entries[i], now);
        gone += presence->entries[i].gone_ms != 0;
    }
    return gone;
}

bool key_presence_is_gone(const struct key_presence *presence, const struct key_presence_key *key,
                          uint64_t *ret_since_ms)
{
    uint64_t since_ms = 0;

    for (unsigned i = 0; i < presence->count; i++) {
        const struct entry *entry = &presence->entries[i];

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

void key_presence_forget(struct key_presence *presence, uint64_t since_ms)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < presence->count; i++) {
        const struct entry *entry = &presence->entries[i];

        if (!entry->gone_ms || entry->gone_ms > since_ms)
            presence->entries[kept++] = *entry;
    }
    presence->count = kept;
}
