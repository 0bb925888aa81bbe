#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gateway/intake/broadcast.h"
#include "tests/support/cmocka_all.h"

enum { SMALL = 4096, ENTRIES = 300000, LONGEST = 700 };

static struct broadcast_entry message(uint64_t id, struct sl_slice data)
{
    return (struct broadcast_entry){
        .kind = BROADCAST_JSON,
        .shard = (uint32_t)(id % SL_SHARDS_MAX),
        .id = id,
        .previous = id - 1,
        .received_us = id * 3,
        .is_end = true,
        .data = data,
    };
}

/* Bytes that identify their entry, so that half of another one is noticed. */
static struct sl_slice data_of(uint64_t id, char *room)
{
    size_t size = id * UINT64_C(0x9e3779b97f4a7c15) >> 32 & 1 ? id % 37 : id % LONGEST;

    memset(room, (int)('a' + id % 26), size);
    return sl_slice(room, size);
}

static void write_message(struct broadcast *broadcast, uint64_t id)
{
    char room[LONGEST];
    struct broadcast_entry entry = message(id, data_of(id, room));

    assert_int_equal(broadcast_write(broadcast, &entry), 0);
}

static bool is_whole(const struct broadcast_entry *entry)
{
    char room[LONGEST];
    struct sl_slice data = data_of(entry->id, room);

    return entry->kind == BROADCAST_JSON && entry->shard == entry->id % SL_SHARDS_MAX &&
           entry->previous == entry->id - 1 && entry->received_us == entry->id * 3 &&
           entry->data.size == data.size && memcmp(entry->data.data, data.data, data.size) == 0;
}

static void test_what_is_written_is_read_by_all(void **state)
{
    struct broadcast *broadcast = broadcast_new(2, SMALL);
    struct broadcast_reader readers[2];
    struct broadcast_state joined;
    struct broadcast_entry entry;

    (void)state;
    assert_non_null(broadcast);
    for (unsigned i = 0; i < 2; i++) {
        broadcast_reader_init(&readers[i], broadcast, i);
        assert_int_equal(broadcast_join(&readers[i], &joined), 0);
        assert_false(joined.is_subscribed || joined.has_master || joined.away.text[0]);
        assert_int_equal(broadcast_read(&readers[i], &entry), 0);
    }
    for (uint64_t id = 1; id < 5000; id++) {
        write_message(broadcast, id);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(broadcast_read(&readers[i], &entry), 1);
            assert_int_equal(entry.id, id);
            assert_true(is_whole(&entry));
            assert_int_equal(broadcast_read(&readers[i], &entry), 0);
        }
    }
    for (unsigned i = 0; i < 2; i++)
        broadcast_reader_done(&readers[i]);
    broadcast_free(broadcast);
}

static void test_who_joins_late_has_the_state_of_that_place(void **state)
{
    struct broadcast *broadcast = broadcast_new(1, SMALL);
    struct sl_redis_endpoint endpoint = {"10.0.0.7", 6379};
    struct sl_meta meta = {.database_id = "0123", .shards = 2, .clock_until_ms = 77};
    struct broadcast_reader reader;
    struct broadcast_state joined;
    struct broadcast_entry entry = {.kind = BROADCAST_AWAY, .data = SL_SLICE("no route")};

    (void)state;
    broadcast_reader_init(&reader, broadcast, 0);
    broadcast_write(broadcast, &entry);
    assert_int_equal(broadcast_join(&reader, &joined), 0);
    assert_string_equal(joined.away.text, "no route");

    entry = (struct broadcast_entry){.kind = BROADCAST_MASTER,
                                     .data = sl_slice((char *)&endpoint, sizeof(endpoint))};
    broadcast_write(broadcast, &entry);
    for (uint32_t shard = 0; shard < 2; shard++) {
        entry =
            (struct broadcast_entry){.kind = BROADCAST_LOG_END, .shard = shard, .id = 100 + shard};
        broadcast_write(broadcast, &entry);
    }
    entry = (struct broadcast_entry){.kind = BROADCAST_SUBSCRIBED,
                                     .data = sl_slice((char *)&meta, sizeof(meta))};
    broadcast_write(broadcast, &entry);
    entry = (struct broadcast_entry){
        .kind = BROADCAST_JSON, .shard = 1, .id = 200, .is_end = true, .data = SL_SLICE("{}")};
    broadcast_write(broadcast, &entry);
    entry.id = 9999; /* must not be trusted */
    entry.is_end = false;
    broadcast_write(broadcast, &entry);

    assert_int_equal(broadcast_join(&reader, &joined), 0);
    assert_true(joined.is_subscribed && joined.has_master);
    assert_true(sl_redis_endpoint_equals(&joined.master, &endpoint));
    assert_string_equal(joined.meta.database_id, "0123");
    assert_int_equal(joined.meta.clock_until_ms, 77);
    assert_int_equal(joined.ends[0], 100);
    assert_int_equal(joined.ends[1], 200);
    assert_int_equal(broadcast_read(&reader, &entry), 0);

    entry = (struct broadcast_entry){.kind = BROADCAST_LOST, .data = SL_SLICE("gone")};
    broadcast_write(broadcast, &entry);
    assert_int_equal(broadcast_read(&reader, &entry), 1);
    assert_int_equal(entry.kind, BROADCAST_LOST);
    assert_true(sl_slice_is(entry.data, "gone"));
    assert_int_equal(broadcast_join(&reader, &joined), 0);
    assert_false(joined.is_subscribed);
    broadcast_reader_done(&reader);
    broadcast_free(broadcast);
}

/* At every distance around the size of the memory. */
static void test_who_was_overtaken_is_told_and_never_reads_what_is_not_there(void **state)
{
    struct broadcast *broadcast = broadcast_new(1, SMALL);
    struct broadcast_reader reader;
    struct broadcast_state joined;
    struct broadcast_entry entry;
    uint64_t id = 1;
    unsigned overruns = 0;

    (void)state;
    broadcast_reader_init(&reader, broadcast, 0);
    for (unsigned ahead = 1; ahead < 200; ahead++) {
        uint64_t first = id;
        int r;

        assert_int_equal(broadcast_join(&reader, &joined), 0);
        for (unsigned i = 0; i < ahead; i++)
            write_message(broadcast, id++);
        for (uint64_t next = first; (r = broadcast_read(&reader, &entry)) > 0; next++) {
            assert_int_equal(entry.id, next);
            assert_true(is_whole(&entry));
        }
        assert_true(r == 0 || r == -EOVERFLOW);
        overruns += r < 0;
    }
    assert_in_range(overruns, 100, 199);
    broadcast_reader_done(&reader);
    broadcast_free(broadcast);
}

static void test_what_is_too_large_is_refused_and_changes_nothing(void **state)
{
    struct broadcast *broadcast = broadcast_new(1, SMALL);
    static char room[2 * SMALL];
    struct broadcast_reader reader;
    struct broadcast_state joined;
    struct broadcast_entry entry;

    (void)state;
    memset(room, 'x', sizeof(room));
    broadcast_reader_init(&reader, broadcast, 0);
    assert_int_equal(broadcast_join(&reader, &joined), 0);
    for (size_t size = SMALL / 4 - 39; size < sizeof(room); size += 13) {
        entry = message(64, sl_slice(room, size));
        assert_int_equal(broadcast_write(broadcast, &entry), -EMSGSIZE);
    }
    assert_int_equal(broadcast_read(&reader, &entry), 0);
    entry = message(64, sl_slice(room, SMALL / 4 - 40));
    assert_int_equal(broadcast_write(broadcast, &entry), 0);
    assert_int_equal(broadcast_read(&reader, &entry), 1);
    assert_int_equal(entry.data.size, SMALL / 4 - 40);
    broadcast_reader_done(&reader);
    broadcast_free(broadcast);
}

static bool is_readable(const struct broadcast_reader *reader)
{
    struct pollfd waiting = {.fd = broadcast_wake_fd(reader), .events = POLLIN};

    return poll(&waiting, 1, 0) == 1;
}

static void test_only_who_sleeps_is_woken(void **state)
{
    struct broadcast *broadcast = broadcast_new(1, SMALL);
    struct broadcast_reader reader;
    struct broadcast_state joined;
    struct broadcast_entry entry;

    (void)state;
    broadcast_reader_init(&reader, broadcast, 0);
    assert_int_equal(broadcast_join(&reader, &joined), 0);
    write_message(broadcast, 1);
    broadcast_wake(broadcast);
    assert_false(is_readable(&reader));
    assert_false(broadcast_sleep(&reader));
    assert_int_equal(broadcast_read(&reader, &entry), 1);
    assert_true(broadcast_sleep(&reader));
    broadcast_wake(broadcast);
    assert_true(is_readable(&reader));
    broadcast_clear_wake(&reader);
    write_message(broadcast, 2);
    broadcast_wake(broadcast);
    assert_false(is_readable(&reader));
    broadcast_reader_done(&reader);
    broadcast_free(broadcast);
}

/* ---- two threads, and a killed writer ---- */

struct counts {
    uint64_t read, overruns;
};

struct scene {
    struct broadcast *broadcast;
    _Atomic bool is_over;
};

static void *write_many(void *argument)
{
    struct scene *scene = argument;

    for (uint64_t id = 1; id <= ENTRIES; id++) {
        write_message(scene->broadcast, id);
        if (id % 7 == 0)
            broadcast_wake(scene->broadcast);
        if (id % 1000 == 0)
            usleep(100); /* otherwise a slow machine would see only overruns */
    }
    atomic_store(&scene->is_over, true);
    broadcast_wake(scene->broadcast);
    return NULL;
}

/* Checks that the end of each shard is that of the entry before the reader's place. */
static void join_soundly(struct broadcast_reader *reader, uint64_t *ret_newest)
{
    struct broadcast_state joined;

    while (broadcast_join(reader, &joined) < 0) {
    }
    *ret_newest = 0;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        *ret_newest = joined.ends[shard] > *ret_newest ? joined.ends[shard] : *ret_newest;
}

/* Reads until it has the last entry, or no more can come. */
static void read_many(struct scene *scene, struct broadcast_reader *reader, struct counts *counts)
{
    struct pollfd waiting = {.fd = broadcast_wake_fd(reader), .events = POLLIN};
    struct broadcast_entry entry;
    uint64_t last;

    join_soundly(reader, &last);
    while (last < ENTRIES) {
        int r = broadcast_read(reader, &entry);

        if (r > 0) {
            assert_int_equal(entry.id, last + 1);
            assert_true(is_whole(&entry));
            last = entry.id;
            counts->read++;
        } else if (r < 0) {
            counts->overruns++;
            join_soundly(reader, &last);
        } else if (!atomic_load(&scene->is_over) && broadcast_sleep(reader)) {
            assert_int_equal(poll(&waiting, 1, 20000), 1); /* woken at any moment */
            broadcast_clear_wake(reader);
        }
    }
}

static void test_readers_beside_a_writer_read_whole_entries_in_order(void **state)
{
    struct scene scene = {.broadcast = broadcast_new(1, 8 * SMALL)};
    struct counts counts = {0};
    struct broadcast_reader reader;
    pthread_t writer;

    (void)state;
    broadcast_reader_init(&reader, scene.broadcast, 0);
    assert_int_equal(pthread_create(&writer, NULL, write_many, &scene), 0);
    read_many(&scene, &reader, &counts);
    pthread_join(writer, NULL);
    assert_true(counts.read > 1000);
    broadcast_reader_done(&reader);
    broadcast_free(scene.broadcast);
}

/* Killed at any instruction, again and again: existing and new readers are not affected. */
static void test_a_writer_may_be_killed_at_any_moment(void **state)
{
    struct broadcast *broadcast = broadcast_new(1, SMALL);
    struct broadcast_reader reader;
    struct broadcast_state joined;
    struct broadcast_entry entry;
    int r;

    (void)state;
    broadcast_reader_init(&reader, broadcast, 0);
    assert_int_equal(broadcast_join(&reader, &joined), 0);
    for (unsigned i = 0; i < 50; i++) {
        uint64_t end_ms = clock_monotonic_ms() + 1 + i % 5;
        pid_t writer = fork();

        if (writer == 0) {
            for (uint64_t id = 1;; id++)
                write_message(broadcast, id);
        }
        while (clock_monotonic_ms() < end_ms) {
            r = broadcast_read(&reader, &entry);
            if (r > 0)
                assert_true(is_whole(&entry));
            else if (r < 0)
                broadcast_join(&reader, &joined);
        }
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
        broadcast_reset(broadcast);
        while ((r = broadcast_read(&reader, &entry)) > 0)
            assert_true(is_whole(&entry));
        assert_true(r == -EPIPE || r == -EOVERFLOW);
        assert_int_equal(broadcast_join(&reader, &joined), 0);
        assert_false(joined.is_subscribed);
        assert_int_equal(broadcast_read(&reader, &entry), 0);
    }
    broadcast_reader_done(&reader);
    broadcast_free(broadcast);
}

static void test_a_sleeper_is_woken_when_the_writer_has_died(void **state)
{
    struct broadcast *broadcast = broadcast_new(1, SMALL);
    struct broadcast_reader reader;
    struct broadcast_state joined;
    struct broadcast_entry entry;

    (void)state;
    broadcast_reader_init(&reader, broadcast, 0);
    assert_int_equal(broadcast_join(&reader, &joined), 0);
    assert_true(broadcast_sleep(&reader));
    broadcast_reset(broadcast);
    assert_true(is_readable(&reader));
    assert_int_equal(broadcast_read(&reader, &entry), -EPIPE);
    broadcast_reader_done(&reader);
    broadcast_free(broadcast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_by_all),
        cmocka_unit_test(test_who_joins_late_has_the_state_of_that_place),
        cmocka_unit_test(test_who_was_overtaken_is_told_and_never_reads_what_is_not_there),
        cmocka_unit_test(test_what_is_too_large_is_refused_and_changes_nothing),
        cmocka_unit_test(test_only_who_sleeps_is_woken),
        cmocka_unit_test(test_readers_beside_a_writer_read_whole_entries_in_order),
        cmocka_unit_test(test_a_writer_may_be_killed_at_any_moment),
        cmocka_unit_test(test_a_sleeper_is_woken_when_the_writer_has_died),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
