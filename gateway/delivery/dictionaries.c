/* dictionaries.c - the list in Redis, and one struct for each dictionary, which is never moved or
 * freed.
 *
 * Streams point to a dictionary as long as they exist. So one that has been withdrawn, or is not in
 * the list any more, only loses its bytes. The list is limited to LIST_MAX; when it is full, new
 * dictionaries replace those that were withdrawn first. */
#include "gateway/delivery/dictionaries.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/redis/shard_watch.h"

enum { LIST_MAX = 1024, CURRENT_MS = 3 * DICTIONARIES_ASK_MS };

struct entry {
    struct dictionary dictionary;
    struct dictionaries *set;
    bool is_listed;
    struct list_node node;
};

struct dictionaries {
    struct shard_watch *watch; /* NULL: stopped */
    struct redis_commands *commands;
    struct metrics *metrics;
    int level;
    uint64_t read_ms;    /* clock_monotonic_ms(); 0: the list has not been read yet */
    struct list entries; /* in the order of the list */
    struct sl_dictionary room[LIST_MAX];
};

static struct entry *find(const struct dictionaries *set, uint32_t id)
{
    LIST_EACH(&set->entries, node)
    {
        struct entry *entry = LIST_OWNER(node, struct entry, node);

        if (entry->dictionary.known.id == id)
            return entry;
    }
    return NULL;
}

struct dictionary *dictionaries_find(const struct dictionaries *set, uint32_t id)
{
    struct entry *entry = find(set, id);

    return entry && entry->is_listed ? &entry->dictionary : NULL;
}

bool dictionaries_are_current(const struct dictionaries *set)
{
    return set->read_ms && clock_monotonic_ms() - set->read_ms <= CURRENT_MS;
}

/* --- reading --- */

static void tell_metrics(const struct dictionaries *set)
{
    size_t count = 0;

    LIST_EACH(&set->entries, node)
    count += LIST_OWNER(node, struct entry, node)->dictionary.tables != NULL;
    metric_set(set->metrics, METRIC_DICTIONARIES, count);
}

static void log_failure(const struct entry *entry, const char *why)
{
    char room[LOG_QUOTE_SIZE];

    log_warn("dictionary_not_loaded", "id=%" PRIu32 " why=%s", entry->dictionary.known.id,
             log_quote(sl_slice_str(why), room));
}

/* After a failure they are requested again when the list is read the next time. */
static void on_bytes(void *owner, const redisReply *reply, const char *why)
{
    struct entry *entry = owner;
    struct dictionary *dictionary = &entry->dictionary;
    struct failure failure = {""};
    struct sl_slice bytes;

    dictionary->is_asked_for = false;
    if (!reply) {
        log_failure(entry, why);
        return;
    }
    if (sl_dictionary_reply(reply, &bytes, &failure) < 0)
        log_failure(entry, failure.text);
    else if (dictionary->known.withdrawn_ms == 0 &&
             dictionary_load(dictionary, bytes, entry->set->level) < 0)
        log_failure(entry, "not a dictionary of this id, or out of memory");
    tell_metrics(entry->set);
}

static void ask_for_bytes(struct entry *entry)
{
    struct sl_call call = SL_CALL_INIT;

    if (sl_dictionary_call(&call, entry->dictionary.known.id, NULL) < 0)
        sl_call_done(&call);
    else if (redis_commands_run_take(entry->set->commands, &call, on_bytes, entry) == 0)
        entry->dictionary.is_asked_for = true;
}

static struct entry *add(struct dictionaries *set, uint32_t id)
{
    struct entry *entry = mem_zalloc(sizeof(*entry));

    if (!entry)
        return NULL;
    entry->set = set;
    entry->dictionary.known.id = id;
    list_append(&set->entries, &entry->node);
    return entry;
}

static void take_one(struct dictionaries *set, const struct sl_dictionary *known)
{
    struct entry *entry = find(set, known->id);

    if (!entry)
        entry = add(set, known->id);
    if (!entry)
        return;
    entry->is_listed = true;
    entry->dictionary.known = *known;
    if (!known->withdrawn_ms && !entry->dictionary.tables && !entry->dictionary.is_asked_for)
        ask_for_bytes(entry);
}

static int take_list(void *context, uint32_t shard, const redisReply *reply)
{
    struct dictionaries *set = *(struct dictionaries **)context;
    struct failure failure = {""};
    size_t count;
    int r = sl_dictionaries_reply(reply, set->room, LIST_MAX, &count, &failure);

    (void)shard;
    if (r < 0) {
        log_warn("dictionaries_not_read", "why=\"%s\"", failure.text);
        return r;
    }
    LIST_EACH(&set->entries, node)
    LIST_OWNER(node, struct entry, node)->is_listed = false;
    for (size_t i = 0; i < count; i++)
        take_one(set, &set->room[i]);
    LIST_EACH(&set->entries, node)
    {
        struct entry *entry = LIST_OWNER(node, struct entry, node);

        if (!entry->is_listed || entry->dictionary.known.withdrawn_ms)
            dictionary_unload(&entry->dictionary);
    }
    set->read_ms = clock_monotonic_ms();
    tell_metrics(set);
    return 0;
}

static int build(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                 struct failure *reterr)
{
    (void)meta;
    (void)shard;
    return sl_dictionaries_call(call, reterr);
}

/* --- as JSON --- */

static const char *state_of(const struct sl_dictionary *known, uint64_t now_ms)
{
    if (known->withdrawn_ms)
        return "withdrawn";
    return now_ms < known->trained_ms + DICTIONARY_NEW_MS ? "new" : "active";
}

void dictionaries_print(const struct dictionaries *set, uint64_t now_ms, struct buffer *json)
{
    const char *comma = "";

    buffer_append_str(json, "{\"dictionaries\":[");
    LIST_EACH(&set->entries, node)
    {
        const struct entry *entry = LIST_OWNER(node, struct entry, node);
        const struct sl_dictionary *known = &entry->dictionary.known;
        char when[CLOCK_RFC3339_SIZE];

        if (!entry->is_listed)
            continue;
        clock_format_rfc3339(known->trained_ms, when);
        buffer_append_format(json,
                             "%s{\"id\":%" PRIu32 ",\"bytes\":%" PRIu64
                             ",\"trained_at\":\"%s\",\"posts\":%" PRIu64 ",\"state\":\"%s\"}",
                             comma, known->id, known->bytes, when, known->posts,
                             state_of(known, now_ms));
        comma = ",";
    }
    buffer_append_str(json, "]}\n");
}

/* --- creating and freeing --- */

struct dictionaries *dictionaries_new(uv_loop_t *loop, struct redis_commands *commands,
                                      struct metrics *metrics, int level)
{
    static const struct shard_question question = {
        .every_ms = DICTIONARIES_ASK_MS,
        .build = build,
        .take = take_list,
    };
    struct dictionaries *set = mem_zalloc(sizeof(*set));

    if (!set)
        return NULL;
    list_init(&set->entries);
    set->commands = commands;
    set->metrics = metrics;
    set->level = level;
    set->watch = shard_watch_new(loop, commands, &question, sizeof(struct dictionaries *));
    if (!set->watch) {
        mem_free(set);
        return NULL;
    }
    *(struct dictionaries **)shard_watch_context(set->watch) = set;
    return set;
}

void dictionaries_begin(struct dictionaries *set)
{
    if (set)
        shard_watch_begin(set->watch, 1); /* all are in shard 0 */
}

void dictionaries_stop(struct dictionaries *set)
{
    if (!set)
        return;
    shard_watch_free(set->watch);
    set->watch = NULL;
}

void dictionaries_free(struct dictionaries *set)
{
    if (!set)
        return;
    LIST_EACH(&set->entries, node)
    {
        struct entry *entry = LIST_OWNER(node, struct entry, node);

        dictionary_unload(&entry->dictionary);
        mem_free(entry);
    }
    mem_free(set);
}
