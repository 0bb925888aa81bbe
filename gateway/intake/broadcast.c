/* broadcast.c - a ring buffer of words with a single writer, which never waits.
 *
 *     claimed    the position up to which the writer has begun to write
 *     head       the position up to which entries are complete
 *
 * Both count words from the beginning and never wrap; a word is stored at its number modulo the
 * size. The writer advances `claimed`, writes the words, updates the state, and advances `head`. A
 * reader copies an entry and then checks `claimed`: if that is at most the size ahead of the entry,
 * nothing of it was being overwritten. The state belongs to the newest entry if `claimed` and
 * `head` were equal before and after it was copied. All words are atomics, so even a copy that is
 * discarded is not undefined behaviour.
 *
 * Sleeping: the reader sets its flag and checks `head` again; the writer advances `head` and checks
 * the flags. One of them sees the other, because both have a full fence between the two steps.
 *
 * In the other direction, readers report what they have found about the shards' clocks: one word
 * for each shard, which contains the number of the subscription, so that it is ignored after a
 * failover that has lost the clock.
 *
 * A writer that dies leaves `claimed` ahead of `head` at worst. The reset continues from `claimed`
 * and increments the generation, by which every reader notices that its position is invalid. */
#include "gateway/intake/broadcast.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/shared_memory.h"

#define WORDS(size) (((size) + sizeof(uint64_t) - 1) / sizeof(uint64_t))

#define CLOCK_BITS        48
#define CLOCK_MASK        ((UINT64_C(1) << CLOCK_BITS) - 1)
#define SUBSCRIPTION_MASK (UINT64_MAX >> CLOCK_BITS)

enum { HEAD_WORDS = 5, ENTRY_SHARE = 4, JOIN_TRIES = 100 };

typedef _Atomic uint64_t word;

struct slot {
    _Alignas(64) _Atomic uint32_t is_asleep;
};

struct shared {
    _Alignas(64) word claimed;
    word head, generation;
    _Alignas(64) word is_subscribed, has_master;
    word meta[WORDS(sizeof(struct sl_meta))];
    word master[WORDS(sizeof(struct sl_redis_endpoint))];
    word away[WORDS(sizeof(struct failure))];
    word ends[SL_SHARDS_MAX], untils[SL_SHARDS_MAX];
    word subscription;
    word clocks[SL_SHARDS_MAX]; /* written by readers: subscription and clock_until */
    struct slot slots[];        /* followed by the words */
};

struct broadcast {
    struct shared *shared;
    size_t shared_bytes;
    word *words;
    size_t word_count;
    unsigned readers;
    int wake_fds[];
};

/* ---- words ---- */

static uint64_t get(const word *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void set(word *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static void store(word *to, const void *data, size_t size)
{
    const char *from = data;

    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), from += sizeof(uint64_t), to++) {
        uint64_t value;

        memcpy(&value, from, sizeof(value));
        set(to, value);
    }
    if (size > 0) {
        uint64_t value = 0;

        memcpy(&value, from, size);
        set(to, value);
    }
}

static void load(void *data, const word *from, size_t size)
{
    char *to = data;

    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), to += sizeof(uint64_t), from++) {
        uint64_t value = get(from);

        memcpy(to, &value, sizeof(value));
    }
    if (size > 0) {
        uint64_t value = get(from);

        memcpy(to, &value, size);
    }
}

/* How much of `size` bytes from this position on lies before the end of the memory. */
static size_t before_wrap(const struct broadcast *broadcast, uint64_t position, size_t size)
{
    size_t left = (broadcast->word_count - position % broadcast->word_count) * sizeof(uint64_t);

    return size < left ? size : left;
}

static void ring_store(struct broadcast *broadcast, uint64_t position, const void *data,
                       size_t size)
{
    size_t first = before_wrap(broadcast, position, size);

    store(&broadcast->words[position % broadcast->word_count], data, first);
    if (first < size)
        store(broadcast->words, (const char *)data + first, size - first);
}

static void ring_load(const struct broadcast *broadcast, uint64_t position, void *data, size_t size)
{
    size_t first = before_wrap(broadcast, position, size);

    load(data, &broadcast->words[position % broadcast->word_count], first);
    if (first < size)
        load((char *)data + first, broadcast->words, size - first);
}

/* ---- the writer ---- */

static void claim(struct shared *shared, uint64_t position)
{
    set(&shared->claimed, position);
    atomic_thread_fence(memory_order_release);
}

static void publish(struct shared *shared, uint64_t position)
{
    atomic_store_explicit(&shared->head, position, memory_order_release);
}

static void note_state(struct shared *shared, const struct broadcast_entry *entry)
{
    struct failure away = {""};

    switch (entry->kind) {
    case BROADCAST_MASTER:
        assert(entry->data.size == sizeof(struct sl_redis_endpoint));
        store(shared->master, entry->data.data, entry->data.size);
        set(&shared->has_master, true);
        break;
    case BROADCAST_LOG_END:
        set(&shared->ends[entry->shard], entry->id);
        set(&shared->untils[entry->shard], entry->clock_until_ms);
        break;
    case BROADCAST_SUBSCRIBED:
        assert(entry->data.size == sizeof(struct sl_meta));
        store(shared->meta, entry->data.data, entry->data.size);
        set(&shared->subscription, get(&shared->subscription) + 1);
        set(&shared->is_subscribed, true);
        break;
    case BROADCAST_LOST:
        set(&shared->is_subscribed, false);
        break;
    case BROADCAST_JSON:
    case BROADCAST_EVENT:
    case BROADCAST_REFUSED:
        if (entry->is_end)
            set(&shared->ends[entry->shard], entry->id);
        break;
    case BROADCAST_AWAY:
        failure_set(&away, 0, "%.*s", SL_SLICE_ARG(entry->data));
        store(shared->away, &away, sizeof(away));
        break;
    case BROADCAST_TIME:
    case BROADCAST_ROUND:
    case BROADCAST_HEARD_AGAIN:
        break;
    }
}

int broadcast_write(struct broadcast *broadcast, const struct broadcast_entry *entry)
{
    const uint64_t head[HEAD_WORDS] = {(uint64_t)entry->kind | (uint64_t)entry->shard << 32,
                                       entry->data.size, entry->id, entry->previous,
                                       entry->received_us};
    uint64_t position = get(&broadcast->shared->head);
    uint64_t end = position + HEAD_WORDS + WORDS(entry->data.size);

    assert(entry->shard < SL_SHARDS_MAX);
    if (entry->data.size / sizeof(uint64_t) >= broadcast->word_count ||
        end - position > broadcast->word_count / ENTRY_SHARE)
        return -EMSGSIZE;
    claim(broadcast->shared, end);
    ring_store(broadcast, position, head, sizeof(head));
    ring_store(broadcast, position + HEAD_WORDS, entry->data.data, entry->data.size);
    note_state(broadcast->shared, entry);
    publish(broadcast->shared, end);
    return 0;
}

static uint64_t clock_of(const struct shared *shared, uint32_t shard, uint64_t subscription)
{
    uint64_t found = atomic_load_explicit(&shared->clocks[shard], memory_order_acquire);

    return found >> CLOCK_BITS == (subscription & SUBSCRIPTION_MASK) ? found & CLOCK_MASK : 0;
}

uint64_t broadcast_clock_ms(const struct broadcast *broadcast, uint32_t shard)
{
    return clock_of(broadcast->shared, shard, get(&broadcast->shared->subscription));
}

static void wake(const struct broadcast *broadcast, unsigned slot)
{
    eventfd_write(broadcast->wake_fds[slot], 1);
}

void broadcast_wake(struct broadcast *broadcast)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (unsigned i = 0; i < broadcast->readers; i++) {
        struct slot *slot = &broadcast->shared->slots[i];

        if (atomic_load_explicit(&slot->is_asleep, memory_order_relaxed) &&
            atomic_exchange(&slot->is_asleep, 0))
            wake(broadcast, i);
    }
}

void broadcast_reset(struct broadcast *broadcast)
{
    struct shared *shared = broadcast->shared;
    uint64_t end = get(&shared->claimed) + 1; /* otherwise nobody could see that it is being
                                                 written */

    claim(shared, end);
    set(&shared->generation, get(&shared->generation) + 1);
    set(&shared->is_subscribed, false);
    set(&shared->has_master, false);
    set(&shared->away[0], 0);
    publish(shared, end);
    broadcast_wake(broadcast);
}

bool broadcast_was_heard(const struct broadcast *broadcast)
{
    return get(&broadcast->shared->subscription) > 0;
}

/* ---- a reader ---- */

void broadcast_reader_init(struct broadcast_reader *reader, struct broadcast *broadcast,
                           unsigned slot)
{
    assert(slot < broadcast->readers);
    *reader = (struct broadcast_reader){.broadcast = broadcast, .slot = slot};
}

void broadcast_reader_done(struct broadcast_reader *reader)
{
    mem_free(reader->room);
    reader->room = NULL;
    reader->room_size = 0;
}

static void load_state(const struct shared *shared, struct broadcast_state *ret_state)
{
    ret_state->is_subscribed = get(&shared->is_subscribed);
    ret_state->has_master = get(&shared->has_master);
    load(&ret_state->master, shared->master, sizeof(ret_state->master));
    load(&ret_state->meta, shared->meta, sizeof(ret_state->meta));
    load(&ret_state->away, shared->away, sizeof(ret_state->away));
    load(ret_state->ends, shared->ends, sizeof(ret_state->ends));
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        uint64_t said_ms = get(&shared->untils[shard]);
        uint64_t found_ms = clock_of(shared, shard, get(&shared->subscription));

        ret_state->clock_until_ms[shard] = found_ms > said_ms ? found_ms : said_ms;
    }
}

int broadcast_join(struct broadcast_reader *reader, struct broadcast_state *ret_state)
{
    const struct shared *shared = reader->broadcast->shared;

    for (unsigned i = 0; i < JOIN_TRIES; i++) {
        uint64_t generation = atomic_load_explicit(&shared->generation, memory_order_acquire);
        uint64_t head = atomic_load_explicit(&shared->head, memory_order_acquire);
        uint64_t subscription;

        load_state(shared, ret_state);
        subscription = get(&shared->subscription);
        atomic_thread_fence(memory_order_acquire);
        if (get(&shared->claimed) == head && get(&shared->generation) == generation) {
            reader->position = head;
            reader->generation = generation;
            reader->subscription = subscription;
            return 0;
        }
    }
    return -EAGAIN;
}

/* Checks that the data copied from `position` on had not been overwritten, and belongs to the
 * reader's generation. */
static int check_copy(const struct broadcast_reader *reader)
{
    const struct shared *shared = reader->broadcast->shared;

    atomic_thread_fence(memory_order_acquire);
    if (get(&shared->generation) != reader->generation)
        return -EPIPE;
    if (get(&shared->claimed) - reader->position > reader->broadcast->word_count)
        return -EOVERFLOW;
    return 0;
}

static int make_room(struct broadcast_reader *reader, size_t size)
{
    char *room;

    if (size <= reader->room_size)
        return 0;
    room = mem_alloc(size);
    if (!room)
        return -ENOMEM;
    mem_free(reader->room);
    reader->room = room;
    reader->room_size = size;
    return 0;
}

/* Only the writer writes there; still, no size or index is taken unchecked from memory that other
 * processes can write. */
static bool is_sound(const struct broadcast *broadcast, const uint64_t head[HEAD_WORDS])
{
    return head[1] / sizeof(uint64_t) <= broadcast->word_count / ENTRY_SHARE &&
           head[0] >> 32 < SL_SHARDS_MAX;
}

int broadcast_read(struct broadcast_reader *reader, struct broadcast_entry *ret_entry)
{
    struct broadcast *broadcast = reader->broadcast;
    uint64_t head[HEAD_WORDS];
    int r;

    if (atomic_load_explicit(&broadcast->shared->head, memory_order_acquire) == reader->position)
        return 0;
    ring_load(broadcast, reader->position, head, sizeof(head));
    r = check_copy(reader);
    if (r == 0 && !is_sound(broadcast, head))
        r = -EOVERFLOW;
    if (r == 0)
        r = make_room(reader, head[1]);
    if (r < 0)
        return r;
    ring_load(broadcast, reader->position + HEAD_WORDS, reader->room, head[1]);
    r = check_copy(reader);
    if (r < 0)
        return r;
    *ret_entry = (struct broadcast_entry){
        .kind = (enum broadcast_kind)(uint32_t)head[0],
        .shard = (uint32_t)(head[0] >> 32),
        .id = head[2],
        .previous = head[3],
        .received_us = head[4],
        .data = head[1] > 0 ? sl_slice(reader->room, head[1]) : SL_SLICE(""),
    };
    reader->position += HEAD_WORDS + WORDS(head[1]);
    reader->subscription += ret_entry->kind == BROADCAST_SUBSCRIBED;
    return 1;
}

void broadcast_set_clock(const struct broadcast_reader *reader, uint32_t shard, uint64_t until_ms)
{
    struct shared *shared = reader->broadcast->shared;

    if (until_ms > clock_of(shared, shard, reader->subscription))
        atomic_store_explicit(&shared->clocks[shard],
                              (until_ms & CLOCK_MASK) | reader->subscription << CLOCK_BITS,
                              memory_order_release);
}

int broadcast_wake_fd(const struct broadcast_reader *reader)
{
    return reader->broadcast->wake_fds[reader->slot];
}

void broadcast_wake_self(const struct broadcast_reader *reader)
{
    wake(reader->broadcast, reader->slot);
}

void broadcast_clear_wake(const struct broadcast_reader *reader)
{
    eventfd_t count;

    eventfd_read(broadcast_wake_fd(reader), &count);
}

bool broadcast_sleep(const struct broadcast_reader *reader)
{
    struct shared *shared = reader->broadcast->shared;
    struct slot *slot = &shared->slots[reader->slot];

    atomic_store(&slot->is_asleep, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (get(&shared->head) == reader->position)
        return true;
    atomic_store(&slot->is_asleep, 0);
    return false;
}

/* ---- creating and freeing ---- */

struct broadcast *broadcast_new(unsigned readers, size_t bytes)
{
    struct broadcast *broadcast;
    size_t slots_bytes = sizeof(struct shared) + readers * sizeof(struct slot);

    broadcast = mem_zalloc(sizeof(*broadcast) + readers * sizeof(broadcast->wake_fds[0]));
    if (!broadcast)
        return NULL;
    broadcast->word_count = WORDS(bytes);
    broadcast->shared_bytes = slots_bytes + broadcast->word_count * sizeof(word);
    broadcast->shared = shared_memory_new(broadcast->shared_bytes);
    if (!broadcast->shared)
        goto fail;
    broadcast->words = (word *)((char *)broadcast->shared + slots_bytes);
    for (; broadcast->readers < readers; broadcast->readers++) {
        int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

        if (fd < 0)
            goto fail;
        broadcast->wake_fds[broadcast->readers] = fd;
    }
    return broadcast;
fail:
    broadcast_free(broadcast);
    return NULL;
}

void broadcast_free(struct broadcast *broadcast)
{
    if (!broadcast)
        return;
    for (unsigned i = 0; i < broadcast->readers; i++)
        close(broadcast->wake_fds[i]);
    shared_memory_free(broadcast->shared, broadcast->shared_bytes);
    mem_free(broadcast);
}
