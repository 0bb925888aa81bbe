/* revocations.c - a hash map of chains; a revocation is filed under the most specific of its
 * members: jti, else subject, else key.
 *
 * Revocations that only have a time are in a chain of their own. So a look-up searches four chains,
 * each of which contains the revocations with the same jti, subject or key. */
#include "gateway/access/revocations.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash_map.h"
#include "base/list.h"
#include "gateway/front/token_name.h"

enum { KEY_SIZE = 1 + TOKEN_NAME_SIZE };

/* All revocations with the same key of the map; never empty. */
struct chain {
    struct list entries;
};

struct entry {
    struct list_node node; /* in `chain` */
    struct chain *chain;
    uint64_t id, before_ms, until_ms;
    bool has_subject, has_jti, has_kid;
    char subject[TOKEN_SUBJECT_SIZE];
    char *jti, *kid; /* point into `names` */
    char names[];
};

struct revocations {
    struct hash_map *by_id; /* values: struct entry */
    struct hash_map *chains;
};

struct revocations *revocations_new(void)
{
    struct revocations *set = mem_zalloc(sizeof(*set));

    if (!set)
        return NULL;
    set->by_id = hash_map_new();
    set->chains = hash_map_new();
    if (set->by_id && set->chains)
        return set;
    revocations_free(set);
    return NULL;
}

void revocations_free(struct revocations *set)
{
    void *value;

    if (!set)
        return;
    if (set->by_id) {
        for (size_t at = 0; hash_map_next(set->by_id, &at, NULL, &value);)
            mem_free(value);
    }
    if (set->chains) {
        for (size_t at = 0; hash_map_next(set->chains, &at, NULL, &value);)
            mem_free(value);
    }
    hash_map_free(set->by_id);
    hash_map_free(set->chains);
    mem_free(set);
}

size_t revocations_count(const struct revocations *set)
{
    return hash_map_count(set->by_id);
}

static struct sl_slice id_key(const uint64_t *id)
{
    return sl_slice((const char *)id, sizeof(*id));
}

static struct sl_slice chain_key(char kind, const char *name, char room[static KEY_SIZE])
{
    size_t size = strlen(name);

    room[0] = kind;
    memcpy(room + 1, name, size);
    return sl_slice(room, size + 1);
}

static struct sl_slice key_of(const struct entry *entry, char room[static KEY_SIZE])
{
    if (entry->has_jti)
        return chain_key('j', entry->jti, room);
    if (entry->has_subject)
        return chain_key('s', entry->subject, room);
    if (entry->has_kid)
        return chain_key('k', entry->kid, room);
    return chain_key('*', "", room);
}

static struct chain *find_or_add_chain(struct revocations *set, struct sl_slice key)
{
    struct chain *chain = hash_map_get(set->chains, key);

    if (chain)
        return chain;
    chain = mem_zalloc(sizeof(*chain));
    if (!chain)
        return NULL;
    list_init(&chain->entries);
    if (hash_map_add(set->chains, key, chain) == 0)
        return chain;
    mem_free(chain);
    return NULL;
}

static void drop_if_empty(struct revocations *set, struct chain *chain, struct sl_slice key)
{
    if (!list_is_empty(&chain->entries))
        return;
    hash_map_remove(set->chains, key);
    mem_free(chain);
}

static struct entry *entry_new(const struct sl_revocation *revocation)
{
    char jti[TOKEN_NAME_SIZE] = "", kid[TOKEN_NAME_SIZE] = "";
    struct entry *entry;

    if (revocation->jti.data)
        token_name(revocation->jti, jti);
    if (revocation->kid.data)
        token_name(revocation->kid, kid);
    entry = mem_zalloc(sizeof(*entry) + strlen(jti) + strlen(kid) + 2);
    if (!entry)
        return NULL;
    entry->id = revocation->id;
    entry->before_ms = revocation->before_ms;
    entry->until_ms = revocation->until_ms;
    entry->has_subject = revocation->sub.data;
    entry->has_jti = revocation->jti.data;
    entry->has_kid = revocation->kid.data;
    if (entry->has_subject && revocation->sub.size < sizeof(entry->subject))
        memcpy(entry->subject, revocation->sub.data, revocation->sub.size);
    entry->jti = strcpy(entry->names, jti);
    entry->kid = strcpy(entry->names + strlen(jti) + 1, kid);
    return entry;
}

int revocations_add(struct revocations *set, const struct sl_revocation *revocation)
{
    struct sl_slice key;
    struct entry *entry;
    char room[KEY_SIZE];

    if (hash_map_get(set->by_id, id_key(&revocation->id)))
        return 0;
    entry = entry_new(revocation);
    if (!entry)
        return -ENOMEM;
    key = key_of(entry, room);
    entry->chain = find_or_add_chain(set, key);
    if (!entry->chain) {
        mem_free(entry);
        return -ENOMEM;
    }
    if (hash_map_add(set->by_id, id_key(&entry->id), entry) < 0) {
        drop_if_empty(set, entry->chain, key);
        mem_free(entry);
        return -ENOMEM;
    }
    list_append(&entry->chain->entries, &entry->node);
    return 0;
}

bool revocations_remove(struct revocations *set, uint64_t id)
{
    struct entry *entry = hash_map_remove(set->by_id, id_key(&id));
    char room[KEY_SIZE];

    if (!entry)
        return false;
    list_remove(&entry->chain->entries, &entry->node);
    drop_if_empty(set, entry->chain, key_of(entry, room));
    mem_free(entry);
    return true;
}

static bool is_about(const struct entry *entry, const struct token *token, uint64_t now_ms)
{
    return entry->until_ms > now_ms &&
           (entry->before_ms == 0 || token->issued_ms < entry->before_ms) &&
           (!entry->has_subject || strcmp(entry->subject, token->subject) == 0) &&
           (!entry->has_jti || strcmp(entry->jti, token->jti) == 0) &&
           (!entry->has_kid || strcmp(entry->kid, token->kid) == 0);
}

static uint64_t find_under(const struct revocations *set, struct sl_slice key,
                           const struct token *token, uint64_t now_ms)
{
    const struct chain *chain = hash_map_get(set->chains, key);

    if (!chain)
        return 0;
    LIST_EACH(&chain->entries, node)
    {
        const struct entry *entry = LIST_OWNER(node, struct entry, node);

        if (is_about(entry, token, now_ms))
            return entry->id;
    }
    return 0;
}

uint64_t revocations_find(const struct revocations *set, const struct token *token, uint64_t now_ms)
{
    const struct {
        char kind;
        const char *name;
    } keys[] = {{'j', token->jti}, {'s', token->subject}, {'k', token->kid}, {'*', ""}};
    char room[KEY_SIZE];
    uint64_t id = 0;

    if (hash_map_count(set->by_id) == 0)
        return 0;
    for (size_t i = 0; id == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].name[0] || keys[i].kind == '*')
            id = find_under(set, chain_key(keys[i].kind, keys[i].name, room), token, now_ms);
    }
    return id;
}

void revocations_drop_old(struct revocations *set, uint64_t now_ms)
{
    void *value;

    for (size_t at = 0; hash_map_next(set->by_id, &at, NULL, &value);) {
        const struct entry *entry = value;

        if (entry->until_ms <= now_ms)
            revocations_remove(set, entry->id);
    }
}
