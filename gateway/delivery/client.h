/* gateway/delivery/client.h - a stream as delivery sees it: where it stands in its outbox, and the
 * table through which its transport writes.
 *
 * The transport embeds a client in whatever it sends on and fills the table; several clients may
 * share a connection, and then are blocked together. Delivery never learns whether it talks to a
 * WebSocket or to a chunked response. Nothing in the table closes a client while delivery walks a
 * list: evict() and broken() only schedule it. */
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
    /* Offers the pieces to the socket in one system call. Returns the bytes it took (0: full;
     * outbox_client_writable() follows when there is room again) or a negative errno: broken. */
    ssize_t (*send)(struct client *client, const struct iovec *pieces, int count);

    /* Copies the pieces, to be sent before anything else. Until they are gone the client is
     * blocked. 0, or a negative errno: broken. */
    int (*hold)(struct client *client, const struct iovec *pieces, int count);

    /* Does something held still wait for the socket? Then send() must not be called. */
    bool (*is_blocked)(const struct client *client);

    /* Takes leave of the client after this turn of the loop. */
    void (*evict)(struct client *client, enum disconnect_reason reason);

    /* The connection is broken: ends it after this turn of the loop, without a word. */
    void (*broken)(struct client *client);
};

/* Events of this id are behind what the client wants. */
static inline bool client_is_beyond(uint64_t until, uint64_t id)
{
    return until && id > until;
}

/* So long after the time of `until` what happened before it has arrived, whichever shard it is of.
 */
enum { CLIENT_UNTIL_GRACE_MS = 2000 };

typedef void (*client_visit_fn)(void *owner, struct client *client);

/* A client that would rather be sent a part of its posts than fall behind: sampling.c. */
struct client_sampling {
    bool is_wanted;            /* set before it subscribes */
    bool went_up;              /* the last time that the part changed */
    uint64_t changed_ms;       /* clock of the loop: then; 0: never */
    uint64_t sent_bytes;       /* then */
    uint64_t blocked_ms;       /* clock of the loop: its socket was seen full last */
    uint32_t hold_ms;          /* so long it must have kept up to be sent more */
    struct list_node sampling; /* of deliver: all those who are */
};

enum client_state {
    CLIENT_NOWHERE,
    CLIENT_IN_STEP, /* has everything up to the outbox's last flush */
    CLIENT_FRESH,   /* the same, but not all that the outbox's history has said */
    CLIENT_JOINING, /* came after the last flush; the next one takes it in step */
    CLIENT_BEHIND   /* its socket was full; goes on when it is writable */
};

struct client {
    const struct transport *transport;
    enum stream_format format;
    bool unchunked; /* HTTP/1.0 */
    enum stream_encoding encoding;
    const struct dictionary *dictionary; /* of ENCODING_ZSTD_DICTIONARY; outlives the client */
    bool says_cursors;                   /* a message, with each keep-alive */
    uint64_t fields;      /* which members of events it wants: front/event_fields.h */
    uint8_t window_bits;  /* of what it decodes; 0: nothing may refer to an earlier message */
    struct sl_slice tail; /* on WebSockets: goes before the closing brace of all that it is owed;
                             without data: nothing does. Outlives the client */
    enum client_state state;
    struct outbox *outbox;          /* the lane's, or the catcher's own; NULL: none */
    struct catcher *catcher;        /* NULL: live */
    struct list_node node;          /* in one of the outbox's lists, by `state` */
    struct count_question question; /* what it is told of buckets, instead of all events as they
                                       pass; or .bucket_ms 0: then it is to be resumed at once.
                                       Set before it subscribes, and so is ... */
    uint64_t until;                 /* no event behind this id; 0: all */
    uint64_t came_with;             /* the plain cursor it came with; 0: none */
    uint64_t told_late;    /* a bit for each shard of which it was told that this lacks something */
    uint64_t at;           /* position in the outbox: the next entry it is owed */
    uint64_t last_sent_ms; /* clock of the loop; for keep-alives */
    uint64_t warned_ms;    /* clock of the loop: told last that it falls behind; 0: never */
    uint64_t sent_events;
    uint64_t sent_bytes;
    uint64_t replayed;         /* events that were read for it behind where it began */
    uint64_t undelivered;      /* posts it was not sent: outbox_client_undelivered() */
    uint64_t undelivered_from; /* the outbox's number when that was last computed */
    struct client_sampling sampling;
    struct client_progress progress; /* the survey's */
    struct gzip_sum sum;             /* of all that it was sent, up to ... */
    struct gzip_sum sum_from;        /* ... this place in the outbox */
};
