/* key_board.c - a row for each source, found by its id: there are few.
 *
 * Only the fetching process writes ids and times. When the settings are reloaded, it and the
 * workers may know different sources for a moment; a source that is not found is ignored. */
#include "gateway/front/key_board.h"

#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/close_fd.h"
#include "base/shared_memory.h"

struct row {
    _Atomic uint64_t id; /* 0: none */
    _Atomic uint64_t good_ms;
    atomic_bool is_wanted;
};

struct key_board {
    int event_fd; /* the same in all processes */
    struct row rows[KEY_SOURCES_MAX];
};

struct key_board *key_board_new(void)
{
    struct key_board *board = shared_memory_new(sizeof(*board));

    if (!board)
        return NULL;
    board->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (board->event_fd >= 0)
        return board;
    shared_memory_free(board, sizeof(*board));
    return NULL;
}

void key_board_free(struct key_board *board)
{
    if (!board)
        return;
    close_fd(&board->event_fd);
    shared_memory_free(board, sizeof(*board));
}

static int find(const struct key_board *board, uint64_t id)
{
    for (int i = 0; i < KEY_SOURCES_MAX; i++) {
        if (atomic_load(&board->rows[i].id) == id)
            return i;
    }
    return -1;
}

void key_board_want(struct key_board *board, uint64_t source_id)
{
    const uint64_t one = 1;
    int at = find(board, source_id);

    if (at < 0 || atomic_exchange(&board->rows[at].is_wanted, true))
        return;
    if (write(board->event_fd, &one, sizeof(one)) < 0)
        return; /* it is already readable */
}

uint64_t key_board_good_ms(const struct key_board *board, uint64_t source_id)
{
    int at = find(board, source_id);

    return at < 0 ? 0 : atomic_load(&board->rows[at].good_ms);
}

void key_board_begin(struct key_board *board, const struct key_sources *sources)
{
    uint64_t good_ms[KEY_SOURCES_MAX] = {0};

    for (unsigned i = 0; i < sources->count; i++)
        good_ms[i] = key_board_good_ms(board, sources->items[i].id);
    for (unsigned i = 0; i < KEY_SOURCES_MAX; i++) {
        struct row *row = &board->rows[i];

        atomic_store(&row->id, 0);
        atomic_store(&row->is_wanted, false);
        atomic_store(&row->good_ms, good_ms[i]);
        if (i < sources->count)
            atomic_store(&row->id, sources->items[i].id);
    }
}

int key_board_fd(const struct key_board *board)
{
    return board->event_fd;
}

void key_board_heard(struct key_board *board)
{
    uint64_t count;

    if (read(board->event_fd, &count, sizeof(count)) < 0)
        return; /* nothing was requested */
}

bool key_board_is_wanted(const struct key_board *board, unsigned source)
{
    return atomic_load(&board->rows[source].is_wanted);
}

void key_board_begun(struct key_board *board, unsigned source)
{
    atomic_store(&board->rows[source].is_wanted, false);
}

void key_board_set_good(struct key_board *board, unsigned source, uint64_t now_ms)
{
    atomic_store(&board->rows[source].good_ms, now_ms);
}
