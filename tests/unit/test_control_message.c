#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/access/control_message.h"
#include "tests/support/cmocka_all.h"

static const char id_a[] = "0123456789ab0000000000000000000a",
                  id_b[] = "0123456789ab0000000000000000000b";

static void set(char *room, const char *text)
{
    memcpy(room, text, strlen(text) + 1);
}

static int read_text(const char *text, struct control_message *ret_message)
{
    return control_message_read(sl_slice_str(text), ret_message);
}

static struct control_question renewal(void)
{
    struct control_question question = {.number = 0xfedcba9876543210, .operation = CONTROL_RENEW};

    set(question.from, "0123456789ab");
    set(question.holder, "a\"b\n\xc3\xa9");
    set(question.id, id_a);
    set(question.token.subject, "42");
    set(question.token.holder, "42");
    set(question.token.jti, "j");
    set(question.token.kid, "k");
    question.token.key_number = INT64_MAX;
    set(question.token.issuer, "i");
    question.token.scopes = TOKEN_SCOPE_FILTER | TOKEN_SCOPE_READ;
    question.token.issued_ms = 1;
    question.token.expires_ms = 2;
    question.token.limits = (struct sl_filter_limits){1, 2, 3, 4, 5, false};
    for (int i = 0; i < USE_COUNT; i++)
        question.token.uses[i] =
            i == USE_BAD_TOKENS ? 0 : (uint64_t)i; /* only counted for addresses */
    return question;
}

static void test_question_comes_back_as_it_went(void **state)
{
    const struct control_question question = renewal();
    struct control_message message;
    struct buffer text = BUFFER_INIT;

    (void)state;
    control_question_print(&question, &text);
    assert_int_equal(control_message_read(buffer_slice(&text), &message), 0);
    assert_false(message.is_answer);
    assert_int_equal(message.question.number, question.number);
    assert_string_equal(message.question.from, question.from);
    assert_string_equal(message.question.holder, question.holder);
    assert_string_equal(message.question.id, question.id);
    assert_string_equal(message.question.token.subject, "42");
    assert_string_equal(message.question.token.kid, "k");
    assert_true(message.question.token.key_number == INT64_MAX);
    assert_int_equal(message.question.token.scopes, question.token.scopes);
    assert_int_equal(message.question.token.expires_ms, 2);
    assert_memory_equal(message.question.token.uses, question.token.uses,
                        sizeof(question.token.uses));
    assert_memory_equal(&message.question.token.limits, &question.token.limits,
                        sizeof(question.token.limits));
    control_message_done(&message);
    buffer_done(&text);
}

static void test_a_question_of_rules_has_their_version(void **state)
{
    struct control_question question = {.operation = CONTROL_RULES, .version = 1795490400000};
    struct control_message message;
    struct buffer text = BUFFER_INIT;

    (void)state;
    set(question.from, "0123456789ab");
    set(question.holder, "42");
    control_question_print(&question, &text);
    assert_int_equal(control_message_read(buffer_slice(&text), &message), 0);
    assert_int_equal(message.question.operation, CONTROL_RULES);
    assert_int_equal(message.question.version, 1795490400000);
    control_message_done(&message);
    buffer_done(&text);
}

static void test_answer_comes_back_as_it_went(void **state)
{
    struct control_answer answer = {.number = 7, .workers = 3, .matched = 1000};
    struct control_row row = {.stream = STREAM_HOME, .format = FORMAT_SSE, .since_ms = 5};
    struct control_message message;
    struct buffer text = BUFFER_INIT;

    (void)state;
    set(answer.from, "0123456789ab");
    assert_int_equal(control_answer_make_room(&answer), 0);
    set(row.id, id_b);
    set(row.address, "::1");
    set(row.subject, "42");
    control_answer_add(&answer, &row);
    set(row.id, id_a);
    set(row.path, "/2/tweets/sample/stream");
    control_answer_add(&answer, &row);
    control_answer_print(&answer, &text);
    assert_int_equal(control_message_read(buffer_slice(&text), &message), 0);
    assert_true(message.is_answer);
    assert_int_equal(message.answer.matched, 1000);
    assert_int_equal(message.answer.row_count, 2);
    assert_string_equal(message.answer.rows[0].id, id_a);
    assert_string_equal(message.answer.rows[0].path, "/2/tweets/sample/stream");
    assert_string_equal(message.answer.rows[1].id, id_b);
    assert_string_equal(message.answer.rows[1].path, "");
    assert_int_equal(message.answer.rows[1].format, FORMAT_SSE);
    control_message_done(&message);
    control_answer_done(&answer);
    buffer_done(&text);
}

#define HEAD                                                                                       \
    "\"v\":1,\"kind\":\"question\",\"number\":\"0000000000000001\",\"from\":\"0123456789ab\","

static void test_what_is_no_message_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"v\":1}",
        "{" HEAD "\"op\":\"list\",\"holder\":\"\",\"id\":\"\"}",
        "{" HEAD "\"op\":\"list\",\"holder\":\"\",\"id\":\"\",\"after\":\"\",\"more\":1}",
        "{" HEAD "\"op\":\"list\",\"op\":\"list\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"}",
        "{" HEAD "\"op\":\"flush\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"}",
        "{" HEAD "\"op\":\"list\",\"holder\":7,\"id\":\"\",\"after\":\"\"}",
        "{" HEAD "\"op\":\"list\",\"holder\":\"\",\"id\":\"../../meta\",\"after\":\"\"}",
        "{" HEAD "\"op\":\"list\",\"holder\":\"a\\u0000b\",\"id\":\"\",\"after\":\"\"}",
        /* names no target */
        "{" HEAD "\"op\":\"end\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"}",
        /* has no subject */
        "{" HEAD "\"op\":\"renew\",\"holder\":\"\",\"id\":\"\",\"after\":\"\",\"token\":{}}",
        "{" HEAD "\"op\":\"rules\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"}",
        "{" HEAD "\"op\":\"list\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"} x",
    };
    struct control_message message;

    (void)state;
    assert_int_equal(
        read_text("{" HEAD "\"op\":\"list\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"}", &message),
        0);
    control_message_done(&message);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(read_text(bad[i], &message), -EBADMSG);
}

static void test_another_version_and_what_is_too_long_are_refused(void **state)
{
    struct buffer text = BUFFER_INIT;
    struct control_message message;

    (void)state;
    assert_int_equal(
        read_text("{\"v\":2,\"kind\":\"question\",\"number\":\"0000000000000001\","
                  "\"from\":\"0123456789ab\",\"op\":\"list\",\"holder\":\"\",\"id\":\"\","
                  "\"after\":\"\"}",
                  &message),
        -EBADMSG);
    buffer_append_str(&text,
                      "{" HEAD "\"op\":\"list\",\"holder\":\"\",\"id\":\"\",\"after\":\"\"}");
    while (text.size <= CONTROL_MESSAGE_MAX)
        buffer_append_char(&text, ' ');
    assert_int_equal(control_message_read(buffer_slice(&text), &message), -EBADMSG);
    buffer_done(&text);
}

static void test_rows_are_the_least_ids_in_order_and_no_more_than_a_page(void **state)
{
    struct control_answer answer = {.number = 1};
    struct control_row row = {.since_ms = 1};

    (void)state;
    assert_int_equal(control_answer_make_room(&answer), 0);
    for (uint32_t i = 0; i < 3 * CONTROL_ROWS_MAX; i++) {
        connection_id_print("0123456789ab", (i * 7) % (3 * CONTROL_ROWS_MAX), 0, row.id);
        control_answer_add(&answer, &row);
    }
    assert_int_equal(answer.row_count, CONTROL_ROWS_MAX);
    for (uint32_t i = 0; i < CONTROL_ROWS_MAX; i++)
        assert_int_equal(connection_id_slot(answer.rows[i].id), i);
    control_answer_done(&answer);
}

static void test_answer_of_rows_out_of_order_is_refused(void **state)
{
    struct control_answer answer = {.number = 7, .workers = 1};
    struct control_message message;
    struct buffer text = BUFFER_INIT;

    (void)state;
    set(answer.from, "0123456789ab");
    assert_int_equal(control_answer_make_room(&answer), 0);
    answer.rows[0] = answer.rows[1] = (struct control_row){.since_ms = 1};
    set(answer.rows[0].id, id_b);
    set(answer.rows[1].id, id_a);
    answer.row_count = 2;
    control_answer_print(&answer, &text);
    assert_int_equal(control_message_read(buffer_slice(&text), &message), -EBADMSG);
    control_answer_done(&answer);
    buffer_done(&text);
}

static void test_id_names_its_worker_and_slot(void **state)
{
    char id[CONNECTION_ID_SIZE], worker[WORKER_NAME_SIZE], found[WORKER_NAME_SIZE];

    (void)state;
    worker_name_print(0xdeadbeef, 255, worker);
    assert_string_equal(worker, "deadbeef00ff");
    connection_id_print(worker, 0xffffff, UINT64_MAX, id);
    assert_string_equal(id, "deadbeef00ffffffffffffffffffffff");
    assert_true(connection_id_is_valid(sl_slice_str(id)));
    connection_id_worker(id, found);
    assert_string_equal(found, worker);
    assert_int_equal(connection_id_slot(id), 0xffffff);
    assert_false(connection_id_is_valid(SL_SLICE("deadbeef00ff")));
    assert_false(connection_id_is_valid(SL_SLICE("DEADBEEF00FFFFFFFFFFFFFFFFFFFFFF")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question_comes_back_as_it_went),
        cmocka_unit_test(test_a_question_of_rules_has_their_version),
        cmocka_unit_test(test_answer_comes_back_as_it_went),
        cmocka_unit_test(test_what_is_no_message_is_refused),
        cmocka_unit_test(test_another_version_and_what_is_too_long_are_refused),
        cmocka_unit_test(test_rows_are_the_least_ids_in_order_and_no_more_than_a_page),
        cmocka_unit_test(test_answer_of_rows_out_of_order_is_refused),
        cmocka_unit_test(test_id_names_its_worker_and_slot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
