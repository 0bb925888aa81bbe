#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stable_hash.h"
#include "gateway/front/admission.h"
#include "tests/support/cmocka_all.h"

static const struct admission_limits no_limits = {.streams = 1000};

static enum admission_verdict enter(struct admission *admission,
                                    const struct admission_limits *limits, unsigned worker,
                                    const char *subject, const char *address,
                                    admission_ticket *ret_ticket)
{
    return admission_enter(admission, limits, worker, sl_slice_str(subject), sl_slice_str(address),
                           ret_ticket);
}

static void test_the_limit_holds_for_all_and_a_leaver_makes_room(void **state)
{
    const struct admission_limits limits = {.streams = 2};
    struct admission *admission = admission_new(8, 2);
    admission_ticket a, b, c;

    (void)state;
    assert_int_equal(enter(admission, &limits, 0, "1", "x", &a), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 1, "1", "x", &b), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "2", "y", &c), ADMISSION_FULL);
    admission_leave(admission, a);
    assert_int_equal(enter(admission, &limits, 0, "2", "y", &c), ADMISSION_GRANTED);
    admission_free(admission);
}

static void test_a_full_list_grants_no_more_whatever_the_limit(void **state)
{
    struct admission *admission = admission_new(1, 1);
    admission_ticket a;

    (void)state;
    assert_int_equal(enter(admission, &no_limits, 0, "1", "x", &a), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &no_limits, 0, "1", "x", &a), ADMISSION_FULL);
    admission_free(admission);
}

static void test_subjects_and_addresses_are_counted_apart(void **state)
{
    const struct admission_limits limits = {.streams = 100, .per_subject = 2, .per_address = 3};
    struct admission *admission = admission_new(100, 1);
    admission_ticket t;

    (void)state;
    assert_int_equal(enter(admission, &limits, 0, "ada", "10.0.0.1", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "ada", "10.0.0.1", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "ada", "10.0.0.2", &t), ADMISSION_SUBJECT_FULL);
    assert_int_equal(enter(admission, &limits, 0, "bob", "10.0.0.1", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "cleo", "10.0.0.1", &t), ADMISSION_ADDRESS_FULL);
    assert_int_equal(enter(admission, &limits, 0, "", "10.0.0.2", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "", "", &t), ADMISSION_GRANTED);
    admission_free(admission);
}

struct seen {
    unsigned count;
    admission_ticket ticket;
};

static void note(void *owner, admission_ticket ticket)
{
    struct seen *seen = owner;

    seen->count++;
    seen->ticket = ticket;
}

static bool is_readable(int fd)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    return poll(&pollfd, 1, 0) == 1;
}

static void test_the_oldest_of_the_subject_is_replaced_in_its_own_worker(void **state)
{
    const struct admission_limits limits = {.streams = 100, .per_subject = 2, .replace = true};
    struct admission *admission = admission_new(100, 2);
    admission_ticket first, second, third;
    struct seen seen = {0};

    (void)state;
    assert_int_equal(enter(admission, &limits, 1, "ada", "", &first), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "ada", "", &second), ADMISSION_GRANTED);
    assert_false(is_readable(admission_wake_fd(admission, 1)));
    assert_int_equal(enter(admission, &limits, 0, "ada", "", &third), ADMISSION_GRANTED);
    assert_true(is_readable(admission_wake_fd(admission, 1)));
    assert_false(is_readable(admission_wake_fd(admission, 0)));
    admission_take_replaced(admission, 1, note, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.ticket, first);
    assert_false(is_readable(admission_wake_fd(admission, 1)));
    admission_free(admission);
}

static void test_streams_of_a_dead_worker_are_forgotten(void **state)
{
    const struct admission_limits limits = {.streams = 2};
    struct admission *admission = admission_new(10, 2);
    admission_ticket t;

    (void)state;
    assert_int_equal(enter(admission, &limits, 0, "a", "x", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 1, "b", "y", &t), ADMISSION_GRANTED);
    admission_forget_worker(admission, 1);
    assert_int_equal(enter(admission, &limits, 0, "c", "z", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &limits, 0, "d", "z", &t), ADMISSION_FULL);
    admission_free(admission);
}

/* Processes enter and leave at random and are killed meanwhile, again and again: the list must stay
 * usable and end up empty. */
static void test_the_list_survives_workers_killed_at_any_moment(void **state)
{
    enum { WORKERS = 3, ROUNDS = 40 };
    const struct admission_limits limits = {.streams = 64, .per_subject = 4, .replace = true};
    struct admission *admission = admission_new(64, WORKERS);
    admission_ticket t;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[WORKERS];
        int pipes[2];
        char byte;

        assert_int_equal(pipe(pipes), 0);
        for (unsigned worker = 0; worker < WORKERS; worker++) {
            children[worker] = fork();
            assert_true(children[worker] >= 0);
            if (children[worker] == 0) {
                admission_ticket mine[8];
                unsigned count = 0;

                for (unsigned n = 0;; n++) {
                    char subject[2] = {(char)('a' + n % 5), '\0'};

                    if (count < 8 && enter(admission, &limits, worker, subject, "x",
                                           &mine[count]) == ADMISSION_GRANTED)
                        count++;
                    else if (count > 0)
                        admission_leave(admission, mine[--count]);
                    if (n == 50 && write(pipes[1], "x", 1) != 1)
                        _exit(1);
                }
            }
        }
        for (unsigned worker = 0; worker < WORKERS; worker++)
            assert_int_equal(read(pipes[0], &byte, 1), 1);
        for (unsigned worker = 0; worker < WORKERS; worker++) {
            kill(children[worker], SIGKILL);
            assert_int_equal(waitpid(children[worker], NULL, 0), children[worker]);
            admission_forget_worker(admission, worker);
        }
        close(pipes[0]);
        close(pipes[1]);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(enter(admission, &no_limits, 0, "", "", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &no_limits, 0, "", "", &t), ADMISSION_FULL);
    admission_free(admission);
}

/* --- concurrent workers ----------------------------------------------------------------------- */

enum { THREADS = 4, STREAMS = 32, TURNS = 4000 };

struct worker {
    struct admission *admission;
    pthread_t thread;
    unsigned number;
    bool is_held[STREAMS];
    unsigned held, replaced, strangers;
};

static void on_replaced(void *owner, admission_ticket ticket)
{
    struct worker *worker = owner;

    if (ticket >= STREAMS || !worker->is_held[ticket]) {
        worker->strangers++;
        return;
    }
    worker->replaced++;
    worker->held--;
    worker->is_held[ticket] = false;
    admission_leave(worker->admission, ticket);
}

static void leave_one(struct worker *worker, uint64_t random)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        admission_ticket ticket = (admission_ticket)((random + i) % STREAMS);

        if (worker->is_held[ticket]) {
            worker->held--;
            worker->is_held[ticket] = false;
            admission_leave(worker->admission, ticket);
            return;
        }
    }
}

static void *work(void *owner)
{
    const struct admission_limits limits = {.streams = STREAMS, .per_subject = 3, .replace = true};
    struct worker *worker = owner;

    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t random = stable_hash((uint64_t)worker->number << 32 | turn);
        char subject[2] = {(char)('a' + random % 7), '\0'};
        admission_ticket ticket;

        if (random >> 8 & 1) {
            leave_one(worker, random >> 16);
        } else if (enter(worker->admission, &limits, worker->number, subject, "x", &ticket) ==
                   ADMISSION_GRANTED) {
            worker->strangers += worker->is_held[ticket];
            worker->is_held[ticket] = true;
            worker->held++;
        }
        admission_take_replaced(worker->admission, worker->number, on_replaced, worker);
    }
    while (worker->held > 0)
        leave_one(worker, 0);
    return NULL;
}

/* Threads, for the sake of ThreadSanitizer: to the list they are the same as processes. */
static void test_workers_are_told_of_their_own_streams_while_others_come_and_go(void **state)
{
    struct admission *admission = admission_new(STREAMS, THREADS);
    struct worker workers[THREADS] = {0};
    admission_ticket t;

    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].admission = admission;
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].strangers, 0);
        assert_true(workers[i].replaced > 0);
    }
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(enter(admission, &no_limits, 0, "", "", &t), ADMISSION_GRANTED);
    assert_int_equal(enter(admission, &no_limits, 0, "", "", &t), ADMISSION_FULL);
    admission_free(admission);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_limit_holds_for_all_and_a_leaver_makes_room),
        cmocka_unit_test(test_a_full_list_grants_no_more_whatever_the_limit),
        cmocka_unit_test(test_subjects_and_addresses_are_counted_apart),
        cmocka_unit_test(test_the_oldest_of_the_subject_is_replaced_in_its_own_worker),
        cmocka_unit_test(test_streams_of_a_dead_worker_are_forgotten),
        cmocka_unit_test(test_the_list_survives_workers_killed_at_any_moment),
        cmocka_unit_test(test_workers_are_told_of_their_own_streams_while_others_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
