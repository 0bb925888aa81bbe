#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/event.h"
#include "gateway/intake/event_decode.h"
#include "tests/support/cases.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/decode_scene.h"

static void print_text(struct buffer *out, const char *name, struct sl_slice text)
{
    if (!text.data)
        return;
    buffer_append_format(out, "%s=", name);
    buffer_append_json_string(out, text);
}

static void print_line(struct buffer *out, const char *name, struct sl_slice text)
{
    print_text(out, name, text);
    if (text.data)
        buffer_append_char(out, '\n');
}

static void print_ref(struct buffer *out, const char *name, const struct sl_post_ref *ref)
{
    if (!ref->has_post && !ref->user.data && !ref->login.data)
        return;
    buffer_append_str(out, name);
    if (ref->has_post)
        buffer_append_str(out, " post");
    print_text(out, " user", ref->user);
    print_text(out, " login", ref->login);
    buffer_append_char(out, '\n');
}

/* Prints everything that the decoder found, one per line; absent members are left out. */
static void print_event(struct buffer *out, const struct event *event)
{
    const struct sl_event_view *view = &event->view;

    buffer_append_format(out, "kind=%s\nsample_id=%" PRIu64 "\n", event_kind_name(event->kind),
                         view->sample_id);
    if (view->restricted)
        buffer_append_str(out, "restricted\n");
    print_line(out, "text", view->text);
    print_line(out, "user", view->user);
    print_line(out, "login", view->login);
    print_line(out, "target", view->target);
    print_line(out, "lang", view->lang);
    print_ref(out, "reply_to", &view->reply_to);
    print_ref(out, "repost_of", &view->repost_of);
    print_ref(out, "quote_of", &view->quote_of);
    if (view->has_point)
        buffer_append_format(out, "point=%.15g,%.15g\n", view->point.lon, view->point.lat);
    if (view->has_box)
        buffer_append_format(out, "box=%.15g,%.15g,%.15g,%.15g\n", view->box.west, view->box.south,
                             view->box.east, view->box.north);
    print_line(out, "place", view->place);
    print_line(out, "country", view->country);
    for (size_t i = 0; i < view->url_count; i++)
        print_line(out, "url", view->urls[i]);
    if (view->has_media)
        buffer_append_str(out, "media\n");
    print_line(out, "audience", event->audience);
}

static void run_accepted(const struct test_case *test_case)
{
    struct buffer input = BUFFER_INIT, facts = BUFFER_INIT, json = BUFFER_INIT, got = BUFFER_INIT;
    struct failure failure;
    struct event *event;
    int r;

    case_read(test_case, "input", false, &input);
    case_read(test_case, "facts", false, &facts);
    if (!case_read(test_case, "json", true, &json))
        buffer_append_slice(&json, buffer_slice(&input));
    r = decode(buffer_slice(&input), &event, &failure);
    if (r < 0)
        fail_msg("case %s: refused: %s", test_case->name, failure.text);
    print_event(&got, event);
    case_expect(test_case, buffer_slice(&got), buffer_slice(&facts));
    case_expect(test_case, event->json, buffer_slice(&json));
    assert_int_equal(event->id, decode_origin.id);
    assert_int_equal(event->shard, decode_origin.shard);
    assert_int_equal(event->received_us, decode_origin.received_us);
    assert_true(event->bytes >= sizeof(*event) + event->json.size);
    event_unref(event);
    buffer_done(&input);
    buffer_done(&facts);
    buffer_done(&json);
    buffer_done(&got);
}

static void test_accepted_events_have_their_facts_and_json(void **state)
{
    (void)state;
    cases_run("events/accepted", run_accepted);
}

static void run_refused(const struct test_case *test_case)
{
    struct buffer input = BUFFER_INIT, error = BUFFER_INIT;
    struct failure failure;
    struct event *event = NULL;
    int r;

    case_read(test_case, "input", false, &input);
    case_read(test_case, "error", false, &error);
    r = decode(buffer_slice(&input), &event, &failure);
    if (r == 0)
        fail_msg("case %s: accepted", test_case->name);
    assert_int_equal(r, -EBADMSG);
    assert_null(event);
    error.size--; /* its newline */
    case_expect(test_case, sl_slice_str(failure.text), buffer_slice(&error));
    buffer_done(&input);
    buffer_done(&error);
}

static void test_refused_events_say_what_is_wrong(void **state)
{
    (void)state;
    cases_run("events/refused", run_refused);
}

static void test_message_over_the_limit_is_refused(void **state)
{
    struct event_decoder *small = event_decoder_new(10);
    struct failure failure;
    struct event *event = NULL;

    (void)state;
    assert_int_equal(
        event_decode(small, SL_SLICE("{\"id\":1234}"), &decode_origin, &event, &failure), -E2BIG);
    assert_string_equal(failure.text, "longer than 10 bytes");
    assert_int_equal(event_decode(small, SL_SLICE("{\"id\":123}"), &decode_origin, &event, NULL),
                     -EBADMSG);
    event_decoder_free(small);
}

static void test_mark_of_late_events_says_which(void **state)
{
    static const char *const refused[] = {
        "{\"id\":\"9\",\"type\":\"late\",\"shard\":0,\"from\":\"5\"}",
        "{\"id\":\"9\",\"type\":\"late\",\"shard\":0,\"from\":\"5\",\"to\":\"5\"}",
        "{\"id\":\"9\",\"type\":\"late\",\"shard\":0,\"from\":\"5\",\"to\":\"9\"}",
        "{\"type\":\"late\",\"shard\":0,\"from\":\"5\",\"to\":\"8\"}",
    };
    struct event *event = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_int_equal(decode(sl_slice_str(refused[i]), &event, NULL), -EBADMSG);
    assert_int_equal(decode(SL_SLICE("{\"id\":\"9\",\"type\":\"late\",\"at\":\"\",\"shard\":3,"
                                     "\"from\":\"0\",\"to\":\"8\"}"),
                            &event, NULL),
                     0);
    assert_int_equal(event->kind, EVENT_LATE);
    assert_false(event_is_for_clients(event));
    assert_int_equal(event->late_from, 0);
    assert_int_equal(event->late_to, 8);
    event_unref(event);
}

static void append_post(struct buffer *json, const char *text_unit, size_t count)
{
    buffer_append_str(json, "{\"id\":1,\"type\":\"post\",\"post\":{\"id\":1,\"user\":{\"id\":1},"
                            "\"text\":\"");
    for (size_t i = 0; i < count; i++)
        buffer_append_str(json, text_unit);
    buffer_append_str(json, "\"}}");
}

static void test_long_strings_of_escapes_fit_the_scratch(void **state)
{
    static const char *const units[] = {"\\n", "\\u4e2d", "\\ud83d\\ude00", "a\\\"", "\xc3\xa9\\t"};
    static const size_t decoded_sizes[] = {1, 3, 4, 2, 3};
    struct buffer json = BUFFER_INIT;
    struct event *event;

    (void)state;
    for (size_t unit = 0; unit < sizeof(units) / sizeof(units[0]); unit++) {
        for (size_t count = 1; count < 80000; count = count * 3 + 1) {
            buffer_clear(&json);
            append_post(&json, units[unit], count);
            assert_int_equal(decode(buffer_slice(&json), &event, NULL), 0);
            assert_int_equal(event->view.text.size, count * decoded_sizes[unit]);
            event_unref(event);
        }
    }
    buffer_done(&json);
}

static void test_unfinished_messages_of_any_length_are_refused(void **state)
{
    struct buffer json = BUFFER_INIT;
    struct failure failure;
    struct event *event = NULL;

    (void)state;
    append_post(&json, "\\u00e9 ", 600);
    for (size_t size = 0; size < json.size; size++)
        assert_int_equal(decode(sl_slice(json.data, size), &event, &failure), -EBADMSG);
    assert_int_equal(decode(buffer_slice(&json), &event, &failure), 0);
    event_unref(event);
    buffer_done(&json);
}

static void test_event_lives_as_long_as_its_references(void **state)
{
    struct event *event;

    (void)state;
    assert_int_equal(decode(SL_SLICE("{\"id\":1,\"type\":\"follow\",\"user\":{\"id\":1},"
                                     "\"target\":{\"id\":2}}"),
                            &event, NULL),
                     0);
    assert_ptr_equal(event_ref(event), event);
    event->frames[1] = sl_slice(mem_alloc(10), 10);
    event_unref(event);
    assert_string_equal(event_kind_name(event->kind), "follow");
    assert_true(event_is_for_clients(event));
    event_unref(event);
    event_unref(NULL);
}

static void test_out_of_memory_at_any_allocation_is_an_error(void **state)
{
    static const struct sl_slice message = SL_SLICE(
        "{\"id\":1,\"type\":\"post\",\"post\":{\"id\":1,\"user\":{\"id\":1},\"text\":\"\\u00e9\","
        "\"urls\":[\"http://a\",\"http:\\/\\/b\"],\"audience\":\"only:2\"}}");
    struct event *event = NULL;
    uint64_t n;
    int r;

    (void)state;
    for (n = 0;; n++) {
        struct event_decoder *fresh;

        mem_fail_after(n);
        fresh = event_decoder_new(1000);
        r = fresh ? event_decode(fresh, message, &decode_origin, &event, NULL) : -ENOMEM;
        mem_fail_never();
        if (!fresh)
            continue;
        if (r == 0) {
            event_decoder_free(fresh);
            break;
        }
        assert_int_equal(r, -ENOMEM);
        assert_null(event);
        assert_int_equal(event_decode(fresh, message, &decode_origin, &event, NULL), 0);
        event_unref(event);
        event = NULL;
        event_decoder_free(fresh);
    }
    assert_true(n >= 5);
    event_unref(event);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted_events_have_their_facts_and_json),
        cmocka_unit_test(test_refused_events_say_what_is_wrong),
        cmocka_unit_test(test_message_over_the_limit_is_refused),
        cmocka_unit_test(test_mark_of_late_events_says_which),
        cmocka_unit_test(test_long_strings_of_escapes_fit_the_scratch),
        cmocka_unit_test(test_unfinished_messages_of_any_length_are_refused),
        cmocka_unit_test(test_event_lives_as_long_as_its_references),
        cmocka_unit_test(test_out_of_memory_at_any_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, decode_scene_begin, decode_scene_end);
}
