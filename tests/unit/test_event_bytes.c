/* An event that is copied to another process as bytes is the same event there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/event.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/decode_scene.h"

enum { ROUNDS = 20000 };

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed >> 33;
}

/* ---- random messages, nearly all of which are events ---- */

static void append_string(struct buffer *json, uint64_t *seed)
{
    static const char *const pieces[] = {"a", "Zürich", "\\u00e9", " ", "#tag", "\\/", "日本", ""};
    size_t count = next_random(seed) % 6;

    buffer_append_char(json, '"');
    for (size_t i = 0; i < count; i++)
        buffer_append_str(json, pieces[next_random(seed) % 8]);
    buffer_append_char(json, '"');
}

static void append_user_id(struct buffer *json, uint64_t *seed)
{
    static const char *const ids[] = {"7", "\"7\"", "\"so\\u006d\\u0065\"", "\"b:9\""};

    buffer_append_str(json, ids[next_random(seed) % 4]);
}

static void append_text_member(struct buffer *json, const char *name, uint64_t *seed)
{
    if (next_random(seed) % 2)
        return;
    buffer_append_format(json, ",\"%s\":", name);
    append_string(json, seed);
}

static void append_reference(struct buffer *json, const char *name, uint64_t *seed)
{
    if (next_random(seed) % 2)
        return;
    buffer_append_format(json, ",\"%s\":{\"post\":\"5\",\"user\":", name);
    append_user_id(json, seed);
    append_text_member(json, "login", seed);
    buffer_append_char(json, '}');
}

static void append_urls(struct buffer *json, uint64_t *seed)
{
    size_t count = next_random(seed) % 5;

    buffer_append_str(json, ",\"urls\":[0");
    for (size_t i = 0; i < count; i++) {
        buffer_append_char(json, ',');
        append_string(json, seed);
    }
    buffer_append_char(json, ']');
}

static void append_audience(struct buffer *json, uint64_t *seed)
{
    static const char *const audiences[] = {"\"public\"", "\"followers\"", "\"only:1,2\"",
                                            "\"on\\u006cy:3\"", "[1]"};

    if (next_random(seed) % 3 == 0)
        buffer_append_format(json, ",\"audience\":%s", audiences[next_random(seed) % 5]);
}

static void append_post(struct buffer *json, uint64_t *seed)
{
    buffer_append_str(json, "\"post\":{\"id\":\"9\",\"user\":{\"id\":");
    append_user_id(json, seed);
    append_text_member(json, "login", seed);
    buffer_append_str(json, "},\"text\":");
    append_string(json, seed);
    append_text_member(json, "lang", seed);
    append_reference(json, "reply_to", seed);
    append_reference(json, "repost_of", seed);
    append_reference(json, "quote_of", seed);
    if (next_random(seed) % 2)
        buffer_append_str(json, ",\"geo\":{\"lon\":8.5,\"lat\":47.4}");
    buffer_append_str(json, ",\"place\":{\"bbox\":[5.9,45.8,10.5,47.8]");
    append_text_member(json, "name", seed);
    append_text_member(json, "country", seed);
    buffer_append_char(json, '}');
    append_urls(json, seed);
    append_audience(json, seed);
    buffer_append_str(json, ",\"media\":[{}]}");
}

static void append_message(struct buffer *json, uint64_t *seed)
{
    static const char *const kinds[] = {"post",   "post", "post", "delete",
                                        "follow", "user", "hide", "late"};
    const char *kind = kinds[next_random(seed) % 8];

    buffer_clear(json);
    buffer_append_format(json, "%s{\"id\":\"77\",\"type\":\"%s\",%s",
                         next_random(seed) % 4 ? "" : " \n", kind,
                         next_random(seed) % 4 ? "" : "\n");
    if (strcmp(kind, "post") == 0 || strcmp(kind, "delete") == 0) {
        append_post(json, seed);
    } else if (strcmp(kind, "late") == 0) {
        buffer_append_str(json, "\"from\":\"3\",\"to\":\"8\"");
    } else {
        buffer_append_str(json, "\"user\":{\"id\":");
        append_user_id(json, seed);
        buffer_append_str(json, "},\"target\":{\"id\":");
        append_user_id(json, seed);
        buffer_append_char(json, '}');
    }
    buffer_append_char(json, '}');
}

/* ---- comparison ---- */

static void assert_same_slice(struct sl_slice a, struct sl_slice b)
{
    assert_int_equal(a.data == NULL, b.data == NULL);
    assert_true(sl_slice_equal(a, b));
}

/* The members that are not slices. */
static void assert_same_values(const struct event *a, const struct event *b)
{
    const struct sl_event_view *x = &a->view, *y = &b->view;

    assert_true(a->kind == b->kind && a->id == b->id && a->previous == b->previous &&
                a->shard == b->shard && a->received_us == b->received_us && a->bytes == b->bytes);
    assert_true(a->late_from == b->late_from && a->late_to == b->late_to);
    assert_true(x->type == y->type && x->sample_id == y->sample_id &&
                x->restricted == y->restricted && x->has_media == y->has_media);
    assert_true(x->reply_to.has_post == y->reply_to.has_post &&
                x->repost_of.has_post == y->repost_of.has_post &&
                x->quote_of.has_post == y->quote_of.has_post);
    assert_true(x->has_point == y->has_point && x->point.lon == y->point.lon &&
                x->point.lat == y->point.lat);
    assert_true(x->has_box == y->has_box && memcmp(&x->box, &y->box, sizeof(x->box)) == 0);
}

static void assert_same(struct event *a, struct event *b)
{
    struct sl_slice *of_a[EVENT_SLICE_COUNT], *of_b[EVENT_SLICE_COUNT];

    assert_same_values(a, b);
    assert_same_slice(a->json, b->json);
    event_slices(&a->view, &a->audience, of_a);
    event_slices(&b->view, &b->audience, of_b);
    for (size_t i = 0; i < EVENT_SLICE_COUNT; i++)
        assert_same_slice(*of_a[i], *of_b[i]);
    assert_int_equal(a->view.url_count, b->view.url_count);
    for (size_t i = 0; i < a->view.url_count; i++)
        assert_same_slice(a->view.urls[i], b->view.urls[i]);
}

static bool is_within(const struct event *event, struct sl_slice slice)
{
    const char *from = (const char *)event;

    return !slice.data || (slice.data >= from && slice.data <= from + event->bytes &&
                           slice.size <= (size_t)(from + event->bytes - slice.data));
}

static void assert_all_within(struct event *event)
{
    struct sl_slice *slices[EVENT_SLICE_COUNT];

    assert_true(event->json.data && is_within(event, event->json));
    event_slices(&event->view, &event->audience, slices);
    for (size_t i = 0; i < EVENT_SLICE_COUNT; i++)
        assert_true(is_within(event, *slices[i]));
    for (size_t i = 0; i < event->view.url_count; i++)
        assert_true(is_within(event, event->view.urls[i]));
}

/* ---- tests ---- */

static void test_an_event_from_bytes_is_the_one_that_was_decoded(void **state)
{
    struct buffer json = BUFFER_INIT;
    unsigned kinds[EVENT_KIND_COUNT] = {0}, with_urls = 0;
    uint64_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct event *decoded, *carried;
        char *copy;
        size_t size;

        append_message(&json, &seed);
        if (decode(buffer_slice(&json), &decoded, NULL) < 0)
            fail_msg("refused: %s", buffer_str(&json));
        size = event_bytes(decoded).size;
        copy = mem_copy(event_bytes(decoded).data, size);
        assert_int_equal(event_from_bytes(sl_slice(copy, size), &carried), 0);
        memset(copy, 0x55, size); /* nothing of it is used any more */
        mem_free(copy);
        assert_same(decoded, carried);
        assert_all_within(carried);
        kinds[carried->kind]++;
        with_urls += carried->view.url_count > 0;
        event_unref(decoded);
        event_unref(carried);
    }
    assert_true(kinds[EVENT_POST] > 0 && kinds[EVENT_DELETE] > 0 && kinds[EVENT_FOLLOW] > 0 &&
                kinds[EVENT_USER] > 0 && kinds[EVENT_HIDE] > 0 && kinds[EVENT_LATE] > 0 &&
                with_urls > 0);
    buffer_done(&json);
}

/* Replaces each word in the range of slices and counts. */
static void test_bytes_that_were_damaged_point_nowhere_else(void **state)
{
    struct buffer json = BUFFER_INIT;
    unsigned refused = 0, taken = 0;
    uint64_t seed = 2;

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct event *decoded, *carried;
        uint64_t value = UINT64_C(1) << next_random(&seed) % 64;
        size_t words, at;
        char *copy;

        append_message(&json, &seed);
        assert_int_equal(decode(buffer_slice(&json), &decoded, NULL), 0);
        words = (sizeof(*decoded) + decoded->view.url_count * sizeof(struct sl_slice)) / 8;
        copy = mem_copy(event_bytes(decoded).data, decoded->bytes);
        at = next_random(&seed) % words * 8;
        for (size_t i = 0; i < sizeof(value); i++)
            copy[at + i] ^= (char)(value >> 8 * i);
        if (event_from_bytes(sl_slice(copy, decoded->bytes), &carried) == 0) {
            assert_all_within(carried);
            event_unref(carried);
            taken++;
        } else {
            refused++;
        }
        mem_free(copy);
        event_unref(decoded);
    }
    assert_true(refused > 0 && taken > 0);
    buffer_done(&json);
}

static void test_bytes_that_are_too_few_are_refused(void **state)
{
    struct event *decoded, *carried = NULL;
    struct sl_slice bytes;

    (void)state;
    assert_int_equal(decode(SL_SLICE("{\"id\":1,\"type\":\"follow\",\"user\":{\"id\":1},"
                                     "\"target\":{\"id\":2}}"),
                            &decoded, NULL),
                     0);
    bytes = event_bytes(decoded);
    for (size_t size = 0; size < bytes.size; size++) {
        char *copy = mem_copy(bytes.data, size);

        assert_int_equal(event_from_bytes(sl_slice(copy, size), &carried), -EBADMSG);
        mem_free(copy);
    }
    mem_fail_after(0);
    assert_int_equal(event_from_bytes(bytes, &carried), -ENOMEM);
    mem_fail_never();
    assert_null(carried);
    event_unref(decoded);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_from_bytes_is_the_one_that_was_decoded),
        cmocka_unit_test(test_bytes_that_were_damaged_point_nowhere_else),
        cmocka_unit_test(test_bytes_that_are_too_few_are_refused),
    };

    return cmocka_run_group_tests(tests, decode_scene_begin, decode_scene_end);
}
