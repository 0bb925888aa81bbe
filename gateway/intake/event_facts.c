/* event_facts.c - a table of the relevant members, and a parser that fills a struct from it.
 *
 * yajl calls back for each token. `containers` says what each open container is (one of the few
 * that events have, or CONTAINER_OTHER), and the table says where in struct event_facts the value
 * of a member is stored. The key of a member clears what an earlier member with that name has set,
 * so that the last one counts whatever its type.
 *
 * Strings without escapes are slices of the message; decoded ones are stored in `scratch`. So is
 * everything that yajl allocates: because it does not survive a failed malloc, the scratch is made
 * large enough before and fails as a whole. */
#include "gateway/intake/event_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/alloc.h"
#include "base/json_text.h"

enum { USER_ID_MAX = 64, ID_MAX_DIGITS = 19 };

/* Memory beyond this size is freed after the message that needed it. */
enum { SCRATCH_KEEP = 512 * 1024 };

/* The kind of an open container. */
enum container {
    CONTAINER_NONE, /* outside of the object */
    CONTAINER_ROOT,
    CONTAINER_USER,
    CONTAINER_TARGET,
    CONTAINER_POST,
    CONTAINER_AUTHOR,
    CONTAINER_REPLY_TO,
    CONTAINER_REPOST_OF,
    CONTAINER_QUOTE_OF,
    CONTAINER_GEO,
    CONTAINER_PLACE,
    CONTAINER_AUDIENCE, /* an audience that is not a string */
    CONTAINER_BBOX,     /* the following are arrays */
    CONTAINER_URLS,
    CONTAINER_MEDIA,
    CONTAINER_OTHER, /* its content is ignored */
};

enum member_type {
    MEMBER_TEXT,    /* string -> struct sl_slice */
    MEMBER_ID,      /* post or event id -> uint64_t */
    MEMBER_USER_ID, /* -> struct sl_slice */
    MEMBER_NUMBER,  /* -> struct event_number */
    MEMBER_AUDIENCE,
    MEMBER_OBJECT, /* opens a container */
    MEMBER_ARRAY
};

struct member {
    const char *name;
    size_t name_size;
    enum member_type type;
    enum container opens;
    size_t offset, size; /* of the field in struct event_facts */
};

#define MEMBER(name, type, opens, field)                                                           \
    {                                                                                              \
        name, sizeof(name) - 1, type, opens, offsetof(struct event_facts, field),                  \
            sizeof(((struct event_facts *)NULL)->field)                                            \
    }
#define SCALAR(name, type, field) MEMBER(name, type, CONTAINER_OTHER, field)
#define REFERENCE(field)                                                                           \
    {                                                                                              \
        SCALAR("post", MEMBER_ID, post.field.post),                                                \
            SCALAR("user", MEMBER_USER_ID, post.field.user),                                       \
            SCALAR("login", MEMBER_TEXT, post.field.login)                                         \
    }

enum { MAX_MEMBERS = 13 };

static const struct member members[CONTAINER_OTHER + 1][MAX_MEMBERS] = {
    [CONTAINER_ROOT] = {SCALAR("id", MEMBER_ID, id), SCALAR("type", MEMBER_TEXT, type),
                        SCALAR("at", MEMBER_TEXT, at), SCALAR("from", MEMBER_ID, from),
                        SCALAR("to", MEMBER_ID, to),
                        MEMBER("post", MEMBER_OBJECT, CONTAINER_POST, post),
                        MEMBER("user", MEMBER_OBJECT, CONTAINER_USER, user),
                        MEMBER("target", MEMBER_OBJECT, CONTAINER_TARGET, target)},
    [CONTAINER_USER] = {SCALAR("id", MEMBER_USER_ID, user.id)},
    [CONTAINER_TARGET] = {SCALAR("id", MEMBER_USER_ID, target.id)},
    [CONTAINER_POST] = {SCALAR("id", MEMBER_ID, post.id),
                        MEMBER("user", MEMBER_OBJECT, CONTAINER_AUTHOR, post.user),
                        SCALAR("text", MEMBER_TEXT, post.text),
                        SCALAR("lang", MEMBER_TEXT, post.lang),
                        MEMBER("reply_to", MEMBER_OBJECT, CONTAINER_REPLY_TO, post.reply_to),
                        MEMBER("repost_of", MEMBER_OBJECT, CONTAINER_REPOST_OF, post.repost_of),
                        MEMBER("quote_of", MEMBER_OBJECT, CONTAINER_QUOTE_OF, post.quote_of),
                        MEMBER("geo", MEMBER_OBJECT, CONTAINER_GEO, post.geo),
                        MEMBER("place", MEMBER_OBJECT, CONTAINER_PLACE, post.place),
                        MEMBER("urls", MEMBER_ARRAY, CONTAINER_URLS, post.urls),
                        MEMBER("media", MEMBER_ARRAY, CONTAINER_MEDIA, post.media),
                        MEMBER("audience", MEMBER_AUDIENCE, CONTAINER_AUDIENCE, post.audience)},
    [CONTAINER_AUTHOR] = {SCALAR("id", MEMBER_USER_ID, post.user.id),
                          SCALAR("login", MEMBER_TEXT, post.user.login)},
    [CONTAINER_REPLY_TO] = REFERENCE(reply_to),
    [CONTAINER_REPOST_OF] = REFERENCE(repost_of),
    [CONTAINER_QUOTE_OF] = REFERENCE(quote_of),
    [CONTAINER_GEO] = {SCALAR("lon", MEMBER_NUMBER, post.geo.lon),
                       SCALAR("lat", MEMBER_NUMBER, post.geo.lat)},
    [CONTAINER_PLACE] = {SCALAR("name", MEMBER_TEXT, post.place.name),
                         SCALAR("country", MEMBER_TEXT, post.place.country),
                         MEMBER("bbox", MEMBER_ARRAY, CONTAINER_BBOX, post.place.bbox)},
};

/* The state of parsing a message. */
struct reading {
    struct event_reader *reader;
    struct sl_slice message;
    struct event_facts facts;
    yajl_handle parser;
    size_t arena_used; /* yajl's part of the scratch */
    size_t arena_size;
    char *strings;               /* the rest: decoded strings, concatenated */
    const struct member *member; /* whose value comes next; NULL: ignored */
    size_t audience_from;        /* offset after the key of the last "audience" */
    size_t end;                  /* offset after the outermost value; 0: it is still open */
    bool is_too_deep;
    unsigned depth;
    enum container containers[EVENT_MAX_DEPTH + 1]; /* up to `depth` */
};

/* ---- scratch ---- */

/* yajl 2.1 allocates its handle, lexer and state stack (together below 1 KiB at depth 32) and two
 * buffers that begin with 2 KiB and double: one for the longest string with escapes, the other for
 * an unfinished token at the end. Including the smaller ones that are abandoned, each takes less
 * than 4 KiB + 4 * message. */
static size_t arena_size_for(size_t message_size)
{
    return 16 * 1024 + 8 * message_size;
}

struct block {
    _Alignas(max_align_t) size_t size;
};

static size_t block_size(size_t size)
{
    return sizeof(struct block) +
           (size + sizeof(struct block) - 1) / sizeof(struct block) * sizeof(struct block);
}

static void *arena_alloc(void *context, size_t size)
{
    struct reading *reading = context;
    struct block *block = (struct block *)(void *)(reading->reader->scratch + reading->arena_used);

    if (size > reading->arena_size || block_size(size) > reading->arena_size - reading->arena_used)
        abort(); /* yajl would write through NULL */
    reading->arena_used += block_size(size);
    block->size = size;
    return block + 1;
}

static void *arena_realloc(void *context, void *memory, size_t size)
{
    struct block *old = memory ? (struct block *)memory - 1 : NULL;
    void *grown;

    if (old && size <= old->size)
        return memory;
    grown = arena_alloc(context, size);
    if (old)
        memcpy(grown, memory, old->size);
    return grown;
}

static void arena_free(void *context, void *memory)
{
    (void)context; /* everything is freed at once, after the message */
    (void)memory;
}

/* For the arena and strings: no bytes are decoded twice, and each string decodes to fewer bytes. */
static int scratch_reserve(struct event_reader *reader, size_t message_size)
{
    size_t size = arena_size_for(message_size) + message_size;
    char *scratch;

    if (reader->scratch_size >= size)
        return 0;
    scratch = mem_alloc(size);
    if (!scratch)
        return -ENOMEM;
    mem_free(reader->scratch);
    reader->scratch = scratch;
    reader->scratch_size = size;
    return 0;
}

void event_buffer_trim(struct buffer *buffer)
{
    if (buffer->capacity > SCRATCH_KEEP)
        buffer_done(buffer);
}

void event_reader_trim(struct event_reader *reader)
{
    if (reader->scratch_size > SCRATCH_KEEP) {
        mem_free(reader->scratch);
        reader->scratch = NULL;
        reader->scratch_size = 0;
    }
    event_buffer_trim(&reader->urls);
    event_buffer_trim(&reader->edits);
}

void event_reader_done(struct event_reader *reader)
{
    mem_free(reader->scratch);
    buffer_done(&reader->urls);
    buffer_done(&reader->edits);
    *reader = (struct event_reader){0};
}

/* ---- values ---- */

/* Makes a string valid until the message has been parsed. */
static struct sl_slice keep_string(struct reading *reading, const unsigned char *data, size_t size)
{
    const char *text = (const char *)data;
    char *copy = reading->strings;

    if (text >= reading->message.data && text < reading->message.data + reading->message.size)
        return sl_slice(text, size);
    memcpy(copy, text, size);
    reading->strings += size;
    return sl_slice(copy, size);
}

static bool all_digits(struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.size > 0;
}

/* 1 .. 2^63-1; 0: anything else. */
static uint64_t read_id(struct sl_slice digits)
{
    uint64_t id = 0;

    if (digits.size > ID_MAX_DIGITS || !all_digits(digits))
        return 0;
    for (size_t i = 0; i < digits.size; i++)
        id = id * 10 + (uint64_t)(digits.data[i] - '0');
    return id <= INT64_MAX ? id : 0;
}

/* The value of a JSON number; infinite if it is too large for a double. There is room for the copy
 * after the strings, because the number and the character that ends it are in no string of the
 * message. */
static double read_number(struct reading *reading, struct sl_slice text)
{
    memcpy(reading->strings, text.data, text.size);
    reading->strings[text.size] = '\0';
    return strtod(reading->strings, NULL);
}

static struct sl_slice read_user_id(struct sl_slice text)
{
    return text.size >= 1 && text.size <= USER_ID_MAX ? text : SL_SLICE_NONE;
}

static void *field(struct reading *reading, const struct member *member)
{
    return (char *)&reading->facts + member->offset;
}

/* Returns the member whose value begins now, and clears it. */
static const struct member *take_member(struct reading *reading)
{
    const struct member *member = reading->member;

    reading->member = NULL;
    return member;
}

/* What clients may be told about an audience: its kind, if it is known. */
static struct sl_slice audience_kind(struct sl_slice audience)
{
    static const struct {
        struct sl_slice name, list; /* `list`: the prefix of a list of ids */
    } kinds[] = {
        {{"public", 6}, {NULL, 0}},
        {{"followers", 9}, {NULL, 0}},
        {{"only", 4}, {"only:", 5}},
        {{"except", 6}, {"except:", 7}},
        {{"followers-except", 16}, {"followers-except:", 17}},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (sl_slice_equal(audience, kinds[i].name) ||
            (kinds[i].list.data && sl_slice_starts_with(audience, kinds[i].list)))
            return kinds[i].name;
    }
    return SL_SLICE("restricted");
}

/* The value of "audience" has just ended. */
static void set_audience(struct reading *reading, struct sl_slice audience, bool is_string)
{
    struct event_edit edit = {reading->audience_from, yajl_get_bytes_consumed(reading->parser),
                              audience_kind(audience)};

    reading->facts.post.audience = audience;
    if (!is_string || !sl_slice_equal(audience, edit.kind))
        buffer_append(&reading->reader->edits, &edit, sizeof(edit));
}

static void set_string(struct reading *reading, const struct member *member, struct sl_slice text)
{
    switch (member->type) {
    case MEMBER_TEXT:
        *(struct sl_slice *)field(reading, member) = text;
        break;
    case MEMBER_ID:
        *(uint64_t *)field(reading, member) = read_id(text);
        break;
    case MEMBER_USER_ID:
        *(struct sl_slice *)field(reading, member) = read_user_id(text);
        break;
    case MEMBER_AUDIENCE:
        set_audience(reading, text, true);
        break;
    default: /* wrong type: absent */
        break;
    }
}

static void set_number(struct reading *reading, const struct member *member, struct sl_slice text)
{
    switch (member->type) {
    case MEMBER_ID:
        *(uint64_t *)field(reading, member) = read_id(text);
        break;
    case MEMBER_USER_ID:
        if (read_id(text) != 0)
            *(struct sl_slice *)field(reading, member) = text;
        break;
    case MEMBER_NUMBER:
        *(struct event_number *)field(reading, member) =
            (struct event_number){true, read_number(reading, text)};
        break;
    case MEMBER_AUDIENCE:
        set_audience(reading, SL_SLICE("restricted"), false);
        break;
    default:
        break;
    }
}

/* Adds an item of the open array. */
static void add_item(struct reading *reading, struct sl_slice string, struct sl_slice number)
{
    struct event_post_facts *post = &reading->facts.post;

    switch (reading->containers[reading->depth]) {
    case CONTAINER_URLS:
        if (string.data) {
            buffer_append(&reading->reader->urls, &string, sizeof(string));
            post->urls.count++;
        }
        break;
    case CONTAINER_MEDIA:
        post->media.count++;
        break;
    case CONTAINER_BBOX:
        if (!number.data)
            post->place.bbox.has_other = true;
        else if (post->place.bbox.count < 4)
            post->place.bbox.edges[post->place.bbox.count] = read_number(reading, number);
        post->place.bbox.count++;
        break;
    default:
        break;
    }
}

/* ---- callbacks of yajl; 0 stops it ---- */

static int on_null(void *context)
{
    struct reading *reading = context;

    if (!take_member(reading))
        add_item(reading, SL_SLICE_NONE, SL_SLICE_NONE);
    return 1;
}

static int on_boolean(void *context, int value)
{
    struct reading *reading = context;
    const struct member *member = take_member(reading);

    (void)value;
    if (!member)
        add_item(reading, SL_SLICE_NONE, SL_SLICE_NONE);
    else if (member->type == MEMBER_AUDIENCE)
        set_audience(reading, SL_SLICE("restricted"), false);
    return 1;
}

static int on_number(void *context, const char *data, size_t size)
{
    struct reading *reading = context;
    const struct member *member = take_member(reading);

    if (member)
        set_number(reading, member, sl_slice(data, size));
    else
        add_item(reading, SL_SLICE_NONE, sl_slice(data, size));
    return 1;
}

static int on_string(void *context, const unsigned char *data, size_t size)
{
    struct reading *reading = context;
    const struct member *member = take_member(reading);

    if (member)
        set_string(reading, member, keep_string(reading, data, size));
    else if (reading->containers[reading->depth] >= CONTAINER_BBOX &&
             reading->containers[reading->depth] < CONTAINER_OTHER)
        add_item(reading, keep_string(reading, data, size), SL_SLICE_NONE);
    return 1;
}

/* Opens what the pending member opens if it is of `type`; anything else is ignored. */
static int open_container(struct reading *reading, enum member_type type)
{
    const struct member *member = take_member(reading);
    enum container container = CONTAINER_OTHER;

    if (reading->depth == EVENT_MAX_DEPTH) {
        reading->is_too_deep = true;
        return 0;
    }
    if (reading->depth == 0)
        container = type == MEMBER_OBJECT ? CONTAINER_ROOT : CONTAINER_OTHER;
    else if (!member)
        add_item(reading, SL_SLICE_NONE, SL_SLICE_NONE);
    else if (member->type == type || member->type == MEMBER_AUDIENCE)
        container = member->opens;
    if (container == CONTAINER_URLS)
        reading->facts.post.urls.first = reading->reader->urls.size / sizeof(struct sl_slice);
    reading->containers[++reading->depth] = container;
    return 1;
}

static int close_container(void *context)
{
    struct reading *reading = context;

    if (reading->containers[reading->depth--] == CONTAINER_AUDIENCE)
        set_audience(reading, SL_SLICE("restricted"), false);
    if (reading->depth == 0)
        reading->end = yajl_get_bytes_consumed(reading->parser);
    return 1;
}

static int on_start_map(void *context)
{
    return open_container(context, MEMBER_OBJECT);
}

static int on_start_array(void *context)
{
    return open_container(context, MEMBER_ARRAY);
}

static const struct member *find_member(enum container container, struct sl_slice name)
{
    for (const struct member *member = members[container]; member->name; member++) {
        if (member->name_size == name.size && memcmp(member->name, name.data, name.size) == 0)
            return member;
    }
    return NULL;
}

static int on_map_key(void *context, const unsigned char *data, size_t size)
{
    struct reading *reading = context;
    const struct member *member =
        find_member(reading->containers[reading->depth], sl_slice((const char *)data, size));

    reading->member = member;
    if (!member)
        return 1;
    memset(field(reading, member), 0, member->size);
    if (member->type == MEMBER_AUDIENCE)
        reading->audience_from = yajl_get_bytes_consumed(reading->parser);
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_map_key,
    .yajl_end_map = close_container,
    .yajl_start_array = on_start_array,
    .yajl_end_array = close_container,
};

static int parse(struct reading *reading, struct failure *reterr)
{
    yajl_alloc_funcs arena = {arena_alloc, arena_realloc, arena_free, reading};
    const unsigned char *text = (const unsigned char *)reading->message.data;
    yajl_status status;

    reading->parser = yajl_alloc(&callbacks, &arena, reading);
    yajl_config(reading->parser, yajl_dont_validate_strings, 1); /* json_text_check() does so */
    status = yajl_parse(reading->parser, text, reading->message.size);
    if (reading->is_too_deep)
        return failure_set(reterr, -EBADMSG, "nested deeper than %d", EVENT_MAX_DEPTH);
    if (status != yajl_status_ok)
        return failure_set(reterr, -EBADMSG, "not JSON near byte %zu",
                           yajl_get_bytes_consumed(reading->parser));
    if (reading->message.data[0] != '{')
        return failure_set(reterr, -EBADMSG, "not a JSON object");
    if (reading->end == 0)
        return failure_set(reterr, -EBADMSG, "JSON ends too early");
    if (reading->end != reading->message.size) /* yajl waits for the rest of an incomplete token */
        return failure_set(reterr, -EBADMSG, "not JSON near byte %zu", reading->end);
    return 0;
}

int event_facts_read(struct event_reader *reader, struct sl_slice message,
                     struct event_facts *ret_facts, struct json_breaks *ret_breaks,
                     struct failure *reterr)
{
    struct reading reading;
    int r;

    if (message.size == 0)
        return failure_set(reterr, -EBADMSG, "empty");
    r = json_text_check(message, ret_breaks, reterr);
    if (r < 0)
        return r;
    r = scratch_reserve(reader, message.size);
    if (r < 0)
        return r;
    buffer_clear(&reader->urls);
    buffer_clear(&reader->edits);
    memset(&reading, 0, offsetof(struct reading, containers));
    reading.reader = reader;
    reading.message = message;
    reading.arena_size = arena_size_for(message.size);
    reading.strings = reader->scratch + reading.arena_size;
    reading.containers[0] = CONTAINER_NONE;
    r = parse(&reading, reterr);
    if (r < 0)
        return r;
    if (reader->urls.failed || reader->edits.failed)
        return -ENOMEM;
    *ret_facts = reading.facts;
    return 0;
}
