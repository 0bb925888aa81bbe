/* The messages of X's API 2 for an event with any options, and parsing their names. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "gateway/dialects/dialects.h"
#include "gateway/dialects/twitter2_fields.h"
#include "gateway/dialects/twitter2_form.h"
#include "gateway/dialects/twitter2_problem.h"
#include "gateway/front/event_fields.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"

#define EVERYTHING (twitter2_bit(TWITTER2_OPTIONS) - 1)

static const char rich[] =
    "{\"id\":\"114677036875776\",\"type\":\"post\",\"post\":{\"id\":\"114677036875776\",\"user\":{"
    "\"id\":\"42\",\"login\":\"ada\",\"name\":\"Ada\"},\"text\":\"<tea> @eve #a $B http://a.b/c\","
    "\"geo\":{\"lon\":8.5,\"lat\":47.3},\"place\":{\"name\":\"Z\",\"country\":\"CH\",\"bbox\":[8.4,"
    "47.3,8.6,47.4]},\"media\":[{\"type\":\"photo\",\"url\":\"u\"}],\"reply_to\":{\"post\":"
    "\"114677036740608\",\"user\":\"7\",\"login\":\"eve\"},\"source\":\"web\"}}";

/* Returns the message; NULL: none. */
static json_t *said(const char *text, uint64_t options)
{
    struct event *event = event_of(0, text);
    struct buffer json = BUFFER_INIT;
    json_t *message;

    assert_int_equal(twitter2_render(event, options, &json), 0);
    message = json.size ? json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    assert_true(message || json.size == 0);
    buffer_done(&json);
    event_unref(event);
    return message;
}

/* Adds the names of the list to *options. */
static void add_names(enum twitter2_list list, const char *names, uint64_t *options)
{
    struct sl_slice lists[TWITTER2_LISTS] = {0};
    struct http_refusal refusal;
    uint64_t more;

    lists[list] = sl_slice_str(names);
    assert_int_equal(twitter2_fields_read(lists, &more, &refusal), 0);
    *options |= more;
}

static void test_options_have_room(void **state)
{
    uint64_t fields = event_fields_of_dialect(DIALECT_TWITTER2, EVERYTHING);

    (void)state;
    assert_int_equal(event_fields_dialect(fields), DIALECT_TWITTER2);
    assert_true(event_fields_options(fields) == EVERYTHING);
}

static void test_clients_do_not_give_up_in_silence(void **state)
{
    (void)state;
    assert_in_range(twitter2.max_keepalive_ms, 1, 10000); /* tweepy disconnects after 21 s */
}

static void test_a_name_brings_its_member_alone(void **state)
{
    static const struct {
        const char *name, *member;
    } rows[] = {{"author_id", "author_id"},
                {"created_at", "created_at"},
                {"entities", "entities"},
                {"geo", "geo"},
                {"in_reply_to_user_id", "in_reply_to_user_id"},
                {"lang", "lang"},
                {"attachments", "attachments"},
                {"referenced_tweets", "referenced_tweets"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t options = 0;
        json_t *message, *tweet;

        add_names(TWITTER2_LIST_TWEET_FIELDS, rows[i].name, &options);
        message = said(rich, options);
        tweet = json_object_get(message, "data");
        assert_int_equal(json_object_size(tweet), 4); /* id, text and edit_history_tweet_ids */
        assert_non_null(json_object_get(tweet, rows[i].member));
        json_decref(message);
    }
}

static void test_names_that_bring_nothing_are_taken(void **state)
{
    uint64_t options = 0;

    (void)state;
    add_names(TWITTER2_LIST_TWEET_FIELDS, "id,text,note_tweet,withheld", &options);
    add_names(TWITTER2_LIST_POLL_FIELDS, "options,voting_status", &options);
    add_names(TWITTER2_LIST_USER_FIELDS, "public_metrics,id", &options);
    assert_true(options == 0);
}

static void test_other_names_are_refused(void **state)
{
    static const char *const bad[] = {"", "Id", "id,,text", "id text", "tweet.fields"};
    struct sl_slice lists[TWITTER2_LISTS] = {0};
    struct http_refusal refusal;
    uint64_t options;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        lists[TWITTER2_LIST_TWEET_FIELDS] = sl_slice_str(bad[i]);
        assert_int_equal(twitter2_fields_read(lists, &options, &refusal), -EPROTO);
        assert_string_equal(refusal.param, "tweet.fields");
    }
}

static void test_deletions_are_for_their_own_stream(void **state)
{
    static const char deletion[] = "{\"id\":\"2\",\"type\":\"delete\",\"post\":{\"id\":\"1\","
                                   "\"user\":{\"id\":\"42\"},\"text\":\"tea\"}}";
    json_t *message;

    (void)state;
    assert_null(said(deletion, EVERYTHING & ~twitter2_bit(TWITTER2_DELETIONS)));
    message = said(deletion, twitter2_bit(TWITTER2_DELETIONS));
    assert_non_null(json_object_get(json_object_get(message, "data"), "delete"));
    json_decref(message);
}

static void test_every_end_is_json_or_nothing(void **state)
{
    (void)state;
    for (int why = 0; why < DISCONNECT_REASON_COUNT; why++) {
        struct buffer text = BUFFER_INIT;
        json_t *json;

        twitter2_disconnect((enum disconnect_reason)why, &text);
        if (why == DISCONNECT_COMPLETE)
            assert_int_equal(text.size, 0);
        if (text.size > 0) {
            json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
            assert_int_equal(json_array_size(json_object_get(json, "errors")), 1);
            json_decref(json);
        }
        buffer_done(&text);
    }
}

static void test_without_memory_it_fails_or_says_less(void **state)
{
    struct event *event = event_of(0, rich);
    bool has_failed = true;

    (void)state;
    json_set_alloc_funcs(mem_alloc, mem_free);
    for (uint64_t n = 0; has_failed; n++) {
        struct buffer json = BUFFER_INIT;
        int r;

        mem_fail_after(n);
        r = twitter2_render(event, EVERYTHING, &json);
        has_failed = mem_failed();
        mem_fail_never();
        assert_true(r == 0 || (r == -ENOMEM && has_failed));
        buffer_done(&json);
    }
    json_set_alloc_funcs(malloc, free);
    event_unref(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_have_room),
        cmocka_unit_test(test_clients_do_not_give_up_in_silence),
        cmocka_unit_test(test_a_name_brings_its_member_alone),
        cmocka_unit_test(test_names_that_bring_nothing_are_taken),
        cmocka_unit_test(test_other_names_are_refused),
        cmocka_unit_test(test_deletions_are_for_their_own_stream),
        cmocka_unit_test(test_every_end_is_json_or_nothing),
        cmocka_unit_test(test_without_memory_it_fails_or_says_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
