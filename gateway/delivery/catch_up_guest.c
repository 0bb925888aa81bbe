/* catch_up_guest.c - guests work one at a time, in order, each for its part of a turn. */
#include "gateway/delivery/catcher.h"

static struct list *list_of_guest(struct catch_up *catch_up, const struct catch_up_guest *guest)
{
    return guest->waits ? &catch_up->waiting_guests : &catch_up->guests;
}

void catch_up_enqueue_guest(struct catch_up *catch_up, struct catch_up_guest *guest)
{
    guest->waits = false;
    list_append(&catch_up->guests, &guest->node);
}

void catch_up_guest_stop(struct catch_up *catch_up, struct catch_up_guest *guest)
{
    if (list_contains(&guest->node))
        list_remove(list_of_guest(catch_up, guest), &guest->node);
}

void catch_up_work_for_guests(struct catch_up *catch_up, uint64_t until_us)
{
    struct list_node *first = list_first(&catch_up->guests);
    struct catch_up_guest *guest;
    enum guest_progress progress;

    if (!first)
        return;
    guest = LIST_OWNER(first, struct catch_up_guest, node);
    progress = guest->work(guest, catch_up->log, until_us);
    list_remove(&catch_up->guests, first);
    guest->waits = progress == GUEST_WAITS_FOR_LOG;
    if (progress != GUEST_IS_DONE)
        list_append(list_of_guest(catch_up, guest), first);
}

void catch_up_wake_guests(struct catch_up *catch_up, uint32_t shard, uint64_t to,
                          const struct cached_batch *batch)
{
    LIST_EACH(&catch_up->waiting_guests, node)
    {
        struct catch_up_guest *guest = LIST_OWNER(node, struct catch_up_guest, node);

        guest->batch(guest, shard, to, batch);
        list_remove(&catch_up->waiting_guests, node);
        catch_up_enqueue_guest(catch_up, guest);
    }
}
