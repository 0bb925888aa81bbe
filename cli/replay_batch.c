/* replay_batch.c - up to 256 events at a time, in one pipeline for users and one for events.
 *
 * Users are created first, those whose login is taken are looked up, and if neither is possible the
 * user gets a complaint, with which all their events are refused. Then the ids of the file are
 * replaced by those of the database, also in references, and all events are sent in one pipeline,
 * in order. An event that needs a post of its own batch makes the batch be sent first, and so does
 * an event after a change of login. If Redis goes away in between, the replay ends: what was
 * executed of the batch is unknown, and it is not repeated. */
#include "cli/replay_batch.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "cli/replay_names.h"
#include "src/model/id.h"
#include "src/social/follows.h"
#include "src/social/posts.h"

enum { BATCH_MAX = 256, POSTS_MAX = 1000000 };

/* An event to be sent. */
struct errand {
    size_t line;
    struct replay_event event;
    struct person *user, *target;
    struct sl_slice login;   /* the user's new login; absent: unchanged */
    struct known_post *post; /* the post created or deleted; NULL: a post without an id, or not a
                                post */
    char post_ids[3][SL_ID_TEXT_SIZE], user_ids[3][SL_ID_TEXT_SIZE]; /* of references */
};

struct replay_batch {
    struct database *database;
    replay_refuse_fn refuse;
    void *context;
    struct replay_names *names;
    struct replay_counts counts;
    struct errand errands[BATCH_MAX];
    size_t errand_count;
    struct sl_call calls[BATCH_MAX]; /* the pipeline and its replies */
    redisReply *replies[BATCH_MAX];
};

static void forget_errands(struct replay_batch *batch)
{
    for (size_t i = 0; i < batch->errand_count; i++)
        replay_event_done(&batch->errands[i].event);
    batch->errand_count = 0;
}

/* ---- users ---- */

/* Collects the users of the batch that the database does not know yet, each once. */
static size_t collect_strangers(const struct replay_batch *batch, struct person **ret_strangers)
{
    size_t count = 0;

    for (size_t i = 0; i < batch->errand_count; i++) {
        struct person *both[] = {batch->errands[i].user, batch->errands[i].target};

        for (size_t j = 0; j < 2; j++) {
            bool is_new = both[j] && both[j]->id == 0 && !both[j]->complaint;

            for (size_t k = 0; is_new && k < count; k++)
                is_new = ret_strangers[k] != both[j];
            if (is_new)
                ret_strangers[count++] = both[j];
        }
    }
    return count;
}

static int complain(struct person *person, const struct failure *failure, struct failure *reterr)
{
    person->complaint = mem_strndup(failure->text, strlen(failure->text));
    return person->complaint ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

static void drop_replies(struct replay_batch *batch, size_t count)
{
    for (size_t i = 0; i < count; i++)
        freeReplyObject(batch->replies[i]);
}

/* Builds a call for each user with `build`, sends them, and reads each answer with `read`. A user
 * for whom either fails gets a complaint. */
static int for_people(struct replay_batch *batch, struct person **people, size_t count,
                      int (*build)(struct replay_batch *batch, struct sl_call *call,
                                   const struct person *person, struct failure *reterr),
                      int (*read)(struct replay_batch *batch, const redisReply *reply,
                                  struct person *person, struct failure *reterr),
                      struct failure *reterr)
{
    struct person *asked[BATCH_MAX];
    struct failure failure;
    size_t asked_count = 0;
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        if (build(batch, &batch->calls[asked_count], people[i], &failure) == 0)
            asked[asked_count++] = people[i];
        else
            r = complain(people[i], &failure, reterr);
    }
    if (r == 0)
        r = sl_redis_link_run_many(batch->database->link, batch->calls, asked_count, batch->replies,
                                   reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < asked_count && r == 0; i++) {
        if (read(batch, batch->replies[i], asked[i], &failure) < 0)
            r = complain(asked[i], &failure, reterr);
    }
    drop_replies(batch, asked_count);
    return r;
}

static int build_create(struct replay_batch *batch, struct sl_call *call,
                        const struct person *person, struct failure *reterr)
{
    int r = sl_user_create_call(call, &batch->database->meta, SL_SLICE_NONE,
                                sl_slice_str(person->login), sl_slice_str(person->name), reterr);

    call->is_repeatable = true; /* a repetition finds the login taken, which is handled as well */
    return r;
}

/* A taken login is not a failure: its owner is looked up next. */
static int read_create(struct replay_batch *batch, const redisReply *reply, struct person *person,
                       struct failure *reterr)
{
    struct sl_written written;
    int r = sl_write_reply(reply, &written, reterr);

    if (r == 0) {
        person->id = written.id;
        batch->counts.users_made++;
    }
    return r == -EEXIST ? 0 : r;
}

static int build_find(struct replay_batch *batch, struct sl_call *call, const struct person *person,
                      struct failure *reterr)
{
    const struct sl_user_ref ref = sl_user_by_login(sl_slice_str(person->login));

    return sl_user_find_call(call, &batch->database->meta, &ref, reterr);
}

static int read_find(struct replay_batch *batch, const redisReply *reply, struct person *person,
                     struct failure *reterr)
{
    struct sl_user user;
    int r = sl_user_find_reply(reply, &user, reterr);

    (void)batch;
    if (r == 0)
        person->id = user.id;
    return r;
}

static int meet_strangers(struct replay_batch *batch, struct failure *reterr)
{
    struct person *strangers[2 * BATCH_MAX];
    size_t count = collect_strangers(batch, strangers);
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i += BATCH_MAX)
        r = for_people(batch, strangers + i, count - i < BATCH_MAX ? count - i : BATCH_MAX,
                       build_create, read_create, reterr);
    count = collect_strangers(batch, strangers);
    for (size_t i = 0; i < count && r == 0; i += BATCH_MAX)
        r = for_people(batch, strangers + i, count - i < BATCH_MAX ? count - i : BATCH_MAX,
                       build_find, read_find, reterr);
    return r;
}

/* ---- events ---- */

/* Replaces the ids of known posts and users; others keep those of the file. Returns whether the
 * post is known. */
static bool translate(const struct replay_batch *batch, struct errand *errand, size_t number,
                      struct sl_post_reference *reference)
{
    const struct known_post *post = replay_post(batch->names, reference->post);
    bool is_known = post && post->id;
    const struct person *user =
        is_known ? post->author : replay_person_by_id(batch->names, reference->user);

    reference->is_restricted = is_known && post->is_restricted;
    if (is_known)
        reference->post = sl_slice_str(sl_id_print(post->id, errand->post_ids[number]));
    if (user && user->id) {
        reference->user = sl_slice_str(sl_id_print(user->id, errand->user_ids[number]));
        reference->login = sl_slice_str(user->login);
    }
    if (!reference->user.data) /* the author of that post is unknown */
        reference->post = SL_SLICE_NONE;
    return is_known;
}

static int build_post(const struct replay_batch *batch, struct errand *errand, struct sl_call *call,
                      struct failure *reterr)
{
    const struct sl_user_ref author = sl_user_by_id(errand->user->id);
    struct sl_post *post = &errand->event.post;

    post->is_comment = translate(batch, errand, 0, &post->reply_to);
    translate(batch, errand, 1, &post->repost_of);
    translate(batch, errand, 2, &post->quote_of);
    return sl_post_call(call, &batch->database->meta, SL_SLICE_NONE, &author, post, reterr);
}

static int build_follow(const struct replay_batch *batch, struct errand *errand,
                        struct sl_call *call, struct failure *reterr)
{
    const struct sl_user_ref user = sl_user_by_id(errand->user->id);
    const struct person *person = errand->target;
    const struct sl_user target = {person->id, sl_slice_str(person->login),
                                   sl_slice_str(person->name ? person->name : person->login)};

    return errand->event.kind == REPLAY_FOLLOW
               ? sl_follow_call(call, &batch->database->meta, SL_SLICE_NONE, &user, &target, reterr)
               : sl_unfollow_call(call, &batch->database->meta, SL_SLICE_NONE, &user, &target,
                                  reterr);
}

static int build_delete(const struct replay_batch *batch, const struct errand *errand,
                        struct sl_call *call, struct failure *reterr)
{
    const struct sl_user_ref author = sl_user_by_id(errand->user->id);

    return sl_delete_call(call, &batch->database->meta, SL_SLICE_NONE, &author, errand->post->id,
                          reterr);
}

static int build_change(const struct replay_batch *batch, const struct errand *errand,
                        struct sl_call *call, struct failure *reterr)
{
    const struct sl_user_ref user = sl_user_by_id(errand->user->id);
    const struct sl_user_change change = {.name = errand->event.user.name, .login = errand->login};

    return sl_user_change_call(call, &batch->database->meta, SL_SLICE_NONE, &user, &change, reterr);
}

static int build(const struct replay_batch *batch, struct errand *errand, struct sl_call *call,
                 struct failure *reterr)
{
    if (errand->user->id == 0)
        return failure_set(reterr, -EINVAL, "%s", errand->user->complaint);
    if (errand->target && errand->target->id == 0)
        return failure_set(reterr, -EINVAL, "%s", errand->target->complaint);
    switch (errand->event.kind) {
    case REPLAY_POST:
        return build_post(batch, errand, call, reterr);
    case REPLAY_DELETE:
        return build_delete(batch, errand, call, reterr);
    case REPLAY_USER:
        return build_change(batch, errand, call, reterr);
    default:
        return build_follow(batch, errand, call, reterr);
    }
}

/* 0; -ENOMEM. */
static int read_answer(struct replay_batch *batch, const redisReply *reply, struct errand *errand)
{
    struct sl_written written;
    struct failure failure;

    if (sl_write_reply(reply, &written, &failure) < 0) {
        batch->refuse(batch->context, errand->line, failure.text);
        return 0;
    }
    batch->counts.done[errand->event.kind]++;
    if (errand->event.kind == REPLAY_POST && errand->post)
        errand->post->id = written.id;
    return errand->login.data ? replay_person_rename(batch->names, errand->user, errand->login) : 0;
}

/* A new user was made with the strangers of the batch, or existed already: nothing is changed. */
static bool is_done_already(const struct errand *errand)
{
    return errand->event.kind == REPLAY_USER && errand->event.is_new_user && errand->user->id != 0;
}

static int run_errands(struct replay_batch *batch, struct failure *reterr)
{
    struct errand *sent[BATCH_MAX];
    struct failure failure;
    size_t count = 0;
    int r;

    for (size_t i = 0; i < batch->errand_count; i++) {
        struct errand *errand = &batch->errands[i];

        if (is_done_already(errand))
            batch->counts.done[REPLAY_USER]++;
        else if (build(batch, errand, &batch->calls[count], &failure) == 0)
            sent[count++] = errand;
        else
            batch->refuse(batch->context, errand->line, failure.text);
    }
    r = sl_redis_link_run_many(batch->database->link, batch->calls, count, batch->replies, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count && r == 0; i++)
        r = read_answer(batch, batch->replies[i], sent[i]);
    drop_replies(batch, count);
    return r < 0 ? failure_set(reterr, r, "out of memory") : 0;
}

int replay_batch_send(struct replay_batch *batch, struct failure *reterr)
{
    int r = 0;

    if (batch->errand_count > 0) {
        r = meet_strangers(batch, reterr);
        if (r == 0)
            r = run_errands(batch, reterr);
    }
    forget_errands(batch);
    return r;
}

/* ---- lines ---- */

static bool is_on_its_way(const struct replay_batch *batch, struct sl_slice file_id)
{
    const struct known_post *post = replay_post(batch->names, file_id);

    return post && post->id == 0;
}

/* The event refers to a post whose new id is known only after the batch. */
static bool must_send_before(const struct replay_batch *batch, const struct replay_event *event)
{
    return is_on_its_way(batch, event->post_id) ||
           is_on_its_way(batch, event->post.reply_to.post) ||
           is_on_its_way(batch, event->post.repost_of.post) ||
           is_on_its_way(batch, event->post.quote_of.post);
}

/* A user with a known id is the same one, whatever login the event contains. */
static int prepare_change(struct replay_batch *batch, struct errand *errand, struct failure *reterr)
{
    const struct replay_user *user = &errand->event.user;

    errand->user = replay_person_by_id(batch->names, user->id);
    if (!errand->user)
        errand->user = replay_person(batch->names, user);
    else if (user->login.data && !sl_slice_is(user->login, errand->user->login) &&
             !errand->event.is_new_user)
        errand->login = user->login;
    return errand->user ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

/* Finds the users and posts of the event. 0; -ENOENT: a deletion of an unknown post; -ENOMEM. */
static int prepare(struct replay_batch *batch, struct errand *errand, struct failure *reterr)
{
    const struct replay_event *event = &errand->event;

    if (event->kind == REPLAY_DELETE) {
        errand->post = replay_post(batch->names, event->post_id);
        if (!errand->post || errand->post->id == 0)
            return failure_set(reterr, -ENOENT, "deletes a post that is not from this file");
        errand->user = errand->post->author;
        return 0;
    }
    if (event->kind == REPLAY_USER)
        return prepare_change(batch, errand, reterr);
    errand->user = replay_person(batch->names, &event->user);
    if (event->kind == REPLAY_POST && event->post_id.data && errand->user)
        errand->post = replay_post_add(batch->names, event->post_id, errand->user);
    if (event->kind != REPLAY_POST)
        errand->target = replay_person(batch->names, &event->target);
    if (!errand->user || (event->kind == REPLAY_POST && event->post_id.data && !errand->post) ||
        (event->kind != REPLAY_POST && !errand->target))
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (errand->post)
        errand->post->is_restricted = sl_slice_is(event->post.audience, "followers");
    return 0;
}

/* Adds a line to the batch. 0; -EAGAIN: the batch must be sent first; else why it cannot be
 * added. */
static int take_line(struct replay_batch *batch, struct sl_slice line, size_t number,
                     struct failure *reterr)
{
    struct errand *errand = &batch->errands[batch->errand_count];
    int r;

    *errand = (struct errand){.line = number};
    r = replay_event_read(line, &errand->event, reterr);
    if (r < 0)
        return r;
    r = must_send_before(batch, &errand->event) ? -EAGAIN : prepare(batch, errand, reterr);
    if (r < 0) {
        replay_event_done(&errand->event);
        return r;
    }
    batch->errand_count++;
    batch->counts.taken++;
    return 0;
}

int replay_batch_add(struct replay_batch *batch, struct sl_slice line, size_t number,
                     struct failure *reterr)
{
    struct failure failure;
    bool must_send;
    int r;

    r = take_line(batch, line, number, &failure);
    if (r == -EAGAIN) {
        r = replay_batch_send(batch, reterr);
        if (r < 0)
            return r;
        r = take_line(batch, line, number, &failure);
    }
    if (r == -ENOMEM)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (r < 0)
        batch->refuse(batch->context, number, failure.text);
    must_send = r == 0 && (batch->errand_count == BATCH_MAX ||
                           batch->errands[batch->errand_count - 1].login.data);
    return must_send ? replay_batch_send(batch, reterr) : 0;
}

/* ---- the batch ---- */

struct replay_batch *replay_batch_new(struct database *database, replay_refuse_fn refuse,
                                      void *context)
{
    struct replay_batch *batch = mem_zalloc(sizeof(*batch));

    if (!batch)
        return NULL;
    batch->database = database;
    batch->refuse = refuse;
    batch->context = context;
    batch->names = replay_names_new(POSTS_MAX);
    if (!batch->names) {
        replay_batch_free(batch);
        return NULL;
    }
    return batch;
}

void replay_batch_free(struct replay_batch *batch)
{
    if (!batch)
        return;
    forget_errands(batch);
    for (size_t i = 0; i < BATCH_MAX; i++)
        sl_call_done(&batch->calls[i]);
    replay_names_free(batch->names);
    mem_free(batch);
}

bool replay_batch_is_empty(const struct replay_batch *batch)
{
    return batch->errand_count == 0;
}

const struct replay_counts *replay_batch_counts(const struct replay_batch *batch)
{
    return &batch->counts;
}
