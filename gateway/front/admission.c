/* admission.c - an array of streams and two hash tables over it, in one shared mapping.
 *
 * A chain contains the streams whose hashes fall into its bucket; a limit is checked by walking one
 * chain, whose length is about that of the limit. The links are only an index: whether an entry
 * counts is decided by its `worker`, which is written last, so that after a crash in the middle the
 * chains can be rebuilt from the entries.
 *
 * Everything is read and written under the lock, except `worker` and `is_replaced`, which a worker
 * that is woken reads from all entries. They are atomic: a worker's own entry stays its own while
 * it looks, because nobody else removes it, and whether it was told to go was written before the
 * worker was woken. */
#include "gateway/front/admission.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/shared_memory.h"

enum { BY_SUBJECT, BY_ADDRESS, CHAINS };

#define NOBODY 0
#define END    UINT32_MAX

struct entry {
    uint64_t serial;         /* in the order of arrival */
    uint64_t hashes[CHAINS]; /* 0: not counted */
    uint32_t next[CHAINS];   /* next entries in the same buckets; END */
    uint32_t next_free;
    _Atomic uint16_t worker; /* plus one; NOBODY: the entry is free */
    atomic_bool is_replaced; /* told to go */
};

enum { MAX_WORKERS = 256 };

struct admission {
    pthread_mutex_t lock;
    struct hash_key key;
    size_t bytes; /* of the mapping */
    uint32_t size, used;
    uint32_t first_free;
    uint32_t mask; /* of the buckets */
    unsigned workers;
    uint64_t serial;
    int wake_fds[MAX_WORKERS];
    struct entry entries[]; /* `size` entries, then CHAINS * (mask + 1) heads of chains */
};

static uint16_t worker_of(const struct entry *entry)
{
    return atomic_load_explicit(&entry->worker, memory_order_acquire);
}

static void set_worker(struct entry *entry, uint16_t worker)
{
    atomic_store_explicit(&entry->worker, worker, memory_order_release);
}

static bool is_replaced(const struct entry *entry)
{
    return atomic_load_explicit(&entry->is_replaced, memory_order_acquire);
}

static void set_replaced(struct entry *entry, bool is_replaced)
{
    atomic_store_explicit(&entry->is_replaced, is_replaced, memory_order_release);
}

static uint32_t *head_of(struct admission *admission, int chain, uint64_t hash)
{
    uint32_t *heads = (uint32_t *)&admission->entries[admission->size];

    return &heads[(size_t)chain * (admission->mask + 1) + (hash & admission->mask)];
}

static void link_entry(struct admission *admission, uint32_t i)
{
    struct entry *entry = &admission->entries[i];

    for (int chain = 0; chain < CHAINS; chain++) {
        uint32_t *head = head_of(admission, chain, entry->hashes[chain]);

        if (entry->hashes[chain] == 0)
            continue;
        entry->next[chain] = *head;
        *head = i;
    }
}

static void unlink_entry(struct admission *admission, uint32_t i)
{
    struct entry *entry = &admission->entries[i];

    for (int chain = 0; chain < CHAINS; chain++) {
        uint32_t *at = head_of(admission, chain, entry->hashes[chain]);

        if (entry->hashes[chain] == 0)
            continue;
        while (*at != END && *at != i)
            at = &admission->entries[*at].next[chain];
        if (*at == i)
            *at = entry->next[chain];
    }
}

static void rebuild(struct admission *admission)
{
    memset(head_of(admission, 0, 0), 0xff, sizeof(uint32_t) * CHAINS * (admission->mask + 1));
    admission->first_free = END;
    admission->used = 0;
    for (uint32_t i = admission->size; i-- > 0;) {
        struct entry *entry = &admission->entries[i];

        if (worker_of(entry) == NOBODY) {
            entry->next_free = admission->first_free;
            admission->first_free = i;
        } else {
            admission->used++;
            link_entry(admission, i);
        }
    }
}

static void lock(struct admission *admission)
{
    if (pthread_mutex_lock(&admission->lock) == EOWNERDEAD) {
        rebuild(admission);
        pthread_mutex_consistent(&admission->lock);
    }
}

static void unlock(struct admission *admission)
{
    pthread_mutex_unlock(&admission->lock);
}

static int init_lock(struct admission *admission)
{
    pthread_mutexattr_t attributes;
    int r;

    r = pthread_mutexattr_init(&attributes);
    if (r != 0)
        return -r;
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    r = pthread_mutex_init(&admission->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -r;
}

struct admission *admission_new(uint32_t max_streams, unsigned workers)
{
    uint32_t buckets = 64;
    struct admission *admission;
    size_t bytes;

    while (buckets < max_streams)
        buckets *= 2;
    bytes = sizeof(*admission) + max_streams * sizeof(struct entry) +
            (size_t)CHAINS * buckets * sizeof(uint32_t);
    if (workers > MAX_WORKERS)
        return NULL;
    admission = shared_memory_new(bytes);
    if (!admission)
        return NULL;
    admission->bytes = bytes;
    admission->size = max_streams;
    admission->mask = buckets - 1;
    admission->key = hash_key_random();
    for (; admission->workers < workers; admission->workers++) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

        if (fd < 0)
            break;
        admission->wake_fds[admission->workers] = fd;
    }
    if (admission->workers < workers || init_lock(admission) < 0) {
        admission_free(admission);
        return NULL;
    }
    rebuild(admission);
    return admission;
}

void admission_free(struct admission *admission)
{
    if (!admission)
        return;
    for (unsigned i = 0; i < admission->workers; i++)
        close(admission->wake_fds[i]);
    shared_memory_free(admission, admission->bytes);
}

uint32_t admission_size(const struct admission *admission)
{
    return admission->size;
}

static uint64_t hash_of(const struct admission *admission, struct sl_slice text)
{
    uint64_t hash = text.size > 0 ? hash_slice(admission->key, text) : 0;

    return hash == 0 && text.size > 0 ? 1 : hash;
}

/* The number of streams with this hash that have not been told to go, and the oldest of them. */
static uint32_t count(struct admission *admission, int chain, uint64_t hash, uint32_t *ret_oldest)
{
    uint32_t found = 0;

    *ret_oldest = END;
    for (uint32_t i = *head_of(admission, chain, hash); i != END;
         i = admission->entries[i].next[chain]) {
        const struct entry *entry = &admission->entries[i];

        if (entry->hashes[chain] != hash || is_replaced(entry))
            continue;
        found++;
        if (*ret_oldest == END || entry->serial < admission->entries[*ret_oldest].serial)
            *ret_oldest = i;
    }
    return found;
}

static void replace(struct admission *admission, uint32_t i)
{
    struct entry *entry = &admission->entries[i];
    uint64_t one = 1;
    ssize_t written;

    assert(worker_of(entry) != NOBODY);
    set_replaced(entry, true);
    written = write(admission->wake_fds[worker_of(entry) - 1], &one, sizeof(one));
    (void)written; /* full: it is readable anyway */
}

/* Which limit refuses the stream; at the subject's limit the oldest stream may have to go. */
static enum admission_verdict judge(struct admission *admission,
                                    const struct admission_limits *limits,
                                    const uint64_t hashes[CHAINS])
{
    uint32_t oldest;

    if (limits->per_address && hashes[BY_ADDRESS] &&
        count(admission, BY_ADDRESS, hashes[BY_ADDRESS], &oldest) >= limits->per_address)
        return ADMISSION_ADDRESS_FULL;
    if (admission->used >= limits->streams || admission->first_free == END)
        return ADMISSION_FULL;
    if (limits->per_subject && hashes[BY_SUBJECT] &&
        count(admission, BY_SUBJECT, hashes[BY_SUBJECT], &oldest) >= limits->per_subject) {
        if (!limits->replace)
            return ADMISSION_SUBJECT_FULL;
        replace(admission, oldest);
    }
    return ADMISSION_GRANTED;
}

static uint32_t fill_entry(struct admission *admission, unsigned worker,
                           const uint64_t hashes[CHAINS])
{
    uint32_t i = admission->first_free;
    struct entry *entry = &admission->entries[i];

    admission->first_free = entry->next_free;
    entry->serial = ++admission->serial;
    set_replaced(entry, false);
    memcpy(entry->hashes, hashes, sizeof(entry->hashes));
    link_entry(admission, i);
    admission->used++;
    set_worker(entry, (uint16_t)(worker + 1));
    return i;
}

enum admission_verdict admission_enter(struct admission *admission,
                                       const struct admission_limits *limits, unsigned worker,
                                       struct sl_slice subject, struct sl_slice address,
                                       admission_ticket *ret_ticket)
{
    const uint64_t hashes[CHAINS] = {
        [BY_SUBJECT] = hash_of(admission, subject), [BY_ADDRESS] = hash_of(admission, address)};
    enum admission_verdict verdict;

    assert(worker < admission->workers);
    lock(admission);
    verdict = judge(admission, limits, hashes);
    if (verdict == ADMISSION_GRANTED)
        *ret_ticket = fill_entry(admission, worker, hashes);
    unlock(admission);
    return verdict;
}

uint32_t admission_streams(struct admission *admission, struct sl_slice subject,
                           struct sl_slice address)
{
    int chain = subject.size > 0 ? BY_SUBJECT : BY_ADDRESS;
    uint64_t hash = hash_of(admission, subject.size > 0 ? subject : address);
    uint32_t oldest, found = 0;

    if (hash == 0)
        return 0;
    lock(admission);
    found = count(admission, chain, hash, &oldest);
    unlock(admission);
    return found;
}

static void clear_entry(struct admission *admission, uint32_t i)
{
    struct entry *entry = &admission->entries[i];

    assert(worker_of(entry) != NOBODY && admission->used > 0);
    set_worker(entry, NOBODY);
    unlink_entry(admission, i);
    entry->next_free = admission->first_free;
    admission->first_free = i;
    admission->used--;
}

void admission_leave(struct admission *admission, admission_ticket ticket)
{
    assert(ticket < admission->size);
    lock(admission);
    clear_entry(admission, ticket);
    unlock(admission);
}

void admission_forget_worker(struct admission *admission, unsigned worker)
{
    lock(admission);
    for (uint32_t i = 0; i < admission->size; i++) {
        if (worker_of(&admission->entries[i]) == worker + 1)
            clear_entry(admission, i);
    }
    unlock(admission);
}

int admission_wake_fd(const struct admission *admission, unsigned worker)
{
    return admission->wake_fds[worker];
}

void admission_take_replaced(struct admission *admission, unsigned worker,
                             void (*replaced)(void *owner, admission_ticket ticket), void *owner)
{
    uint64_t times;
    ssize_t size = read(admission->wake_fds[worker], &times, sizeof(times));

    (void)size; /* empty: already handled */
    for (uint32_t i = 0; i < admission->size; i++) {
        const struct entry *entry = &admission->entries[i];

        if (worker_of(entry) == worker + 1 && is_replaced(entry))
            replaced(owner, i);
    }
}
