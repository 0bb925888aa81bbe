/* home_links.c - which authors are shown in which feeds, and which were until recently.
 *
 * A link joins an author and a feed, and has a bit for each relation (followed, hidden, muted). An
 * author without links is freed. The deletion of a post must reach those who were shown the post,
 * so after the author is no longer shown, the link is kept for some time, with the time of that
 * change; each feed keeps at most FORMER_MAX of these, and the oldest are removed first. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/home_parts.h"
#include "src/model/audience.h"

enum {
    /* Links to authors that are no longer shown, kept for deletions of their posts. */
    FORMER_MAX = 1000,
    /* Overhead of an entry: a slot of a hash map that is a third full, and that of malloc for two
     * blocks. */
    ENTRY_BYTES = 150,
};

static size_t link_bytes(const struct link *link)
{
    return sizeof(*link) + ENTRY_BYTES + link->author->id_size;
}

static size_t author_bytes(const struct author *author)
{
    return sizeof(*author) + ENTRY_BYTES + 2 * author->id_size;
}

void feed_grow(struct home *home, struct home_feed *feed, size_t bytes)
{
    feed->bytes += bytes;
    home->bytes += bytes;
}

void feed_shrink(struct home *home, struct home_feed *feed, size_t bytes)
{
    assert(feed->bytes >= bytes && home->bytes >= bytes);
    feed->bytes -= bytes;
    home->bytes -= bytes;
}

int feed_check_bytes(const struct home *home, const struct home_feed *feed)
{
    return home->bytes > home->max_bytes || feed->bytes > home->max_bytes / 4 ? -EDQUOT : 0;
}

static struct author *author_get_or_add(struct home *home, struct sl_slice id)
{
    struct author *author = hash_map_get(home->authors, id);

    if (author)
        return author;
    author = mem_alloc(sizeof(*author) + id.size);
    if (!author)
        return NULL;
    list_init(&author->links);
    author->id_size = id.size;
    memcpy(author->id, id.data, id.size);
    if (hash_map_add(home->authors, id, author) < 0) {
        mem_free(author);
        return NULL;
    }
    home->bytes += author_bytes(author);
    return author;
}

static void author_drop_if_unwanted(struct home *home, struct author *author)
{
    if (!list_is_empty(&author->links))
        return;
    hash_map_remove(home->authors, sl_slice(author->id, author->id_size));
    home->bytes -= author_bytes(author);
    mem_free(author);
}

static bool is_shown(unsigned relations)
{
    return relations == RELATION_FOLLOWS || (relations & RELATION_OWN);
}

static struct link *link_new(struct home *home, struct home_feed *feed, struct sl_slice id)
{
    struct link *link = mem_zalloc(sizeof(*link));

    if (!link)
        return NULL;
    link->feed = feed;
    link->author = author_get_or_add(home, id);
    if (!link->author) {
        mem_free(link);
        return NULL;
    }
    if (hash_map_add(feed->links, id, link) < 0) {
        author_drop_if_unwanted(home, link->author);
        mem_free(link);
        return NULL;
    }
    list_append(&link->author->links, &link->in_author);
    feed_grow(home, feed, link_bytes(link));
    return link;
}

static void link_free(struct home *home, struct link *link)
{
    list_remove(&link->author->links, &link->in_author);
    if (list_contains(&link->in_former))
        list_remove(&link->feed->former, &link->in_former);
    feed_shrink(home, link->feed, link_bytes(link));
    author_drop_if_unwanted(home, link->author);
    mem_free(link);
}

static void link_drop_if_void(struct home *home, struct link *link)
{
    if (link->relations != 0 || list_contains(&link->in_former))
        return;
    hash_map_remove(link->feed->links, sl_slice(link->author->id, link->author->id_size));
    link_free(home, link);
}

static void link_forget_former(struct home *home, struct link *link)
{
    list_remove(&link->feed->former, &link->in_former);
    link_drop_if_void(home, link);
}

/* The event `at` has changed whether the author is shown; 0: the event is in no log, so the order
 * of events is unknown. */
static void link_turn(struct home *home, struct link *link, uint64_t at)
{
    struct home_feed *feed = link->feed;

    if (is_shown(link->relations)) {
        if (list_contains(&link->in_former))
            list_remove(&feed->former, &link->in_former);
        link->shown_from = at;
        return;
    }
    if (at == 0)
        return;
    link->shown_until = at;
    list_append(&feed->former, &link->in_former);
    if (feed->former.count > FORMER_MAX)
        link_forget_former(home, LIST_OWNER(list_first(&feed->former), struct link, in_former));
}

int feed_set_relation(struct home *home, struct home_feed *feed, struct sl_slice id,
                      enum relation relation, bool on, uint64_t at)
{
    struct link *link = hash_map_get(feed->links, id);
    unsigned before;

    if (!link && !on)
        return 0;
    if (!link)
        link = link_new(home, feed, id);
    if (!link)
        return -ENOMEM;
    before = link->relations;
    link->relations = on ? before | (unsigned)relation : before & ~(unsigned)relation;
    if (is_shown(before) != is_shown(link->relations))
        link_turn(home, link, at);
    link_drop_if_void(home, link);
    return 0;
}

/* The author was shown when the post of this deletion passed, and no longer is. */
static bool was_shown(const struct link *link, const struct event *event)
{
    uint64_t post = event->view.sample_id;

    return list_contains(&link->in_former) && post >= link->shown_from && post < link->shown_until;
}

/* Who may see a post (src/model/audience.h), as far as a gateway knows it. */
bool link_wants(const struct link *link, const struct event *event)
{
    if (link->relations & RELATION_OWN)
        return true;
    if (!is_shown(link->relations) && !(event->kind == EVENT_DELETE && was_shown(link, event)))
        return false;
    return sl_audience_allows(event->audience, sl_slice_str(link->feed->user), true);
}

int feed_add_relations(struct home *home, struct home_feed *feed, const struct home_set *set,
                       enum relation relation)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < set->count; i++) {
        if (!sl_slice_is(set->users[i], feed->user))
            r = feed_set_relation(home, feed, set->users[i], relation, true, 0);
        if (r == 0)
            r = feed_check_bytes(home, feed);
    }
    return r;
}

/* What was shown counts as shown until the gap, and what is shown now, from there on. */
void feed_remove_relations(struct home_feed *feed)
{
    void *value;

    for (size_t at = 0; hash_map_next(feed->links, &at, NULL, &value);) {
        struct link *link = value;

        if (link->relations & RELATION_OWN)
            continue;
        if (is_shown(link->relations)) {
            link->shown_until = feed->reload_cursor + 1;
            list_append(&feed->former, &link->in_former);
        }
        link->relations = 0;
    }
}

void feed_sweep(struct home *home, struct home_feed *feed)
{
    void *value;

    while (feed->former.count > FORMER_MAX)
        link_forget_former(home, LIST_OWNER(list_first(&feed->former), struct link, in_former));
    for (size_t at = 0; hash_map_next(feed->links, &at, NULL, &value);)
        link_drop_if_void(home, value);
}

void feed_free_links(struct home *home, struct home_feed *feed)
{
    void *link;

    if (!feed->links)
        return;
    for (size_t at = 0; hash_map_next(feed->links, &at, NULL, &link);)
        link_free(home, link);
    hash_map_free(feed->links);
}
