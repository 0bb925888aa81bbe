/* gateway/delivery/client.h - a stream as delivery sees it: its position in an outbox, and the
 * functions of its transport.
 *
 * The transport embeds a client in its own struct and provides the functions. Several clients may
 * share a connection, and are blocked together. Delivery does not know whether it is a WebSocket or
 * a chunked response. None of the functions closes a client while delivery walks a list: evict()
 * and broken() only schedule it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"
#include "gateway/delivery/gzip.h"
#include "gateway/delivery/client_progress.h"
#include "gateway/front/count_question.h"
#include "gateway/front/disconnect.h"
#include "gateway/front/stream_request.h"

struct catcher;
struct client;
struct dictionary;
struct outbox;

struct transport {
    /* Offers the pieces to the socket in one system call. Returns the number of bytes accepted (0:
     * full; outbox_client_writable() must be called when there is room), or a negative errno:
     * broken. */
    ssize_t (*send)(struct client *client, const struct iovec *pieces, int count);

    /* Copies the pieces, to be sent before anything else. Until then the client is blocked. 0; a
     * negative errno: broken. */
    int (*hold)(struct client *client, const struct iovec *pieces, int count);

    /* Whether held bytes wait for the socket. Then send() must not be called. */
    bool (*is_blocked)(const struct client *client);

    /* Ends the client with a message, after this turn of the loop. */
    void (*evict)(struct client *client, enum disconnect_reason reason);

    /* The connection is broken: ends it after this turn of the loop, without a message. */
    void (*broken)(struct client *client);
};

/* Events with this id are after what the client wants. */
static inline bool client_is_beyond(uint64_t until, uint64_t id)
{
    return until && id > until;
}

/* After this time, all events up to the time of `until` have arrived, from every shard. */
enum { CLIENT_UNTIL_GRACE_MS = 2000 };

typedef void (*client_visit_fn)(void *owner, struct client *client);

/* For a client that prefers a sample of its posts to falling behind: sampling.c. */
struct client_sampling {
    bool is_wanted;            /* to be set before it subscribes */
    bool went_up;              /* the last change was an increase */
    uint64_t changed_ms;       /* time of the last change, loop's clock; 0: none */
    uint64_t sent_bytes;       /* at that time */
    uint64_t blocked_ms;       /* when its socket was last seen full, loop's clock */
    uint32_t hold_ms;          /* how long it must keep up before it gets more */
    struct list_node sampling; /* in deliver->sampling */
};

enum client_state {
    CLIENT_DETACHED,
    CLIENT_IN_STEP, /* has everything up to the outbox's last flush */
    CLIENT_FRESH,   /* the same, but not everything in the outbox's history */
    CLIENT_JOINING, /* came after the last flush; the next one includes it */
    CLIENT_BEHIND   /* its socket was full; continues when it is writable */
};

struct client {
    const struct transport *transport;
    enum stream_format format;
    bool unchunked; /* HTTP/1.0 */
    enum stream_encoding encoding;
    const struct dictionary *dictionary; /* for ENCODING_ZSTD_DICTIONARY; outlives the client */
    bool says_cursors;                   /* sends a cursor message with each keep-alive */
    uint64_t fields;                     /* members of events to send: front/event_fields.h */
    uint8_t window_bits;  /* that its decoder supports; 0: no reference to earlier messages */
    struct sl_slice tail; /* on WebSockets: inserted before the closing brace of everything; without
                             data: nothing. Outlives the client */
    enum client_state state;
    struct outbox *outbox;   /* the lane's or the catcher's; NULL: none */
    struct catcher *catcher; /* NULL: live */
    struct list_node node;   /* in the outbox's list for `state` */
    /* For counted or picked buckets instead of all events; .bucket_ms 0: none. With one it must be
     * resumed at once. To be set, like `until`, before it subscribes. */
    struct count_question question;
    uint64_t until;        /* no events after this id; 0: no end */
    uint64_t came_with;    /* the plain cursor it resumed with; 0: none */
    uint64_t told_late;    /* shards (bits) for which it was told that this lacks events */
    uint64_t at;           /* position in the outbox: its next entry */
    uint64_t last_sent_ms; /* loop's clock; for keep-alives */
    uint64_t warned_ms;    /* last warning that it falls behind, loop's clock; 0: never */
    uint64_t sent_events;
    uint64_t sent_bytes;
    uint64_t replayed;         /* past events that were read for it */
    uint64_t undelivered;      /* posts it was not sent: outbox_client_undelivered() */
    uint64_t undelivered_from; /* the outbox's number when that was last computed */
    struct client_sampling sampling;
    struct client_progress progress; /* for the survey */
    struct gzip_sum sum;             /* of all bytes sent up to ... */
    struct gzip_sum sum_from;        /* ... this position in the outbox */
};
