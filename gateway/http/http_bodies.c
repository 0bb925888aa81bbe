/* http_bodies.c - the large bodies being received, their memory, and which of them must give way.
 *
 * They are in a list in the order in which they began, which is searched when there is no room. Its
 * length is limited by the number of incomplete requests. */
#include "gateway/http/http_bodies.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void http_bodies_init(struct http_bodies *bodies, size_t max_bytes)
{
    list_init(&bodies->large);
    bodies->bytes = 0;
    bodies->max_bytes = max_bytes;
}

void http_bodies_add(struct http_bodies *bodies, struct http_body_share *share,
                     struct sl_slice address, uint64_t now_ms)
{
    assert(address.size <= sizeof(share->address));
    *share = (struct http_body_share){
        .recent_ms = now_ms, .began_ms = now_ms, .address_size = (uint8_t)address.size};
    if (address.size > 0)
        memcpy(share->address, address.data, address.size);
    list_append(&bodies->large, &share->node);
}

void http_bodies_remove(struct http_bodies *bodies, struct http_body_share *share)
{
    if (!list_contains(&share->node))
        return;
    assert(bodies->bytes >= share->bytes);
    bodies->bytes -= share->bytes;
    share->bytes = 0;
    list_remove(&bodies->large, &share->node);
}

void http_bodies_shrink(struct http_bodies *bodies, struct http_body_share *share, size_t bytes)
{
    assert(list_contains(&share->node) && bytes <= share->bytes);
    bodies->bytes -= share->bytes - bytes;
    share->bytes = bytes;
}

static bool is_same_address(const struct http_body_share *a, const struct http_body_share *b)
{
    return a->address_size > 0 && a->address_size == b->address_size &&
           memcmp(a->address, b->address, a->address_size) == 0;
}

static size_t bytes_of_address(const struct http_bodies *bodies,
                               const struct http_body_share *share)
{
    size_t bytes = 0;

    LIST_EACH(&bodies->large, node)
    {
        const struct http_body_share *other = LIST_OWNER(node, struct http_body_share, node);

        if (is_same_address(other, share))
            bytes += other->bytes;
    }
    return bytes;
}

static double recent_bytes(const struct http_body_share *share, uint64_t now_ms)
{
    return share->recent *
           exp2(-(double)(now_ms - share->recent_ms) / (double)HTTP_BODIES_HALF_LIFE_MS);
}

/* Recent bytes. A body that has just begun may become as fast as any. */
static double pace_of(const struct http_body_share *share, uint64_t now_ms)
{
    return now_ms - share->began_ms < HTTP_BODIES_GRACE_MS ? INFINITY : recent_bytes(share, now_ms);
}

/* The slowest of all, or of those with the address of `share`. If none is slow, `share` itself. */
static struct http_body_share *slowest(const struct http_bodies *bodies,
                                       struct http_body_share *share, bool of_address,
                                       uint64_t now_ms)
{
    struct http_body_share *found = share;

    LIST_EACH(&bodies->large, node)
    {
        struct http_body_share *other = LIST_OWNER(node, struct http_body_share, node);

        if ((!of_address || is_same_address(other, share)) &&
            pace_of(other, now_ms) < pace_of(found, now_ms))
            found = other;
    }
    return found;
}

struct http_body_share *http_bodies_grow(struct http_bodies *bodies, struct http_body_share *share,
                                         size_t size, uint64_t now_ms)
{
    if (!list_contains(&share->node))
        return NULL;
    share->recent = recent_bytes(share, now_ms) + (double)size;
    share->recent_ms = now_ms;
    share->bytes += size;
    bodies->bytes += size;
    if (share->address_size > 0 &&
        bytes_of_address(bodies, share) > bodies->max_bytes / HTTP_BODIES_SHARE)
        return slowest(bodies, share, true, now_ms);
    if (bodies->bytes > bodies->max_bytes)
        return slowest(bodies, share, false, now_ms);
    return NULL;
}
