/* archive_reader.c - a queue of questions, of which one is on a thread of libuv's pool.
 *
 * While it is there the archive is that thread's; the loop touches it only when none is asked. At
 * most 256 wait; a further one is refused, and one that has waited longer than the reader's
 * patience is told so when its turn comes. A question that is on a thread cannot be taken back:
 * freed meanwhile, the reader lives until it returns, and whoever asked is told at once. */
#include "gateway/api/archive_reader.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"

enum { WAITING_MAX = 256 }; /* so that a slow archive does not use up the API's requests */

struct archive_reader {
    uv_loop_t *loop;
    char *url;
    uint64_t patience_ms;
    struct list waiting;    /* questions, oldest first */
    struct question *asked; /* the one that is on a thread; NULL: none */
    bool is_freed;          /* the one that is asked takes it along */

    struct sl_archive *archive; /* whose thread's while one is asked, else ours; NULL: not open */
};

struct question {
    uv_work_t work;
    struct archive_reader *reader;
    struct list_node node;
    archive_read_fn done; /* NULL: has been called */
    void *owner;
    uint64_t asked_ms;

    uint64_t user, before; /* of a list */
    size_t limit;          /* 0: it is no list */
    uint64_t *posts;       /* to be found */
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

/* An archive that was replaced since the last question is opened anew. */
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

/* NULL: nobody waits. */
static struct question *first_waiting(const struct archive_reader *reader)
{
    struct list_node *node = list_first(&reader->waiting);

    return node ? LIST_OWNER(node, struct question, node) : NULL;
}

/* One that waits is told why it was not asked. */
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

    return first && uv_now(reader->loop) - first->asked_ms >= reader->patience_ms;
}

static void after_work(uv_work_t *work, int status)
{
    static const struct failure late = {"the archive is too slow"};
    struct question *question = work->data;
    struct archive_reader *reader = question->reader;
    size_t waiting = reader->waiting.count;

    (void)status; /* nothing is cancelled */
    reader->asked = NULL;
    if (question->done)
        question->done(question->owner, question->r, &question->page, &question->failure);
    /* An archive that is away is not asked by everybody who has come meanwhile. */
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

/* ---- life ---- */

struct archive_reader *archive_reader_new(uv_loop_t *loop, const char *url, uint64_t patience_ms)
{
    struct archive_reader *reader = mem_zalloc(sizeof(*reader));

    if (!reader)
        return NULL;
    reader->loop = loop;
    reader->patience_ms = patience_ms;
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
