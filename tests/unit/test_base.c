#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/hash.h"
#include "base/hash_map.h"
#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/sequence_lock.h"
#include "base/shared_memory.h"
#include "base/stable_hash.h"
#include "base/utf8.h"
#include "tests/support/cmocka_all.h"

static void test_buffer_grows_and_consumes(void **state)
{
    struct buffer buffer = BUFFER_INIT;

    (void)state;
    for (int i = 0; i < 1000; i++)
        buffer_append_format(&buffer, "%d,", i);
    assert_false(buffer.failed);
    assert_memory_equal(buffer.data, "0,1,2,3,", 8);
    buffer_consume(&buffer, 4);
    assert_memory_equal(buffer.data, "2,3,", 4);
    assert_string_equal(buffer_str(&buffer) + buffer.size - 4, "999,");
    buffer_done(&buffer);
}

static void test_buffer_over_its_limit_fails_and_keeps_its_content(void **state)
{
    struct buffer buffer = BUFFER_INIT;

    (void)state;
    buffer.limit = 5;
    buffer_append_str(&buffer, "abc");
    buffer_append_str(&buffer, "defg");
    assert_true(buffer.failed);
    buffer_append_str(&buffer, "x");
    assert_int_equal(buffer.size, 3);
    buffer_done(&buffer);
}

static void test_json_string_escapes_only_what_it_must(void **state)
{
    struct buffer buffer = BUFFER_INIT;

    (void)state;
    buffer_append_json_string(&buffer, SL_SLICE("a\"\\\n\x01/é"));
    assert_string_equal(buffer_str(&buffer), "\"a\\\"\\\\\\n\\u0001/é\"");
    buffer_done(&buffer);
}

static void test_hash_map_finds_what_was_added_and_not_what_was_removed(void **state)
{
    struct hash_map *map = hash_map_new();
    char key[32];
    int values[2000];
    size_t walked = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        int length = snprintf(key, sizeof(key), "key-%d", i);

        assert_int_equal(hash_map_add(map, sl_slice(key, (size_t)length), &values[i]), 0);
        assert_int_equal(hash_map_add(map, sl_slice(key, (size_t)length), &values[i]), -EEXIST);
        if (i % 3 == 0)
            assert_ptr_equal(hash_map_remove(map, sl_slice(key, (size_t)length)), &values[i]);
    }
    for (int i = 0; i < 2000; i++) {
        int length = snprintf(key, sizeof(key), "key-%d", i);

        assert_ptr_equal(hash_map_get(map, sl_slice(key, (size_t)length)),
                         i % 3 == 0 ? NULL : &values[i]);
    }
    for (size_t at = 0; hash_map_next(map, &at, NULL, NULL);)
        walked++;
    assert_int_equal(walked, hash_map_count(map));
    assert_int_equal(walked, 2000 - 667);
    hash_map_free(map);
}

static void test_hash_map_survives_each_failed_allocation(void **state)
{
    (void)state;
    for (uint64_t n = 0;; n++) {
        struct hash_map *map;
        bool failed = false;

        mem_fail_after(n);
        map = hash_map_new();
        for (int i = 0; map && i < 40; i++) {
            char key[8];
            int length = snprintf(key, sizeof(key), "%d", i);
            int r = hash_map_add(map, sl_slice(key, (size_t)length), map);

            if (r < 0) {
                assert_int_equal(r, -ENOMEM);
                assert_null(hash_map_get(map, sl_slice(key, (size_t)length)));
                failed = true;
            }
        }
        mem_fail_never();
        hash_map_free(map);
        if (map && !failed)
            break;
    }
}

struct member {
    int name;
    struct list_node node;
};

/* The names of a list's members as the digits of a number. */
static int names_of(const struct list *list)
{
    size_t count = 0;
    int names = 0;

    LIST_EACH(list, node)
    {
        names = names * 10 + LIST_OWNER(node, struct member, node)->name;
        assert_ptr_equal(node->next->previous, node);
        count++;
    }
    assert_int_equal(list->count, count);
    assert_int_equal(list_is_empty(list), count == 0);
    assert_ptr_equal(list_first(list), count ? list->head.next : NULL);
    return names;
}

static void test_list_keeps_its_order(void **state)
{
    struct member members[] = {{.name = 1}, {.name = 2}, {.name = 3}};
    struct list list;

    (void)state;
    list_init(&list);
    assert_int_equal(names_of(&list), 0);
    assert_false(list_contains(&members[0].node));
    list_append(&list, &members[0].node);
    list_append(&list, &members[1].node);
    list_insert_after(&list, &list.head, &members[2].node);
    assert_int_equal(names_of(&list), 312);
    assert_true(list_contains(&members[0].node));
    list_remove(&list, &members[0].node);
    assert_false(list_contains(&members[0].node));
    assert_int_equal(names_of(&list), 32);
    list_insert_after(&list, &members[2].node, &members[0].node);
    assert_int_equal(names_of(&list), 312);
}

static void test_list_walk_may_remove_and_move_what_it_stands_on(void **state)
{
    struct member members[] = {{.name = 1}, {.name = 2}, {.name = 3}, {.name = 4}};
    struct list list, other;

    (void)state;
    list_init(&list);
    list_init(&other);
    for (size_t i = 0; i < 4; i++)
        list_append(&list, &members[i].node);
    LIST_EACH(&list, node)
    {
        list_remove(&list, node);
        if (LIST_OWNER(node, struct member, node)->name % 2 == 0)
            list_append(&other, node);
    }
    assert_int_equal(names_of(&list), 0);
    assert_int_equal(names_of(&other), 24);
}

/* Each is filled with what no other has. */
static void test_pool_blocks_are_apart_and_used_again(void **state)
{
    unsigned char *blocks[2000];
    struct pool pool = {0};
    void *given_back;

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        blocks[i] = pool_alloc(&pool, 1 + i % POOL_MAX);
        assert_true(blocks[i] && (uintptr_t)blocks[i] % 8 == 0);
        memset(blocks[i], (int)(i % 251), 1 + i % POOL_MAX);
    }
    for (unsigned i = 0; i < 2000; i++)
        for (unsigned at = 0; at < 1 + i % POOL_MAX; at++)
            assert_int_equal(blocks[i][at], i % 251);
    given_back = pool_alloc(&pool, 100);
    pool_free(&pool, given_back, 100);
    assert_ptr_not_equal(pool_alloc(&pool, 200), given_back);
    assert_ptr_equal(pool_alloc(&pool, 65), given_back);
    mem_fail_after(0);
    while (pool_alloc(&pool, POOL_MAX))
        continue;
    mem_fail_never();
    assert_non_null(pool_alloc(&pool, POOL_MAX));
    pool_done(&pool);
}

static void test_rfc3339_is_written_and_read(void **state)
{
    char text[CLOCK_RFC3339_SIZE];
    uint64_t ms;

    (void)state;
    clock_format_rfc3339(1767225600123, text);
    assert_string_equal(text, "2026-01-01T00:00:00.123Z");
    assert_int_equal(clock_parse_rfc3339(SL_SLICE("2026-01-01T00:00:00.123Z"), &ms), 0);
    assert_int_equal(ms, 1767225600123);
    assert_int_equal(clock_parse_rfc3339(SL_SLICE("2026-01-01T01:30:00+01:30"), &ms), 0);
    assert_int_equal(ms, 1767225600000);
    assert_int_equal(clock_parse_rfc3339(SL_SLICE("2024-02-29T00:00:00.98765Z"), &ms), 0);
    assert_int_equal(ms % 1000, 987);
}

/* Every day of more than four centuries, compared with the C library. */
static void test_dates_are_those_of_the_calendar(void **state)
{
    (void)state;
    for (uint64_t ms = 0; ms < UINT64_C(86400000) * 366 * 450; ms += 86400000 + 3723004) {
        char text[CLOCK_RFC3339_SIZE], expected[CLOCK_RFC3339_SIZE];
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;
        size_t size =
            strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));

        snprintf(expected + size, sizeof(expected) - size, ".%03uZ", (unsigned)(ms % 1000));
        clock_format_rfc3339(ms, text);
        assert_string_equal(text, expected);
    }
}

static void test_no_date_is_longer_than_its_room(void **state)
{
    char text[CLOCK_RFC3339_SIZE];

    (void)state;
    clock_format_rfc3339(UINT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
}

static void test_bad_rfc3339_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "2026-01-01",
                                      "2026-13-01T00:00:00Z",
                                      "2023-02-29T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:00:00",
                                      "2026-01-01T00:00:00.Z",
                                      "2026-01-01T00:00:00Zx",
                                      "2026-01-01T00:00:00+1:00",
                                      "1969-01-01T00:00:00Z"};
    uint64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(clock_parse_rfc3339(sl_slice_str(bad[i]), &ms), -EINVAL);
}

static void test_stable_hash_never_changes(void **state)
{
    (void)state;
    assert_true(stable_hash(1) == 0x910A2DEC89025CC1u);
    assert_true(stable_hash(1001) == 0x533E00F7F3C606D4u);
}

static void test_keyed_hash_depends_on_key_and_length(void **state)
{
    struct hash_key a = {1, 2}, b = {1, 3};

    (void)state;
    assert_true(hash_bytes(a, "abc", 3) == hash_bytes(a, "abc", 3));
    assert_true(hash_bytes(a, "abc", 3) != hash_bytes(b, "abc", 3));
    assert_true(hash_bytes(a, "abc\0", 4) != hash_bytes(a, "abc", 3));
    assert_true(hash_bytes(a, "12345678", 8) != hash_bytes(a, "12345678\0", 9));
}

static void test_failure_returns_the_errno_it_was_given(void **state)
{
    struct failure failure;

    (void)state;
    assert_int_equal(failure_set(&failure, -EINVAL, "port %d", 7), -EINVAL);
    assert_string_equal(failure.text, "port 7");
    assert_int_equal(failure_set(NULL, -EIO, "nobody cares"), -EIO);
}

static void test_log_quote_shows_control_characters(void **state)
{
    char room[LOG_QUOTE_SIZE];
    char longer[400];

    (void)state;
    assert_string_equal(log_quote(SL_SLICE("a\n\"b"), room), "\"a\\x0a\\x22b\"");
    memset(longer, 'x', sizeof(longer));
    assert_true(strlen(log_quote(sl_slice(longer, sizeof(longer)), room)) < LOG_QUOTE_SIZE);
}

/* U+009B begins control sequences, as ESC [ does; U+202E reverses the direction of the rest of the
 * line. */
static void test_log_quote_shows_what_terminals_obey_and_what_reorders(void **state)
{
    char room[LOG_QUOTE_SIZE];

    (void)state;
    assert_string_equal(log_quote(SL_SLICE("\x1b[2J \xc2\x9b"
                                           "2J \xc2\x85"),
                                  room),
                        "\"\\x1b[2J \\u009b2J \\u0085\"");
    assert_string_equal(log_quote(SL_SLICE("a\xe2\x80\xae"
                                           "b\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f"),
                                  room),
                        "\"a\\u202eb\\u2066\\u061c\\u200f\"");
    assert_string_equal(log_quote(SL_SLICE("\x9b\xc3\xa9\xe2\x80"), room),
                        "\"\\x9b\xc3\xa9\\xe2\\x80\"");
    assert_string_equal(log_quote(SL_SLICE("\xe8\x8c\xb6 \xf0\x9f\x98\x80 \xd7\x90"), room),
                        "\"\xe8\x8c\xb6 \xf0\x9f\x98\x80 \xd7\x90\"");
}

/* Whatever is quoted, no character and no escape is cut in two. */
static void test_log_quote_is_cut_between_characters(void **state)
{
    static const char *const texts[] = {"\xc2\x9b", "\xe8\x8c\xb6", "\xf0\x9f\x98\x80", "\x1b",
                                        "\xff"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t shift = 0; shift < 8; shift++) {
            char room[LOG_QUOTE_SIZE], once[LOG_QUOTE_SIZE], text[400] = "xxxxxxxx";
            size_t size = shift, one, length;

            for (; size + strlen(texts[i]) < sizeof(text); size += strlen(texts[i]))
                memcpy(text + size, texts[i], strlen(texts[i]) + 1);
            log_quote(sl_slice_str(texts[i]), once);
            one = strlen(once) - 2;
            log_quote(sl_slice(text, size), room);
            length = strlen(room);
            assert_true(length < LOG_QUOTE_SIZE);
            assert_string_equal(room + length - 4, "...\"");
            assert_int_equal((length - 5 - shift) % one, 0);
        }
    }
}

static void test_log_rate_counts_what_it_holds_back(void **state)
{
    struct log_rate rate = {0};
    uint64_t held_back;

    (void)state;
    assert_true(log_rate_allows(&rate, 5000, &held_back));
    assert_int_equal(held_back, 0);
    assert_false(log_rate_allows(&rate, 5500, &held_back));
    assert_false(log_rate_allows(&rate, 5999, &held_back));
    assert_true(log_rate_allows(&rate, 6000, &held_back));
    assert_false(log_rate_allows_in(&rate, 60000, 65999, &held_back));
    assert_int_equal(held_back, 2);
    assert_true(log_rate_allows_in(&rate, 60000, 66000, &held_back));
    assert_int_equal(held_back, 1);
}

static void expect_base64url(struct sl_slice bytes, const char *text)
{
    struct buffer encoded = BUFFER_INIT, decoded = BUFFER_INIT;

    base64url_encode(bytes, &encoded);
    assert_string_equal(buffer_str(&encoded), text);
    assert_int_equal(base64url_decode(sl_slice_str(text), &decoded), 0);
    assert_true(sl_slice_equal(buffer_slice(&decoded), bytes));
    buffer_done(&encoded);
    buffer_done(&decoded);
}

static void test_base64url_goes_there_and_back(void **state)
{
    (void)state;
    expect_base64url(SL_SLICE(""), "");
    expect_base64url(SL_SLICE("f"), "Zg");
    expect_base64url(SL_SLICE("fo"), "Zm8");
    expect_base64url(SL_SLICE("foo"), "Zm9v");
    expect_base64url(SL_SLICE("foob"), "Zm9vYg");
    expect_base64url(SL_SLICE("\xff\xef\xbe\0\xfb"), "_---APs");
}

static void test_base64url_has_64_digits(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct buffer decoded = BUFFER_INIT;

    (void)state;
    for (unsigned c = 1; c < 256; c++) {
        char text[] = {'A', 'A', 'A', (char)c, '\0'};
        const char *digit = strchr(digits, (int)c);

        buffer_clear(&decoded);
        assert_int_equal(base64url_decode(sl_slice_str(text), &decoded), digit ? 0 : -EINVAL);
        if (digit)
            assert_int_equal(decoded.data[2], digit - digits);
    }
    buffer_done(&decoded);
}

static void test_buffer_prints_into_what_room_there_is(void **state)
{
    struct buffer buffer = BUFFER_INIT;

    (void)state;
    for (size_t size = 1; size < 200; size++) {
        char text[200];

        memset(text, 'x', size);
        text[size] = '\0';
        buffer_clear(&buffer);
        buffer_append_format(&buffer, "%s", text);
        buffer_append_format(&buffer, "<%s>", text);
        assert_int_equal(buffer.size, 2 * size + 2);
        assert_memory_equal(buffer.data, text, size);
        assert_int_equal(buffer.data[size], '<');
        assert_memory_equal(buffer.data + size + 1, text, size);
        assert_int_equal(buffer.data[buffer.size - 1], '>');
    }
    buffer_clear(&buffer);
    buffer_append_decimal(&buffer, 0);
    buffer_append_char(&buffer, ' ');
    buffer_append_decimal(&buffer, 1090);
    buffer_append_char(&buffer, ' ');
    buffer_append_decimal(&buffer, UINT64_MAX);
    assert_string_equal(buffer_str(&buffer), "0 1090 18446744073709551615");
    buffer_done(&buffer);
}

static void test_base64url_has_one_text_for_each_sequence_of_bytes(void **state)
{
    static const char *const bad[] = {"Z",     "Zg=",  "Zg==", "Zh",    "Zm9",   "Zm9vYh",
                                      "Zm9v ", "Zm+v", "Zm/v", "Z\n9v", "Zm9vY", "\xc3\xa9Zm"};
    struct buffer decoded = BUFFER_INIT;

    (void)state;
    buffer_append_str(&decoded, "as before");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(base64url_decode(sl_slice_str(bad[i]), &decoded), -EINVAL);
    assert_true(sl_slice_is(buffer_slice(&decoded), "as before"));
    mem_fail_after(0);
    assert_int_equal(
        base64url_decode(SL_SLICE("Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9v"
                                  "YmFyZm9vYmFyZm9vYmFy"),
                         &decoded),
        -ENOMEM);
    mem_fail_never();
    buffer_done(&decoded);
}

/* Checks it as a whole, and cut in two at each place. */
static void check_utf8(struct sl_slice text, bool is_valid)
{
    assert_int_equal(utf8_is_valid(text), is_valid);
    for (size_t cut = 0; cut <= text.size; cut++) {
        enum utf8_state state = utf8_read(UTF8_WHOLE, sl_slice(text.data, cut));

        state = utf8_read(state, sl_slice_from(text, cut));
        assert_int_equal(state == UTF8_WHOLE, is_valid);
    }
}

/* All such sequences, compared with the other decoder. */
static void test_utf8_of_up_to_three_bytes_is_read_in_two_ways(void **state)
{
    unsigned char bytes[3];

    (void)state;
    for (unsigned all = 0; all < 1 << 24; all++) {
        unsigned char *at = bytes, *end = bytes + sizeof(bytes);
        size_t size = 1;

        bytes[0] = (unsigned char)(all >> 16);
        bytes[1] = (unsigned char)(all >> 8);
        bytes[2] = (unsigned char)all;
        for (; at < end && size > 0; at += size)
            size = *at < 0x80 ? 1 : utf8_code_point_size(at, end);
        if (utf8_is_valid(sl_slice((char *)bytes, sizeof(bytes))) != (size > 0))
            fail_msg("%02x %02x %02x", bytes[0], bytes[1], bytes[2]);
    }
}

static void test_utf8_is_cut_between_code_points(void **state)
{
    static const size_t sizes[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    struct sl_slice text = SL_SLICE("a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80z");

    (void)state;
    for (size_t max = 0; max < sizeof(sizes) / sizeof(sizes[0]); max++)
        assert_int_equal(utf8_cut(text, max).size, sizes[max]);
}

static void test_utf8_is_checked_to_the_letter(void **state)
{
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "a\xe4\xb8\xad"
                                       "b"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2"
                                      "a",
                                      "\xe0\x9f\xbf",
                                      "\xe4\xb8",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf0\x90\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        check_utf8(sl_slice_str(good[i]), true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *copy = mem_copy(bad[i], strlen(bad[i])); /* has no byte after it */

        check_utf8(sl_slice(copy, strlen(bad[i])), false);
        mem_free(copy);
    }
}

/* Another process writes pairs of equal numbers; one in a hundred writes is never finished. */
static void test_what_a_sequence_lock_lets_through_is_whole(void **state)
{
    struct pair {
        struct sequence_lock lock;
        volatile uint64_t first, second;
    } *pair = shared_memory_new(sizeof(*pair));
    uint64_t newest = 0, first, second, writes = 200000;
    int status;
    pid_t child;

    (void)state;
    assert_non_null(pair);
    assert_true(sequence_lock_was_still(&pair->lock, sequence_lock_read(&pair->lock)));
    child = fork();
    for (uint64_t i = 1; child == 0 && i <= writes; i++) {
        sequence_lock_begin_write(&pair->lock);
        pair->first = i;
        if (i % 100 == 0 && i < writes)
            continue; /* as if it had died here */
        pair->second = i;
        sequence_lock_end_write(&pair->lock);
    }
    if (child == 0)
        _exit(0);
    while (newest < writes) {
        uint32_t sequence = sequence_lock_read(&pair->lock);

        first = pair->first;
        second = pair->second;
        if (!sequence_lock_was_still(&pair->lock, sequence))
            continue;
        assert_int_equal(first, second);
        assert_true(first >= newest);
        newest = first;
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sequence_lock_begin_write(&pair->lock);
    assert_false(sequence_lock_was_still(&pair->lock, sequence_lock_read(&pair->lock)));
    shared_memory_free(pair, sizeof(*pair));
    shared_memory_free(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffer_grows_and_consumes),
        cmocka_unit_test(test_buffer_over_its_limit_fails_and_keeps_its_content),
        cmocka_unit_test(test_json_string_escapes_only_what_it_must),
        cmocka_unit_test(test_hash_map_finds_what_was_added_and_not_what_was_removed),
        cmocka_unit_test(test_hash_map_survives_each_failed_allocation),
        cmocka_unit_test(test_base64url_goes_there_and_back),
        cmocka_unit_test(test_base64url_has_64_digits),
        cmocka_unit_test(test_buffer_prints_into_what_room_there_is),
        cmocka_unit_test(test_base64url_has_one_text_for_each_sequence_of_bytes),
        cmocka_unit_test(test_utf8_is_checked_to_the_letter),
        cmocka_unit_test(test_utf8_of_up_to_three_bytes_is_read_in_two_ways),
        cmocka_unit_test(test_utf8_is_cut_between_code_points),
        cmocka_unit_test(test_list_keeps_its_order),
        cmocka_unit_test(test_list_walk_may_remove_and_move_what_it_stands_on),
        cmocka_unit_test(test_pool_blocks_are_apart_and_used_again),
        cmocka_unit_test(test_rfc3339_is_written_and_read),
        cmocka_unit_test(test_dates_are_those_of_the_calendar),
        cmocka_unit_test(test_no_date_is_longer_than_its_room),
        cmocka_unit_test(test_bad_rfc3339_is_refused),
        cmocka_unit_test(test_stable_hash_never_changes),
        cmocka_unit_test(test_keyed_hash_depends_on_key_and_length),
        cmocka_unit_test(test_failure_returns_the_errno_it_was_given),
        cmocka_unit_test(test_log_quote_shows_control_characters),
        cmocka_unit_test(test_log_quote_shows_what_terminals_obey_and_what_reorders),
        cmocka_unit_test(test_log_quote_is_cut_between_characters),
        cmocka_unit_test(test_log_rate_counts_what_it_holds_back),
        cmocka_unit_test(test_what_a_sequence_lock_lets_through_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
