#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/words_private.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/words_reference.h"

/* --- the words of a text ---------------------------------------------------------------------- */

/* Reads `event`, which must agree with the reference; the caller checks the dump. */
static void read_subject(const struct sl_event_view *event, struct buffer *dump)
{
    struct buffer reference = BUFFER_INIT;
    struct sl_words *words = sl_words_new(7);

    assert_non_null(words);
    assert_int_equal(sl_words_read(words, event), 0);
    words_dump(words, dump);
    sl_words_free(words);
    reference_dump(event, &reference);
    assert_string_equal(buffer_str(dump), buffer_str(&reference));
    buffer_done(&reference);
}

/* The line of `text`'s dump that begins with `list` must be `expected`. */
static void assert_read(const char *text, const char *list, const char *expected)
{
    struct sl_event_view event = {.text = sl_slice_str(text)};
    struct buffer dump = BUFFER_INIT;
    char line[512];
    const char *found;

    read_subject(&event, &dump);
    snprintf(line, sizeof(line), "%s:%s%s\n", list, *expected ? " " : "", expected);
    found = strstr(buffer_str(&dump), list);
    assert_non_null(found);
    if (strncmp(found, line, strlen(line)) != 0)
        fail_msg("'%s' gives %.*s, not %s", text, (int)strcspn(found, "\n"), found, line);
    buffer_done(&dump);
}

static void assert_normal(const char *text, const char *expected)
{
    struct buffer normal = BUFFER_INIT, reference = BUFFER_INIT;

    assert_int_equal(sl_normalise(sl_slice_str(text), &normal), 0);
    assert_string_equal(buffer_str(&normal), expected);
    reference_normalise(sl_slice_str(text), &reference);
    assert_string_equal(buffer_str(&reference), expected);
    buffer_done(&normal);
    buffer_done(&reference);
}

static void test_normal_form_is_that_of_the_examples(void **state)
{
    (void)state;
    assert_normal("", "");
    assert_normal("Straße", "strasse");
    assert_normal("ＡＢＣ１２", "abc12");
    assert_normal("ｶﾞ", "ガ");
    assert_normal("İstanbul", "istanbul");
    assert_normal("i\u0307stanbul", "istanbul");
    assert_normal("ısparta", "ısparta");
    assert_normal("Touche\u0301", "touch\u00e9");
    assert_normal("❤\ufe0f", "❤");
    assert_normal("می\u200cخواهم", "میخواهم");
    assert_normal("👩\u200d🚀", "👩🚀");
    assert_normal("＃话题", "#话题");
}

static void test_dot_goes_only_from_directly_behind_an_i(void **state)
{
    (void)state;
    assert_normal("I\u0307", "i");
    assert_normal("i\u0307\u0307", "i\u0307");
    assert_normal("\u0130\u0307", "i\u0307");
    assert_normal("\u0130\u0301", "i\u0301"); /* no renormalisation: stays two code points */
    assert_normal("\u0130\u0323", "\u1ecb\u0307");
    assert_normal("\u0130\u0e38", "i\u0e38\u0307");
    assert_normal("i\u200d\u0307", "i");
    assert_normal("\u0307", "\u0307");
}

static void test_marks_move_and_melt_as_in_nfc(void **state)
{
    (void)state;
    assert_normal("a\u0301\u0323b", "\u1ea1\u0301b");
    assert_normal("e\u200d\u0301\u200d\u0323x", "\u1eb9\u0301x");
    assert_normal("\u1112\u1161\u11ab", "한");
    assert_normal("ﾊﾝｸﾞﾙ", "ハングル");
    assert_normal("ㅋㅠ", "큐");
    assert_normal("\u0958\u094d", "\u0915\u093c\u094d");
    assert_normal("\u0e01\u0e38\u0e48", "\u0e01\u0e38\u0e48");
    assert_normal("\u0e01\u0e48\u0e38", "\u0e01\u0e38\u0e48");
    assert_normal("\u00a8\u0345", " \u0308\u03b9");
    assert_normal("x\ufdfa", "xصلى الله عليه وسلم");
}

/* Unicode 16 has letters that compose with each other and with older marks; they are treated as
 * unknown, whatever version ICU has. */
static void test_what_came_after_unicode_15_stays_as_it_is(void **state)
{
    (void)state;
    assert_normal("\U000105d2\u0307", "\U000105d2\u0307");
    assert_normal("\U000105d2\u0e38\u0307", "\U000105d2\u0e38\u0307");
    assert_normal("\U00011382\U000113c9", "\U00011382\U000113c9");
    assert_normal("\U00016d67\U00016d67", "\U00016d67\U00016d67");
    assert_normal("A\ua7cb\u0301", "a\ua7cb\u0301");
    assert_read("a\ua7cbb \U000105d2", "tokens", "a'1 b'1");
}

static void test_long_runs_of_marks_are_put_in_order(void **state)
{
    struct buffer text = BUFFER_INIT, normal = BUFFER_INIT, reference = BUFFER_INIT;
    static const char *const marks[] = {"\u0301", "\u0323", "\u0344", "\u0345", "\u0f71",
                                        "\u093c", "\u3099", "\u0327", "\u200d", "\u0308"};

    (void)state;
    for (size_t length = 1; length < 400; length += 7) {
        buffer_clear(&text);
        buffer_clear(&normal);
        buffer_clear(&reference);
        buffer_append_str(&text, "e");
        for (size_t i = 0; i < length; i++)
            buffer_append_str(&text, marks[(i * 7 + i / 10 + length) % 10]);
        assert_int_equal(sl_normalise(buffer_slice(&text), &normal), 0);
        reference_normalise(buffer_slice(&text), &reference);
        assert_string_equal(buffer_str(&normal), buffer_str(&reference));
    }
    buffer_done(&text);
    buffer_done(&normal);
    buffer_done(&reference);
}

/* ICU alone would take minutes for this, until the test's timeout. */
static void test_a_megabyte_of_marks_in_the_wrong_order_is_no_trouble(void **state)
{
    struct buffer text = BUFFER_INIT, normal = BUFFER_INIT;

    (void)state;
    while (text.size < 2u << 20)
        buffer_append_str(&text, "\u0302\u0323");
    assert_int_equal(sl_normalise(buffer_slice(&text), &normal), 0);
    assert_int_equal(normal.size, text.size);
    assert_memory_equal(normal.data, "\u0323\u0323\u0323", 6);
    buffer_done(&text);
    buffer_done(&normal);
}

static void test_tokens_are_words_and_single_unspaced_letters(void **state)
{
    (void)state;
    assert_read("iPhone手机, 5G!", "tokens", "iphone'1 手'0 机'0 5g'1");
    assert_read("don't", "tokens", "don'1 t'1");
    assert_read("👍🏽", "tokens", "👍'1 🏽'0");
    assert_read("", "tokens", "");
    assert_read(" !?", "tokens", "");
    assert_read("snake_case x-y", "tokens", "snake_case'1 x'1 y'1");
    assert_read("ラーメン", "tokens", "ラ'1 ー'0 メ'0 ン'0");
    assert_read("ร้าน", "tokens", "ร'1 \u0e49'0 า'0 น'0");
    assert_read("דרך כלב", "tokens", "דרך'1 כלב'1");
    assert_read("a👍b", "tokens", "a'1 👍'0 b'0");
    assert_read("Привет, мир", "tokens", "привет'1 мир'1");
    assert_read("دربارهٔ", "tokens", "دربارهٔ'1");
    assert_read("x\U00011f00\u0378y", "tokens", "x\U00011f00'1 y'1"); /* U+0378: unassigned */
}

static void test_urls_are_cut_out_and_leave_a_barrier(void **state)
{
    (void)state;
    assert_read("看http://t.cn/Ab1，好", "urls", "t.cn/Ab1");
    assert_read("看http://t.cn/Ab1，好", "tokens", "看'1 | 好'1");
    assert_read("http://a.b http://c.d x", "tokens", "x'1");
    assert_read("x http://a.b http://c.d", "tokens", "x'1");
    assert_read("x http://a.b, http://c.d y", "tokens", "x'1 | y'1");
    assert_read("x http://a.bé", "tokens", "x'1 | é'1");
}

static void test_urls_are_found_as_section_3_says(void **state)
{
    (void)state;
    assert_read("HTTPS://WWW.Example.COM:8080/Path/?q#f", "urls", "example.com/Path/");
    assert_read("http://user:pw@a@b.c:80?x/y", "urls", "b.c");
    assert_read("http://b.c#/x", "urls", "b.c");
    assert_read("http://b.c:/x", "urls", "b.c/x");
    assert_read("http://b.c../x", "urls", "b.c/x");
    assert_read("http://www.www.b.c", "urls", "www.b.c");
    assert_read("http://www.", "urls", "www");
    assert_read("xhttp://b.c _http://b.c 1https://b.c", "urls", "");
    assert_read("éhttp://b.c -http://b.c", "urls", "b.c b.c");
    assert_read("(see http://b.c/x). Or 'http://d.e/f'?!;:,])", "urls", "b.c/x d.e/f");
    assert_read("http://b.c/(x)y)", "urls", "b.c/(x)y");
    assert_read("http://!!! http://...x", "urls", "...x");
    assert_read("http://http://x.y", "urls", "http//x.y");
    assert_read("http://:/x http://b.c::/x http://b.c:8x:/x", "urls", "/x b.c:/x b.c:8x/x");
    assert_read("http:// https://x.y http:/z.z https:x", "urls", "x.y");
    assert_read("http://x.y\"z http://x.y{z http://x.y\\z", "urls", "x.y x.y x.y");
    assert_read("http://x.y\x7fz http://x.y\tz", "urls", "x.y x.y");
    assert_read("http:///p http://@/p", "urls", "/p /p");
    assert_read("http://[::1]:8080/p", "urls", "[::1]/p");
    assert_read(":// http: http:/ http:/x ht", "urls", "");
}

static void test_listed_urls_count_when_they_begin_with_one(void **state)
{
    const struct sl_slice urls[] = {SL_SLICE("https://Example.com/a b"), SL_SLICE(" http://no.no"),
                                    SL_SLICE("example.com"), SL_SLICE("http://"),
                                    SL_SLICE("http://t.cn/x.")};
    struct sl_event_view event = {
        .text = SL_SLICE("http://first.one"), .urls = urls, .url_count = 5};
    struct buffer dump = BUFFER_INIT;

    (void)state;
    read_subject(&event, &dump);
    assert_non_null(strstr(buffer_str(&dump), "urls: first.one example.com/a t.cn/x\n"));
    buffer_done(&dump);
}

static void test_hashtags_are_found_as_section_5_says(void **state)
{
    (void)state;
    assert_read("a#b", "hashtags", "");
    assert_read("你好#北京#天气", "hashtags", "北京");
    assert_read("#2024", "hashtags", "");
    assert_read("#2024年", "hashtags", "2024年");
    assert_read("##x", "hashtags", "x");
    assert_read("#Straße ＃话题 &#x a", "hashtags", "strasse 话题");
    assert_read("#北京##上海#", "hashtags", "北京 上海");
    assert_read("#北京#天气#上海", "hashtags", "北京 上海");
    assert_read("#a#b#c", "hashtags", "a");
    assert_read("a#北京#天气", "hashtags", "天气");
    assert_read("#〇#北京", "hashtags",
                "北京"); /* U+3007 is not a letter: no tag, nothing closed */
    assert_read("👍#x (#y) #z-z #_ #_a", "hashtags", "x y z _a");
    assert_read("#http://a.b #", "hashtags", "");
    assert_read("http://a.b #x", "hashtags", "x");
    assert_read("看http://t.cn/Ab1，#好#", "hashtags", "好");
}

static void test_mentions_are_found_as_section_5_says(void **state)
{
    (void)state;
    assert_read("me@b.c", "mentions", "");
    assert_read("//@张三:", "mentions", "张三");
    assert_read("@Alice你好", "mentions", "alice你好 alice");
    assert_read("@alice", "mentions", "alice");
    assert_read("你好@alice", "mentions", "alice");
    assert_read("@@x @_@ @ünal @aé", "mentions", "x _ ünal aé a");
    assert_read("@ &@x ＠ｗｉｄｅ", "mentions", "x wide");
}

static void test_cashtags_are_found_as_section_5_says(void **state)
{
    (void)state;
    assert_read("$AAPL", "cashtags", "aapl");
    assert_read("$100 $aapl2 $abcdefg $brk_b $é", "cashtags", "");
    assert_read("x$a 看$b $$c -$d &$e ＄f", "cashtags", "d e f");
    assert_read("$a你 $abcdef", "cashtags", "abcdef");
}

static void test_entity_text_is_among_the_tokens(void **state)
{
    (void)state;
    assert_read("#北京# @Bob $X", "tokens", "北'1 京'0 bob'1 x'1");
}

static void test_logins_and_place_are_read_too(void **state)
{
    struct sl_event_view event = {
        .login = SL_SLICE("ＷＩＤＥ"),
        .reply_to = {.login = SL_SLICE("@Bob_7")},
        .repost_of = {.login = SL_SLICE("")},
        .text = SL_SLICE("some text http://a.b/c"),
        .place = SL_SLICE("New-York 市"),
    };
    struct buffer dump = BUFFER_INIT;

    (void)state;
    read_subject(&event, &dump);
    assert_string_equal(buffer_str(&dump), "tokens: some'1 text'1\nhashtags:\nmentions:\n"
                                           "cashtags:\nurls: a.b/c\nplace: new'1 york'1 市'1\n"
                                           "login: wide\nreply_to: @bob_7\nrepost_of: \n");
    buffer_done(&dump);
}

static void test_a_reading_forgets_the_one_before(void **state)
{
    struct sl_event_view first = {.text = SL_SLICE("#a @b $c http://d.e/f g"),
                                  .place = SL_SLICE("here"),
                                  .login = SL_SLICE("h")};
    struct sl_event_view empty = {.type = SL_EVENT_DELETE};
    struct sl_words *words = sl_words_new(1);
    struct buffer dump = BUFFER_INIT, expected = BUFFER_INIT;

    (void)state;
    assert_int_equal(sl_words_read(words, &first), 0);
    assert_int_equal(sl_words_read(words, &empty), 0);
    words_dump(words, &dump);
    reference_dump(&empty, &expected);
    assert_string_equal(buffer_str(&dump), buffer_str(&expected));
    sl_words_free(words);
    buffer_done(&dump);
    buffer_done(&expected);
}

/* --- terms and operands ------------------------------------------------------------------- */

static void test_entity_operands_are_a_sign_and_a_full_run(void **state)
{
    static const struct {
        const char *term;
        enum sl_entity_kind kind;
        const char *name;
    } cases[] = {
        {"#北京", SL_ENTITY_HASHTAG, "北京"},
        {"#北京#", SL_ENTITY_HASHTAG, "北京"},
        {"＃Straße", SL_ENTITY_HASHTAG, "strasse"},
        {"#北京##", SL_ENTITY_NONE, ""},
        {"#1", SL_ENTITY_NONE, ""},
        {"#1年", SL_ENTITY_HASHTAG, "1年"},
        {"#a-b", SL_ENTITY_NONE, ""},
        {"##x", SL_ENTITY_NONE, ""},
        {"#", SL_ENTITY_NONE, ""},
        {"##", SL_ENTITY_NONE, ""},
        {"", SL_ENTITY_NONE, ""},
        {"x", SL_ENTITY_NONE, ""},
        {"xy", SL_ENTITY_NONE, ""},
        {"👍", SL_ENTITY_NONE, ""},
        {"你#x", SL_ENTITY_NONE, ""},
        {"@Alice你好", SL_ENTITY_MENTION, "alice你好"},
        {"@alice#", SL_ENTITY_NONE, ""},
        {"@a.b", SL_ENTITY_NONE, ""},
        {"@", SL_ENTITY_NONE, ""},
        {"@_", SL_ENTITY_MENTION, "_"},
        {"$AAPL", SL_ENTITY_CASHTAG, "aapl"},
        {"$100", SL_ENTITY_NONE, ""},
        {"$abcdefg", SL_ENTITY_NONE, ""},
        {"$a#", SL_ENTITY_NONE, ""},
        {"$", SL_ENTITY_NONE, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer normal = BUFFER_INIT;
        struct sl_slice name = SL_SLICE("");

        assert_int_equal(sl_normalise(sl_slice_str(cases[i].term), &normal), 0);
        if (sl_entity_of(buffer_slice(&normal), &name) != cases[i].kind ||
            !sl_slice_is(name, cases[i].name))
            fail_msg("'%s' is taken for %.*s", cases[i].term, SL_SLICE_ARG(name));
        buffer_done(&normal);
    }
}

static void test_tokenising_adds_to_the_list_with_and_without_hashes(void **state)
{
    struct sl_token_list tokens = SL_TOKEN_LIST_INIT;
    struct sl_word_key key = sl_word_key_new(3);

    (void)state;
    assert_int_equal(sl_tokenise(SL_SLICE("coca-cola"), NULL, &tokens), 0);
    assert_int_equal(sl_tokenise(SL_SLICE("中cola"), &key, &tokens), 0);
    assert_int_equal(sl_tokenise(SL_SLICE("!!!"), &key, &tokens), 0);
    assert_int_equal(tokens.count, 4);
    assert_int_equal(tokens.items[1].offset, 5);
    assert_int_equal(tokens.items[1].size, 4);
    assert_int_equal(tokens.items[1].gap, 1);
    assert_true(tokens.items[1].hash == 0);
    assert_int_equal(tokens.items[3].offset, 3);
    assert_int_equal(tokens.items[3].gap, 0);
    assert_true(tokens.items[3].hash == sl_word_hash(&key, "cola", 4));
    sl_token_list_done(&tokens);
}

static void test_logins_are_words(void **state)
{
    (void)state;
    assert_true(sl_is_login(SL_SLICE("alice_7")));
    assert_true(sl_is_login(SL_SLICE("张三x")));
    assert_false(sl_is_login(SL_SLICE("")));
    assert_false(sl_is_login(SL_SLICE("@alice")));
    assert_false(sl_is_login(SL_SLICE("a b")));
    assert_false(sl_is_login(SL_SLICE("a👍")));
}

static void test_url_operands_are_cut_like_urls(void **state)
{
    static const struct {
        const char *operand, *host, *path;
    } cases[] = {
        {"example.com", "example.com", ""},
        {"https://www.Example.com:8080/a/", "example.com", "/a"},
        {"HTTP://u@x.y/A//?q", "x.y", "/A"},
        {"t.cn/Ab1.", "t.cn", "/Ab1"},
        {"http://http://t.co/1", "http", "//t.co/1"},
        {"x.y:", "x.y", ""},
        {":/path", NULL, NULL},
        {"com#/x", "com", ""},
        {"北京", NULL, NULL},
        {"a.com/北京", NULL, NULL},
        {"a b", NULL, NULL},
        {"", NULL, NULL},
        {"http://", NULL, NULL},
        {"/path", NULL, NULL},
        {"@/path", NULL, NULL},
        {"!!!", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer host = BUFFER_INIT;
        struct sl_slice path;
        int r = sl_parse_url_operand(sl_slice_str(cases[i].operand), &host, &path);

        assert_int_equal(r, cases[i].host ? 0 : -EINVAL);
        if (r == 0) {
            assert_string_equal(buffer_str(&host), cases[i].host);
            assert_true(sl_slice_is(path, cases[i].path));
        }
        buffer_done(&host);
    }
}

/* --- hashes ------------------------------------------------------------------------------- */

static void test_word_hash_depends_on_key_order_and_every_byte(void **state)
{
    struct sl_word_key key = sl_word_key_new(1), other = sl_word_key_new(2);
    char text[40];

    (void)state;
    for (size_t size = 0; size < sizeof(text); size++) {
        uint64_t hash;

        memset(text, 'a', sizeof(text));
        hash = sl_word_hash(&key, text, size);
        assert_true(hash != 0);
        assert_true(hash == sl_word_hash(&key, text, size));
        assert_true(hash != sl_word_hash(&other, text, size));
        assert_true(hash != sl_word_hash(&key, text, size + 1));
        for (size_t i = 0; i < size; i++) {
            text[i] ^= 1;
            assert_true(hash != sl_word_hash(&key, text, size));
            text[i] ^= 1;
        }
    }
    assert_true(sl_word_hash(&key, "\0", 1) != sl_word_hash(&key, "\0\0", 2));
    assert_true(sl_word_hash_pair(&key, 1, 2) != sl_word_hash_pair(&key, 2, 1));
    assert_true(sl_word_hash_pair(&key, 1, 2) != sl_word_hash_pair(&other, 1, 2));
}

/* Adjacent code points fill a table of any size like random numbers do: chi-square test. */
static void test_word_hash_spreads_neighbouring_code_points(void **state)
{
    struct sl_word_key key = sl_word_key_new(11);
    const unsigned shifts[] = {0, 20, 56};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        unsigned buckets[256] = {0};
        double sum = 0;

        for (unsigned c = 0x4E00; c < 0x4E00 + 256 * 40; c++) {
            const unsigned char utf8[] = {(unsigned char)(0xE0 | c >> 12),
                                          (unsigned char)(0x80 | (c >> 6 & 0x3F)),
                                          (unsigned char)(0x80 | (c & 0x3F))};

            buckets[sl_word_hash(&key, utf8, 3) >> shifts[s] & 255]++;
        }
        for (size_t i = 0; i < 256; i++)
            sum += (buckets[i] - 40.0) * (buckets[i] - 40.0) / 40.0;
        assert_true(sum > 160 && sum < 370); /* 255 +- 5 sigma */
    }
}

/* --- memory ------------------------------------------------------------------------------- */

static const struct sl_slice long_urls[] = {SL_SLICE("https://a.b/c"), SL_SLICE("https://d.e/f")};

/* Reaches every allocation: many entries in each list, a segment too long for the stack, an
 * expansion. */
static void make_demanding_event(struct buffer *text, struct sl_event_view *ret_event)
{
    for (int i = 0; i < 40; i++)
        buffer_append_format(text, "#t%da @m%d你 $abc http://x%d.y/z w%d \ufdfa ", i, i, i, i);
    buffer_append_str(text, "e");
    for (int i = 0; i < 200; i++)
        buffer_append_str(text, i % 2 ? "\u0301" : "\u0323");
    *ret_event = (struct sl_event_view){
        .text = buffer_slice(text),
        .urls = long_urls,
        .url_count = 2,
        .place = SL_SLICE("New York"),
        .login = SL_SLICE("alice"),
        .reply_to = {.login = SL_SLICE("bob")},
        .repost_of = {.login = SL_SLICE("carol")},
    };
}

static void test_reading_survives_each_failed_allocation(void **state)
{
    struct buffer text = BUFFER_INIT, dump = BUFFER_INIT, expected = BUFFER_INIT;
    struct sl_event_view event;
    bool succeeded = false;

    (void)state;
    make_demanding_event(&text, &event);
    reference_dump(&event, &expected);
    for (uint64_t n = 0; !succeeded; n++) {
        struct sl_words *words;
        int r = -ENOMEM;

        mem_fail_after(n);
        words = sl_words_new(n);
        if (words)
            r = sl_words_read(words, &event);
        mem_fail_never();
        succeeded = r == 0;
        if (words && r < 0) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(words->tokens.count, 0);
            assert_int_equal(words->urls.count, 0);
            assert_int_equal(sl_words_read(words, &event), 0); /* works like a new one */
        }
        if (words) {
            buffer_clear(&dump);
            words_dump(words, &dump);
            assert_string_equal(buffer_str(&dump), buffer_str(&expected));
        }
        sl_words_free(words);
        assert_true(n < 1000);
    }
    buffer_done(&text);
    buffer_done(&dump);
    buffer_done(&expected);
}

static int read_term(struct buffer *normal, struct sl_token_list *tokens, struct buffer *host)
{
    struct sl_slice path;

    if (sl_normalise(SL_SLICE("Straße \ufdfa\ufdfa\ufdfa"), normal) < 0)
        return normal->size == 0 ? -ENOMEM : -EINVAL;
    if (sl_tokenise(buffer_slice(normal), NULL, tokens) < 0)
        return tokens->count == 0 ? -ENOMEM : -EINVAL;
    if (sl_parse_url_operand(SL_SLICE("a.b/c"), host, &path) < 0)
        return host->size == 0 ? -ENOMEM : -EINVAL;
    return 0;
}

/* Room for tokens is allocated before they are read: no text has more of them. */
static void test_the_densest_texts_have_room(void **state)
{
    static const char *const texts[] = {"a b ", "1手", "©", "👍"};
    static const unsigned bytes_a_token[] = {2, 2, 2, 4};

    (void)state;
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        struct buffer text = BUFFER_INIT;

        while (text.size < 600) {
            struct sl_token_list tokens = SL_TOKEN_LIST_INIT;

            buffer_append_str(&text, texts[t]);
            assert_int_equal(sl_tokenise(buffer_slice(&text), NULL, &tokens), 0);
            assert_int_equal(tokens.count, text.size / bytes_a_token[t]);
            sl_token_list_done(&tokens);
        }
        buffer_done(&text);
    }
}

static void test_terms_survive_each_failed_allocation(void **state)
{
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r < 0; n++) {
        struct buffer normal = BUFFER_INIT, host = BUFFER_INIT;
        struct sl_token_list tokens = SL_TOKEN_LIST_INIT;

        mem_fail_after(n);
        r = read_term(&normal, &tokens, &host);
        mem_fail_never();
        assert_true(r == 0 || (r == -ENOMEM && mem_failed()));
        buffer_done(&normal);
        buffer_done(&host);
        sl_token_list_done(&tokens);
    }
}

static void test_a_warm_reader_needs_no_memory(void **state)
{
    struct buffer text = BUFFER_INIT;
    struct sl_words *words = sl_words_new(1);
    struct sl_event_view event;

    (void)state;
    for (int i = 0; i < 40; i++)
        buffer_append_format(&text, "#t%da @m%d你 $abc http://x%d.y/z e\u0323\u0301 ", i, i, i);
    event = (struct sl_event_view){.text = buffer_slice(&text), .place = SL_SLICE("San José")};
    assert_int_equal(sl_words_read(words, &event), 0);
    mem_fail_after(0);
    assert_int_equal(sl_words_read(words, &event), 0);
    assert_false(mem_failed());
    mem_fail_never();
    sl_words_free(words);
    buffer_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal_form_is_that_of_the_examples),
        cmocka_unit_test(test_dot_goes_only_from_directly_behind_an_i),
        cmocka_unit_test(test_marks_move_and_melt_as_in_nfc),
        cmocka_unit_test(test_what_came_after_unicode_15_stays_as_it_is),
        cmocka_unit_test(test_long_runs_of_marks_are_put_in_order),
        cmocka_unit_test(test_a_megabyte_of_marks_in_the_wrong_order_is_no_trouble),
        cmocka_unit_test(test_tokens_are_words_and_single_unspaced_letters),
        cmocka_unit_test(test_urls_are_cut_out_and_leave_a_barrier),
        cmocka_unit_test(test_urls_are_found_as_section_3_says),
        cmocka_unit_test(test_listed_urls_count_when_they_begin_with_one),
        cmocka_unit_test(test_hashtags_are_found_as_section_5_says),
        cmocka_unit_test(test_mentions_are_found_as_section_5_says),
        cmocka_unit_test(test_cashtags_are_found_as_section_5_says),
        cmocka_unit_test(test_entity_text_is_among_the_tokens),
        cmocka_unit_test(test_logins_and_place_are_read_too),
        cmocka_unit_test(test_a_reading_forgets_the_one_before),
        cmocka_unit_test(test_entity_operands_are_a_sign_and_a_full_run),
        cmocka_unit_test(test_tokenising_adds_to_the_list_with_and_without_hashes),
        cmocka_unit_test(test_logins_are_words),
        cmocka_unit_test(test_url_operands_are_cut_like_urls),
        cmocka_unit_test(test_word_hash_depends_on_key_order_and_every_byte),
        cmocka_unit_test(test_word_hash_spreads_neighbouring_code_points),
        cmocka_unit_test(test_reading_survives_each_failed_allocation),
        cmocka_unit_test(test_the_densest_texts_have_room),
        cmocka_unit_test(test_terms_survive_each_failed_allocation),
        cmocka_unit_test(test_a_warm_reader_needs_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
