/* pick_bucket.c - a heap of the posts that would be sent if the bucket ended now.
 *
 * Each post has a rank, a hash or its inverted id; the lowest ranks are selected. */
#include "gateway/counts/pick_bucket.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/stable_hash.h"
#include "gateway/counts/count_bucket.h"

enum { FIRST_CAPACITY = 8 };

struct picked {
    uint64_t rank;
    uint64_t key;     /* of the user or cell; 0: not used */
    uint64_t post;    /* its id */
    struct told told; /* .event NULL: the client has it, or it is not sent */
    bool is_deleted;
};

static void clear(struct pick_bucket *bucket)
{
    while (bucket->count > 0)
        told_done(&bucket->picked[--bucket->count].told);
    bucket->matched = 0;
}

void pick_bucket_done(struct pick_bucket *bucket)
{
    clear(bucket);
    told_list_done(&bucket->others);
    mem_free(bucket->picked);
    *bucket = (struct pick_bucket){0};
}

bool pick_bucket_is_empty(const struct pick_bucket *bucket)
{
    return bucket->matched == 0 && told_list_is_empty(&bucket->others);
}

/* --- the heap --- */

static bool goes_before(const struct picked *a, const struct picked *b)
{
    return a->rank != b->rank ? a->rank > b->rank : a->told.id > b->told.id;
}

static void swap(struct pick_bucket *bucket, size_t a, size_t b)
{
    struct picked picked = bucket->picked[a];

    bucket->picked[a] = bucket->picked[b];
    bucket->picked[b] = picked;
}

static void sift_up(struct pick_bucket *bucket, size_t at)
{
    for (size_t above; at > 0; at = above) {
        above = (at - 1) / 2;
        if (!goes_before(&bucket->picked[at], &bucket->picked[above]))
            return;
        swap(bucket, at, above);
    }
}

static void sift_down(struct pick_bucket *bucket, size_t at)
{
    for (;;) {
        size_t first = at, below = 2 * at + 1;

        for (size_t i = below; i < below + 2 && i < bucket->count; i++) {
            if (goes_before(&bucket->picked[i], &bucket->picked[first]))
                first = i;
        }
        if (first == at)
            return;
        swap(bucket, at, first);
        at = first;
    }
}

/* --- posts --- */

static uint64_t key_of(struct pick_bucket *bucket, const struct pick_question *question,
                       const struct event *event)
{
    struct count_cell cell;

    if (question->pick == PICK_BY_USER) {
        if (bucket->key.k0 == 0 && bucket->key.k1 == 0)
            bucket->key = hash_key_random();
        return hash_slice(bucket->key, event->view.user);
    }
    if (question->pick != PICK_BY_CELL ||
        !count_cell_of(&event->view, question->cell_millidegrees, &cell))
        return 0;
    return (uint64_t)(cell.west + 180001) << 32 | (uint64_t)(cell.south + 90001);
}

/* The index of the post that a new one replaces; bucket->count: none, it is added. */
static size_t place_of(const struct pick_bucket *bucket, const struct pick_question *question,
                       const struct picked *picked)
{
    if (question->pick == PICK_BY_USER || question->pick == PICK_BY_CELL) {
        for (size_t i = 0; i < bucket->count; i++) {
            if (bucket->picked[i].key == picked->key)
                return i;
        }
    }
    return bucket->count == question->posts ? 0 : bucket->count;
}

static int make_room(struct pick_bucket *bucket)
{
    size_t capacity = bucket->capacity ? bucket->capacity * 2 : FIRST_CAPACITY;
    struct picked *more;

    if (bucket->count < bucket->capacity)
        return 0;
    more = mem_realloc(bucket->picked, mem_array_size(capacity, sizeof(*more)));
    if (!more)
        return -ENOMEM;
    bucket->picked = more;
    bucket->capacity = capacity;
    return 0;
}

/* Takes ownership of the contents of `picked`. */
static int put(struct pick_bucket *bucket, size_t at, struct picked *picked)
{
    if (at < bucket->count) {
        told_done(&bucket->picked[at].told);
        bucket->picked[at] = *picked;
        sift_down(bucket, at);
        return 0;
    }
    if (make_room(bucket) < 0) {
        told_done(&picked->told);
        return -ENOMEM;
    }
    bucket->picked[bucket->count++] = *picked;
    sift_up(bucket, at);
    return 0;
}

static int told_of(struct event *event, struct sl_slice tail, bool is_had, struct told *ret_told)
{
    *ret_told = (struct told){.id = event->id};
    if (is_had)
        return 0;
    if (told_set_tail(ret_told, tail) < 0)
        return -ENOMEM;
    ret_told->event = event_ref(event);
    return 0;
}

static uint64_t rank_of(const struct pick_question *question, const struct event *event)
{
    if (question->pick == PICK_EVEN)
        return stable_hash(event->view.sample_id);
    return question->pick == PICK_FIRST ? event->id : ~event->id;
}

/* A deleted post keeps its place, because the posts that would follow may have been dropped. */
static void take_out(struct pick_bucket *bucket, uint64_t post)
{
    for (size_t i = 0; i < bucket->count; i++) {
        struct picked *picked = &bucket->picked[i];
        uint64_t id = picked->told.id;

        if (picked->post != post)
            continue;
        told_done(&picked->told);
        picked->told.id = id;
        picked->is_deleted = true;
    }
}

static int add_post(struct pick_bucket *bucket, const struct pick_question *question,
                    struct event *event, struct sl_slice tail, bool is_had)
{
    struct picked picked = {.rank = rank_of(question, event),
                            .key = key_of(bucket, question, event),
                            .post = event->view.sample_id,
                            .told.id = event->id};
    size_t at = place_of(bucket, question, &picked);

    if (at < bucket->count && !goes_before(&bucket->picked[at], &picked))
        return 0;
    if (told_of(event, tail, is_had, &picked.told) < 0)
        return -ENOMEM;
    return put(bucket, at, &picked);
}

/* --- events --- */

static int tell(struct event *event, struct sl_slice tail, bool is_had, struct told_list *list)
{
    struct told told;

    if (is_had)
        return 0;
    if (told_of(event, tail, false, &told) < 0)
        return -ENOMEM;
    return told_list_append(list, &told);
}

int pick_bucket_add(struct pick_bucket *bucket, const struct pick_question *question,
                    struct event *event, struct sl_slice tail, bool is_had, struct told_list *told)
{
    bool is_first = question->pick == PICK_FIRST && !question->behind;

    if (event->kind != EVENT_POST && question->behind) {
        if (event->kind == EVENT_DELETE)
            take_out(bucket, event->view.sample_id);
        return 0;
    }
    if (event->kind != EVENT_POST)
        return tell(event, tail, is_had, is_first ? told : &bucket->others);
    bucket->matched++;
    if (!is_first)
        return add_post(bucket, question, event, tail, is_had);
    return bucket->matched <= question->posts ? tell(event, tail, is_had, told) : 0;
}

int pick_bucket_close(struct pick_bucket *bucket, const struct pick_question *question,
                      struct told_list *told, uint64_t *ret_skipped)
{
    uint64_t sent = bucket->count;
    struct told other;
    int r = 0;

    if (question->pick == PICK_FIRST && !question->behind)
        sent = bucket->matched < question->posts ? bucket->matched : question->posts;
    *ret_skipped = bucket->matched - sent;
    for (size_t i = 0; r == 0 && i < bucket->count; i++) {
        *ret_skipped += bucket->picked[i].is_deleted;
        if (bucket->picked[i].told.event)
            r = told_list_append(told, &bucket->picked[i].told);
    }
    while (r == 0 && told_list_take(&bucket->others, &other))
        r = told_list_append(told, &other);
    told_list_sort(told);
    clear(bucket);
    return r;
}
