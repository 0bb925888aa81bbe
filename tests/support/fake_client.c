#include "tests/support/fake_client.h"

#include <errno.h>

#include "gateway/delivery/outbox.h"
#include "tests/support/cmocka_all.h"

static struct fake_client *fake_of(const struct client *client)
{
    return (struct fake_client *)client;
}

/* Takes as much as there is room for. */
static size_t take(struct fake_client *fake, struct sl_slice bytes)
{
    size_t size = bytes.size < fake->room ? bytes.size : fake->room;

    buffer_append(&fake->received, bytes.data, size);
    assert_false(fake->received.failed);
    if (fake->room != FAKE_UNLIMITED)
        fake->room -= size;
    return size;
}

static ssize_t fake_send(struct client *client, const struct iovec *pieces, int count)
{
    struct fake_client *fake = fake_of(client);
    size_t sent = 0;

    assert_false(fake->awaits_writable);
    assert_true(fake_client_lives(fake));
    assert_true(count > 0);
    fake->sends++;
    if (fake->send_error)
        return fake->send_error;
    for (int i = 0; i < count; i++) {
        size_t taken = take(fake, sl_slice(pieces[i].iov_base, pieces[i].iov_len));

        sent += taken;
        if (taken < pieces[i].iov_len)
            break;
    }
    fake->awaits_writable = sent == 0;
    return (ssize_t)sent;
}

static int fake_hold(struct client *client, const struct iovec *pieces, int count)
{
    struct fake_client *fake = fake_of(client);

    assert_true(fake_client_lives(fake));
    fake->holds++;
    if (fake->hold_error)
        return fake->hold_error;
    for (int i = 0; i < count; i++)
        buffer_append(&fake->held, pieces[i].iov_base, pieces[i].iov_len);
    if (fake->held.failed)
        return -ENOMEM;
    assert_true(fake->held.size > 0);
    fake->awaits_writable = true;
    return 0;
}

static bool fake_is_blocked(const struct client *client)
{
    return fake_of(client)->awaits_writable;
}

static void fake_evict(struct client *client, enum disconnect_reason reason)
{
    struct fake_client *fake = fake_of(client);
    struct sl_cursor head;

    if (fake->evictions++ > 0)
        return;
    fake->disconnect_reason = reason;
    if (fake->cursor_of) {
        fake->disconnect_cursor = fake->cursor_of(client);
        return;
    }
    head = fake->head();
    fake->disconnect_cursor = outbox_client_cursor(client, &head);
}

static void fake_broken(struct client *client)
{
    fake_of(client)->breaks++;
}

static const struct transport fake_transport = {
    .send = fake_send,
    .hold = fake_hold,
    .is_blocked = fake_is_blocked,
    .evict = fake_evict,
    .broken = fake_broken,
};

void fake_client_init(struct fake_client *fake, enum stream_format format,
                      struct sl_cursor (*head)(void))
{
    *fake = (struct fake_client){
        .client = {.transport = &fake_transport, .format = format},
        .room = FAKE_UNLIMITED,
        .head = head,
    };
}

void fake_client_done(struct fake_client *fake)
{
    assert_null(fake->client.outbox);
    buffer_done(&fake->received);
    buffer_done(&fake->held);
}

bool fake_client_make_room(struct fake_client *fake, size_t bytes)
{
    if (__builtin_add_overflow(fake->room, bytes, &fake->room))
        fake->room = FAKE_UNLIMITED;
    if (!fake->awaits_writable || fake->room == 0)
        return false;
    buffer_consume(&fake->held, take(fake, buffer_slice(&fake->held)));
    if (fake->held.size > 0)
        return false;
    fake->awaits_writable = false;
    return true;
}

bool fake_client_lives(const struct fake_client *fake)
{
    return fake->evictions == 0 && fake->breaks == 0;
}

void fake_client_expect(struct fake_client *fake, const char *bytes)
{
    const char *received = buffer_str(&fake->received);

    assert_non_null(received);
    assert_string_equal(received, bytes);
    buffer_clear(&fake->received);
}
