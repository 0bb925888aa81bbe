/* archive_reader.c - a queue of reads, of which one is on a thread of libuv's pool.
 *
 * During a read the archive belongs to that thread; otherwise to the loop. At most 256 reads wait;
 * more are refused, and one that has waited longer than the reader's limit fails when its turn
 * comes. A read on the thread cannot be cancelled: if the reader is freed meanwhile, it exists
 * until the read returns, but the callers are told at once. */
#include "gateway/api/archive_reader.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"

enum { WAITING_MAX = 256 }; /* so that a slow archive does not use up the API's requests */

struct archive_reader {
    uv_loop_t *loop;
    char *url;
    uint64_t timeout_ms;
    struct list waiting;    /* reads, oldest first */
    struct question *asked; /* on a thread; NULL: none */
    bool is_freed;          /* the current read frees it at its end */

    struct sl_archive *archive; /* belongs to the thread during a read, else to the loop; NULL: not
                                   open */
};

struct question {
    uv_work_t work;
    struct archive_reader *reader;
    struct list_node node;
    archive_read_fn done; /* NULL: already called */
    void *owner;
    uint64_t asked_ms;

    uint64_t user, before; /* for a list */
    size_t limit;          /* 0: not a list */
    uint64_t *posts;       /* to find */
    size_t post_count;

    int r;
    struct sl_archive_page page;
    struct failure failure;
};

static void question_free(struct question *question)
{
    sl_archive_page_done(&question->page);
    mem_free(question->posts);
    mem_free(question);
}

/* ---- on a thread of the pool ---- */

static int read_page(struct sl_archive *archive, struct question *question)
{
    if (question->limit > 0)
        return sl_archive_list(archive, question->user, question->before, question->limit,
                               &question->page, &question->failure);
    return sl_archive_find(archive, question->posts, question->post_count, &question->page,
                           &question->failure);
}

static int open_and_read(struct archive_reader *reader, struct question *question)
{
    int r = 0;

    if (!reader->archive)
        r = sl_archive_open(reader->url, NULL, SL_ARCHIVE_READ, &reader->archive,
                            &question->failure);
    if (r == 0)
        r = read_page(reader->archive, question);
    if (r < 0) {
        sl_archive_close(reader->archive);
        reader->archive = NULL;
    }
    return r;
}

/* Reopens an archive that was replaced since the last read. */
static void work(uv_work_t *work)
{
    struct question *question = work->data;

    question->r = open_and_read(question->reader, question);
    if (question->r == -ESTALE)
        question->r = open_and_read(question->reader, question);
}

/* ---- on the loop ---- */

static void reader_free(struct archive_reader *reader)
{
    sl_archive_close(reader->archive);
    mem_free(reader->url);
    mem_free(reader);
}

/* NULL: none waits. */
static struct question *first_waiting(const struct archive_reader *reader)
{
    struct list_node *node = list_first(&reader->waiting);

    return node ? LIST_OWNER(node, struct question, node) : NULL;
}

/* Fails the first waiting read. */
static void refuse_first(struct archive_reader *reader, int r, const struct failure *failure)
{
    struct question *question = first_waiting(reader);

    list_remove(&reader->waiting, &question->node);
    question->done(question->owner, r, &question->page, failure);
    question_free(question);
}

static void after_work(uv_work_t *work, int status);

static void ask_first(struct archive_reader *reader)
{
    struct question *first = first_waiting(reader);

    if (reader->asked || !first)
        return;
    reader->asked = first;
    list_remove(&reader->waiting, &reader->asked->node);
    uv_queue_work(reader->loop, &reader->asked->work, work, after_work);
}

static bool first_is_late(const struct archive_reader *reader)
{
    const struct question *first = first_waiting(reader);

    return first && uv_now(reader->loop) - first->asked_ms >= reader->timeout_ms;
}

static void after_work(uv_work_t *work, int status)
{
    static const struct failure late = {"the archive is too slow"};
    struct question *question = work->data;
    struct archive_reader *reader = question->reader;
    size_t waiting = reader->waiting.count;

    (void)status; /* work is never cancelled */
    reader->asked = NULL;
    if (question->done)
        question->done(question->owner, question->r, &question->page, &question->failure);
    /* If the archive is not available, all reads that wait fail as well. */
    while (question->r == -EAGAIN && waiting-- > 0 && reader->waiting.count > 0)
        refuse_first(reader, -EAGAIN, &question->failure);
    while (first_is_late(reader))
        refuse_first(reader, -EAGAIN, &late);
    question_free(question);
    if (reader->is_freed)
        reader_free(reader);
    else
        ask_first(reader);
}

static int ask(struct archive_reader *reader, struct question *question, archive_read_fn done,
               void *owner)
{
    if (reader->waiting.count == WAITING_MAX) {
        question_free(question);
        return -EAGAIN;
    }
    question->work.data = question;
    question->reader = reader;
    question->done = done;
    question->owner = owner;
    question->asked_ms = uv_now(reader->loop);
    list_append(&reader->waiting, &question->node);
    ask_first(reader);
    return 0;
}

int archive_reader_find(struct archive_reader *reader, const uint64_t *posts, size_t count,
                        archive_read_fn done, void *owner)
{
    struct question *question = mem_zalloc(sizeof(*question));

    if (!question)
        return -ENOMEM;
    question->posts = mem_copy(posts, mem_array_size(count, sizeof(*posts)));
    if (!question->posts) {
        question_free(question);
        return -ENOMEM;
    }
    question->post_count = count;
    return ask(reader, question, done, owner);
}

int archive_reader_list(struct archive_reader *reader, uint64_t user, uint64_t before, size_t limit,
                        archive_read_fn done, void *owner)
{
    struct question *question = mem_zalloc(sizeof(*question));

    if (!question)
        return -ENOMEM;
    question->user = user;
    question->before = before;
    question->limit = limit;
    return ask(reader, question, done, owner);
}

/* ---- creating and freeing ---- */

struct archive_reader *archive_reader_new(uv_loop_t *loop, const char *url, uint64_t timeout_ms)
{
    struct archive_reader *reader = mem_zalloc(sizeof(*reader));

    if (!reader)
        return NULL;
    reader->loop = loop;
    reader->timeout_ms = timeout_ms;
    reader->url = mem_strndup(url, strlen(url));
    if (!reader->url) {
        mem_free(reader);
        return NULL;
    }
    list_init(&reader->waiting);
    return reader;
}

void archive_reader_free(struct archive_reader *reader)
{
    static const struct failure failure = {"the server ends"};

    if (!reader)
        return;
    while (reader->waiting.count > 0)
        refuse_first(reader, -ECANCELED, &failure);
    if (!reader->asked) {
        reader_free(reader);
        return;
    }
    reader->is_freed = true;
    if (reader->asked->done) {
        archive_read_fn done = reader->asked->done;

        reader->asked->done = NULL;
        done(reader->asked->owner, -ECANCELED, NULL, &failure);
    }
}
