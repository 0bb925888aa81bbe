#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/x509.h>

#include "base/alloc.h"
#include "gateway/http/wire.h"
#include "tests/support/certificate.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/peer.h"

enum { SMALL = 4096, MANY_TURNS = 200, RECORD = 16384 };

static bool with_tls; /* most tests run with and without */
static bool plain = false, tls = true;
static struct test_loop test_loop;
static struct wires *wires;
static int listener;
static struct sockaddr_in address;
static struct peer peer;

/* Our end of the connection. */
static struct end {
    struct wire wire;
    struct buffer heard;
    size_t largest; /* most bytes that came at once */
    unsigned reads, writables, closes;
    unsigned stops_after; /* this many reads; 0: it does not stop */
    struct wire *moves_to;
} end;

static void on_other_received(struct wire *wire, char *bytes, size_t size);
static void on_writable(struct wire *wire);
static void on_other_closed(struct wire *wire);

static const struct wire_callbacks other_callbacks = {on_other_received, on_writable,
                                                      on_other_closed};

static void on_received(struct wire *wire, char *bytes, size_t size)
{
    assert_ptr_equal(wire, &end.wire);
    buffer_append(&end.heard, bytes, size);
    memset(bytes, '#', size); /* it may write into them */
    end.reads++;
    if (size > end.largest)
        end.largest = size;
    if (end.reads == end.stops_after)
        wire_stop_reading(wire);
    if (end.moves_to) {
        wire_move(wire, end.moves_to, &other_callbacks);
        assert_null(wire->lws);
        wire_close(wire); /* it is closed, so this has no effect */
    }
}

static void on_writable(struct wire *wire)
{
    assert_false(wire->is_blocked);
    assert_int_equal(wire->held.size, 0);
    end.writables++;
}

static void on_closed(struct wire *wire)
{
    assert_null(wire->lws);
    assert_int_equal(wire->fd, -1);
    end.closes++;
}

static const struct wire_callbacks callbacks = {on_received, on_writable, on_closed};

static unsigned other_reads, other_closes;

static void on_other_received(struct wire *wire, char *bytes, size_t size)
{
    (void)wire;
    (void)bytes;
    other_reads += (unsigned)size;
}

static void on_other_closed(struct wire *wire)
{
    (void)wire;
    other_closes++;
}

/* --- running it --- */

static void turn(void)
{
    uv_run(&test_loop.uv, UV_RUN_NOWAIT);
    peer_turn(&peer);
}

#define TURN_UNTIL(condition) TURNS_UNTIL(&test_loop, turn(), condition)

static void turn_often(void)
{
    for (int i = 0; i < MANY_TURNS; i++)
        turn();
}

static void run_until_empty(void)
{
    test_loop_start_deadline(&test_loop); /* it is waited for, but does not count */
    uv_unref((uv_handle_t *)&test_loop.timer);
    uv_run(&test_loop.uv, UV_RUN_DEFAULT);
    uv_ref((uv_handle_t *)&test_loop.timer);
    test_loop_stop_deadline(&test_loop);
}

static struct wires_settings settings(void)
{
    return (struct wires_settings){.loop = &test_loop.uv,
                                   .certificate = with_tls ? "cert.pem" : NULL,
                                   .key = with_tls ? "key.pem" : NULL,
                                   .handshake_timeout_ms = 60000};
}

static void create_wires(void)
{
    const struct wires_settings made_with = settings();
    struct failure failure;

    assert_int_equal(wires_new(&made_with, &wires, &failure), 0);
    assert_int_equal(wires_have_tls(wires), with_tls);
}

static void destroy_wires(void)
{
    wires_close(wires);
    run_until_empty();
    wires_free(wires);
    wires = NULL;
}

static int begin(void **state)
{
    with_tls = *(const bool *)*state;
    certificate_write_pair(CERTIFICATE_EC, "first", "cert.pem", "key.pem");
    test_loop_init(&test_loop, NULL);
    listener = peer_listen(&address);
    memset(&end, 0, sizeof(end));
    peer = (struct peer){.fd = -1};
    other_reads = other_closes = 0;
    create_wires();
    *state = NULL;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    peer_close(&peer);
    wire_close(&end.wire);
    buffer_done(&end.heard);
    if (wires)
        destroy_wires();
    test_loop_done(&test_loop);
    close(listener);
    unlink("cert.pem");
    unlink("key.pem");
    return 0;
}

/* `send_size`: size of our socket's send buffer; 0: the default. */
static void open_end(int send_size)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    assert_true(fd >= 0);
    if (send_size > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_size, sizeof(send_size));
    assert_int_equal(wire_open(wires, &end.wire, fd, with_tls, &callbacks), 0);
}

static void connect_with(int send_size, int receive_size)
{
    peer_connect(&peer, &address, with_tls, receive_size);
    open_end(send_size);
}

static void exchange(void)
{
    peer_say(&peer, SL_SLICE("hello"));
    TURN_UNTIL(end.heard.size == 5);
    assert_memory_equal(end.heard.data, "hello", 5);
    buffer_clear(&end.heard);
}

static void connect_small(void)
{
    connect_with(SMALL, SMALL);
    exchange();
}

static void connect_any(void)
{
    connect_with(0, 0);
    exchange();
}

/* --- a stream in which each byte depends on its offset --- */

static char byte_at(size_t offset)
{
    return (char)(offset ^ offset >> 8 ^ offset >> 16);
}

static void fill(char *room, size_t offset, size_t size)
{
    for (size_t i = 0; i < size; i++)
        room[i] = byte_at(offset + i);
}

static void check(const struct buffer *heard, size_t size)
{
    assert_int_equal(heard->size, size);
    for (size_t i = 0; i < size; i++) {
        if (heard->data[i] != byte_at(i))
            fail_msg("byte %zu of %zu is another one", i, size);
    }
}

/* --- tests --- */

static void test_bytes_go_both_ways(void **state)
{
    (void)state;
    connect_any();
    assert_int_equal(wire_write(&end.wire, SL_SLICE("good ")), 0);
    assert_int_equal(wire_write(&end.wire, SL_SLICE("day")), 0);
    TURN_UNTIL(peer.heard.size == 8);
    assert_memory_equal(peer.heard.data, "good day", 8);
    assert_false(end.wire.is_blocked);
    assert_int_equal(end.closes, 0);
}

static void test_pieces_are_sent_in_order(void **state)
{
    static char large[3 * RECORD];
    char small[] = "abcd";
    const struct iovec pieces[] = {{small, 1},     {small, 0}, {large, sizeof(large)},
                                   {small + 1, 2}, {large, 1}, {small + 3, 1}};

    (void)state;
    memset(large, '.', sizeof(large));
    connect_any();
    assert_int_equal(wire_send(&end.wire, pieces, 6), sizeof(large) + 5);
    TURN_UNTIL(peer.heard.size == sizeof(large) + 5);
    assert_memory_equal(peer.heard.data, "a.", 2);
    assert_memory_equal(peer.heard.data + sizeof(large), ".bc.d", 5);
}

static void test_a_read_is_bounded(void **state)
{
    static char said[300000];

    (void)state;
    connect_any();
    fill(said, 0, sizeof(said));
    peer_say(&peer, sl_slice(said, sizeof(said)));
    TURN_UNTIL(end.heard.size == sizeof(said));
    check(&end.heard, sizeof(said));
    assert_true(end.largest <= WIRE_READ_SIZE);
}

static void fill_up(void)
{
    static char room[100000];
    const struct iovec piece = {room, sizeof(room)};

    fill(room, 0, sizeof(room));
    while (!end.wire.is_blocked)
        assert_true(wire_send(&end.wire, &piece, 1) >= 0);
}

static void test_a_blocked_wire_is_writable_once_nothing_is_held(void **state)
{
    char text[] = "more";
    const struct iovec more = {text, 4};

    (void)state;
    connect_small();
    peer.reads_most = 0;
    fill_up();
    assert_int_equal(wire_hold(&end.wire, &more, 1), 0);
    assert_int_equal(wire_write(&end.wire, SL_SLICE(" and more")), 0);
    assert_true(end.wire.held.size >= 13);
    turn_often();
    assert_int_equal(end.writables, 0);
    peer.reads_most = SIZE_MAX;
    TURN_UNTIL(end.writables == 1);
    assert_int_equal(end.wire.held.capacity, 0);
    TURN_UNTIL(peer.heard.size > 13 &&
               memcmp(peer.heard.data + peer.heard.size - 13, "more and more", 13) == 0);
    turn_often();
    assert_int_equal(end.writables, 1);
}

/* A slow reader, small sockets, and a sender that sometimes stores what was not accepted. */
struct sender {
    unsigned random;
    size_t size;   /* of the whole stream */
    size_t sent;   /* or held */
    size_t wished; /* bytes before this were offered; those between `sent` and here are stored */
};

static unsigned draw(struct sender *sender, unsigned below)
{
    sender->random = sender->random * 1103515245 + 12345;
    return (sender->random >> 8) % below;
}

static size_t draw_size(struct sender *sender)
{
    static const unsigned most[] = {2, 100, 5000, RECORD + 1, 100000};
    size_t size = draw(sender, most[draw(sender, 5)]);
    size_t left = sender->size - sender->wished;

    return size < left ? size : left;
}

static void send_some(struct sender *sender)
{
    static char room[100000];
    struct iovec pieces[4];
    int count = 1 + (int)draw(sender, 4);
    size_t size, filled = 0;
    ssize_t sent;

    if (sender->wished == sender->sent)
        sender->wished += draw_size(sender);
    size = sender->wished - sender->sent;
    fill(room, sender->sent, size);
    for (int i = 0; i < count; i++) {
        size_t part = i == count - 1 ? size - filled : draw(sender, (unsigned)(size - filled) + 1);

        pieces[i] = (struct iovec){room + filled, part};
        filled += part;
    }
    sent = wire_send(&end.wire, pieces, count);
    assert_true(sent >= 0 && (size_t)sent <= size);
    sender->sent += (size_t)sent;
}

static void write_some(struct sender *sender)
{
    static char room[100000];
    size_t size;

    if (sender->wished > sender->sent)
        return; /* these must be sent first */
    size = draw_size(sender);
    fill(room, sender->sent, size);
    assert_int_equal(wire_write(&end.wire, sl_slice(room, size)), 0);
    sender->wished = sender->sent += size;
}

static void hold_the_rest(struct sender *sender)
{
    static char room[100000];
    struct iovec piece = {room, sender->wished - sender->sent};

    fill(room, sender->sent, piece.iov_len);
    assert_int_equal(wire_hold(&end.wire, &piece, 1), 0);
    sender->sent = sender->wished;
}

static void send_a_lot(unsigned seed)
{
    struct sender sender = {.random = seed, .size = 1500000};

    test_loop_start_deadline(&test_loop);
    while (peer.heard.size < sender.size) {
        peer.reads_most = 1 + draw(&sender, 9000);
        if (!end.wire.is_blocked && draw(&sender, 3) > 0)
            send_some(&sender);
        else if (end.wire.held.size < 200000 && draw(&sender, 4) == 0)
            write_some(&sender);
        if (sender.wished > sender.sent && draw(&sender, 3) == 0)
            hold_the_rest(&sender);
        turn();
    }
    test_loop_stop_deadline(&test_loop);
    check(&peer.heard, sender.size);
}

static void test_a_slow_reader_gets_every_byte_in_order(void **state)
{
    (void)state;
    connect_small();
    for (unsigned seed = 1; seed <= 3; seed++) {
        buffer_clear(&peer.heard);
        send_a_lot(seed);
    }
    assert_true(end.writables > 10);
}

static void say_records(size_t count)
{
    static char said[4 * RECORD];

    assert_true(count <= 4);
    fill(said, 0, count * RECORD);
    peer_say(&peer, sl_slice(said, count * RECORD));
    while (!peer_has_spoken(&peer))
        peer_turn(&peer); /* everything has arrived before our end reads */
}

static void test_what_comes_at_once_does_not_get_stuck(void **state)
{
    (void)state;
    connect_any();
    end.stops_after = end.reads + 1;
    say_records(4);
    TURN_UNTIL(end.heard.size > 0);
    turn_often();
    assert_int_equal(end.reads, end.stops_after); /* and no more */
    end.stops_after += 1;
    wire_resume_reading(&end.wire);
    TURN_UNTIL(end.reads == end.stops_after);
    turn_often();
    assert_int_equal(end.reads, end.stops_after);
    wire_resume_reading(&end.wire);
    TURN_UNTIL(end.heard.size == 4 * RECORD);
    check(&end.heard, 4 * RECORD);
}

static void test_what_comes_while_it_does_not_read_waits(void **state)
{
    (void)state;
    connect_any();
    wire_stop_reading(&end.wire);
    wire_stop_reading(&end.wire);
    say_records(1);
    turn_often();
    assert_int_equal(end.heard.size, 0);
    wire_resume_reading(&end.wire);
    wire_resume_reading(&end.wire);
    TURN_UNTIL(end.heard.size == RECORD);
    check(&end.heard, RECORD);
}

/* One that does not read still sends, and vice versa. */
static void test_writing_does_not_depend_on_reading(void **state)
{
    (void)state;
    connect_small();
    wire_stop_reading(&end.wire);
    send_a_lot(7);
    wire_resume_reading(&end.wire);
    peer.reads_most = 0;
    fill_up();
    exchange();
}

static void test_the_peer_is_told_of_the_end(void **state)
{
    (void)state;
    connect_any();
    assert_int_equal(wire_write(&end.wire, SL_SLICE("bye")), 0);
    wire_finish(&end.wire);
    TURN_UNTIL(peer.was_ended);
    assert_memory_equal(peer.heard.data, "bye", 3);
    assert_int_equal(peer.was_told, with_tls);
    assert_int_equal(end.closes, 0);
    exchange(); /* it may still send something */
    peer_end(&peer);
    TURN_UNTIL(end.closes == 1);
}

static void test_the_peers_end_is_noticed(void **state)
{
    (void)state;
    connect_any();
    peer_end(&peer);
    TURN_UNTIL(end.closes == 1);
    wire_close(&end.wire);
    wire_stop_reading(&end.wire);
    wire_finish(&end.wire);
    turn_often();
    assert_int_equal(end.closes, 1);
}

static void test_the_end_comes_behind_the_last_bytes(void **state)
{
    (void)state;
    connect_any();
    wire_stop_reading(&end.wire);
    say_records(3);
    peer_end(&peer);
    turn_often();
    assert_int_equal(end.closes, 0);
    wire_resume_reading(&end.wire);
    TURN_UNTIL(end.closes == 1);
    check(&end.heard, 3 * RECORD);
}

static void test_a_reset_is_noticed(void **state)
{
    (void)state;
    connect_any();
    peer_reset(&peer);
    TURN_UNTIL(end.closes == 1);
}

static void test_a_reset_is_noticed_while_it_is_blocked(void **state)
{
    (void)state;
    connect_small();
    peer.reads_most = 0;
    wire_stop_reading(&end.wire);
    fill_up();
    peer_reset(&peer);
    TURN_UNTIL(end.closes == 1);
    assert_int_equal(end.wire.held.capacity, 0);
}

/* A signal would end the process, so it is not ignored here. */
static void test_sending_to_a_peer_that_is_gone_fails(void **state)
{
    int r = 0;

    (void)state;
    connect_any();
    wire_stop_reading(&end.wire);
    peer_reset(&peer);
    test_loop_start_deadline(&test_loop);
    while (r == 0 && end.closes == 0) {
        r = wire_write(&end.wire, SL_SLICE("anybody there?"));
        turn();
    }
    test_loop_stop_deadline(&test_loop);
    assert_true(r < 0);
    assert_int_equal(end.closes, 0);
    wire_close(&end.wire);
    turn_often();
    assert_int_equal(end.closes, 0); /* the end that closes gets no callback */
}

static void test_who_closes_is_not_told(void **state)
{
    (void)state;
    connect_any();
    wire_close(&end.wire);
    wire_close(&end.wire);
    TURN_UNTIL(peer.was_ended || peer.was_reset);
    assert_int_equal(end.closes, 0);
}

static void test_it_moves_with_what_it_holds(void **state)
{
    struct wire moved;

    (void)state;
    connect_small();
    peer.reads_most = 0;
    fill_up();
    assert_int_equal(wire_write(&end.wire, SL_SLICE("last")), 0);
    end.moves_to = &moved;
    peer_say(&peer, SL_SLICE("move"));
    TURN_UNTIL(end.heard.size == 4);
    assert_true(moved.held.size >= 4);
    assert_int_equal(end.wire.held.capacity, 0);
    peer_say(&peer, SL_SLICE("and this is for the other"));
    TURN_UNTIL(other_reads == 25);
    peer.reads_most = SIZE_MAX;
    TURN_UNTIL(end.writables == 1);
    TURN_UNTIL(peer.heard.size > 4 &&
               memcmp(peer.heard.data + peer.heard.size - 4, "last", 4) == 0);
    peer_end(&peer);
    TURN_UNTIL(other_closes == 1);
    assert_int_equal(end.closes, 0);
    wire_close(&moved);
}

static void test_it_knows_its_peer(void **state)
{
    char room[WIRE_ADDRESS_SIZE];

    (void)state;
    connect_any();
    assert_true(sl_slice_equal(wire_client_address(&end.wire, room), SL_SLICE("\x7f\0\0\1")));
    wire_close(&end.wire);
    assert_int_equal(wire_client_address(&end.wire, room).size, 0);
}

static void test_wires_may_be_closed_before_they_are_heard(void **state)
{
    (void)state;
    connect_with(0, 0);
    if (!with_tls)
        peer_say(&peer, SL_SLICE("x")); /* over TLS: it is in the middle of its handshake */
    peer_turn(&peer);
    turn();
    wire_finish(&end.wire);
    wire_close(&end.wire);
    TURN_UNTIL(peer.was_ended || peer.was_reset);
}

static void test_out_of_memory_nothing_is_held(void **state)
{
    static char room[100000];
    struct iovec piece = {room, sizeof(room)};

    (void)state;
    connect_any();
    mem_fail_after(0);
    assert_int_equal(wire_hold(&end.wire, &piece, 1), -ENOMEM);
    mem_fail_never();
    assert_int_equal(wire_write(&end.wire, SL_SLICE("x")), -ENOMEM); /* it would be out of order */
}

static void test_out_of_memory_there_are_no_wires(void **state)
{
    const struct wires_settings made_with = settings();
    struct failure failure;

    (void)state;
    destroy_wires();
    for (uint64_t n = 0; !wires; n++) {
        mem_fail_after(n);
        if (wires_new(&made_with, &wires, &failure) < 0)
            assert_null(wires);
        mem_fail_never();
    }
}

/* --- TLS only --- */

static void expect_name(const char *name)
{
    X509 *certificate;
    char found[64];

    exchange();
    certificate = SSL_get1_peer_certificate(peer.tls);
    assert_non_null(certificate);
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, found,
                              sizeof(found));
    X509_free(certificate);
    assert_string_equal(found, name);
}

static int reload(struct failure *reterr)
{
    struct wire_certificate *read;
    int r = wire_certificate_new("cert.pem", "key.pem", &read, reterr);

    if (r == 0)
        wires_set_certificate_take(wires, read);
    return r;
}

static void expect_new_peer_is_shown(const char *name)
{
    wire_close(&end.wire);
    peer_close(&peer);
    connect_with(0, 0);
    expect_name(name);
}

static void test_a_new_certificate_is_shown_from_then_on(void **state)
{
    static const enum certificate_type types[] = {CERTIFICATE_EC, CERTIFICATE_RSA, CERTIFICATE_EC,
                                                  CERTIFICATE_RSA};
    struct failure failure;
    char name[16];

    (void)state;
    connect_with(0, 0);
    expect_name("first");
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%u", i);
        certificate_write_pair(types[i], name, "cert.pem", "key.pem");
        assert_int_equal(reload(&failure), 0);
        exchange(); /* existing connections stay */
        expect_new_peer_is_shown(name);
    }
}

static void expect_no_reload(void)
{
    struct failure failure = {""};

    assert_int_equal(reload(&failure), -EINVAL);
    assert_string_equal(failure.text, "cannot serve with certificate 'cert.pem' and key 'key.pem'");
    expect_new_peer_is_shown("first");
}

static void test_a_certificate_that_does_not_fit_changes_nothing(void **state)
{
    EVP_PKEY *key;

    (void)state;
    connect_any();
    assert_int_equal(rename("key.pem", "first.pem"), 0);
    key = certificate_write_key("key.pem", CERTIFICATE_EC, NULL);
    expect_no_reload(); /* the key of another certificate */
    EVP_PKEY_free(key);
    assert_int_equal(rename("first.pem", "key.pem"), 0);
    key = certificate_write_key("other.pem", CERTIFICATE_RSA, NULL);
    certificate_write("cert.pem", key, "second");
    expect_no_reload(); /* the certificate of another key */
    EVP_PKEY_free(key);
    unlink("other.pem");
    unlink("key.pem");
    expect_no_reload(); /* not a key */
    unlink("cert.pem");
    expect_no_reload();
}

static void test_without_a_certificate_there_are_no_wires(void **state)
{
    const struct wires_settings made_with = settings();
    struct failure failure = {""};

    (void)state;
    destroy_wires();
    unlink("key.pem");
    assert_int_equal(wires_new(&made_with, &wires, &failure), -EINVAL);
    assert_null(wires);
    assert_string_equal(failure.text, "cannot serve with certificate 'cert.pem' and key 'key.pem'");
}

static void test_who_does_not_speak_tls_is_hung_up_on(void **state)
{
    (void)state;
    peer_connect(&peer, &address, false, 0);
    open_end(0);
    peer_say(&peer, SL_SLICE("GET / HTTP/1.1\r\n\r\n"));
    TURN_UNTIL(end.closes == 1);
    assert_int_equal(end.reads, 0);
}

static void test_http_is_chosen(void **state)
{
    const unsigned char *chosen;
    unsigned size;

    (void)state;
    peer_connect(&peer, &address, true, 0);
    SSL_set_alpn_protos(peer.tls, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    open_end(0);
    exchange();
    SSL_get0_alpn_selected(peer.tls, &chosen, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
}

static void test_keys_may_be_changed_on_the_way(void **state)
{
    (void)state;
    connect_small();
    assert_int_equal(SSL_version(peer.tls), TLS1_3_VERSION);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(peer.tls, SSL_KEY_UPDATE_REQUESTED), 1);
        exchange();
        buffer_clear(&peer.heard);
        send_a_lot(i);
    }
}

/* In the middle of an incomplete record, whose rest must be sent first. */
static void test_keys_may_be_changed_while_it_is_blocked(void **state)
{
    (void)state;
    connect_small();
    peer.reads_most = 0;
    fill_up();
    assert_int_equal(SSL_key_update(peer.tls, SSL_KEY_UPDATE_REQUESTED), 1);
    exchange();
    peer.reads_most = SIZE_MAX;
    TURN_UNTIL(end.writables == 1);
    assert_int_equal(wire_write(&end.wire, SL_SLICE("last")), 0);
    TURN_UNTIL(peer.heard.size > 4 &&
               memcmp(peer.heard.data + peer.heard.size - 4, "last", 4) == 0);
}

static void test_tls_1_2_will_do_but_is_not_renegotiated(void **state)
{
    (void)state;
    peer_connect(&peer, &address, true, SMALL);
    SSL_set_max_proto_version(peer.tls, TLS1_2_VERSION);
    open_end(SMALL);
    exchange();
    send_a_lot(1);
    assert_int_equal(SSL_renegotiate(peer.tls), 1);
    peer_say(&peer, SL_SLICE("again"));
    TURN_UNTIL(end.closes == 1 || peer.was_reset || end.heard.size == 5);
    assert_int_equal(end.heard.size, 0);
}

/* RFC 6066: records of 512 bytes, so that one of our writes consists of many. */
static void test_records_may_be_small(void **state)
{
    (void)state;
    peer_connect(&peer, &address, true, SMALL);
    SSL_set_tlsext_max_fragment_length(peer.tls, TLSEXT_max_fragment_length_512);
    open_end(SMALL);
    exchange();
    send_a_lot(1);
}

static char folder[] = "/tmp/sluice-test-wire-XXXXXX";

static int make_folder(void **state)
{
    (void)state; /* the tests have their own */
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

#define PLAIN_TEST(test) cmocka_unit_test_prestate_setup_teardown(test, begin, finish, &plain)
#define TLS_TEST(test)   cmocka_unit_test_prestate_setup_teardown(test, begin, finish, &tls)
#define WIRE_TEST(test)  PLAIN_TEST(test), TLS_TEST(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WIRE_TEST(test_bytes_go_both_ways),
        WIRE_TEST(test_pieces_are_sent_in_order),
        WIRE_TEST(test_a_read_is_bounded),
        WIRE_TEST(test_a_blocked_wire_is_writable_once_nothing_is_held),
        WIRE_TEST(test_a_slow_reader_gets_every_byte_in_order),
        WIRE_TEST(test_what_comes_at_once_does_not_get_stuck),
        WIRE_TEST(test_what_comes_while_it_does_not_read_waits),
        WIRE_TEST(test_writing_does_not_depend_on_reading),
        WIRE_TEST(test_the_peer_is_told_of_the_end),
        WIRE_TEST(test_the_peers_end_is_noticed),
        WIRE_TEST(test_the_end_comes_behind_the_last_bytes),
        WIRE_TEST(test_a_reset_is_noticed),
        WIRE_TEST(test_a_reset_is_noticed_while_it_is_blocked),
        WIRE_TEST(test_sending_to_a_peer_that_is_gone_fails),
        WIRE_TEST(test_who_closes_is_not_told),
        WIRE_TEST(test_it_moves_with_what_it_holds),
        WIRE_TEST(test_it_knows_its_peer),
        WIRE_TEST(test_wires_may_be_closed_before_they_are_heard),
        WIRE_TEST(test_out_of_memory_nothing_is_held),
        WIRE_TEST(test_out_of_memory_there_are_no_wires),
        TLS_TEST(test_a_new_certificate_is_shown_from_then_on),
        TLS_TEST(test_a_certificate_that_does_not_fit_changes_nothing),
        TLS_TEST(test_without_a_certificate_there_are_no_wires),
        TLS_TEST(test_who_does_not_speak_tls_is_hung_up_on),
        TLS_TEST(test_http_is_chosen),
        TLS_TEST(test_keys_may_be_changed_on_the_way),
        TLS_TEST(test_keys_may_be_changed_while_it_is_blocked),
        TLS_TEST(test_tls_1_2_will_do_but_is_not_renegotiated),
        TLS_TEST(test_records_may_be_small),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
