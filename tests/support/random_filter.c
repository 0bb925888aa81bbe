#include "tests/support/random_filter.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array)        (sizeof(array) / sizeof((array)[0]))
#define PICK(random, array) ((array)[random_below(random, COUNT(array))])

static const char *const words[] = {
    "cat",      "dog",       "fox",        "a",
    "b",        "c++",       "don't",      "coca-cola",
    "北京",     "京",        "中国",       "国家",
    "手机",     "iphone",    "iPhone手机", "5g",
    "👍",        "👍🏽",  "straße",     "STRASSE",
    "#cat",     "#北京",     "#北京#天气", "@alice",
    "@Bob",     "@张三你",   "$usd",       "$100",
    "12:30",    "x_1",       "สวย",        "カラオケ",
    "#2024年",  "한국",      "İstanbul",   "ﬁsh",
    "he\u0301", "\u00ADcat", "12",         "a.b",
    "example",  "com",       "p",          "example.com/a/b",
};
static const char *const gaps[] = {" ", " ",      " ", "",   "",  ", ", "。",
                                   "-", "\u3000", "/", "\n", "#", "@"};
static const char *const links[] = {
    "http://example.com/",       "https://www.Example.com/a/b?q#f", "http://sub.example.com:80/a",
    "HTTP://t.cn/Ab1",           "http://u@news.example.co.uk./a/", "https://example.com/ab",
    "http://127.0.0.1:8080/p/q",
};
static const char *const url_operands[] = {
    "example.com", "example.com/a", "www.example.com/a/", "https://t.cn/Ab1",
    "com",         "co.uk/a",       "127.0.0.1/p",        "example.com/a/b",
};
static const char *const ids[] = {"1", "2", "3", "12", "007", "did:plc:x", "ada"};
static const char *const digit_ids[] = {"1", "2", "3", "12", "007"};
static const char *const logins[] = {"alice", "Bob", "张三", "Straße", "x_1"};
static const char *const languages[] = {"en", "zh", "zh-TW", "ZH-tw-x", "und", "ja", "de"};
static const char *const countries[] = {"CN", "us", "de"};
static const char *const places[] = {"Beijing", "New York", "new-york", "São Paulo", "北京", "!"};
static const char *const traits[] = {
    "has:hashtags", "has:mentions", "has:cashtags", "has:links", "has:media",
    "has:geo",      "is:reply",     "is:repost",    "is:quote",
};
static const char *const types[] = {"post", "delete", "follow", "unfollow", "user"};
static const double longitudes[] = {-180, -179.5, -122.25, -90, -1,  0,          0.015625, 0.5,
                                    10,   45,     116.4,   170, 179, 179.984375, 180};
static const double latitudes[] = {-90,      -89.5, -64,  -1, 0,     0.25,
                                   0.265625, 31.2,  39.9, 64, 89.75, 90};

/* --- strings ------------------------------------------------------------------------------ */

static void put(struct random_room *room, const char *text)
{
    size_t size = strlen(text);

    assert(room->used + size < sizeof(room->bytes));
    memcpy(room->bytes + room->used, text, size);
    room->used += size;
}

static struct sl_slice since(const struct random_room *room, size_t start)
{
    return sl_slice(room->bytes + start, room->used - start);
}

static struct sl_slice copied(struct random_room *room, const char *text)
{
    size_t start = room->used;

    put(room, text);
    return since(room, start);
}

static void put_number(struct random_room *room, double number)
{
    char text[32];

    snprintf(text, sizeof(text), "%.6f", number);
    put(room, text);
}

static double some_longitude(struct random *random)
{
    return random_one_in(random, 3) ? random_below(random, 360000) / 1000.0 - 180
                                    : PICK(random, longitudes);
}

static double some_latitude(struct random *random)
{
    return random_one_in(random, 3) ? random_below(random, 180000) / 1000.0 - 90
                                    : PICK(random, latitudes);
}

static struct sl_box some_box(struct random *random)
{
    static const double sizes[] = {0, 0.01, 0.1, 1, 10, 100};
    struct sl_box box = {some_longitude(random), some_latitude(random), 0, 0};

    box.east = box.west + PICK(random, sizes);
    box.north = box.south + PICK(random, sizes);
    if (box.east > 180)
        box.east = random_one_in(random, 2) ? 180 : box.east - 360;
    if (box.north > 90)
        box.north = 90;
    return box;
}

static void put_box(struct random *random, struct random_room *room, const char *separator)
{
    struct sl_box box = some_box(random);
    const double edges[] = {box.west, box.south, box.east, box.north};

    for (size_t i = 0; i < 4; i++) {
        if (i > 0)
            put(room, separator);
        put_number(room, edges[i]);
    }
}

/* --- rules -------------------------------------------------------------------------------- */

/* Around some box; it may cross itself. */
static void put_polygon(struct random *random, struct random_room *room)
{
    struct sl_box box = some_box(random);
    uint32_t points = 3 + random_below(random, 5);
    double width = box.east - box.west + (box.east < box.west ? 360 : 0);

    put(room, "polygon:[");
    for (uint32_t i = 0; i < points; i++) {
        double lon = box.west + width * random_below(random, 5) / 4;

        if (i > 0)
            put(room, ", ");
        put_number(room, lon > 180 ? lon - 360 : lon);
        put(room, " ");
        put_number(room, box.south + (box.north - box.south) * random_below(random, 5) / 4);
    }
    put(room, "]");
}

static void put_near(struct random *random, struct random_room *room)
{
    static const char *const numbers[] = {"\"~0", "\"~1", "\"~3", "\"~6"};
    uint32_t terms = 2 + random_below(random, 3);

    put(room, "\"");
    for (uint32_t i = 0; i < terms; i++) {
        put(room, PICK(random, words));
        put(room, " ");
    }
    put(room, PICK(random, numbers));
}

static void put_atom(struct random *random, struct random_room *room)
{
    switch (random_below(random, 20)) {
    case 0:
        put(room, PICK(random, traits));
        break;
    case 1:
        put(room, "lang:");
        put(room, PICK(random, languages));
        break;
    case 2:
        put(room, random_one_in(random, 2) ? "from:" : "TO:");
        put(room, random_one_in(random, 2) ? PICK(random, digit_ids) : PICK(random, logins));
        break;
    case 3:
        put(room, random_one_in(random, 2) ? "repost_of:" : "retweets_of:@");
        put(room, PICK(random, logins));
        break;
    case 4:
        put(room, "url:");
        put(room, PICK(random, url_operands));
        break;
    case 5:
        put(room, "place:\"");
        put(room, places[random_below(random, COUNT(places) - 1)]);
        put(room, "\"");
        break;
    case 6:
        put(room, "bounding_box:[");
        put_box(random, room, random_one_in(random, 2) ? " " : ", ");
        put(room, "]");
        break;
    case 7:
        put(room, "point_radius:[");
        put_number(room, some_longitude(random));
        put(room, " ");
        put_number(room, some_latitude(random));
        put(room, random_one_in(random, 2) ? " 500km]" : " 1.5mi]");
        break;
    case 8:
        put(room, "country:");
        put(room, PICK(random, countries));
        break;
    case 9:
        put(room, "\"");
        put(room, PICK(random, words));
        put(room, " ");
        put(room, PICK(random, words));
        put(room, "\"");
        break;
    case 10:
    case 11:
        put_near(random, room);
        break;
    case 12:
        put_polygon(random, room);
        break;
    default:
        put(room, PICK(random, words));
    }
}

static void put_rule(struct random *random, struct random_room *room, unsigned depth)
{
    uint32_t items = 1 + random_below(random, 3);

    for (uint32_t i = 0; i < items; i++) {
        if (i > 0)
            put(room, random_one_in(random, 2) ? " OR " : " ");
        if (random_one_in(random, 4))
            put(room, "-");
        if (depth > 0 && random_one_in(random, 3)) {
            put(room, "(");
            put_rule(random, room, depth - 1);
            put(room, ")");
        } else {
            put_atom(random, room);
        }
    }
    if (random_one_in(random, 16))
        put(room, " sample:50");
}

/* --- filters ------------------------------------------------------------------------------ */

static struct sl_slice some_track(struct random *random, struct random_room *room)
{
    uint32_t phrases = 1 + random_below(random, 4);
    size_t start = room->used;

    for (uint32_t i = 0; i < phrases; i++) {
        uint32_t terms = 1 + random_below(random, 2);

        for (uint32_t j = 0; j < terms; j++) {
            put(room, PICK(random, words));
            put(room, j + 1 < terms ? " " : random_one_in(random, 2) ? "，" : ",");
        }
    }
    return since(room, start);
}

static struct sl_slice some_follow(struct random *random, struct random_room *room)
{
    uint32_t users = 1 + random_below(random, 3);
    size_t start = room->used;

    for (uint32_t i = 0; i < users; i++) {
        if (random_one_in(random, 3)) {
            put(room, "@");
            put(room, PICK(random, logins));
        } else {
            put(room, PICK(random, ids));
        }
        put(room, ",");
    }
    return since(room, start);
}

static struct sl_slice some_locations(struct random *random, struct random_room *room)
{
    uint32_t boxes = 1 + random_below(random, 3);
    size_t start = room->used;

    for (uint32_t i = 0; i < boxes; i++) {
        if (i > 0)
            put(room, ",");
        put_box(random, room, ",");
    }
    return since(room, start);
}

static struct sl_slice some_types(struct random *random, struct random_room *room)
{
    size_t start = room->used;

    put(room, PICK(random, types));
    put(room, ",");
    put(room, PICK(random, types));
    return since(room, start);
}

static struct sl_filter_text some_filter_text(struct random *random, struct random_room *room)
{
    struct sl_filter_text text = {0};
    size_t start;

    if (random_one_in(random, 3))
        text.track = some_track(random, room);
    text.track_is_verbatim = random_one_in(random, 4);
    if (random_one_in(random, 6))
        text.follow = some_follow(random, room);
    if (random_one_in(random, 6))
        text.locations = some_locations(random, room);
    if (random_one_in(random, 2)) {
        start = room->used;
        put_rule(random, room, 3);
        text.rule = since(room, start);
    }
    text.firehose = random_one_in(random, 24);
    if (random_one_in(random, 6))
        text.language = copied(room, PICK(random, languages));
    if (random_one_in(random, 12))
        text.sample = copied(room, random_one_in(random, 2) ? "50" : "12.5%");
    if (random_one_in(random, 12))
        text.partition = copied(room, random_one_in(random, 2) ? "1/2" : "3/3");
    if (random_one_in(random, 4))
        text.types = some_types(random, room);
    return text;
}

struct sl_filter *random_filter(struct random *random, struct random_room *room)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;

    limits.allows_wide = true;
    for (;;) {
        struct sl_filter_text text;
        struct sl_filter *filter;

        room->used = 0;
        text = some_filter_text(random, room);
        if (sl_filter_new(&text, &limits, &filter, NULL) == 0)
            return filter;
    }
}

/* --- events ------------------------------------------------------------------------------- */

static struct sl_slice some_text(struct random *random, struct random_room *room)
{
    uint32_t count = random_below(random, 12);
    size_t start = room->used;

    for (uint32_t i = 0; i < count; i++) {
        put(room, random_one_in(random, 8) ? PICK(random, links) : PICK(random, words));
        put(room, PICK(random, gaps));
    }
    return since(room, start);
}

static struct sl_slice perhaps(struct random *random, struct random_room *room,
                               const char *const *texts, size_t count)
{
    if (random_one_in(random, 2))
        return SL_SLICE_NONE;
    return copied(room, texts[random_below(random, (uint32_t)count)]);
}

static struct sl_post_ref some_ref(struct random *random, struct random_room *room)
{
    return (struct sl_post_ref){
        .has_post = random_one_in(random, 2),
        .user = perhaps(random, room, ids, COUNT(ids)),
        .login = perhaps(random, room, logins, COUNT(logins)),
    };
}

struct sl_event_view random_event(struct random *random, struct random_room *room)
{
    struct sl_event_view event = {.sample_id = random_below(random, 1000)};

    room->used = 0;
    event.type = random_one_in(random, 2)
                     ? SL_EVENT_POST
                     : (enum sl_event_type)random_below(random, SL_EVENT_TYPE_COUNT);
    event.user = copied(room, PICK(random, ids));
    event.restricted = random_one_in(random, 32);
    if (event.type == SL_EVENT_USER)
        return event;
    if (event.type == SL_EVENT_FOLLOW || event.type == SL_EVENT_UNFOLLOW) {
        event.target = copied(room, PICK(random, ids));
        return event;
    }
    if (event.type == SL_EVENT_POST || !random_one_in(random, 4))
        event.text = some_text(random, room);
    event.login = perhaps(random, room, logins, COUNT(logins));
    event.lang = perhaps(random, room, languages, COUNT(languages));
    event.country = perhaps(random, room, countries, COUNT(countries));
    event.place = perhaps(random, room, places, COUNT(places));
    event.reply_to = some_ref(random, room);
    event.repost_of = some_ref(random, room);
    event.quote_of = some_ref(random, room);
    event.has_point = random_one_in(random, 3);
    event.point = (struct sl_point){some_longitude(random), some_latitude(random)};
    event.has_box = random_one_in(random, 3);
    event.box = some_box(random);
    event.has_media = random_one_in(random, 4);
    event.url_count = random_below(random, 3);
    for (size_t i = 0; i < event.url_count; i++)
        room->urls[i] = copied(room, PICK(random, links));
    event.urls = room->urls;
    return event;
}
