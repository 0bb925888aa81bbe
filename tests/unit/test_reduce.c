/* Small cases byte for byte, and random events compared with a walk over jansson's tree. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "gateway/delivery/reduce.h"
#include "gateway/front/event_fields.h"
#include "tests/support/cmocka_all.h"

enum { EVENTS = 4000 }; /* in each random test */

static struct buffer scratch, reduced;

static int free_buffers(void **state)
{
    (void)state;
    buffer_done(&scratch);
    buffer_done(&reduced);
    return 0;
}

static uint64_t parsed(const char *names)
{
    uint64_t fields = 0;

    assert_int_equal(event_fields_parse(sl_slice_str(names), &fields, NULL), 0);
    return fields;
}

/* Reduces a copy without a byte after it, so that reading past the end is noticed. */
static int reduce(struct sl_slice json, bool is_deletion, uint64_t fields)
{
    char *copy = mem_copy(json.data, json.size);
    int r;

    buffer_clear(&reduced);
    r = reduce_json(sl_slice(copy, json.size), is_deletion, fields, &scratch, &reduced);
    mem_free(copy);
    return r;
}

static void expect(const char *names, const char *json, const char *left)
{
    assert_int_equal(reduce(sl_slice_str(json), false, parsed(names)), 0);
    assert_string_equal(buffer_str(&reduced), left);
}

#define POST                                                                                       \
    "{\"id\":\"9\",\"type\":\"post\",\"at\":\"T\",\"post\":{\"id\":\"9\",\"user\":{\"id\":"        \
    "\"4\",\"login\":\"ada\",\"x\":1},\"text\":\"\\ud83c\\udf75 \\\"{}[],:\\\\\",\"created_at\":"  \
    "\"T\",\"geo\":{\"lon\":1.50e0,\"lat\":2},\"n\":[{\"id\":3}],\"audience\":\"public\"},\"m\":"  \
    "{}}"

static void test_members_are_copied_as_they_stand(void **state)
{
    (void)state;
    expect("id", POST, "{\"id\":\"9\",\"type\":\"post\"}");
    expect("text", POST,
           "{\"id\":\"9\",\"type\":\"post\",\"post\":{\"text\":"
           "\"\\ud83c\\udf75 \\\"{}[],:\\\\\"}}");
    expect("geo.lon,user.login,at", POST,
           "{\"id\":\"9\",\"type\":\"post\",\"at\":\"T\",\"post\":{\"user\":{\"login\":\"ada\"},"
           "\"geo\":{\"lon\":1.50e0}}}");
    expect("user", POST,
           "{\"id\":\"9\",\"type\":\"post\",\"post\":{\"user\":{\"id\":\"4\",\"login\":\"ada\","
           "\"x\":1}}}");
    expect("post.id", POST, "{\"id\":\"9\",\"type\":\"post\",\"post\":{\"id\":\"9\"}}");
    expect("place,target.id,reply_to.post", POST, "{\"id\":\"9\",\"type\":\"post\"}");
}

static void test_short_leaves_out_what_is_said_twice(void **state)
{
    (void)state;
    expect("short", POST,
           "{\"id\":\"9\",\"type\":\"post\",\"at\":\"T\",\"post\":{\"user\":{\"id\":\"4\","
           "\"login\":\"ada\",\"x\":1},\"text\":\"\\ud83c\\udf75 \\\"{}[],:\\\\\",\"geo\":{"
           "\"lon\":1.50e0,\"lat\":2},\"n\":[{\"id\":3}]},\"m\":{}}");
}

static void test_short_keeps_what_says_something_else(void **state)
{
    static const char other[] = "{\"id\":\"9\",\"type\":\"post\",\"at\":\"T\",\"post\":{\"id\":"
                                "\"8\",\"created_at\":\"S\",\"audience\":\"followers\"}}";
    static const char nothing[] =
        "{\"id\":\"9\",\"type\":\"post\",\"post\":{\"created_at\":\"S\"}}";

    (void)state;
    expect("short", other, other);
    expect("short", nothing, nothing);
    expect("short", "{\"post\":{\"id\":1,\"audience\":\"followers\",\"audience\":\"public\"}}",
           "{\"post\":{\"id\":1}}");
    expect("short", "{\"post\":{\"audience\":\"public\",\"audience\":\"followers\"}}",
           "{\"post\":{\"audience\":\"followers\"}}");
}

static void test_a_deletion_keeps_the_id_of_its_post(void **state)
{
    static const char deletion[] = "{\"id\":\"9\",\"type\":\"delete\",\"at\":\"T\",\"post\":{"
                                   "\"id\":\"8\",\"user\":{\"id\":\"4\"},\"state\":\"deleted\"}}";

    (void)state;
    assert_int_equal(reduce(sl_slice_str(deletion), true, parsed("text")), 0);
    assert_string_equal(buffer_str(&reduced),
                        "{\"id\":\"9\",\"type\":\"delete\",\"post\":{\"id\":\"8\"}}");
    assert_int_equal(reduce(sl_slice_str(deletion), true, parsed("ids")), 0);
    assert_string_equal(
        buffer_str(&reduced),
        "{\"id\":\"9\",\"type\":\"delete\",\"post\":{\"id\":\"8\",\"user\":{\"id\":\"4\"}}}");
    assert_int_equal(reduce(sl_slice_str(deletion), true, EVENT_FIELDS_SHORT), 0);
    assert_string_equal(buffer_str(&reduced), deletion);
}

static void test_users_of_other_events_have_the_same_names(void **state)
{
    static const char follow[] = "{\"id\":\"9\",\"type\":\"follow\",\"at\":\"T\",\"user\":{\"id\":"
                                 "\"1\",\"login\":\"a\"},\"target\":{\"id\":\"2\"}}";

    (void)state;
    expect("text,user.login", follow,
           "{\"id\":\"9\",\"type\":\"follow\",\"user\":{\"login\":\"a\"}}");
    expect("ids", follow,
           "{\"id\":\"9\",\"type\":\"follow\",\"user\":{\"id\":\"1\"},\"target\":{\"id\":\"2\"}}");
    expect("short", follow, follow);
}

static void test_where_a_late_event_stands_is_always_said(void **state)
{
    (void)state;
    expect("id", "{\"id\":\"9\",\"type\":\"post\",\"post\":{},\"late\":true,\"cursor\":\"8~9:2\"}",
           "{\"id\":\"9\",\"type\":\"post\",\"late\":true,\"cursor\":\"8~9:2\"}");
}

static void test_of_a_repeated_member_the_last_one_counts(void **state)
{
    (void)state;
    expect("text", "{\"post\":{\"text\":\"a\"},\"post\":{\"lang\":\"en\"}}", "");
    expect("user.login", "{\"user\":{\"login\":\"a\"},\"us\\u0065r\":5}", "");
    expect("user.login", "{\"user\":5,\"\\u0075\\u0073\\u0065\\u0072\":{\"l\\u006Fgin\":\"b\"}}",
           "{\"\\u0075\\u0073\\u0065\\u0072\":{\"l\\u006Fgin\":\"b\"}}");
    expect("text", "{\"post\":{\"text\":\"a\",\"text\\n\":\"c\",\"te\\\\xt\":\"d\"}}",
           "{\"post\":{\"text\":\"a\"}}");
}

static void test_what_has_another_type_has_no_members(void **state)
{
    (void)state;
    expect("user.id,geo.lat",
           "{\"user\":[\"id\",{\"id\":1}],\"post\":{\"geo\":null,\"user\":\"id\"}}", "");
    expect("user,geo", "{\"user\":[1, 2],\"post\":{\"geo\":null}}",
           "{\"user\":[1, 2],\"post\":{\"geo\":null}}");
    expect("text", "{ \"post\" : { \"text\" : 12 , \"lang\" : \"}\" } }",
           "{\"post\":{\"text\":12}}");
}

static void test_what_is_no_object_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1 x}",
        "{\"a\":\"}",
        "{\"a\":{\"}",
        "{\"a\":1,\"b}",
        "{\"a\\\":1}",
        "{1:2}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(reduce(sl_slice_str(texts[i]), false, parsed("text")), -EBADMSG);
}

static void test_without_memory_it_says_so(void **state)
{
    struct sl_slice json = SL_SLICE(POST);
    int r = -ENOMEM;

    (void)state;
    for (unsigned n = 0; r == -ENOMEM; n++) {
        struct buffer members = BUFFER_INIT, left = BUFFER_INIT;

        mem_fail_after(n);
        r = reduce_json(json, false, EVENT_FIELDS_SHORT, &members, &left);
        mem_fail_never();
        buffer_done(&members);
        buffer_done(&left);
        assert_true(r == 0 || (r == -ENOMEM && n < 100));
    }
}

/* ---- random events ---- */

static const char *const all_names[] = {
    "at",
    "post.id",
    "text",
    "lang",
    "created_at",
    "urls",
    "media",
    "source",
    "audience",
    "user",
    "target",
    "geo",
    "place",
    "reply_to",
    "repost_of",
    "quote_of",
    "user.id",
    "user.login",
    "user.name",
    "target.id",
    "target.login",
    "target.name",
    "geo.lon",
    "geo.lat",
    "place.name",
    "place.bbox",
    "place.country",
    "reply_to.post",
    "reply_to.user",
    "reply_to.login",
    "repost_of.post",
    "repost_of.user",
    "repost_of.login",
    "quote_of.post",
    "quote_of.user",
    "quote_of.login",
};
enum { NAME_COUNT = sizeof(all_names) / sizeof(all_names[0]), WHOLE_COUNT = 16 };

static unsigned below(unsigned n)
{
    return (unsigned)rand() % n;
}

static void add_space(struct buffer *text)
{
    while (below(12) == 0)
        buffer_append_char(text, " \t\r\n"[below(4)]);
}

static void add_key(struct buffer *text, const char *key)
{
    buffer_append_char(text, '"');
    for (; *key; key++) {
        if (below(40) == 0)
            buffer_append_format(text, below(2) ? "\\u%04x" : "\\u%04X", (unsigned)*key);
        else
            buffer_append_char(text, *key);
    }
    buffer_append_char(text, '"');
}

static void add_value(struct buffer *text, const char *key, unsigned depth);

static void add_object(struct buffer *text, const char *const *keys, unsigned count, unsigned depth)
{
    unsigned members = below(count + 2);

    buffer_append_char(text, '{');
    for (unsigned i = 0; i < members; i++) {
        const char *key = keys[below(count)];

        add_space(text);
        if (i > 0)
            buffer_append_char(text, ',');
        add_space(text);
        add_key(text, key);
        add_space(text);
        buffer_append_char(text, ':');
        add_space(text);
        add_value(text, key, depth + 1);
        add_space(text);
    }
    buffer_append_char(text, '}');
}

static void add_value(struct buffer *text, const char *key, unsigned depth)
{
    static const char *const values[] = {
        "null",
        "true",
        "-0.5e+3",
        "12",
        "\"9\"",
        "\"T\"",
        "\"public\"",
        "\"\\\"\\\\\"",
        "\"}{][,: \\/\"",
        "\"\\u00fc\\ud83c\\udf75\"",
        "[]",
        "{}",
        "[1,{\"id\":2,\"a\":[\"]\"]}]",
    };
    static const char *const inner[] = {"id",   "login",   "name", "lon",  "lat",  "post",
                                        "user", "country", "bbox", "text", "other"};
    static const char *const post[] = {
        "id",   "user",  "text",     "lang",      "created_at",
        "geo",  "place", "reply_to", "repost_of", "quote_of",
        "urls", "media", "source",   "audience",  "unheard of",
    };

    if (strcmp(key, "post") == 0 && depth == 1 && below(8))
        add_object(text, post, sizeof(post) / sizeof(post[0]), depth);
    else if (depth < 5 && below(3) == 0)
        add_object(text, inner, sizeof(inner) / sizeof(inner[0]), depth);
    else
        buffer_append_str(text, values[below(sizeof(values) / sizeof(values[0]))]);
}

static const char *random_event(struct buffer *text)
{
    static const char *const keys[] = {"id",   "type",   "at",   "post",   "post",
                                       "user", "target", "late", "cursor", "more"};

    buffer_clear(text);
    add_object(text, keys, sizeof(keys) / sizeof(keys[0]), 0);
    return buffer_str(text);
}

/* Copies what is at `path`, if the path consists of objects. */
static void copy_path(json_t *from, json_t *to, const char *path)
{
    const char *end = strchr(path, '/');
    char key[32];
    json_t *value, *inner;

    snprintf(key, sizeof(key), "%.*s", end ? (int)(end - path) : (int)strlen(path), path);
    value = json_object_get(from, key);
    if (!value || (end && !json_is_object(value)))
        return;
    if (!end) {
        json_object_set(to, key, value);
        return;
    }
    inner = json_object_get(to, key);
    if (inner) {
        copy_path(value, inner, end + 1);
        return;
    }
    inner = json_object();
    copy_path(value, inner, end + 1);
    if (json_object_size(inner) > 0)
        json_object_set(to, key, inner);
    json_decref(inner);
}

static void copy_name(json_t *from, json_t *to, const char *name)
{
    bool is_of_event = strncmp(name, "target", 6) == 0 || strcmp(name, "at") == 0;
    char path[64];

    snprintf(path, sizeof(path), "%s%s", is_of_event ? "" : "post/",
             strcmp(name, "post.id") == 0 ? "id" : name);
    for (char *dot = path; (dot = strchr(dot, '.'));)
        *dot = '/';
    copy_path(from, to, path);
    if (strncmp(name, "user", 4) == 0)
        copy_path(from, to, path + strlen("post/"));
}

static bool is_chosen_with(uint64_t fields, const char *name)
{
    struct buffer list = BUFFER_INIT;
    uint64_t both;
    bool is_new;

    event_fields_print(fields, &list);
    buffer_append_format(&list, ",%s", name);
    is_new = event_fields_parse(buffer_slice(&list), &both, NULL) == 0;
    buffer_done(&list);
    return is_new;
}

/* Chooses some names, none of which includes another one. */
static uint64_t choose(json_t *tree, json_t *expected, bool is_deletion)
{
    static const char *const always[] = {"id", "type", "late", "cursor"};
    uint64_t fields = parsed("id");

    for (size_t i = 0; i < 4; i++)
        copy_path(tree, expected, always[i]);
    for (size_t i = 0; i < NAME_COUNT; i++) {
        const char *name = all_names[i];

        if (below(i < WHOLE_COUNT ? 6 : 3) != 0 || !is_chosen_with(fields, name) ||
            (is_deletion && strcmp(name, "post.id") == 0))
            continue;
        fields |= parsed(name);
        copy_name(tree, expected, name);
    }
    if (is_deletion)
        copy_name(tree, expected, "post.id");
    return fields;
}

static void test_random_events_are_reduced_as_their_tree_is(void **state)
{
    struct buffer text = BUFFER_INIT;
    size_t smaller = 0;

    (void)state;
    srand(14);
    for (int i = 0; i < EVENTS; i++) {
        const char *json = random_event(&text);
        bool is_deletion = below(4) == 0;
        json_t *tree = json_loads(json, 0, NULL), *expected = json_object(), *left;
        uint64_t fields;

        assert_non_null(tree);
        fields = choose(tree, expected, is_deletion);
        assert_int_equal(reduce(sl_slice_str(json), is_deletion, fields), 0);
        left = reduced.size == 0 ? json_object() : json_loadb(reduced.data, reduced.size, 0, NULL);
        if (!json_equal(left, expected))
            fail_msg("%s\nfields %jx of\n%s", buffer_str(&reduced), (uintmax_t)fields, json);
        assert_true(reduced.size <= text.size);
        smaller += reduced.size < text.size && reduced.size > 0;
        json_decref(left);
        json_decref(expected);
        json_decref(tree);
    }
    assert_true(smaller > EVENTS / 2);
    buffer_done(&text);
}

static void fill_in(json_t *tree)
{
    json_t *post = json_object_get(tree, "post");

    if (!post && json_object_get(tree, "had_post"))
        json_object_set_new(tree, "post", post = json_object());
    if (!json_is_object(post))
        return;
    if (!json_object_get(post, "id") && json_object_get(tree, "id"))
        json_object_set(post, "id", json_object_get(tree, "id"));
    if (!json_object_get(post, "created_at") && json_object_get(tree, "at"))
        json_object_set(post, "created_at", json_object_get(tree, "at"));
    if (!json_object_get(post, "audience"))
        json_object_set_new(post, "audience", json_string("public"));
}

static void test_a_short_event_says_all_that_the_full_one_does(void **state)
{
    struct buffer text = BUFFER_INIT;
    size_t smaller = 0;

    (void)state;
    srand(15);
    for (int i = 0; i < EVENTS; i++) {
        const char *json = random_event(&text);
        json_t *tree = json_loads(json, 0, NULL), *left;
        bool has_post = json_is_object(json_object_get(tree, "post"));

        assert_int_equal(reduce(sl_slice_str(json), false, EVENT_FIELDS_SHORT), 0);
        left = reduced.size == 0 ? json_object() : json_loadb(reduced.data, reduced.size, 0, NULL);
        assert_non_null(left);
        if (has_post) {
            json_object_set_new(left, "had_post", json_true());
            json_object_set_new(tree, "had_post", json_true());
        }
        fill_in(tree);
        fill_in(left);
        if (!json_equal(left, tree))
            fail_msg("%s\nof\n%s", buffer_str(&reduced), json);
        smaller += reduced.size < text.size;
        json_decref(left);
        json_decref(tree);
    }
    assert_true(smaller > EVENTS / 20);
    buffer_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_copied_as_they_stand),
        cmocka_unit_test(test_short_leaves_out_what_is_said_twice),
        cmocka_unit_test(test_short_keeps_what_says_something_else),
        cmocka_unit_test(test_a_deletion_keeps_the_id_of_its_post),
        cmocka_unit_test(test_users_of_other_events_have_the_same_names),
        cmocka_unit_test(test_where_a_late_event_stands_is_always_said),
        cmocka_unit_test(test_of_a_repeated_member_the_last_one_counts),
        cmocka_unit_test(test_what_has_another_type_has_no_members),
        cmocka_unit_test(test_what_is_no_object_is_refused),
        cmocka_unit_test(test_without_memory_it_says_so),
        cmocka_unit_test(test_random_events_are_reduced_as_their_tree_is),
        cmocka_unit_test(test_a_short_event_says_all_that_the_full_one_does),
    };

    return cmocka_run_group_tests(tests, NULL, free_buffers);
}
