/* Parsers of replies: what a server really sends, and what it never should. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/reply.h"
#include "src/call/write.h"
#include "src/database/database_clock.h"
#include "src/database/event_log.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/redis/sentinel.h"
#include "src/social/common_users.h"
#include "src/social/included.h"
#include "src/social/likes.h"
#include "src/social/public_timeline.h"
#include "src/social/follows.h"
#include "src/social/post_rows.h"
#include "src/social/posts.h"
#include "src/social/users.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/reply_of.h"

/* Parses the reply that these bytes are in Redis's protocol. */
typedef int (*parse_fn)(const redisReply *reply, struct failure *reterr);

static int parse_written(const redisReply *reply, struct failure *reterr)
{
    struct sl_written written;

    return sl_write_reply(reply, &written, reterr);
}

static int parse_user(const redisReply *reply, struct failure *reterr)
{
    struct sl_user user;

    return sl_user_find_reply(reply, &user, reterr);
}

static int parse_raised(const redisReply *reply, struct failure *reterr)
{
    struct sl_clock_raised raised;

    return sl_clock_raise_reply(reply, &raised, reterr);
}

static int parse_meta(const redisReply *reply, struct failure *reterr)
{
    struct sl_meta meta;

    return sl_meta_reply(reply, &meta, reterr);
}

static int parse_following(const redisReply *reply, struct failure *reterr)
{
    size_t count;

    return sl_following_reply(reply, &count, reterr);
}

static int parse_author(const redisReply *reply, struct failure *reterr)
{
    struct sl_post_reference reference;

    return sl_post_author_reply(reply, &reference, reterr);
}

static int parse_log_range(const redisReply *reply, struct failure *reterr)
{
    size_t count;

    return sl_event_log_range_reply(reply, 0, 4096, 5000, &count, reterr);
}

static int parse_log_state(const redisReply *reply, struct failure *reterr)
{
    struct sl_event_log_state log;

    return sl_event_log_state_reply(reply, &log, reterr);
}

static int parse_master(const redisReply *reply, struct failure *reterr)
{
    struct sl_redis_endpoint endpoint;

    return sl_sentinel_master_reply(reply, &endpoint, reterr);
}

static int parse_news(const redisReply *reply, struct failure *reterr)
{
    struct sl_sentinel_news news;

    return sl_sentinel_news_reply(reply, "blue", &news, reterr);
}

static int parse_log_end(const redisReply *reply, struct failure *reterr)
{
    uint64_t id;

    return sl_event_log_end_reply(reply, 0, &id, reterr);
}

static int parse_users(const redisReply *reply, struct failure *reterr)
{
    struct sl_user_row row;
    int r = sl_users_reply(reply, 1, reterr);

    return r < 0 ? r : sl_users_at(reply, 0, &row, reterr);
}

static int parse_posts(const redisReply *reply, struct failure *reterr)
{
    struct sl_post_row row;
    int r = sl_posts_reply(reply, 1, reterr);

    return r < 0 ? r : sl_posts_at(reply, 0, &row, reterr);
}

static int parse_common_users(const redisReply *reply, struct failure *reterr)
{
    struct sl_common_page page;

    return sl_common_users_reply(reply, &page, reterr);
}

/* Lists may be empty, so the first row decides. */
static int parse_user_list(const redisReply *reply, struct failure *reterr)
{
    struct sl_listed_user listed;
    size_t count;
    int r = sl_user_list_reply(reply, &count, reterr);

    return r < 0 ? r : sl_user_list_at(reply, 0, &listed, reterr);
}

static int parse_post_list(const redisReply *reply, struct failure *reterr)
{
    struct sl_post_row row;
    size_t count;
    int r = sl_post_list_reply(reply, &count, reterr);

    return r < 0 ? r : sl_post_list_at(reply, 0, &row, reterr);
}

static int parse_included(const redisReply *reply, struct failure *reterr)
{
    struct sl_included included;
    int r = sl_included_reply(reply, 1, reterr);

    return r < 0 ? r : sl_included_at(reply, 0, &included, reterr);
}

static int parse_viewer(const redisReply *reply, struct failure *reterr)
{
    struct sl_viewer viewer;
    int r = sl_viewer_reply(reply, 1, reterr);

    return r < 0 ? r : sl_viewer_at(reply, 0, &viewer, reterr);
}

static int parse_public(const redisReply *reply, struct failure *reterr)
{
    uint64_t stop;
    size_t count;

    return sl_public_reply(reply, &stop, &count, reterr);
}

static int parse_liked(const redisReply *reply, struct failure *reterr)
{
    struct sl_liked_post liked;
    size_t count;
    int r = sl_liked_list_reply(reply, &count, reterr);

    return r < 0 ? r : sl_liked_list_at(reply, 0, &liked, reterr);
}

static const parse_fn parsers[] = {
    parse_written,   parse_user,    parse_meta,         parse_following, parse_author,
    parse_log_range, parse_log_end, parse_log_state,    parse_master,    sl_sentinel_role_reply,
    parse_users,     parse_posts,   parse_common_users, parse_user_list, parse_post_list,
    parse_included,  parse_viewer,  parse_public,       parse_liked,     parse_raised};

static void assert_parses(parse_fn parse, const char *bytes, int expected, const char *message)
{
    redisReply *reply = bytes ? reply_of(bytes) : NULL;
    struct failure failure = {""};
    int r = parse(reply, &failure);

    if (r != expected || (message && !strstr(failure.text, message)))
        fail_msg("%s: %d, '%s'", bytes, r, failure.text);
    freeReplyObject(reply);
}

static void test_written_says_id_and_whether_it_is_repeated(void **state)
{
    redisReply *reply = reply_of("*2\r\n:1\r\n$4\r\n4096\r\n");
    struct sl_written written;

    (void)state;
    assert_int_equal(sl_write_reply(reply, &written, NULL), 0);
    assert_int_equal(written.id, 4096);
    assert_true(written.is_repeated);
    freeReplyObject(reply);

    reply = reply_of("*2\r\n:0\r\n$1\r\n0\r\n");
    assert_int_equal(sl_write_reply(reply, &written, NULL), 0);
    assert_int_equal(written.id, 0);
    assert_false(written.is_repeated);
    freeReplyObject(reply);
}

static void test_user_meta_following_and_author_are_read(void **state)
{
    redisReply *reply = reply_of("*3\r\n$4\r\n4096\r\n$3\r\nAda\r\n$0\r\n\r\n");
    struct sl_post_reference reference = {.is_restricted = true};
    struct sl_user user;
    struct sl_meta meta;
    size_t count;

    (void)state;
    assert_int_equal(sl_user_find_reply(reply, &user, NULL), 0);
    assert_int_equal(user.id, 4096);
    assert_true(sl_slice_is(user.login, "Ada"));
    assert_int_equal(user.name.size, 0);
    freeReplyObject(reply);

    reply = reply_of("*7\r\n:1\r\n$1\r\n1\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n"
                     "$2\r\n64\r\n$0\r\n\r\n$13\r\n1795392000000\r\n$0\r\n\r\n");
    assert_int_equal(sl_meta_reply(reply, &meta, NULL), 0);
    assert_true(meta.is_new);
    assert_string_equal(meta.database_id, "0123456789abcdef0123456789abcdef");
    assert_int_equal(meta.shards, 64);
    assert_false(meta.is_clustered);
    assert_int_equal(meta.clock_until_ms, 1795392000000);
    freeReplyObject(reply);

    reply = reply_of("*7\r\n:0\r\n$1\r\n2\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n"
                     "$2\r\n64\r\n$7\r\nsharded\r\n$1\r\n0\r\n$5\r\nlikes\r\n");
    assert_int_equal(sl_meta_reply(reply, &meta, NULL), 0);
    assert_true(meta.is_clustered);
    assert_int_equal(meta.clock_until_ms, 0);
    freeReplyObject(reply);

    reply = reply_of("*2\r\n$1\r\n7\r\n$2\r\n64\r\n");
    assert_int_equal(sl_following_reply(reply, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_true(sl_slice_is(sl_following_at(reply, 1), "64"));
    assert_int_equal(sl_post_author_reply(reply, &reference, NULL), 0);
    assert_true(sl_slice_is(reference.user, "7"));
    assert_true(sl_slice_is(reference.login, "64"));
    assert_false(reference.is_restricted);
    freeReplyObject(reply);

    reply = reply_of("*0\r\n");
    reference = (struct sl_post_reference){.post = SL_SLICE("4096")};
    assert_int_equal(sl_post_author_reply(reply, &reference, NULL), 0);
    assert_true(reference.is_restricted && !reference.user.data && reference.post.data);
    freeReplyObject(reply);

    assert_parses(parse_following, "*0\r\n", 0, NULL);
}

#define USER_ROW(counter)                                                                          \
    "$4\r\n4096\r\n$3\r\nAda\r\n$1\r\nA\r\n$1\r\ns\r\n$1\r\n1\r\n$1\r\n2\r\n" counter              \
    "$1\r\n7\r\n$9\r\n\"bio\":\"b\"\r\n"

static void test_rows_are_read_each_by_itself(void **state)
{
    redisReply *reply =
        reply_of("*2\r\n*9\r\n" USER_ROW("$1\r\n3\r\n") "-NOUSER there is no user @x\r\n");
    struct failure failure;
    struct sl_user_row user;
    struct sl_post_row post;
    struct sl_listed_user listed;
    bool is_common;

    (void)state;
    assert_int_equal(sl_users_reply(reply, 2, NULL), 0);
    assert_int_equal(sl_users_reply(reply, 3, NULL), -EBADMSG);
    assert_int_equal(sl_users_at(reply, 0, &user, NULL), 0);
    assert_int_equal(user.user.id, 4096);
    assert_int_equal(user.followers, 1);
    assert_int_equal(user.following, 2);
    assert_int_equal(user.posts, 3);
    assert_int_equal(user.version, 7);
    assert_true(sl_slice_is(user.profile, "\"bio\":\"b\""));
    assert_int_equal(sl_users_at(reply, 1, &user, &failure), -ENOENT);
    assert_string_equal(failure.text, "there is no user @x");
    assert_int_equal(sl_users_at(reply, 2, &user, NULL), -EBADMSG);
    freeReplyObject(reply);

    reply = reply_of("*2\r\n*4\r\n$4\r\n4097\r\n$2\r\n{}\r\n:5\r\n:6\r\n*1\r\n$4\r\n4098\r\n");
    assert_int_equal(sl_post_list_at(reply, 0, &post, NULL), 0);
    assert_true(post.id == 4097 && post.likes == 5 && post.comments == 6);
    assert_true(sl_slice_is(post.json, "{}"));
    assert_int_equal(sl_post_list_at(reply, 1, &post, NULL), 0);
    assert_int_equal(post.id, 4098);
    assert_null(post.json.data);
    assert_int_equal(sl_posts_at(reply, 1, &post, NULL), -EBADMSG);
    freeReplyObject(reply);

    reply = reply_of(
        "*2\r\n*10\r\n$1\r\n7\r\n" USER_ROW("$1\r\n3\r\n") "*2\r\n$1\r\n6\r\n$4\r\n4160\r\n");
    assert_int_equal(sl_user_list_at(reply, 0, &listed, NULL), 0);
    assert_true(listed.position == 7 && listed.row.user.id == 4096);
    assert_int_equal(sl_user_list_at(reply, 1, &listed, NULL), 0);
    assert_true(listed.position == 6 && listed.row.user.id == 4160);
    assert_null(listed.row.user.login.data);
    freeReplyObject(reply);
    assert_parses(parse_users, "*1\r\n*9\r\n" USER_ROW("$1\r\nx\r\n"), -EBADMSG, NULL);
    assert_parses(parse_users, "*1\r\n*9\r\n" USER_ROW(":3\r\n"), -EBADMSG, NULL);
    reply = reply_of("*2\r\n:1\r\n:2\r\n");
    assert_int_equal(sl_common_users_check_reply(reply, 3, NULL), -EBADMSG);
    assert_int_equal(sl_common_users_check_reply(reply, 2, NULL), 0);
    assert_int_equal(sl_common_users_check_at(reply, 0, &is_common, NULL), 0);
    assert_true(is_common);
    assert_int_equal(sl_common_users_check_at(reply, 1, &is_common, NULL), -EBADMSG);
    freeReplyObject(reply);
    assert_parses(parse_user_list, "*0\r\n", -EBADMSG, NULL);
    assert_parses(parse_posts, "*1\r\n*4\r\n$1\r\n1\r\n$2\r\n{}\r\n:-1\r\n:0\r\n", -EBADMSG, NULL);
    assert_parses(parse_posts, "*1\r\n*4\r\n$1\r\n1\r\n$0\r\n\r\n:0\r\n:0\r\n", -EBADMSG, NULL);
}

static void test_writes_of_many_tell_each(void **state)
{
    redisReply *reply = reply_of("*4\r\n:1\r\n$4\r\n4096\r\n-SELF nobody can\r\n$1\r\n0\r\n");
    struct failure failure;
    bool is_repeated;
    uint64_t id;

    (void)state;
    assert_int_equal(sl_write_many_reply(reply, 4, &is_repeated, NULL), -EBADMSG);
    assert_int_equal(sl_write_many_reply(reply, 3, &is_repeated, NULL), 0);
    assert_true(is_repeated);
    assert_int_equal(sl_write_many_at(reply, 0, &id, NULL), 0);
    assert_int_equal(id, 4096);
    assert_int_equal(sl_write_many_at(reply, 1, &id, &failure), -EINVAL);
    assert_string_equal(failure.text, "nobody can");
    assert_int_equal(sl_write_many_at(reply, 2, &id, NULL), 0);
    assert_int_equal(id, 0);
    freeReplyObject(reply);
    assert_parses(parse_written, "*2\r\n:0\r\n-NOPOST there is no post 1\r\n", -ENOENT,
                  "no post 1");
}

static void test_no_parser_believes_a_reply_of_another_shape(void **state)
{
    static const char *const lies[] = {
        "$-1\r\n",
        "*-1\r\n",
        ":1\r\n",
        "+OK\r\n",
        "$4\r\n4096\r\n",
        "*1\r\n:0\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n$-1\r\n",
        "*6\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
        "*6\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++) {
        for (size_t j = 0; j < sizeof(lies) / sizeof(lies[0]); j++) {
            redisReply *reply = reply_of(lies[j]);
            struct failure failure = {""};
            int r = parsers[i](reply, &failure);

            if (r != -EBADMSG && r != -ENOENT && r != -ESTALE)
                fail_msg("parser %zu, lie %zu: %d", i, j, r);
            assert_true(failure.text[0]);
            freeReplyObject(reply);
        }
        assert_parses(parsers[i], NULL, -EPIPE, "the connection to Redis broke");
    }
}

static void test_each_part_of_a_reply_is_checked(void **state)
{
    (void)state;
    assert_parses(parse_written, "*2\r\n:2\r\n$1\r\n1\r\n", -EBADMSG, "does not fit");
    assert_parses(parse_written, "*2\r\n$1\r\n0\r\n$1\r\n1\r\n", -EBADMSG, "does not fit");
    assert_parses(parse_written, "*2\r\n:0\r\n$2\r\n01\r\n", -EBADMSG, "does not fit");
    assert_parses(parse_written, "*2\r\n:0\r\n$1\r\nx\r\n", -EBADMSG, "does not fit");
    assert_parses(parse_written, "*2\r\n:0\r\n$16\r\n9007199254740992\r\n", -EBADMSG, NULL);
    assert_parses(parse_written, "*2\r\n:0\r\n:4096\r\n", -EBADMSG, NULL);
    assert_parses(parse_user, "*3\r\n$1\r\n0\r\n$1\r\na\r\n$1\r\na\r\n", -EBADMSG, NULL);
    assert_parses(parse_user, "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\na\r\n", -EBADMSG, NULL);
    assert_parses(parse_user, "*3\r\n$1\r\n1\r\n$1\r\na\r\n$-1\r\n", -EBADMSG, NULL);
    assert_parses(parse_following, "*2\r\n$1\r\n1\r\n$1\r\nx\r\n", -EBADMSG, NULL);
    assert_parses(parse_author, "*2\r\n$-1\r\n$-1\r\n", -EBADMSG, NULL);
    assert_parses(parse_author, "*2\r\n$1\r\n1\r\n$-1\r\n", -EBADMSG, NULL);
}

#define ENTRY(id, fields) "*2\r\n$6\r\n" id "\r\n" fields
#define FIELDS(previous)  "*4\r\n$1\r\np\r\n$4\r\n" previous "\r\n$1\r\ne\r\n$2\r\n{}\r\n"

static void test_entries_of_the_log_are_read(void **state)
{
    redisReply *reply = reply_of("*2\r\n" ENTRY("4097-0", FIELDS("4096")) ENTRY(
        "4099-0", "*6\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\ne\r\n$3\r\n{ }\r\n"
                  "$1\r\np\r\n$1\r\n0\r\n"));
    struct sl_event_log_entry entry;
    uint64_t id = 1;
    size_t count;

    (void)state;
    assert_int_equal(sl_event_log_range_reply(reply, 0, 4096, 4099, &count, NULL), 0);
    assert_int_equal(count, 2);
    entry = sl_event_log_entry_at(reply, 0);
    assert_int_equal(entry.id, 4097);
    assert_int_equal(entry.previous, 4096);
    assert_true(sl_slice_is(entry.event, "{}"));
    entry = sl_event_log_entry_at(reply, 1);
    assert_int_equal(entry.id, 4099);
    assert_int_equal(entry.previous, 0);
    assert_true(sl_slice_is(entry.event, "{ }"));
    assert_int_equal(sl_event_log_range_reply(reply, 1, 4096, 4099, &count, NULL), -EBADMSG);
    assert_int_equal(sl_event_log_range_reply(reply, 0, 4097, 4099, &count, NULL), -EBADMSG);
    assert_int_equal(sl_event_log_range_reply(reply, 0, 4096, 4098, &count, NULL), -EBADMSG);
    assert_int_equal(sl_event_log_end_reply(reply, 0, &id, NULL), -EBADMSG);
    freeReplyObject(reply);

    reply = reply_of("*0\r\n");
    assert_int_equal(sl_event_log_range_reply(reply, 0, 1, 2, &count, NULL), 0);
    assert_int_equal(count, 0);
    assert_int_equal(sl_event_log_end_reply(reply, 0, &id, NULL), 0);
    assert_int_equal(id, 0);
    freeReplyObject(reply);

    reply = reply_of("*1\r\n" ENTRY("4099-0", FIELDS("4096")));
    assert_int_equal(sl_event_log_end_reply(reply, 0, &id, NULL), 0);
    assert_int_equal(id, 4099);
    freeReplyObject(reply);
}

static void test_entries_that_no_script_wrote_are_refused(void **state)
{
    static const char *const bad[] = {
        "*1\r\n" ENTRY("4097-1", FIELDS("4096")),
        "*1\r\n" ENTRY("409700", FIELDS("4096")),
        "*1\r\n" ENTRY("0409-0", FIELDS("4096")),
        "*1\r\n" ENTRY("4096-0", FIELDS("4095")), /* not requested */
        "*1\r\n" ENTRY("5001-0", FIELDS("4096")),
        "*1\r\n" ENTRY("4160-0", FIELDS("4096")), /* shard 1 */
        "*1\r\n" ENTRY("4097-0", FIELDS("4097")), /* before itself */
        "*1\r\n" ENTRY("4097-0", FIELDS("xxxx")),
        "*1\r\n" ENTRY("4097-0", "*0\r\n"),
        "*1\r\n" ENTRY("4097-0", "*2\r\n$1\r\np\r\n$4\r\n4096\r\n"),
        "*1\r\n" ENTRY("4097-0", "*2\r\n$1\r\ne\r\n$2\r\n{}\r\n"),
        "*1\r\n" ENTRY("4097-0", "*3\r\n$1\r\np\r\n$4\r\n4096\r\n$1\r\ne\r\n"),
        "*1\r\n" ENTRY("4097-0", "*4\r\n$1\r\np\r\n$4\r\n4096\r\n$1\r\ne\r\n$-1\r\n"),
        "*1\r\n" ENTRY("4097-0", "$-1\r\n"),
        "*2\r\n" ENTRY("4098-0", FIELDS("4096")) ENTRY("4097-0", FIELDS("4096")),
        "*2\r\n" ENTRY("4097-0", FIELDS("4096")) ENTRY("4097-0", FIELDS("4096")),
        "*1\r\n*1\r\n$6\r\n4097-0\r\n",
        "*1\r\n*2\r\n$2\r\n-0\r\n" FIELDS("4096"),
        "*1\r\n*2\r\n:4097\r\n" FIELDS("4096"),
        "*1\r\n*0\r\n",
        "*1\r\n$-1\r\n",
    };

    (void)state;
    assert_parses(parse_log_range, "*1\r\n" ENTRY("4097-0", FIELDS("4096")), 0, NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_parses(parse_log_range, bad[i], -EBADMSG, "does not fit");
}

static void test_meta_of_another_program_is_refused(void **state)
{
#define META(schema, id, shards) "*7\r\n:0\r\n" schema id shards "$1\r\n1\r\n$1\r\n1\r\n$0\r\n\r\n"
#define GOOD_ID                  "$32\r\n0123456789abcdef0123456789abcdef\r\n"
    (void)state;
    assert_parses(parse_meta, META("$1\r\n1\r\n", GOOD_ID, "$1\r\n1\r\n"), 0, NULL);
    assert_parses(parse_meta, META("$1\r\n3\r\n", GOOD_ID, "$1\r\n1\r\n"), -ESTALE, "schema '3'");
    assert_parses(parse_meta, META("$-1\r\n", GOOD_ID, "$1\r\n1\r\n"), -ESTALE, "schema ''");
    assert_parses(parse_meta, META("$1\r\n1\r\n", "$1\r\nx\r\n", "$1\r\n1\r\n"), -EBADMSG, NULL);
    assert_parses(parse_meta, META("$1\r\n1\r\n", GOOD_ID, "$1\r\n0\r\n"), -EBADMSG, NULL);
    assert_parses(parse_meta, META("$1\r\n1\r\n", GOOD_ID, "$2\r\n65\r\n"), -EBADMSG, NULL);
    assert_parses(parse_meta, META("$1\r\n1\r\n", GOOD_ID, "$0\r\n\r\n"), -EBADMSG, NULL);
    assert_parses(parse_meta,
                  META("$1\r\n1\r\n", GOOD_ID, "$1\r\n1\r\n$0\r\n\r\n$1\r\nx\r\n$0\r\n\r\n"),
                  -EBADMSG, NULL);
}

static void test_errors_become_an_errno_and_a_sentence(void **state)
{
    static const struct {
        const char *bytes;
        int error;
        const char *message;
    } errors[] = {
        {"-NOTINIT this Redis holds no Sluice database yet\r\n", -ENODATA, "this Redis holds no"},
        {"-SHARDS the database has 8 shards\r\n", -ESTALE, "the database has 8 shards"},
        {"-LOGINTAKEN the login @ada is taken\r\n", -EEXIST, "the login @ada is taken"},
        {"-NOUSER there is no user @ada\r\n", -ENOENT, "there is no user @ada"},
        {"-NOPOST there is no post 1\r\n", -ENOENT, "there is no post 1"},
        {"-NOTOWNER post 1 is not yours\r\n", -EPERM, "post 1 is not yours"},
        {"-SELF nobody can\r\n", -EINVAL, "nobody can"},
        {"-REUSED this\r\n", -EALREADY, "this"},
        {"-LIMIT nobody can\r\n", -EDQUOT, "nobody can"},
        {"-AHEAD too far\r\n", -ERANGE, "too far"},
        {"-DAMAGED meta\r\n", -EBADMSG, "meta"},
        {"-WRONGTYPE Operation against\r\n", -EBADMSG, "Redis says: WRONGTYPE Operation against"},
        {"-LOADING Redis is loading\r\n", -EAGAIN, "Redis says: LOADING"},
        {"-BUSY Redis is busy\r\n", -EAGAIN, "Redis says: BUSY"},
        {"-NOAUTH Authentication required.\r\n", -EACCES, "Redis says: NOAUTH"},
        {"-READONLY You can't write\r\n", -EROFS, "Redis says: READONLY"},
        {"-OOM command not allowed\r\n", -ENOSPC, "Redis says: OOM"},
        {"-MISCONF Redis is configured\r\n", -EROFS, "Redis says: MISCONF"},
        {"-NOREPLICAS Not enough\r\n", -EAGAIN, "Redis says: NOREPLICAS"},
        {"-ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -OOM "
         "command\r\n",
         -ENOSPC, "Redis says: OOM command"},
        {"-ERR Error running script (call to f_1): @user_script:9: no such thing\r\n", -EIO,
         "Redis says: ERR Error running script"},
        {"-ERR Script attempted to access a non local key in a cluster node script: f_1, on "
         "@user_script:4.\r\n",
         -EAGAIN, "Redis says: ERR Script attempted"},
        {"-ERR Error running script (call to f_1): @user_script:9: @user_script: 9: Lua script "
         "attempted to access a non local key in a cluster node\r\n",
         -EAGAIN, "Redis says: ERR Error running"},
        {"-MOVING the shard is being moved\r\n", -EAGAIN, "the shard is being moved"},
        {"-ASK 13907 127.0.0.1:7103\r\n", -EAGAIN, "Redis says: ASK"},
        {"-MOVED 13907 127.0.0.1:7103\r\n", -EREMOTE, "begins with redis+cluster://"},
        {"-MOVED\r\n", -EREMOTE, "begins with redis+cluster://"},
        {"-ERR SELECT is not allowed in cluster mode\r\n", -EREMOTE,
         "begins with redis+cluster://"},
        {"-ERR something\r\n", -EIO, "Redis says: ERR something"},
        {"-NOUSERS\r\n", -EIO, "Redis says: NOUSERS"},
        {"-NOUSER\r\n", -ENOENT, "Redis says: NOUSER"},
        {"-\r\n", -EIO, "Redis says: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++) {
        for (size_t j = 0; j < sizeof(errors) / sizeof(errors[0]); j++)
            assert_parses(parsers[i], errors[j].bytes, errors[j].error, errors[j].message);
    }
}

static redisReply *news_of(const char *channel, const char *text)
{
    char bytes[512];

    snprintf(bytes, sizeof(bytes), "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
             strlen(channel), channel, strlen(text), text);
    return reply_of(bytes);
}

static int news_error(const char *channel, const char *text)
{
    redisReply *reply = news_of(channel, text);
    int r = parse_news(reply, NULL);

    freeReplyObject(reply);
    return r;
}

static void test_news_of_a_master_are_told_from_what_else_a_sentinel_says(void **state)
{
    redisReply *reply = news_of("+switch-master", "blue 10.0.0.1 6379 ::1 6380");
    struct sl_sentinel_news news;

    (void)state;
    assert_int_equal(sl_sentinel_news_reply(reply, "blue", &news, NULL), 0);
    assert_string_equal(news.old_master.host, "10.0.0.1");
    assert_int_equal(news.old_master.port, 6379);
    assert_string_equal(news.new_master.host, "::1");
    assert_int_equal(news.new_master.port, 6380);
    freeReplyObject(reply);

    assert_int_equal(news_error("+switch-master", "green 10.0.0.1 6379 ::1 6380"), -ENOENT);
    assert_int_equal(news_error("+switch-master", "blu 10.0.0.1 6379 ::1 6380"), -ENOENT);
    assert_int_equal(news_error("+sdown", "master blue 10.0.0.1 6379"), -ENOENT);
    assert_parses(parse_news, "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n", -ENOENT,
                  NULL);
    assert_parses(parse_news, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", -ENOENT, NULL);
    assert_parses(parse_news, "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n:1\r\n", -ENOENT,
                  NULL);
    assert_int_equal(news_error("+switch-master", "blue 10.0.0.1 6379 ::1"), -EBADMSG);
    assert_int_equal(news_error("+switch-master", "blue 10.0.0.1 6379 ::1 65536"), -EBADMSG);
    assert_int_equal(news_error("+switch-master", ""), -EBADMSG);
    assert_int_equal(parse_news(NULL, NULL) < 0, true);
}

static void test_master_role_and_state_of_the_log_are_read(void **state)
{
    redisReply *reply = reply_of("*2\r\n$9\r\n10.0.0.15\r\n$4\r\n6380\r\n");
    struct sl_event_log_state log;
    struct sl_redis_endpoint endpoint;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_sentinel_master_reply(reply, &endpoint, NULL), 0);
    assert_string_equal(endpoint.host, "10.0.0.15");
    assert_int_equal(endpoint.port, 6380);
    freeReplyObject(reply);
    assert_parses(parse_master, "*-1\r\n", -ENOENT, "knows no master");
    assert_parses(parse_master, "*2\r\n$1\r\nh\r\n$5\r\n65536\r\n", -EBADMSG, NULL);
    assert_parses(parse_master, "*2\r\n$0\r\n\r\n$1\r\n7\r\n", -EBADMSG, NULL);

    assert_parses(sl_sentinel_role_reply, "*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n", 0, NULL);
    reply = reply_of("*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:1\r\n");
    assert_int_equal(sl_sentinel_role_reply(reply, &failure), -EROFS);
    assert_string_equal(failure.text, "this Redis is a replica");
    freeReplyObject(reply);

    reply = reply_of("*3\r\n$1\r\n3\r\n$4\r\n4096\r\n$3\r\n900\r\n");
    assert_int_equal(sl_event_log_state_reply(reply, &log, NULL), 0);
    assert_int_equal(log.count, 3);
    assert_int_equal(log.oldest, 4096);
    assert_int_equal(log.bytes, 900);
    freeReplyObject(reply);
}

static void test_replica_is_noticed(void **state)
{
    redisReply *replica = reply_of("-READONLY You can't write against a read only replica.\r\n");
    redisReply *broken = reply_of("-MISCONF Redis is configured to save\r\n");

    (void)state;
    assert_true(sl_reply_is_replica(replica));
    assert_false(sl_reply_is_replica(broken));
    assert_false(sl_reply_is_replica(NULL));
    freeReplyObject(replica);
    freeReplyObject(broken);
}

static void test_script_that_is_missing_is_noticed(void **state)
{
    redisReply *noscript = reply_of("-NOSCRIPT No matching script.\r\n");
    redisReply *text = reply_of("$8\r\nNOSCRIPT\r\n");
    redisReply *busy = reply_of("-BUSY Redis is busy\r\n");
    redisReply *moving = reply_of("-ERR Script attempted to access a non local key\r\n");

    (void)state;
    assert_true(sl_reply_is_noscript(noscript));
    assert_false(sl_reply_is_noscript(text));
    assert_false(sl_reply_is_noscript(busy));
    assert_false(sl_reply_is_noscript(NULL));
    assert_true(sl_reply_is_not_yet(busy));
    assert_true(sl_reply_is_not_yet(moving));
    assert_false(sl_reply_is_not_yet(noscript));
    assert_false(sl_reply_is_not_yet(NULL));
    freeReplyObject(noscript);
    freeReplyObject(text);
    freeReplyObject(busy);
    freeReplyObject(moving);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_says_id_and_whether_it_is_repeated),
        cmocka_unit_test(test_user_meta_following_and_author_are_read),
        cmocka_unit_test(test_rows_are_read_each_by_itself),
        cmocka_unit_test(test_writes_of_many_tell_each),
        cmocka_unit_test(test_no_parser_believes_a_reply_of_another_shape),
        cmocka_unit_test(test_each_part_of_a_reply_is_checked),
        cmocka_unit_test(test_entries_of_the_log_are_read),
        cmocka_unit_test(test_entries_that_no_script_wrote_are_refused),
        cmocka_unit_test(test_meta_of_another_program_is_refused),
        cmocka_unit_test(test_errors_become_an_errno_and_a_sentence),
        cmocka_unit_test(test_news_of_a_master_are_told_from_what_else_a_sentinel_says),
        cmocka_unit_test(test_master_role_and_state_of_the_log_are_read),
        cmocka_unit_test(test_replica_is_noticed),
        cmocka_unit_test(test_script_that_is_missing_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
