/* fuzz_filter.c - is every filter parsed or refused, and found by the index when it matches?
 *
 * An input is 16 bytes of numbers (which members there are, type and place of the event, its id),
 * then fields that end with a byte 0xFF: the eight members of a filter in the order of struct
 * sl_filter_text, then text, language, place, country, user, login, the author replied to (id and
 * login), the author reposted, and a link. Bytes in them that are not UTF-8 become question
 * marks. */
#include "fuzz/fuzz.h"

#include <string.h>

#include <unicode/utf8.h>

#include "base/buffer.h"
#include "filters/filter.h"
#include "filters/filter_index.h"
#include "filters/words.h"

enum { NUMBERS = 16, FIELDS = 18, SEED = 1 };

static void append_valid(const uint8_t *data, size_t size, struct buffer *text)
{
    for (size_t i = 0; i < size;) {
        size_t start = i;
        UChar32 c;

        U8_NEXT(data, i, size, c);
        if (c <= 0)
            buffer_append_char(text, '?');
        else
            buffer_append(text, data + start, i - start);
    }
}

/* The strings of an input, in one buffer. */
struct fields {
    struct buffer bytes;
    size_t ends[FIELDS];
};

static struct fields fields_of(const uint8_t *data, size_t size)
{
    struct fields fields = {.bytes = BUFFER_INIT};

    for (size_t i = 0; i < FIELDS; i++) {
        const uint8_t *end = size > 0 ? memchr(data, 0xFF, size) : NULL;
        size_t length = end ? (size_t)(end - data) : size;

        append_valid(data, length, &fields.bytes);
        fields.ends[i] = fields.bytes.size;
        data += end ? length + 1 : length;
        size -= end ? length + 1 : length;
    }
    return fields;
}

static struct sl_slice field(const struct fields *fields, size_t number)
{
    struct sl_slice all = buffer_slice(&fields->bytes);
    size_t start = number > 0 ? fields->ends[number - 1] : 0;

    return sl_slice(all.data + start, fields->ends[number] - start);
}

/* Absent if empty. */
static struct sl_slice some_field(const struct fields *fields, size_t number)
{
    struct sl_slice slice = field(fields, number);

    return slice.size > 0 ? slice : SL_SLICE_NONE;
}

static struct sl_filter_text filter_text(uint8_t present, uint8_t flags,
                                         const struct fields *fields)
{
    struct sl_filter_text text = {.firehose = flags & 1, .track_is_verbatim = flags & 0x40};
    struct sl_slice *const members[] = {&text.track,    &text.follow, &text.locations, &text.rule,
                                        &text.language, &text.sample, &text.partition, &text.types};

    for (size_t i = 0; i < 8; i++) {
        if (present & 1u << i)
            *members[i] = field(fields, i);
    }
    return text;
}

/* Both ends of the range can be reached. */
static double degrees(const uint8_t *bytes, double range)
{
    int16_t number;

    memcpy(&number, bytes, sizeof(number));
    return number == INT16_MIN ? -range : number / 32767.0 * range;
}

static struct sl_event_view event_of(const uint8_t *numbers, const struct fields *fields,
                                     struct sl_slice *room_for_url)
{
    uint8_t flags = numbers[1];
    struct sl_event_view event = {
        .type = (enum sl_event_type)(flags >> 1 & 3),
        .sample_id = (uint64_t)numbers[2] << 8 | numbers[3],
        .lang = some_field(fields, 9),
        .place = some_field(fields, 10),
        .country = some_field(fields, 11),
        .user = field(fields, 12),
        .login = some_field(fields, 13),
        .reply_to = {.has_post = flags & 0x80,
                     .user = some_field(fields, 14),
                     .login = some_field(fields, 15)},
        .repost_of = {.user = some_field(fields, 16)},
        .has_point = flags & 0x08,
        .has_box = flags & 0x10,
        .has_media = flags & 0x20,
        .point = {degrees(numbers + 4, 180), degrees(numbers + 6, 90)},
        .box = {degrees(numbers + 8, 180), degrees(numbers + 10, 90), degrees(numbers + 12, 180),
                degrees(numbers + 14, 90)},
        .urls = room_for_url,
    };

    if (event.type == SL_EVENT_FOLLOW && event.has_media)
        event.type = SL_EVENT_USER;
    else if (event.type == SL_EVENT_FOLLOW || event.type == SL_EVENT_UNFOLLOW)
        event.target = field(fields, 14);
    else if (event.type == SL_EVENT_POST || flags & 0x40)
        event.text = field(fields, 8);
    if (event.box.south > event.box.north)
        event.has_box = false;
    *room_for_url = field(fields, 17);
    event.url_count = room_for_url->size > 0;
    return event;
}

/* The index must find the filter exactly when it matches by itself, and not after its removal. */
static void check_index(struct sl_filter *filter, const struct sl_event_view *event)
{
    struct sl_words *words = sl_words_new(SEED);
    struct sl_filter_index *index = sl_filter_index_new(SEED);
    struct sl_match_set *matches = sl_match_set_new();
    struct sl_filter_index_stats stats;
    uint32_t subscriptions[2];
    bool expected;

    must(sl_words_read(words, event) == 0);
    expected = sl_filter_matches(filter, event, words);
    for (size_t i = 0; i < 2; i++)
        must(sl_filter_index_add(index, filter, &subscriptions[i]) == 0);
    sl_filter_index_stats(index, &stats);
    must(stats.subscriptions == 2 && stats.entries == 1);
    for (int i = 0; i < 10; i++) { /* so often that it may be filed under another key */
        must(sl_filter_index_match(index, event, words, matches) == 0);
        must(sl_match_set_count(matches) == (expected ? 2 : 0));
    }
    for (size_t i = 0; i < 2; i++)
        sl_filter_index_remove(index, subscriptions[i]);
    must(sl_filter_index_match(index, event, words, matches) == 0);
    must(sl_match_set_count(matches) == 0);
    sl_match_set_free(matches);
    sl_filter_index_free(index);
    sl_words_free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_error error = {0};
    struct sl_filter *filter, *again;
    struct sl_filter_text text;
    struct sl_event_view event;
    struct sl_slice url;
    struct fields fields;

    if (size < NUMBERS)
        return 0;
    fields = fields_of(data + NUMBERS, size - NUMBERS);
    text = filter_text(data[0], data[1], &fields);
    event = event_of(data, &fields, &url);
    if (sl_filter_new(&text, &limits, &filter, &error) < 0) {
        must(error.code && error.message[0] && (error.status == 400 || error.status == 413));
        must(!error.param || strcmp(error.param, "rule") != 0 ||
             (error.place >= 1 && error.place <= text.rule.size + 1));
    } else {
        must(sl_filter_new(&text, &limits, &again, NULL) == 0);
        must(sl_slice_equal(sl_filter_key(filter), sl_filter_key(again)));
        must(sl_filter_types(filter) != 0 && sl_filter_kinds(filter) != 0);
        check_index(filter, &event);
        sl_filter_unref(again);
        sl_filter_unref(filter);
    }
    buffer_done(&fields.bytes);
    return 0;
}
