/* fair_use.c - two tables of accounts in one shared mapping; the hash of a name selects the set of
 * SET_SIZE accounts to which it belongs.
 *
 * There are no links to repair: an account is found by searching its set, and created in place of
 * the one that was unused for the longest time. What that still had to report to the other gateways
 * is then lost; so accounts with nothing to report are replaced first.
 *
 * Places are small; the accounts are stored separately, in the order in which places were first
 * used, so that few accounts use little memory.
 *
 * What must be reported is marked in a separate array, with a byte for each account, so that
 * searching it once a second is cheap however many accounts there are. */
#include "gateway/front/fair_use.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/shared_memory.h"
#include "gateway/front/fair_use_exchange.h"
#include "gateway/front/leaky_bucket.h"

enum {
    SET_SIZE = 16,
    SETS = 2048, /* of each table */
    LOCKS = 64,
    ACCOUNTS = USE_OF_COUNT * SETS * SET_SIZE
};

/* The state of an account in the array that is searched. */
enum news { NEWS_FREE, NEWS_NONE, NEWS_SOME };

struct account {
    uint8_t size; /* of the name */
    char name[USE_NAME_MAX];
    uint64_t touched_ms;
    struct leaky_bucket buckets[USE_RATES];
    uint64_t limits[USE_RATES]; /* by which the levels were computed last */
    uint64_t day;               /* days since 1970, of the sums */
    uint64_t here[USE_SUMS];    /* at this gateway */
    uint64_t told[USE_SUMS];    /* of all gateways, as returned by Redis */
    /* What has not been reported to Redis, and what is being reported. */
    uint64_t unsent[USE_SUMS], sending[USE_SUMS];
    uint64_t unsent_rates[USE_TOLD_RATES];
    uint64_t streams_elsewhere;
    uint64_t sent_ms, heard_ms;
};

struct fair_use {
    pthread_mutex_t locks[LOCKS];
    struct hash_key key;
    uint64_t id;
    uint64_t exchange_ms;           /* minimum time between two reports of an account */
    atomic_uint gateways;           /* number of gateways, including this one */
    atomic_bool is_alone;           /* the others cannot be reached: each gateway uses its share of
                                       each rate */
    _Atomic uint8_t news[ACCOUNTS]; /* enum news */
    atomic_uint taken;              /* used part of `accounts` */
    uint32_t places[ACCOUNTS];      /* index in `accounts`, plus one; 0: never used */
    struct account accounts[ACCOUNTS];
};

/* --- locks --- */

static int init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int r = pthread_mutexattr_init(&attributes);

    if (r != 0)
        return -r;
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    r = pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -r;
}

static pthread_mutex_t *lock_of(struct fair_use *uses, size_t index)
{
    return &uses->locks[index / SET_SIZE % LOCKS];
}

static void lock(struct fair_use *uses, size_t index)
{
    if (pthread_mutex_lock(lock_of(uses, index)) == EOWNERDEAD)
        pthread_mutex_consistent(lock_of(uses, index));
}

static void unlock(struct fair_use *uses, size_t index)
{
    pthread_mutex_unlock(lock_of(uses, index));
}

struct fair_use *fair_use_new(uint64_t exchange_ms)
{
    struct fair_use *uses = shared_memory_new(sizeof(*uses));

    if (!uses)
        return NULL;
    uses->key = hash_key_random();
    uses->exchange_ms = exchange_ms;
    uses->id = hash_key_random().k0;
    atomic_store(&uses->gateways, 1);
    for (int i = 0; i < LOCKS; i++) {
        if (init_lock(&uses->locks[i]) < 0) {
            fair_use_free(uses);
            return NULL;
        }
    }
    return uses;
}

void fair_use_free(struct fair_use *uses)
{
    shared_memory_free(uses, sizeof(*uses));
}

/* --- accounts --- */

static size_t first_of_set(const struct fair_use *uses, const struct use_whose *whose)
{
    size_t set = hash_slice(uses->key, whose->name) % SETS;

    return ((size_t)whose->of * SETS + set) * SET_SIZE;
}

static bool has_news(const struct fair_use *uses, size_t index)
{
    return atomic_load_explicit(&uses->news[index], memory_order_relaxed) == NEWS_SOME;
}

static void mark(struct fair_use *uses, size_t index, bool is_news)
{
    uint8_t news = is_news ? NEWS_SOME : NEWS_NONE;

    if (atomic_load_explicit(&uses->news[index], memory_order_relaxed) != news)
        atomic_store_explicit(&uses->news[index], news, memory_order_relaxed);
}

/* NULL: the place was never used. Its set must be locked. */
static struct account *account_at(struct fair_use *uses, size_t index)
{
    return uses->places[index] > 0 ? &uses->accounts[uses->places[index] - 1] : NULL;
}

/* Whether `a` is replaced before `b`. */
static bool goes_sooner(struct fair_use *uses, size_t a, size_t b)
{
    const struct account *first = account_at(uses, a), *second = account_at(uses, b);

    if (!first || !second)
        return !first && second;
    if (has_news(uses, a) != has_news(uses, b))
        return !has_news(uses, a);
    return first->touched_ms < second->touched_ms;
}

/* ACCOUNTS: there is none. Its set must be locked. */
static size_t find(struct fair_use *uses, const struct use_whose *whose)
{
    size_t first = first_of_set(uses, whose);

    for (size_t i = first; i < first + SET_SIZE; i++) {
        const struct account *account = account_at(uses, i);

        if (account && account->size == whose->name.size &&
            memcmp(account->name, whose->name.data, account->size) == 0)
            return i;
    }
    return ACCOUNTS;
}

static size_t make(struct fair_use *uses, const struct use_whose *whose)
{
    size_t first = first_of_set(uses, whose), index = first;
    struct account *account;

    for (size_t i = first + 1; i < first + SET_SIZE; i++) {
        if (goes_sooner(uses, i, index))
            index = i;
    }
    if (uses->places[index] == 0)
        uses->places[index] = atomic_fetch_add(&uses->taken, 1) + 1;
    account = account_at(uses, index);
    memset(account, 0, sizeof(*account));
    memcpy(account->name, whose->name.data, whose->name.size);
    account->size = (uint8_t)whose->name.size;
    mark(uses, index, false);
    return index;
}

/* Resets the sums when a new day has begun. If the clock is set back by a day, the counts are
 * kept. */
static void turn_day(struct account *account, uint64_t wall_ms)
{
    uint64_t day = wall_ms / USE_DAY_MS;

    if (day == account->day || day + 1 == account->day)
        return;
    account->day = day;
    memset(account->here, 0, sizeof(account->here));
    memset(account->told, 0, sizeof(account->told));
    memset(account->unsent, 0, sizeof(account->unsent)); /* no longer needed by anybody */
    memset(account->sending, 0, sizeof(account->sending));
}

/* Returns the account, locked; call unlock(uses, index) when done. */
static struct account *open_account(struct fair_use *uses, const struct use_whose *whose,
                                    const struct use_times *times, size_t *ret_index)
{
    struct account *account;
    size_t index, first = first_of_set(uses, whose);

    assert(whose->name.size > 0 && whose->name.size <= USE_NAME_MAX);
    lock(uses, first);
    index = find(uses, whose);
    if (index == ACCOUNTS)
        index = make(uses, whose);
    account = account_at(uses, index);
    account->touched_ms = times->now_ms;
    turn_day(account, times->wall_ms);
    *ret_index = index;
    return account;
}

/* --- limits --- */

/* Without contact to the other gateways, each uses its share of the rate. */
static struct leaky_rate rate_of(const struct fair_use *uses, enum use use,
                                 const struct use_limits *limits)
{
    struct leaky_rate rate = {limits->of[use], use_window_ms(use)};
    unsigned gateways = atomic_load_explicit(&uses->gateways, memory_order_relaxed);

    if (rate.limit != USE_UNBOUNDED && rate.limit > 0 && gateways > 1 &&
        atomic_load_explicit(&uses->is_alone, memory_order_relaxed))
        rate.limit = rate.limit > gateways ? rate.limit / gateways : 1;
    return rate;
}

static void fill_rate(const struct leaky_bucket *bucket, const struct leaky_rate *rate,
                      uint64_t now_ms, enum use use, struct use_state *state)
{
    if (rate->limit == USE_UNBOUNDED)
        return;
    state->levels[use] = leaky_bucket_level(bucket, rate, now_ms);
    state->waits_ms[use] = leaky_bucket_wait_ms(bucket, rate, (double)rate->limit - 1, now_ms);
    state->empty_ms[use] = leaky_bucket_wait_ms(bucket, rate, 0, now_ms);
}

static void fill_state(const struct fair_use *uses, const struct account *account,
                       const struct use_limits *limits, uint64_t now_ms, struct use_state *state)
{
    *state = (struct use_state){.streams_elsewhere = account->streams_elsewhere,
                                .heard_ms = account->heard_ms};
    for (int i = 0; i < USE_RATES; i++) {
        struct leaky_rate rate = rate_of(uses, (enum use)i, limits);

        fill_rate(&account->buckets[i], &rate, now_ms, (enum use)i, state);
    }
    for (int i = 0; i < USE_SUMS; i++) {
        uint64_t all = account->told[i] + account->unsent[i] + account->sending[i];

        state->here[i] = account->here[i];
        state->everywhere[i] = all > account->here[i] ? all : account->here[i];
    }
}

bool fair_use_take(struct fair_use *uses, const struct use_whose *whose, enum use rate,
                   const struct use_limits *limits, const struct use_times *times,
                   struct use_state *ret_state)
{
    const struct leaky_rate leaky = rate_of(uses, rate, limits);
    struct account *account;
    bool has_room;
    size_t index;

    assert(rate < USE_RATES);
    account = open_account(uses, whose, times, &index);
    has_room = leaky.limit == USE_UNBOUNDED ||
               leaky_bucket_has_room(&account->buckets[rate], &leaky, times->now_ms);
    if (has_room && leaky.limit != USE_UNBOUNDED)
        leaky_bucket_add(&account->buckets[rate], &leaky, times->now_ms);
    account->limits[rate] = leaky.limit;
    if (has_room && (int)rate < USE_TOLD_RATES)
        account->unsent_rates[rate]++;
    if ((int)rate < USE_TOLD_RATES)
        mark(uses, index, true); /* also if refused, to learn the current state */
    fill_state(uses, account, limits, times->now_ms, ret_state);
    unlock(uses, index);
    return has_room;
}

void fair_use_add(struct fair_use *uses, const struct use_whose *whose,
                  const uint64_t sums[USE_SUMS], const struct use_limits *limits,
                  const struct use_times *times, struct use_state *ret_state)
{
    struct account *account;
    uint64_t all = 0;
    size_t index;

    account = open_account(uses, whose, times, &index);
    for (int i = 0; i < USE_SUMS; i++) {
        account->here[i] += sums[i];
        account->unsent[i] += sums[i];
        all |= sums[i];
    }
    if (all > 0)
        mark(uses, index, true);
    fill_state(uses, account, limits, times->now_ms, ret_state);
    unlock(uses, index);
}

void fair_use_look(struct fair_use *uses, const struct use_whose *whose,
                   const struct use_limits *limits, const struct use_times *times,
                   struct use_state *ret_state)
{
    size_t index;
    const struct account *account = open_account(uses, whose, times, &index);

    fill_state(uses, account, limits, times->now_ms, ret_state);
    unlock(uses, index);
}

/* --- names --- */

const char *use_name(enum use use)
{
    static const char *const names[USE_COUNT] = {
        [USE_CONNECTS] = "connects", [USE_REQUESTS] = "requests", [USE_BAD_TOKENS] = "bad_tokens",
        [USE_EVENTS] = "events",     [USE_BYTES] = "bytes",       [USE_REPLAYED] = "replayed",
        [USE_STREAMS] = "streams",
    };

    return names[use];
}

struct sl_slice use_prefix(struct sl_slice address)
{
    static const char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (char)0xff, (char)0xff};

    if (address.size != 16)
        return address;
    if (memcmp(address.data, mapped, sizeof(mapped)) == 0)
        return sl_slice_from(address, sizeof(mapped));
    return sl_slice(address.data, 8);
}

/* --- exchange with other gateways --- */

uint64_t fair_use_exchange_ms(const struct fair_use *uses)
{
    return uses->exchange_ms;
}

uint64_t fair_use_id(const struct fair_use *uses)
{
    return uses->id;
}

void fair_use_set_gateways(struct fair_use *uses, unsigned gateways)
{
    atomic_store_explicit(&uses->gateways, gateways > 0 ? gateways : 1, memory_order_relaxed);
    atomic_store_explicit(&uses->is_alone, false, memory_order_relaxed);
}

void fair_use_set_alone(struct fair_use *uses)
{
    atomic_store_explicit(&uses->is_alone, true, memory_order_relaxed);
}

void fair_use_mark(struct fair_use *uses, const struct use_whose *whose,
                   const struct use_times *times)
{
    size_t index;

    open_account(uses, whose, times, &index);
    mark(uses, index, true);
    unlock(uses, index);
}

void fair_use_mark_all(struct fair_use *uses)
{
    for (size_t i = 0; i < ACCOUNTS; i++) {
        if (atomic_load_explicit(&uses->news[i], memory_order_relaxed) != NEWS_FREE)
            mark(uses, i, true);
    }
}

static void fill_news(struct account *account, enum use_of of, struct use_news *news)
{
    *news = (struct use_news){.of = of, .name_size = account->size};
    memcpy(news->name, account->name, account->size);
    for (int i = 0; i < USE_TOLD_RATES; i++) {
        news->rates[i] = account->unsent_rates[i];
        news->limits[i] = account->limits[i];
        account->unsent_rates[i] = 0;
    }
    for (int i = 0; i < USE_SUMS; i++) {
        news->sums[i] = account->unsent[i];
        account->sending[i] += account->unsent[i];
        account->unsent[i] = 0;
    }
}

bool fair_use_next_news(struct fair_use *uses, size_t *position, uint64_t now_ms,
                        struct use_news *ret_news)
{
    for (; *position < ACCOUNTS; ++*position) {
        struct account *account;
        bool is_due;

        if (!has_news(uses, *position))
            continue;
        lock(uses, *position);
        account = account_at(uses, *position);
        is_due =
            account && (account->sent_ms == 0 || now_ms - account->sent_ms >= uses->exchange_ms);
        if (is_due) {
            account->sent_ms = now_ms;
            mark(uses, *position, false);
            fill_news(account, (enum use_of)(*position / (SETS * SET_SIZE)), ret_news);
        }
        unlock(uses, *position);
        if (is_due) {
            ++*position;
            return true;
        }
    }
    return false;
}

static void take_off(uint64_t *number, uint64_t less)
{
    *number -= less < *number ? less : *number;
}

void fair_use_was_told(struct fair_use *uses, const struct use_news *news,
                       const struct use_heard *heard, const struct use_times *times)
{
    const struct use_whose whose = {news->of, sl_slice(news->name, news->name_size)};
    struct account *account;
    size_t index;

    account = open_account(uses, &whose, times, &index);
    for (int i = 0; i < USE_TOLD_RATES; i++) {
        const struct leaky_rate rate = {account->limits[i], use_window_ms((enum use)i)};
        struct leaky_bucket *bucket = &account->buckets[i];

        if (rate.limit != USE_UNBOUNDED && rate.limit > 0 &&
            heard->levels[i] > leaky_bucket_level(bucket, &rate, times->now_ms))
            leaky_bucket_set(bucket, heard->levels[i], times->now_ms);
    }
    for (int i = 0; i < USE_SUMS; i++) {
        take_off(&account->sending[i], news->sums[i]);
        if (heard->day == account->day)
            account->told[i] = heard->sums[i];
    }
    account->streams_elsewhere = heard->streams_elsewhere;
    account->heard_ms = times->now_ms;
    unlock(uses, index);
}

void fair_use_was_not_told(struct fair_use *uses, const struct use_news *news,
                           const struct use_times *times)
{
    const struct use_whose whose = {news->of, sl_slice(news->name, news->name_size)};
    struct account *account;
    size_t index;

    account = open_account(uses, &whose, times, &index);
    for (int i = 0; i < USE_TOLD_RATES; i++) {
        account->unsent_rates[i] += news->rates[i];
    }
    for (int i = 0; i < USE_SUMS; i++) {
        if (account->sending[i] >= news->sums[i]) /* otherwise a new day has begun */
            account->unsent[i] += news->sums[i];
        take_off(&account->sending[i], news->sums[i]);
    }
    mark(uses, index, true);
    unlock(uses, index);
}
