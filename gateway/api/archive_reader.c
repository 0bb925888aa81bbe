#include "gateway/api/archive_reader.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"

struct archive_reader {
    uv_loop_t *loop;
    char *url;
    struct list questions; /* under way */
    bool is_freed;         /* the last of them takes it along */

    uv_mutex_t mutex;
    struct sl_archive *archive; /* behind the mutex; NULL: not open */
};

struct question {
    uv_work_t work;
    struct archive_reader *reader;
    struct list_node node;
    archive_read_fn done; /* NULL: has been called */
    void *owner;

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

static void work(uv_work_t *work)
{
    struct question *question = work->data;
    struct archive_reader *reader = question->reader;
    int r = 0;

    uv_mutex_lock(&reader->mutex);
    if (!reader->archive)
        r = sl_archive_open(reader->url, NULL, SL_ARCHIVE_READ, &reader->archive,
                            &question->failure);
    if (r == 0)
        r = read_page(reader->archive, question);
    if (r < 0) {
        sl_archive_close(reader->archive);
        reader->archive = NULL;
    }
    uv_mutex_unlock(&reader->mutex);
    question->r = r;
}

/* ---- on the loop ---- */

static void reader_free(struct archive_reader *reader)
{
    sl_archive_close(reader->archive);
    uv_mutex_destroy(&reader->mutex);
    mem_free(reader->url);
    mem_free(reader);
}

static void after_work(uv_work_t *work, int status)
{
    struct question *question = work->data;
    struct archive_reader *reader = question->reader;

    (void)status; /* nothing is cancelled */
    list_remove(&reader->questions, &question->node);
    if (question->done)
        question->done(question->owner, question->r, &question->page, &question->failure);
    question_free(question);
    if (reader->is_freed && reader->questions.count == 0)
        reader_free(reader);
}

static int ask(struct archive_reader *reader, struct question *question, archive_read_fn done,
               void *owner)
{
    question->work.data = question;
    question->reader = reader;
    question->done = done;
    question->owner = owner;
    uv_queue_work(reader->loop, &question->work, work, after_work);
    list_append(&reader->questions, &question->node);
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

struct archive_reader *archive_reader_new(uv_loop_t *loop, const char *url)
{
    struct archive_reader *reader = mem_zalloc(sizeof(*reader));

    if (!reader)
        return NULL;
    reader->loop = loop;
    reader->url = mem_strndup(url, strlen(url));
    if (!reader->url || uv_mutex_init(&reader->mutex) < 0) {
        mem_free(reader->url);
        mem_free(reader);
        return NULL;
    }
    list_init(&reader->questions);
    return reader;
}

void archive_reader_free(struct archive_reader *reader)
{
    const struct failure failure = {"the server ends"};

    if (!reader)
        return;
    reader->is_freed = true;
    if (reader->questions.count == 0) {
        reader_free(reader);
        return;
    }
    LIST_EACH(&reader->questions, node)
    {
        struct question *question = LIST_OWNER(node, struct question, node);
        archive_read_fn done = question->done;

        question->done = NULL;
        if (done)
            done(question->owner, -ECANCELED, NULL, &failure);
    }
}
