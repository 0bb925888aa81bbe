/* dictionary_log.c - reads backwards, so that a deletion is known before the post that it deletes.
 *
 * A deletion is in the same log as its post. The bytes move while more are read, so a sample is
 * an offset until all have been read. The memory is limited by the number of posts and by
 * MAX_BYTES. */
#include "cli/dictionary_log.h"

#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/hash_map.h"
#include "src/database/event_log.h"
#include "src/model/id.h"

enum { PAGE = 1000, MAX_BYTES = 8 << 20 };

struct reader {
    struct dictionary_log log;
    size_t room;              /* for samples */
    struct hash_map *authors; /* id -> its number plus one, as a pointer */
    struct hash_map *deleted; /* ids of posts */
};

static struct sl_slice text_at(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_string(value) ? sl_slice(json_string_value(value), json_string_length(value))
                                 : SL_SLICE_NONE;
}

static int author_number(struct reader *reader, struct sl_slice id, uint32_t *ret_number)
{
    uintptr_t number = (uintptr_t)hash_map_get(reader->authors, id);

    if (number == 0) {
        number = ++reader->log.authors;
        if (hash_map_add(reader->authors, id, (void *)number) < 0)
            return -ENOMEM;
    }
    *ret_number = (uint32_t)number;
    return 0;
}

/* Until all are read, its `data` is an offset. */
static int keep(struct reader *reader, struct sl_slice event, struct sl_slice author)
{
    struct piece_sample *sample = &reader->log.samples[reader->log.count];
    struct buffer *bytes = &reader->log.bytes;

    if (author_number(reader, author, &sample->author) < 0)
        return -ENOMEM;
    sample->json = sl_slice((const char *)bytes->size, event.size);
    buffer_append_slice(bytes, event);
    reader->log.count++;
    return bytes->failed ? -ENOMEM : 0;
}

static bool has_room(const struct reader *reader, size_t until)
{
    return reader->log.count < until && reader->log.bytes.size < MAX_BYTES;
}

static int take_post(struct reader *reader, struct sl_slice event, const json_t *post, size_t until)
{
    struct sl_slice audience = text_at(post, "audience"), id = text_at(post, "id");
    struct sl_slice author = text_at(json_object_get(post, "user"), "id");

    if (!id.data || !author.data || (audience.data && !sl_slice_is(audience, "public")) ||
        hash_map_get(reader->deleted, id) || !has_room(reader, until) ||
        memchr(event.data, '\n', event.size))
        return 0;
    return keep(reader, event, author);
}

static int take(struct reader *reader, struct sl_slice event, size_t until)
{
    json_t *json = json_loadb(event.data, event.size, 0, NULL);
    const json_t *post = json_object_get(json, "post");
    struct sl_slice type = text_at(json, "type"), id = text_at(post, "id");
    int r = 0;

    if (sl_slice_is(type, "post"))
        r = take_post(reader, event, post, until);
    else if (sl_slice_is(type, "delete") && id.data)
        r = hash_map_add(reader->deleted, id, reader);
    json_decref(json);
    return r == -EEXIST ? 0 : r;
}

static int read_page(struct reader *reader, struct database *database, uint32_t shard, uint64_t *to,
                     size_t until, size_t *ret_count, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_event_log_back_call(&call, shard, *to, PAGE, reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_event_log_back_reply(reply, shard, *to, ret_count, reterr);
    for (size_t i = 0; r == 0 && i < *ret_count; i++) {
        const struct sl_event_log_entry entry = sl_event_log_entry_at(reply, i);

        *to = entry.id - 1;
        if (take(reader, entry.event, until) < 0)
            r = failure_set(reterr, -ENOMEM, "out of memory");
    }
    freeReplyObject(reply);
    return r;
}

static int read_shard(struct reader *reader, struct database *database, uint32_t shard,
                      size_t until, struct failure *reterr)
{
    uint64_t to = SL_ID_MAX;
    size_t count = PAGE;
    int r = 0;

    while (r == 0 && count == PAGE && has_room(reader, until))
        r = read_page(reader, database, shard, &to, until, &count, reterr);
    return r;
}

static int read_shards(struct reader *reader, struct database *database, size_t posts,
                       struct failure *reterr)
{
    uint32_t shards = database->meta.shards;
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < shards; shard++) {
        size_t share = (posts - reader->log.count) / (shards - shard);

        r = read_shard(reader, database, shard, reader->log.count + share, reterr);
    }
    return r;
}

int dictionary_log_read(struct database *database, size_t posts, struct dictionary_log *ret_log,
                        struct failure *reterr)
{
    struct reader reader = {.authors = hash_map_new(), .deleted = hash_map_new()};
    int r;

    reader.log.samples = mem_alloc(mem_array_size(posts, sizeof(*reader.log.samples)));
    if (!reader.authors || !reader.deleted || !reader.log.samples)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    else
        r = read_shards(&reader, database, posts, reterr);
    hash_map_free(reader.authors);
    hash_map_free(reader.deleted);
    if (r < 0) {
        dictionary_log_done(&reader.log);
        return r;
    }
    for (size_t i = 0; i < reader.log.count; i++)
        reader.log.samples[i].json.data =
            reader.log.bytes.data + (uintptr_t)reader.log.samples[i].json.data;
    *ret_log = reader.log;
    return 0;
}

void dictionary_log_done(struct dictionary_log *log)
{
    buffer_done(&log->bytes);
    mem_free(log->samples);
}
