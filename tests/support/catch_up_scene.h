/* tests/support/catch_up_scene.h - clients that catch up with logs that are arrays: read when the
 * test says so.
 *
 * There is one fixture, set up for each test: a deliver with its log cache, three clients, and
 * nothing published yet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/log_cache.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_client.h"

enum { LOG_MAX = 4000, SHARDS = 4, JSON_SIZE = 256, ROOM = 32 << 10, LAG_MS = 3600000 };

struct logged {
    uint64_t id, previous;
    bool is_unreadable, is_deleted;
    char json[JSON_SIZE];
};

/* The log of one shard. */
struct fake_log {
    struct logged entries[LOG_MAX];
    size_t count, first; /* those before `first` have been trimmed */
    size_t passed;       /* delivered live */
    struct {
        bool is_asked;
        uint64_t after, to;
        log_batch_fn done;
        void *owner;
    } request;
};

extern struct fake_log logs[SHARDS];
extern uint64_t last_id;   /* over all shards */
extern uint64_t id_offset; /* added to the next ids */
extern unsigned reads;
extern uv_loop_t loop;
extern struct metrics *metrics;
extern struct deliver *deliver;
extern struct fake_client a, b, c;

#define CATCH_UP_TEST(test) cmocka_unit_test_setup_teardown(test, scene_begin, scene_end)

int scene_begin(void **state);
int scene_end(void **state);
/* Starts again with another ring and other limits. */
void begin_again(size_t ring_bytes, size_t max_owed_bytes, uint64_t max_lag_ms);

/* --- the log --- */

/* Answers the pending request; false: there is none. */
bool answer(uint32_t shard);
/* Logs a post, which does not pass yet. */
uint64_t publish_in(uint32_t shard, const char *user, const char *text);
/* Passes the next event live; false: all have passed. */
bool pass_in(uint32_t shard);
/* In shard 0. post() also passes it. posts(): "coffee" and "tea" alternately. */
uint64_t publish(const char *text);
uint64_t post(const char *text);
void posts(size_t count);
/* A post that is published without the log passes. */
void post_unlogged(const char *user);
/* Returns the ids in the log of shard 0 from index `from` to before `to`; those with an odd index
 * have "tea". */
const char *ids(size_t from, size_t to, size_t step);
uint64_t id_at(size_t place);

/* --- clients --- */

struct sl_cursor head(void);
/* `track` NULL: everything. */
struct sl_filter *filter_of(const char *track);
void subscribe(struct fake_client *client, const char *track);
void resume(struct fake_client *client, const char *track, uint64_t cursor);
void leave(struct fake_client *client);
void make_room(struct fake_client *client, size_t bytes);
bool is_live(const struct fake_client *client);
/* Runs one turn of the loop without waiting. */
void turn(void);
/* Runs turns until nothing changes any more. */
void settle(void);
/* Returns the ids of all events received since the last call, and control messages as they are,
 * separated by spaces; removes them. */
const char *received(struct fake_client *client);
void check_all_but_warning(struct fake_client *client, const char *expected);

/* --- several shards --- */

enum { QUIET_SHARD = 2, EMPTY_SHARD = 3, TAKES = 600 };

/* The ids that two busy shards have logged alternately, and that passed at once. QUIET_SHARD has a
 * single, earlier event. */
extern uint64_t busy_ids[TAKES];

/* Both return busy_ids, which is empty at first. */
const uint64_t *begin_busy(void);
const uint64_t *begin_with_quiet_shards(size_t ring_bytes);
void post_to_busy_shards(const uint64_t *busy);
