/* The arguments that builders produce, and what they refuse; without Redis. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "src/archive/archived.h"
#include "src/database/event_log.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/model/login.h"
#include "src/social/common_users.h"
#include "src/social/included.h"
#include "src/social/public_timeline.h"
#include "src/social/follows.h"
#include "src/social/likes.h"
#include "src/social/post_rows.h"
#include "src/social/posts.h"
#include "src/social/users.h"
#include "tests/support/cmocka_all.h"

static const struct sl_meta one_shard = {.shards = 1};
static const struct sl_meta eight_shards = {.shards = 8};
static const struct sl_user_ref ada = {0, {"Ada", 3}};

/* The arguments after the script's SHA1, or all of a plain command, separated by spaces. */
static void assert_call(const struct sl_call *call, const char *expected)
{
    struct buffer text = BUFFER_INIT;

    for (int i = call->script ? 2 : 0; i < call->argc; i++) {
        if (text.size > 0)
            buffer_append_char(&text, ' ');
        buffer_append(&text, call->argv[i], call->argvlen[i]);
    }
    assert_string_equal(buffer_str(&text), expected);
    buffer_done(&text);
}

static void test_script_is_called_by_its_sha1_or_its_text(void **state)
{
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_user_create_call(&call, &one_shard, SL_SLICE("r1"), SL_SLICE("Ada"),
                                         SL_SLICE_NONE, NULL),
                     0);
    assert_int_equal(call.argvlen[0], 7);
    assert_memory_equal(call.argv[0], "EVALSHA", 7);
    assert_int_equal(call.argvlen[1], 40);
    assert_call(&call, "1 sluice:{0}:meta 1 r1 ada Ada Ada");
    assert_true(call.is_repeatable);

    sl_call_use_source(&call, true);
    assert_memory_equal(call.argv[0], "EVAL", call.argvlen[0]);
    assert_int_equal(call.argvlen[0], 4);
    assert_non_null(memmem(call.argv[1], call.argvlen[1], "LOGINTAKEN", 10));
    assert_call(&call, "1 sluice:{0}:meta 1 r1 ada Ada Ada");
    sl_call_use_source(&call, false);
    assert_int_equal(call.argvlen[0], 7);
    assert_int_equal(call.argvlen[1], 40);
    sl_call_done(&call);
}

static void test_write_without_request_id_may_not_be_repeated(void **state)
{
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_user_create_call(&call, &one_shard, SL_SLICE_NONE, SL_SLICE("Ada"),
                                         SL_SLICE("Ada Lovelace"), NULL),
                     0);
    assert_false(call.is_repeatable);
    assert_call(&call, "1 sluice:{0}:meta 1  ada Ada Ada Lovelace");
    sl_call_done(&call);
}

static void test_post_carries_its_members_as_they_are_kept(void **state)
{
    const struct sl_slice urls[] = {SL_SLICE("http://a/"), SL_SLICE("http://b/\"")};
    const struct sl_post post = {
        .text = SL_SLICE("hello"),
        .lang = SL_SLICE("zh-Hant-TW"),
        .has_point = true,
        .lon = -4.35545969,
        .lat = 0.1,
        .place = {SL_SLICE("Su\"va"), SL_SLICE("fj"), true, 178, -19.5, -179, 1e-7},
        .reply_to = {SL_SLICE("9223372036854775807"), SL_SLICE("did:plc:x"), SL_SLICE_NONE},
        .repost_of = {SL_SLICE("5"), SL_SLICE("6"), SL_SLICE("bob")},
        .quote_of = {SL_SLICE("4097"), SL_SLICE_NONE, SL_SLICE_NONE},
        .urls = urls,
        .url_count = 2,
        .media = SL_SLICE(" [ \"photo\", {\"b\": 1, \"a\": 0.1} ] "),
        .source = SL_SLICE("web"),
    };
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &post, NULL), 0);
    assert_call(&call,
                "1 sluice:{0}:meta 1  @ada text hello lang zh-Hant-TW source web "
                "geo {\"lon\":-4.35545969,\"lat\":0.1} "
                "place {\"name\":\"Su\\\"va\",\"country\":\"fj\",\"bbox\":[178,-19.5,-179,1e-07]} "
                "urls [\"http://a/\",\"http://b/\\\"\"] "
                "media [\"photo\",{\"b\":1,\"a\":0.10000000000000001}] "
                "reply_to {\"post\":\"9223372036854775807\",\"user\":\"did:plc:x\"} "
                "repost_of {\"post\":\"5\",\"user\":\"6\",\"login\":\"bob\"} "
                "quote_of 4097");
    sl_call_done(&call);
}

static void test_place_may_have_any_of_its_parts(void **state)
{
    const struct sl_post posts[] = {
        {.text = SL_SLICE("t"), .place = {.country = SL_SLICE("FJ")}},
        {.text = SL_SLICE("t"), .place = {.has_box = true, .north = 1}},
        {.text = SL_SLICE("t"), .place = {.name = SL_SLICE("n"), .has_box = true}},
    };
    static const char *const expected[] = {"{\"country\":\"FJ\"}", "{\"bbox\":[0,0,0,1]}",
                                           "{\"name\":\"n\",\"bbox\":[0,0,0,0]}"};
    struct sl_call call = SL_CALL_INIT;
    char text[200];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "1 sluice:{0}:meta 1  @ada text t place %s", expected[i]);
        assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &posts[i], NULL), 0);
        assert_call(&call, text);
    }
    sl_call_done(&call);
}

static void refuse_post(const struct sl_post *post, const char *message)
{
    struct sl_call call = SL_CALL_INIT;
    struct failure failure = {""};

    assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, post, &failure), -EINVAL);
    if (!strstr(failure.text, message))
        fail_msg("said '%s', not '%s'", failure.text, message);
    assert_int_equal(call.argc, 0);
    sl_call_done(&call);
}

#define REFUSE(message, ...)                                                                       \
    refuse_post(&(struct sl_post){.text = SL_SLICE("t"), __VA_ARGS__}, message)

static void test_post_that_is_none_is_refused_precisely(void **state)
{
    static char large[SL_POST_TEXT_MAX + 1];
    struct sl_slice urls[SL_POST_URLS_MAX + 1];
    struct sl_slice bad_url = SL_SLICE("http://\n");

    (void)state;
    memset(large, 'x', sizeof(large));
    for (size_t i = 0; i <= SL_POST_URLS_MAX; i++)
        urls[i] = SL_SLICE("u");
    refuse_post(&(struct sl_post){.text = SL_SLICE("")}, "the text is empty");
    refuse_post(&(struct sl_post){.text = {large, sizeof(large)}}, "longer than 20000 bytes");
    refuse_post(&(struct sl_post){.text = SL_SLICE("a\xED\xA0\x80")},
                "the text is not valid UTF-8");
    refuse_post(&(struct sl_post){.text = SL_SLICE("a\0")}, "the text holds a NUL");
    REFUSE("BCP 47", .lang = SL_SLICE(""));
    REFUSE("BCP 47", .lang = SL_SLICE("e_n"));
    REFUSE("BCP 47", .lang = SL_SLICE("en-"));
    REFUSE("BCP 47", .lang = SL_SLICE("-en"));
    REFUSE("BCP 47", .lang = SL_SLICE("en--us"));
    REFUSE("BCP 47", .lang = SL_SLICE("e1"));
    REFUSE("a code, not a name", .lang = SL_SLICE("english"));
    REFUSE("BCP 47", .lang = SL_SLICE("en-ninechars"));
    REFUSE("BCP 47", .lang = SL_SLICE("aaaaaaaa-bbbbbbbb-cccccccc-dddddddd-"));
    REFUSE("the longitude", .has_point = true, .lon = 180.5);
    REFUSE("the longitude", .has_point = true, .lon = __builtin_nan(""));
    REFUSE("the latitude", .has_point = true, .lat = -90.001);
    REFUSE("the country", .place.country = SL_SLICE("FJI"));
    REFUSE("the country", .place.country = SL_SLICE("F1"));
    REFUSE("the name of the place is empty", .place.name = SL_SLICE(""));
    REFUSE("control character", .place.name = SL_SLICE("a\tb"));
    REFUSE("beyond the map", .place = {.has_box = true, .west = -181});
    REFUSE("beyond the map", .place = {.has_box = true, .north = 91});
    REFUSE("south of itself", .place = {.has_box = true, .south = 2, .north = 1});
    REFUSE("the source is longer than 64 bytes", .source = {large, 65});
    REFUSE("more than 16 links", .urls = urls, .url_count = SL_POST_URLS_MAX + 1);
    REFUSE("a link holds a control", .urls = &bad_url, .url_count = 1);
    REFUSE("not a JSON array", .media = SL_SLICE("{}"));
    REFUSE("not a JSON array", .media = SL_SLICE("[1"));
    REFUSE("not a JSON array", .media = SL_SLICE("[\"\\u0000\"]"));
    REFUSE("deeper than 16", .media = SL_SLICE("[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]"));
    REFUSE("longer than 16384", .media = {large, SL_POST_MEDIA_MAX + 1});
    REFUSE("reply_to is not the id", .reply_to.post = SL_SLICE("x"));
    REFUSE("reply_to is not the id", .reply_to.post = SL_SLICE(""));
    REFUSE("repost_of.post is not the id",
           .repost_of = {SL_SLICE("9223372036854775808"), SL_SLICE("1"), SL_SLICE_NONE});
    REFUSE("repost_of.post is not the id",
           .repost_of = {SL_SLICE("0"), SL_SLICE("1"), SL_SLICE_NONE});
    REFUSE("quote_of.user is longer", .quote_of = {SL_SLICE("1"), {large, 65}, SL_SLICE_NONE});
    REFUSE("quote_of.login is empty", .quote_of = {SL_SLICE("1"), SL_SLICE("1"), SL_SLICE("")});
}

static void test_deepest_media_and_longest_text_pass(void **state)
{
    static char large[SL_POST_TEXT_MAX];
    const struct sl_post post = {.text = {large, sizeof(large)},
                                 .media = SL_SLICE("[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]")};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    memset(large, 'x', sizeof(large));
    assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &post, NULL), 0);
    sl_call_done(&call);
}

static void test_numbers_do_not_follow_the_locale(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("t"), .has_point = true, .lon = 1.5, .lat = 2.5};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &post, NULL), 0);
    setlocale(LC_NUMERIC, "C");
    assert_call(&call, "1 sluice:{0}:meta 1  @ada text t geo {\"lon\":1.5,\"lat\":2.5}");
    sl_call_done(&call);
}

static void test_request_ids_are_printable_and_short(void **state)
{
    static const struct sl_slice bad[] = {SL_SLICE(""), SL_SLICE("a b"), SL_SLICE("a\x7f"),
                                          SL_SLICE("\xC3\xA9")};
    char longest[130];
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(sl_delete_call(&call, &one_shard, bad[i], &ada, 1, &failure), -EINVAL);
    memset(longest, 'r', sizeof(longest));
    assert_int_equal(sl_delete_call(&call, &one_shard, sl_slice(longest, 129), &ada, 1, &failure),
                     -EINVAL);
    assert_non_null(strstr(failure.text, "longer than 128"));
    assert_int_equal(sl_delete_call(&call, &one_shard, sl_slice(longest, 128), &ada, 1, NULL), 0);
    sl_call_done(&call);
}

static void test_write_goes_to_the_shard_of_its_actor(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("t")};
    const struct sl_user_ref by_id = sl_user_by_id(5 * 64 + 4096);
    struct sl_call call = SL_CALL_INIT;
    char expected[100];
    uint32_t shard = sl_login_shard(SL_SLICE("ada"), 8);

    (void)state;
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &ada, &post, NULL), 0);
    assert_int_equal(call.shard, shard);
    snprintf(expected, sizeof(expected), "1 sluice:{%u}:meta 8  @ada text t", (unsigned)shard);
    assert_call(&call, expected);
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &by_id, &post, NULL), 0);
    assert_int_equal(call.shard, 5);
    assert_call(&call, "1 sluice:{5}:meta 8  =4416 text t");
    sl_call_done(&call);
}

static void test_ids_of_shards_that_are_not_there_are_refused(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("t")};
    const struct sl_user_ref stranger = sl_user_by_id(8 * 64);
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &stranger, &post, &failure),
                     -EINVAL);
    assert_string_equal(failure.text, "512 is no id of this database");
    assert_int_equal(sl_delete_call(&call, &eight_shards, SL_SLICE_NONE, &ada, 512, &failure),
                     -EINVAL);
    assert_int_equal(sl_delete_call(&call, &eight_shards, SL_SLICE_NONE, &ada, 0, &failure),
                     -EINVAL);
    assert_int_equal(sl_post_author_call(&call, &eight_shards, 0, SL_ID_MAX + 1, &failure),
                     -EINVAL);
    sl_call_done(&call);
}

static void test_reference_to_another_shard_must_be_looked_up(void **state)
{
    const struct sl_user_ref author = sl_user_by_id(4096 + 64);
    struct sl_post post = {.text = SL_SLICE("t"), .reply_to.post = SL_SLICE("4096")};
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &author, &post, &failure),
                     -EXDEV);
    assert_string_equal(failure.text, "post 4096 lives in another shard");
    post.reply_to.user = SL_SLICE("7");
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &author, &post, NULL), 0);
    post.is_comment = true;
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &author, &post, NULL), 0);
    assert_call(&call, "1 sluice:{1}:meta 8  =4160 text t reply_to "
                       "{\"post\":\"4096\",\"user\":\"7\"} parent 4096");
    post.reply_to.user = SL_SLICE_NONE;
    post.reply_to.is_restricted = true;
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &author, &post, NULL), 0);
    assert_call(&call,
                "1 sluice:{1}:meta 8  =4160 text t reply_to {\"post\":\"4096\"} parent 4096");
    post.reply_to.post = SL_SLICE("512");
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &author, &post, &failure),
                     -EINVAL);
    post = (struct sl_post){.text = SL_SLICE("t"),
                            .repost_of = {SL_SLICE("4096"), .is_restricted = true}};
    assert_int_equal(sl_post_call(&call, &eight_shards, SL_SLICE_NONE, &author, &post, &failure),
                     -EOPNOTSUPP);
    assert_string_equal(failure.text, "post 4096 is not public: nobody can repost it");
    assert_int_equal(sl_post_author_call(&call, &eight_shards, 4160, 4096, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 8  4160 4096");
    assert_true(call.is_repeatable);
    sl_call_done(&call);
}

static void test_delete_runs_where_the_post_lives(void **state)
{
    const struct sl_user_ref near = sl_user_by_id(4096 + 3 * 64);
    const struct sl_user_ref far = sl_user_by_id(4096 + 4 * 64);
    const uint64_t post = 8192 + 3 * 64;
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_delete_call(&call, &eight_shards, SL_SLICE("r"), &near, post, NULL), 0);
    assert_call(&call, "1 sluice:{3}:meta 8 r =4288 8384");
    assert_int_equal(sl_delete_call(&call, &eight_shards, SL_SLICE("r"), &far, post, NULL), 0);
    assert_call(&call, "1 sluice:{3}:meta 8 r =4352 8384");
    assert_int_not_equal(sl_login_shard(SL_SLICE("ada"), 8), 3); /* that shard cannot find its id */
    assert_int_equal(sl_delete_call(&call, &eight_shards, SL_SLICE("r"), &ada, post, NULL), 0);
    assert_call(&call, "1 sluice:{3}:meta 8 r - 8384");
    sl_call_done(&call);
}

static void test_follow_names_a_target_of_another_shard(void **state)
{
    const struct sl_user_ref user = sl_user_by_id(4096);
    const struct sl_user near = {8192, SL_SLICE("bob"), SL_SLICE("Bob")};
    const struct sl_user far = {8192 + 64, SL_SLICE("bob"), SL_SLICE("Bob")};
    struct sl_user by_login = {.login = SL_SLICE("x0")};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_follow_call(&call, &eight_shards, SL_SLICE("r"), &user, &near, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 8 r follow =4096 =8192  ");
    assert_int_equal(sl_unfollow_call(&call, &eight_shards, SL_SLICE("r"), &user, &far, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 8 r unfollow =4096 =8256 bob Bob");
    assert_int_equal(sl_follow_call(&call, &one_shard, SL_SLICE("r"), &user, &by_login, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 1 r follow =4096 @x0  ");
    assert_int_not_equal(sl_login_shard(by_login.login, 8), 0);
    assert_int_equal(sl_follow_call(&call, &eight_shards, SL_SLICE("r"), &user, &by_login, NULL),
                     -EXDEV);
    sl_call_done(&call);
}

static void test_reads_may_be_repeated(void **state)
{
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_user_find_call(&call, &one_shard, &ada, NULL), 0);
    assert_true(call.is_repeatable);
    assert_call(&call, "1 sluice:{0}:meta 1  @ada");
    assert_int_equal(sl_following_call(&call, 4096 + 64, NULL), 0);
    assert_true(call.is_repeatable);
    assert_call(&call, "ZRANGE sluice:{1}:following:4160 0 -1");
    sl_call_use_source(&call, true); /* not a script: nothing changes */
    assert_call(&call, "ZRANGE sluice:{1}:following:4160 0 -1");
    assert_int_equal(sl_event_log_range_call(&call, 3, 4288, SL_ID_MAX, 50, NULL), 0);
    assert_true(call.is_repeatable);
    assert_call(&call, "XRANGE sluice:{3}:log 4289 9007199254740991 COUNT 50");
    assert_int_equal(sl_event_log_range_call(&call, 0, 0, 1, 1, NULL), 0);
    assert_call(&call, "XRANGE sluice:{0}:log 1 1 COUNT 1");
    assert_int_equal(sl_event_log_end_call(&call, 63, NULL), 0);
    assert_true(call.is_repeatable);
    assert_call(&call, "XREVRANGE sluice:{63}:log + - COUNT 1");
    sl_call_done(&call);
}

static void test_reads_carry_reader_and_page(void **state)
{
    const struct sl_user_ref bob = sl_user_by_id(4096 + 64);
    const struct sl_page page = {.before = 9000, .limit = 20}, newest = {.limit = 1000};
    const struct sl_archive_post archived = {4224, 4160, SL_SLICE("{\"id\":\"4224\"}")};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_user_row_call(&call, &one_shard, &ada, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 1  @ada");
    assert_int_equal(sl_post_row_call(&call, &eight_shards, SL_READER_NOBODY, 4160, NULL), 0);
    assert_call(&call, "1 sluice:{1}:meta 8   4160");
    assert_int_equal(sl_post_list_call(&call, &eight_shards, SL_READER_SYSTEM, &bob, &page, NULL),
                     0);
    assert_call(&call, "1 sluice:{1}:meta 8  * posts =4160 9000 20");
    assert_true(call.is_repeatable);
    assert_int_equal(sl_comment_list_call(&call, &eight_shards, 4096, 4224, &newest, NULL), 0);
    assert_call(&call, "1 sluice:{2}:meta 8  4096 comments 4224 +inf 1000");
    assert_int_equal(sl_like_list_call(&call, &one_shard, 4096, 8192, &newest, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 1  4096 likes 8192 +inf 1000");
    assert_int_equal(
        sl_archived_comment_list_call(&call, &eight_shards, 4096, &archived, &page, NULL), 0);
    assert_call(&call, "1 sluice:{2}:meta 8  4096 comments 4224 9000 20  {\"id\":\"4224\"}");
    assert_int_equal(sl_archived_like_list_call(&call, &eight_shards, 0, &archived, &newest, NULL),
                     0);
    assert_call(&call, "1 sluice:{2}:meta 8   likes 4224 +inf 1000  {\"id\":\"4224\"}");
    assert_true(call.is_repeatable);
    assert_int_equal(sl_follower_list_call(&call, &one_shard, &ada, &newest, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 1   followers @ada +inf 1000");
    assert_int_equal(sl_following_list_call(&call, &one_shard, &ada, &page, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 1   following @ada 9000 20");
    assert_int_equal(
        sl_common_users_call(&call, &eight_shards, SL_COMMON_FOLLOWING, 4160, 4096, &page, NULL),
        0);
    assert_call(&call, "1 sluice:{1}:meta 8  following 4160 4096 9000 20");
    sl_call_done(&call);
}

static void test_what_is_included_is_asked_of_one_shard_and_bounded(void **state)
{
    const struct sl_included_wish wish = {.comments = 3, .likers = 10}, more = {.comments = 11};
    uint64_t posts[SL_INCLUDED_POSTS_MAX + 1];
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    for (size_t i = 0; i <= SL_INCLUDED_POSTS_MAX; i++)
        posts[i] = (i + 1) * SL_ID_PER_MS + 128;
    assert_int_equal(sl_included_call(&call, &eight_shards, 4096, &wish, posts, 2, &failure), 0);
    assert_call(&call, "1 sluice:{2}:meta 8  4096 3 10 4224 8320");
    assert_true(call.is_repeatable);
    assert_int_equal(sl_included_call(&call, &eight_shards, 4096, &more, posts, 2, &failure),
                     -EINVAL);
    assert_int_equal(sl_included_call(&call, &eight_shards, 4096, &wish, posts, 0, &failure),
                     -EINVAL);
    assert_int_equal(sl_included_call(&call, &eight_shards, 4096, &wish, posts,
                                      SL_INCLUDED_POSTS_MAX + 1, &failure),
                     -EINVAL);
    posts[1] += 64;
    assert_int_equal(sl_included_call(&call, &eight_shards, 4096, &wish, posts, 2, &failure),
                     -EINVAL);
    assert_non_null(strstr(failure.text, "several shards"));
    assert_int_equal(sl_included_call(&call, &one_shard, 4096, &wish, posts, 1, &failure), -EINVAL);
    assert_int_equal(sl_viewer_call(&call, &eight_shards, 4160, posts, 2, &failure), 0);
    assert_call(&call, "1 sluice:{1}:meta 8  4160 4224 8384");
    assert_int_equal(sl_viewer_call(&call, &eight_shards, SL_READER_NOBODY, posts, 2, &failure),
                     -EINVAL);
    sl_call_done(&call);
}

static void test_public_posts_are_asked_of_each_shard(void **state)
{
    const struct sl_page page = {.before = 9000, .limit = 20}, none = {.limit = 0};
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_public_call(&call, &eight_shards, SL_READER_NOBODY, 7, &page, &failure), 0);
    assert_call(&call, "1 sluice:{7}:meta 8   9000 20");
    assert_int_equal(call.shard, 7);
    assert_int_equal(sl_public_call(&call, &eight_shards, 4096, 8, &page, &failure), -EINVAL);
    assert_int_equal(sl_public_call(&call, &eight_shards, 4096, 7, &none, &failure), -EINVAL);
    sl_call_done(&call);
}

static void test_a_user_is_changed_in_its_shard(void **state)
{
    const struct sl_user_field fields[SL_USER_FIELDS_MAX + 1] = {{SL_SLICE("a"), SL_SLICE("b\"")}};
    const struct sl_user_ref near = sl_user_by_id(4096 + 64 * sl_login_shard(SL_SLICE("ada"), 8));
    const struct sl_user_ref far = sl_user_by_id(near.id ^ 64);
    struct sl_user_change change = {
        .login = SL_SLICE("ADA"), .bio = SL_SLICE(""), .changes_fields = true, .fields = fields};
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;
    char expected[200];

    (void)state;
    change.field_count = 1;
    assert_int_equal(
        sl_user_change_call(&call, &eight_shards, SL_SLICE_NONE, &near, &change, &failure), 0);
    snprintf(expected, sizeof(expected),
             "1 sluice:{%u}:meta 8  =%" PRIu64
             " login ADA ada bio  fields [{\"name\":\"a\",\"value\":\"b\\\"\"}]",
             call.shard, near.id);
    assert_call(&call, expected);
    assert_int_equal(
        sl_user_change_call(&call, &eight_shards, SL_SLICE_NONE, &far, &change, &failure), -EXDEV);
    assert_non_null(strstr(failure.text, "@ada"));
    change.field_count = SL_USER_FIELDS_MAX + 1;
    assert_int_equal(
        sl_user_change_call(&call, &eight_shards, SL_SLICE_NONE, &near, &change, &failure),
        -EINVAL);
    change = (struct sl_user_change){.avatar = SL_SLICE("ftp://a/")};
    assert_int_equal(
        sl_user_change_call(&call, &eight_shards, SL_SLICE_NONE, &near, &change, &failure),
        -EINVAL);
    sl_call_done(&call);
}

static void test_like_goes_to_the_shard_of_its_post(void **state)
{
    const struct sl_user_ref near = sl_user_by_id(4096 + 3 * 64), far = sl_user_by_id(4096);
    const uint64_t post = 8192 + 3 * 64;
    struct sl_user_ref by_login = {0, SL_SLICE("x0")};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    assert_int_equal(sl_like_call(&call, &eight_shards, SL_SLICE("r"), &near, post, NULL), 0);
    assert_call(&call, "1 sluice:{3}:meta 8 r like =4288 8384");
    assert_int_equal(sl_unlike_call(&call, &eight_shards, SL_SLICE("r"), &far, post, NULL), 0);
    assert_call(&call, "1 sluice:{3}:meta 8 r unlike =4096 8384");
    assert_int_not_equal(sl_login_shard(by_login.login, 8), 3);
    assert_int_equal(sl_like_call(&call, &eight_shards, SL_SLICE_NONE, &by_login, post, NULL),
                     -EXDEV);
    sl_call_done(&call);
}

/* Runs `build` with each allocation failing: it returns an error, and the call cannot be sent. */
static void assert_survives(int (*build)(struct sl_call *call, struct failure *reterr))
{
    int r = -ENOMEM;

    for (uint64_t n = 0; r == -ENOMEM; n++) {
        struct sl_call call = SL_CALL_INIT;
        struct failure failure;

        mem_fail_after(n);
        r = build(&call, &failure);
        mem_fail_never();
        assert_true(n < 20);
        assert_int_equal(r == 0, call.argc > 0);
        sl_call_done(&call);
    }
    assert_int_equal(r, 0);
}

static int build_rename(struct sl_call *call, struct failure *reterr)
{
    return sl_user_rename_call(call, &one_shard, SL_SLICE_NONE, &ada, SL_SLICE("A"), reterr);
}

static int build_list(struct sl_call *call, struct failure *reterr)
{
    const struct sl_page page = {.before = 0, .limit = 10};

    return sl_post_list_call(call, &one_shard, SL_READER_NOBODY, &ada, &page, reterr);
}

static int build_archived_list(struct sl_call *call, struct failure *reterr)
{
    const struct sl_archive_post post = {4096, 4096, SL_SLICE("{}")};
    const struct sl_page page = {.before = 0, .limit = 10};

    return sl_archived_like_list_call(call, &one_shard, SL_READER_NOBODY, &post, &page, reterr);
}

static int build_like(struct sl_call *call, struct failure *reterr)
{
    return sl_like_call(call, &one_shard, SL_SLICE_NONE, &ada, 4096, reterr);
}

static int build_common(struct sl_call *call, struct failure *reterr)
{
    const struct sl_page page = {.before = 0, .limit = 10};

    return sl_common_users_call(call, &one_shard, SL_COMMON_FOLLOWERS, 4096, 8192, &page, reterr);
}

static int build_included(struct sl_call *call, struct failure *reterr)
{
    const struct sl_included_wish wish = {.comments = 1};
    const uint64_t post = 4096;

    return sl_included_call(call, &one_shard, SL_READER_NOBODY, &wish, &post, 1, reterr);
}

static int build_change(struct sl_call *call, struct failure *reterr)
{
    const struct sl_user_field field = {SL_SLICE("a"), SL_SLICE("b")};
    const struct sl_user_change change = {
        .changes_fields = true, .fields = &field, .field_count = 1};

    return sl_user_change_call(call, &one_shard, SL_SLICE_NONE, &ada, &change, reterr);
}

static void test_builders_of_reads_and_likes_survive_every_allocation_that_fails(void **state)
{
    (void)state;
    assert_survives(build_rename);
    assert_survives(build_list);
    assert_survives(build_archived_list);
    assert_survives(build_like);
    assert_survives(build_common);
    assert_survives(build_included);
    assert_survives(build_change);
}

static void test_meta_is_asked_for_shards_that_can_be(void **state)
{
    struct sl_meta wanted = sl_meta_wanted(0), other = sl_meta_wanted(3);
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    assert_int_equal(strlen(wanted.database_id), 32);
    assert_string_not_equal(wanted.database_id, other.database_id);
    assert_int_equal(sl_meta_call(&call, 0, &wanted, &failure), -EINVAL);
    wanted.shards = 65;
    assert_int_equal(sl_meta_call(&call, 0, &wanted, &failure), -EINVAL);
    wanted.shards = 64;
    assert_int_equal(sl_meta_call(&call, 64, &wanted, &failure), -EINVAL);
    assert_int_equal(sl_meta_call(&call, 63, &wanted, NULL), 0);
    assert_int_equal(call.shard, 63);
    sl_call_done(&call);
}

static void test_builders_survive_every_allocation_that_fails(void **state)
{
    const struct sl_slice url = SL_SLICE("http://a/");
    const struct sl_post post = {
        .text = SL_SLICE("hello"), .urls = &url, .url_count = 1, .media = SL_SLICE("[1]")};
    struct failure failure;
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r == -ENOMEM; n++) {
        struct sl_call call = SL_CALL_INIT;

        mem_fail_after(n);
        r = sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &post, &failure);
        mem_fail_never();
        assert_true(n < 20);
        assert_int_equal(r == 0, call.argc > 0);
        assert_int_equal(r == 0, n >= 4); /* two arrays, the arguments, the JSON */
        sl_call_done(&call);
    }
    assert_int_equal(r, 0);
}

static void test_call_grows_to_many_arguments_and_is_used_again(void **state)
{
    static char large[SL_POST_TEXT_MAX];
    struct sl_post post = {.text = {large, sizeof(large)}, .lang = SL_SLICE("en")};
    struct sl_call call = SL_CALL_INIT;

    (void)state;
    memset(large, 'y', sizeof(large));
    assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &post, NULL), 0);
    assert_int_equal(call.argvlen[8], sizeof(large));
    assert_memory_equal(call.argv[8], large, sizeof(large));
    assert_memory_equal(call.argv[10], "en", 2);
    post = (struct sl_post){.text = SL_SLICE("short")};
    assert_int_equal(sl_post_call(&call, &one_shard, SL_SLICE_NONE, &ada, &post, NULL), 0);
    assert_call(&call, "1 sluice:{0}:meta 1  @ada text short");
    sl_call_done(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script_is_called_by_its_sha1_or_its_text),
        cmocka_unit_test(test_what_is_included_is_asked_of_one_shard_and_bounded),
        cmocka_unit_test(test_public_posts_are_asked_of_each_shard),
        cmocka_unit_test(test_a_user_is_changed_in_its_shard),
        cmocka_unit_test(test_write_without_request_id_may_not_be_repeated),
        cmocka_unit_test(test_post_carries_its_members_as_they_are_kept),
        cmocka_unit_test(test_place_may_have_any_of_its_parts),
        cmocka_unit_test(test_post_that_is_none_is_refused_precisely),
        cmocka_unit_test(test_deepest_media_and_longest_text_pass),
        cmocka_unit_test(test_numbers_do_not_follow_the_locale),
        cmocka_unit_test(test_request_ids_are_printable_and_short),
        cmocka_unit_test(test_write_goes_to_the_shard_of_its_actor),
        cmocka_unit_test(test_ids_of_shards_that_are_not_there_are_refused),
        cmocka_unit_test(test_reference_to_another_shard_must_be_looked_up),
        cmocka_unit_test(test_delete_runs_where_the_post_lives),
        cmocka_unit_test(test_follow_names_a_target_of_another_shard),
        cmocka_unit_test(test_reads_may_be_repeated),
        cmocka_unit_test(test_reads_carry_reader_and_page),
        cmocka_unit_test(test_like_goes_to_the_shard_of_its_post),
        cmocka_unit_test(test_builders_of_reads_and_likes_survive_every_allocation_that_fails),
        cmocka_unit_test(test_meta_is_asked_for_shards_that_can_be),
        cmocka_unit_test(test_builders_survive_every_allocation_that_fails),
        cmocka_unit_test(test_call_grows_to_many_arguments_and_is_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
