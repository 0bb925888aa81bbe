/* slow_board.c - a list for each worker, protected by a sequence lock.
 *
 * A list is kept sorted by insertion, because it is short. The memory is fixed at creation: about
 * 2.7 kB for each worker. */
#include "gateway/metrics/slow_board.h"

#include <assert.h>
#include <string.h>

#include "base/sequence_lock.h"
#include "base/shared_memory.h"

enum { READ_TRIES = 8 };

struct slow_slot {
    _Alignas(64) struct sequence_lock lock;
    struct slow_list list;
};

struct slow_board {
    size_t bytes; /* of the mapping */
    unsigned workers;
    struct slow_slot slots[];
};

static bool comes_before(const struct slow_client *client, const struct slow_client *other)
{
    if (client->is_late != other->is_late)
        return client->is_late;
    return client->lag_ms > other->lag_ms;
}

struct slow_client *slow_list_add(struct slow_list *list, const struct slow_client *client)
{
    unsigned index = list->count;

    while (index > 0 && comes_before(client, &list->clients[index - 1]))
        index--;
    if (index == SLOW_BOARD_CLIENTS)
        return NULL;
    if (list->count < SLOW_BOARD_CLIENTS)
        list->count++;
    memmove(&list->clients[index + 1], &list->clients[index],
            (list->count - 1 - index) * sizeof(list->clients[0]));
    list->clients[index] = *client;
    return &list->clients[index];
}

struct slow_board *slow_board_new(unsigned workers)
{
    size_t bytes = sizeof(struct slow_board) + (size_t)workers * sizeof(struct slow_slot);
    struct slow_board *board;

    board = shared_memory_new(bytes);
    if (!board)
        return NULL;
    board->bytes = bytes;
    board->workers = workers;
    return board;
}

void slow_board_free(struct slow_board *board)
{
    if (board)
        shared_memory_free(board, board->bytes);
}

void slow_board_write(struct slow_board *board, unsigned worker, const struct slow_list *list)
{
    struct slow_slot *slot = &board->slots[worker];

    assert(worker < board->workers);
    sequence_lock_begin_write(&slot->lock);
    slot->list = *list;
    sequence_lock_end_write(&slot->lock);
}

void slow_board_forget_worker(struct slow_board *board, unsigned worker)
{
    slow_board_write(board, worker, &(struct slow_list){0});
}

static void read_slot(const struct slow_slot *slot, struct slow_list *ret_list)
{
    for (unsigned i = 0; i < READ_TRIES; i++) {
        uint32_t sequence = sequence_lock_read(&slot->lock);

        *ret_list = slot->list;
        if (sequence_lock_was_still(&slot->lock, sequence))
            return;
    }
    ret_list->count = 0;
}

void slow_board_read(const struct slow_board *board, struct slow_list *ret_list)
{
    struct slow_list list;

    ret_list->count = 0;
    for (unsigned i = 0; i < board->workers; i++) {
        read_slot(&board->slots[i], &list);
        for (unsigned k = 0; k < list.count; k++) {
            list.clients[k].worker = i;
            slow_list_add(ret_list, &list.clients[k]);
        }
    }
}
