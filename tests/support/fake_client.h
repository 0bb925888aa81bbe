/* tests/support/fake_client.h - a client with a simulated socket.
 *
 * The socket accepts `room` more bytes and is then full; the accepted bytes are in `received`. It
 * is as strict as the real transports: send() on a blocked client fails the test, and a client is
 * told that it is writable only after a send() that took nothing or after a hold(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "gateway/delivery/client.h"
#include "src/model/cursor.h"

#define FAKE_UNLIMITED SIZE_MAX

/* The plain form, as a pointer. */
#define CURSOR(number) (&(struct sl_cursor){.id = (number)})

struct fake_client {
    struct client client;
    struct buffer received; /* in the order of sending */
    struct buffer held;     /* is sent before anything else */
    size_t room;
    bool awaits_writable;
    int send_error, hold_error; /* negative errno: what the next call returns */
    unsigned sends, holds;
    unsigned evictions;
    enum disconnect_reason disconnect_reason; /* of the first eviction */
    struct sl_cursor disconnect_cursor;       /* recorded at the first eviction */
    unsigned breaks;
    struct sl_cursor (*head)(void);
    struct sl_cursor (*cursor_of)(const struct client *client); /* called instead; NULL: not */
};

/* `head` returns the cursor of a client that has everything; it is called when this client is
 * evicted. */
void fake_client_init(struct fake_client *fake, enum stream_format format,
                      struct sl_cursor (*head)(void));
void fake_client_done(struct fake_client *fake); /* in no outbox any more */

/* The socket has room for `bytes` more: takes what is held. true: all of it was sent and the client
 * was waiting, so the caller must report it writable. */
bool fake_client_make_room(struct fake_client *fake, size_t bytes);

/* Neither evicted nor broken. */
bool fake_client_lives(const struct fake_client *fake);

/* Fails unless exactly these bytes were received since the last call. */
void fake_client_expect(struct fake_client *fake, const char *bytes);
