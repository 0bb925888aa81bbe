/* replay.c - events of a file, done again by users of this database.
 *
 * Lines are gathered in batches, and a batch goes to Redis as pipelines: first whoever is new is
 * made a user, then all events in their order. A line that refers to a post of its own batch ends
 * the batch, for that post's new id must be known first. With a rate a batch holds what is due. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/database.h"
#include "cli/line_reader.h"
#include "cli/replay_event.h"
#include "cli/replay_names.h"
#include "src/follows.h"
#include "src/id.h"
#include "src/posts.h"

enum {
    BATCH_MAX = 256,
    LINE_MAX_SIZE = 1024 * 1024,
    POSTS_MAX = 1000000,
    COMPLAINTS_MAX = 20,
    PROGRESS_MS = 200,
};

/* One line on its way to Redis. */
struct errand {
    size_t line;
    struct replay_event event;
    struct person *user, *target;
    struct known_post *post; /* what it posts or deletes; NULL: a post without an id, no post */
    char post_ids[3][SL_ID_TEXT_SIZE], user_ids[3][SL_ID_TEXT_SIZE]; /* of references */
};

struct replay {
    const struct cli *cli;
    struct database database;
    struct line_reader *reader;
    struct replay_names *names;
    struct errand *errands; /* BATCH_MAX */
    size_t errand_count;
    struct sl_call calls[BATCH_MAX]; /* the pipeline, and its replies */
    redisReply *replies[BATCH_MAX];

    double rate; /* events a second; 0: as fast as it goes */
    bool is_loop;
    uint64_t start_ms, progress_ms; /* monotonic */
    uint64_t taken;                 /* events put into batches */
    uint64_t done[REPLAY_KIND_COUNT], refused, users_made;
    bool shows_progress;
};

static volatile sig_atomic_t stopping; /* set by SIGINT and SIGTERM */

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- what the terminal sees ---- */

static uint64_t done_in_all(const struct replay *replay)
{
    uint64_t sum = 0;

    for (int kind = 0; kind < REPLAY_KIND_COUNT; kind++)
        sum += replay->done[kind];
    return sum;
}

static void show_progress(struct replay *replay)
{
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t passed_ms = now_ms - replay->start_ms;

    if (!replay->shows_progress || now_ms - replay->progress_ms < PROGRESS_MS || passed_ms == 0)
        return;
    replay->progress_ms = now_ms;
    fprintf(stderr, "\r%" PRIu64 " events, %" PRIu64 " a second, %" PRIu64 " refused \033[K",
            done_in_all(replay), done_in_all(replay) * 1000 / passed_ms, replay->refused);
}

static void end_progress(const struct replay *replay)
{
    if (replay->shows_progress)
        fputs("\r\033[K", stderr);
}

static void refuse(struct replay *replay, size_t line, const char *why)
{
    replay->refused++;
    if (replay->refused > COMPLAINTS_MAX)
        return;
    end_progress(replay);
    cli_failed_with(replay->cli, "line %zu: %s", line, why);
    if (replay->refused == COMPLAINTS_MAX)
        cli_failed_with(replay->cli, "further refusals are counted only");
}

static void print_summary(const struct replay *replay)
{
    printf("%" PRIu64 " posts, %" PRIu64 " deletions, %" PRIu64 " follows, %" PRIu64
           " unfollows; %" PRIu64 " users made, %" PRIu64 " lines refused; %.1f s\n",
           replay->done[REPLAY_POST], replay->done[REPLAY_DELETE], replay->done[REPLAY_FOLLOW],
           replay->done[REPLAY_UNFOLLOW], replay->users_made, replay->refused,
           (double)(clock_monotonic_ms() - replay->start_ms) / 1000);
}

/* ---- people ---- */

/* Collects those of the batch whom the database does not know yet, each once. */
static size_t collect_strangers(const struct replay *replay, struct person **ret_strangers)
{
    size_t count = 0;

    for (size_t i = 0; i < replay->errand_count; i++) {
        struct person *both[] = {replay->errands[i].user, replay->errands[i].target};

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

static void drop_replies(struct replay *replay, size_t count)
{
    for (size_t i = 0; i < count; i++)
        freeReplyObject(replay->replies[i]);
}

/* Builds one call a person with `build`, sends them, reads each answer with `read`. A person whom
 * either refuses has a complaint from then on. */
static int for_people(struct replay *replay, struct person **people, size_t count,
                      int (*build)(struct replay *replay, struct sl_call *call,
                                   const struct person *person, struct failure *reterr),
                      int (*read)(struct replay *replay, const redisReply *reply,
                                  struct person *person, struct failure *reterr),
                      struct failure *reterr)
{
    struct person *asked[BATCH_MAX];
    struct failure failure;
    size_t asked_count = 0;
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        if (build(replay, &replay->calls[asked_count], people[i], &failure) == 0)
            asked[asked_count++] = people[i];
        else
            r = complain(people[i], &failure, reterr);
    }
    if (r == 0)
        r = sl_redis_link_run_many(replay->database.link, replay->calls, asked_count,
                                   replay->replies, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < asked_count && r == 0; i++) {
        if (read(replay, replay->replies[i], asked[i], &failure) < 0)
            r = complain(asked[i], &failure, reterr);
    }
    drop_replies(replay, asked_count);
    return r;
}

static int build_create(struct replay *replay, struct sl_call *call, const struct person *person,
                        struct failure *reterr)
{
    int r = sl_user_create_call(call, &replay->database.meta, SL_SLICE_NONE,
                                sl_slice_str(person->login), sl_slice_str(person->name), reterr);

    call->is_repeatable = true; /* the second try finds the login taken, which is as good */
    return r;
}

/* A login that is taken is no failure: its owner is looked up next. */
static int read_create(struct replay *replay, const redisReply *reply, struct person *person,
                       struct failure *reterr)
{
    struct sl_written written;
    int r = sl_write_reply(reply, &written, reterr);

    if (r == 0) {
        person->id = written.id;
        replay->users_made++;
    }
    return r == -EEXIST ? 0 : r;
}

static int build_find(struct replay *replay, struct sl_call *call, const struct person *person,
                      struct failure *reterr)
{
    const struct sl_user_ref ref = sl_user_by_login(sl_slice_str(person->login));

    return sl_user_find_call(call, &replay->database.meta, &ref, reterr);
}

static int read_find(struct replay *replay, const redisReply *reply, struct person *person,
                     struct failure *reterr)
{
    struct sl_user user;
    int r = sl_user_find_reply(reply, &user, reterr);

    (void)replay;
    if (r == 0)
        person->id = user.id;
    return r;
}

static int meet_strangers(struct replay *replay, struct failure *reterr)
{
    struct person *strangers[2 * BATCH_MAX];
    size_t count = collect_strangers(replay, strangers);
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i += BATCH_MAX)
        r = for_people(replay, strangers + i, count - i < BATCH_MAX ? count - i : BATCH_MAX,
                       build_create, read_create, reterr);
    count = collect_strangers(replay, strangers);
    for (size_t i = 0; i < count && r == 0; i += BATCH_MAX)
        r = for_people(replay, strangers + i, count - i < BATCH_MAX ? count - i : BATCH_MAX,
                       build_find, read_find, reterr);
    return r;
}

/* ---- a batch ---- */

/* A post and a user that we know get their ids here; others keep those of the file. Is the post
 * known? */
static bool translate(const struct replay *replay, struct errand *errand, size_t number,
                      struct sl_post_reference *reference)
{
    const struct known_post *post = replay_post(replay->names, reference->post);
    bool is_known = post && post->id;
    const struct person *user =
        is_known ? post->author : replay_person_by_id(replay->names, reference->user);

    if (is_known)
        reference->post = sl_slice_str(sl_id_print(post->id, errand->post_ids[number]));
    if (user && user->id) {
        reference->user = sl_slice_str(sl_id_print(user->id, errand->user_ids[number]));
        reference->login = sl_slice_str(user->login);
    }
    if (!reference->user.data) /* nobody could say whose post that is */
        reference->post = SL_SLICE_NONE;
    return is_known;
}

static int build_post(const struct replay *replay, struct errand *errand, struct sl_call *call,
                      struct failure *reterr)
{
    const struct sl_user_ref author = sl_user_by_id(errand->user->id);
    struct sl_post *post = &errand->event.post;

    post->is_comment = translate(replay, errand, 0, &post->reply_to);
    translate(replay, errand, 1, &post->repost_of);
    translate(replay, errand, 2, &post->quote_of);
    return sl_post_call(call, &replay->database.meta, SL_SLICE_NONE, &author, post, reterr);
}

static int build_follow(const struct replay *replay, struct errand *errand, struct sl_call *call,
                        struct failure *reterr)
{
    const struct sl_user_ref user = sl_user_by_id(errand->user->id);
    const struct person *person = errand->target;
    const struct sl_user target = {person->id, sl_slice_str(person->login),
                                   sl_slice_str(person->name ? person->name : person->login)};

    return errand->event.kind == REPLAY_FOLLOW
               ? sl_follow_call(call, &replay->database.meta, SL_SLICE_NONE, &user, &target, reterr)
               : sl_unfollow_call(call, &replay->database.meta, SL_SLICE_NONE, &user, &target,
                                  reterr);
}

static int build_delete(const struct replay *replay, const struct errand *errand,
                        struct sl_call *call, struct failure *reterr)
{
    const struct sl_user_ref author = sl_user_by_id(errand->user->id);

    return sl_delete_call(call, &replay->database.meta, SL_SLICE_NONE, &author, errand->post->id,
                          reterr);
}

static int build(const struct replay *replay, struct errand *errand, struct sl_call *call,
                 struct failure *reterr)
{
    if (errand->user->id == 0)
        return failure_set(reterr, -EINVAL, "%s", errand->user->complaint);
    if (errand->target && errand->target->id == 0)
        return failure_set(reterr, -EINVAL, "%s", errand->target->complaint);
    switch (errand->event.kind) {
    case REPLAY_POST:
        return build_post(replay, errand, call, reterr);
    case REPLAY_DELETE:
        return build_delete(replay, errand, call, reterr);
    default:
        return build_follow(replay, errand, call, reterr);
    }
}

static void read_answer(struct replay *replay, const redisReply *reply, struct errand *errand)
{
    struct sl_written written;
    struct failure failure;

    if (sl_write_reply(reply, &written, &failure) < 0) {
        refuse(replay, errand->line, failure.text);
        return;
    }
    replay->done[errand->event.kind]++;
    if (errand->event.kind == REPLAY_POST && errand->post)
        errand->post->id = written.id;
}

static int run_errands(struct replay *replay, struct failure *reterr)
{
    struct errand *sent[BATCH_MAX];
    struct failure failure;
    size_t count = 0;
    int r;

    for (size_t i = 0; i < replay->errand_count; i++) {
        struct errand *errand = &replay->errands[i];

        if (build(replay, errand, &replay->calls[count], &failure) == 0)
            sent[count++] = errand;
        else
            refuse(replay, errand->line, failure.text);
    }
    r = sl_redis_link_run_many(replay->database.link, replay->calls, count, replay->replies,
                               reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        read_answer(replay, replay->replies[i], sent[i]);
    drop_replies(replay, count);
    return 0;
}

/* Sends what has been gathered. */
static int flush(struct replay *replay, struct failure *reterr)
{
    int r = 0;

    if (replay->errand_count > 0) {
        r = meet_strangers(replay, reterr);
        if (r == 0)
            r = run_errands(replay, reterr);
    }
    for (size_t i = 0; i < replay->errand_count; i++)
        replay_event_done(&replay->errands[i].event);
    replay->errand_count = 0;
    show_progress(replay);
    return r;
}

/* ---- lines ---- */

static bool is_on_its_way(const struct replay *replay, struct sl_slice file_id)
{
    const struct known_post *post = replay_post(replay->names, file_id);

    return post && post->id == 0;
}

/* The event speaks of a post whose new id is not known before the batch is through. */
static bool must_flush_before(const struct replay *replay, const struct replay_event *event)
{
    return is_on_its_way(replay, event->post_id) ||
           is_on_its_way(replay, event->post.reply_to.post) ||
           is_on_its_way(replay, event->post.repost_of.post) ||
           is_on_its_way(replay, event->post.quote_of.post);
}

/* Finds out who and what the errand is about. 0; -ENOENT: a deletion of nothing known; -ENOMEM. */
static int prepare(struct replay *replay, struct errand *errand, struct failure *reterr)
{
    const struct replay_event *event = &errand->event;

    if (event->kind == REPLAY_DELETE) {
        errand->post = replay_post(replay->names, event->post_id);
        if (!errand->post || errand->post->id == 0)
            return failure_set(reterr, -ENOENT, "deletes a post that this file did not make");
        errand->user = errand->post->author;
        return 0;
    }
    errand->user = replay_person(replay->names, &event->user);
    if (event->kind == REPLAY_POST && event->post_id.data && errand->user)
        errand->post = replay_post_add(replay->names, event->post_id, errand->user);
    if (event->kind != REPLAY_POST)
        errand->target = replay_person(replay->names, &event->target);
    if (!errand->user || (event->kind == REPLAY_POST && event->post_id.data && !errand->post) ||
        (event->kind != REPLAY_POST && !errand->target))
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
}

/* Puts one line into the batch. 0, also when the line is refused; a negative errno. */
static int take_line(struct replay *replay, struct sl_slice line, struct failure *reterr)
{
    struct errand *errand = &replay->errands[replay->errand_count];
    struct failure failure;
    int r;

    *errand = (struct errand){.line = line_reader_number(replay->reader)};
    if (line.size == 0)
        return 0;
    r = replay_event_read(line, &errand->event, &failure);
    if (r == 0 && must_flush_before(replay, &errand->event)) {
        replay_event_done(&errand->event);
        r = flush(replay, reterr);
        if (r < 0)
            return r;
        errand = &replay->errands[0];
        *errand = (struct errand){.line = line_reader_number(replay->reader)};
        r = replay_event_read(line, &errand->event, &failure);
    }
    if (r == 0) {
        r = prepare(replay, errand, &failure);
        if (r < 0)
            replay_event_done(&errand->event);
    }
    if (r == -ENOMEM)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (r < 0) {
        refuse(replay, errand->line, failure.text);
        return 0;
    }
    replay->errand_count++;
    replay->taken++;
    return 0;
}

static void sleep_ms(uint64_t ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL); /* a signal may end it early, which is as well */
}

/* With a rate: sends what is due and waits for the next event to become due. */
static int keep_pace(struct replay *replay, struct failure *reterr)
{
    uint64_t due_ms, now_ms;
    int r;

    if (replay->rate == 0)
        return 0;
    due_ms = replay->start_ms + (uint64_t)((double)replay->taken * 1000 / replay->rate);
    now_ms = clock_monotonic_ms();
    if (now_ms >= due_ms)
        return 0;
    r = flush(replay, reterr);
    while (r == 0 && !stopping && (now_ms = clock_monotonic_ms()) < due_ms) {
        sleep_ms(due_ms - now_ms < PROGRESS_MS ? due_ms - now_ms : PROGRESS_MS);
        show_progress(replay);
    }
    return r;
}

/* One pass over the file. 0; a negative errno. */
static int run_pass(struct replay *replay, struct failure *reterr)
{
    enum line_status status = LINE_READ;
    struct sl_slice line;
    int r = 0;

    while (r == 0 && status != LINE_END && !stopping) {
        r = keep_pace(replay, reterr);
        if (r < 0 || stopping)
            break;
        status = line_reader_next(replay->reader, replay->errand_count == 0, &line);
        switch (status) {
        case LINE_READ:
            r = take_line(replay, line, reterr);
            break;
        case LINE_TOO_LONG:
            refuse(replay, line_reader_number(replay->reader), "longer than a megabyte");
            break;
        case LINE_FAILED:
            return failure_set(reterr, -errno, "cannot read: %s", strerror(errno));
        default:
            break;
        }
        if (r == 0 && (replay->errand_count == BATCH_MAX || status != LINE_READ))
            r = flush(replay, reterr);
    }
    return r == 0 ? flush(replay, reterr) : r;
}

static int run_all(struct replay *replay, struct failure *reterr)
{
    uint64_t before;
    int r;

    do {
        before = replay->taken;
        r = run_pass(replay, reterr);
        if (r == 0 && replay->is_loop)
            r = line_reader_rewind(replay->reader);
    } while (r == 0 && replay->is_loop && !stopping && replay->taken > before);
    return r;
}

/* ---- the command ---- */

static void replay_done(struct replay *replay)
{
    for (size_t i = 0; i < replay->errand_count; i++)
        replay_event_done(&replay->errands[i].event);
    for (size_t i = 0; i < BATCH_MAX; i++)
        sl_call_done(&replay->calls[i]);
    mem_free(replay->errands);
    replay_names_free(replay->names);
    line_reader_free(replay->reader);
    database_close(&replay->database);
}

static int replay_init(struct replay *replay, int fd)
{
    replay->reader = line_reader_new(fd, LINE_MAX_SIZE);
    replay->names = replay_names_new(POSTS_MAX);
    replay->errands = mem_zalloc(BATCH_MAX * sizeof(*replay->errands));
    if (!replay->reader || !replay->names || !replay->errands)
        return cli_failed_with(replay->cli, "out of memory");
    replay->shows_progress = isatty(STDERR_FILENO);
    return database_open(&replay->database, replay->cli, 1);
}

static int run_replay(struct replay *replay, int fd)
{
    struct failure failure;
    int status, r;

    status = replay_init(replay, fd);
    if (status != CLI_GOOD)
        return status;
    listen_to_signals();
    replay->start_ms = replay->progress_ms = clock_monotonic_ms();
    r = run_all(replay, &failure);
    end_progress(replay);
    if (r < 0)
        status = cli_failed_with(replay->cli, "before line %zu: %s",
                                 line_reader_number(replay->reader) + 1, failure.text);
    else if (stopping && !replay->is_loop)
        status = cli_failed_with(replay->cli, "interrupted after line %zu",
                                 line_reader_number(replay->reader));
    else if (replay->refused > 0)
        status = CLI_FAILED;
    print_summary(replay);
    return status == CLI_GOOD ? cli_done(replay->cli) : status;
}

static double read_rate(const struct cli *cli, const char *text)
{
    char *end;
    double rate = strtod(text, &end);

    if (end == text || *end || !(rate > 0 && rate <= 1e9))
        cli_usage(cli, "--rate is a number of events a second, not '%s'", text);
    return rate;
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {
        {"rate", required_argument, NULL, 'r'},
        {"loop", no_argument, NULL, 'l'},
        {0},
    };
    static struct replay replay; /* large */
    int option, status, fd = STDIN_FILENO;

    replay.cli = cli;
    while ((option = cli_option(cli, argc, argv, options)) >= 0) {
        if (option == 'r')
            replay.rate = read_rate(cli, optarg);
        else
            replay.is_loop = true;
    }
    if (argc - optind != 1)
        cli_usage(cli, "one FILE is needed");
    if (strcmp(argv[optind], "-") != 0)
        fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
    else if (replay.is_loop)
        cli_usage(cli, "standard input cannot be read in a loop");
    if (fd < 0)
        return cli_failed_with(cli, "cannot open '%s': %s", argv[optind], strerror(errno));
    status = run_replay(&replay, fd);
    replay_done(&replay);
    if (fd != STDIN_FILENO)
        close(fd);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .arguments = "FILE [--rate PER_SECOND] [--loop]",
    .summary = "do the events of a file again: posts, deletions, follows",
    .help = "FILE               one JSON event a line; - is standard input\n"
            "--rate PER_SECOND  how many events a second (default: as fast as it goes)\n"
            "--loop             begin again at the end, until Ctrl-C\n"
            "\n"
            "Users are made on demand under the login that the file gives them, or their id\n"
            "where it gives none. Posts get new ids; deletions and references follow them.\n"
            "Lines that are refused are reported; then the exit status is 1.\n",
    .run = run,
};
