/* gateway/http/wire.h - the bytes of one connection, plain or over TLS.
 *
 * libwebsockets carries every connection in its raw role: it owns the socket, does TLS, and watches
 * both on the loop. What the bytes mean is not its business: heads, bodies, answers and WebSocket
 * frames are read and written by others. libwebsockets stands in wire.c and nowhere else.
 *
 * Output is ours on both kinds of wire. wire_send() makes one system call on a plain wire, and one
 * TLS record for each 16 KiB otherwise; what the socket does not take is either the caller's, or
 * held by the wire and sent before anything else. While a wire is blocked (something is held, or
 * the socket is full) nothing may be sent; `writable` says when that is over.
 *
 * A wire is embedded in its owner, who may move it (wire_move()). It belongs to the loop's thread.
 * wire_close() must not be called from one of the wire's own callbacks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/ip_address.h"
#include "base/slice.h"

struct lws;
struct wire;
struct wires; /* what the wires of a worker share */

struct wire_callbacks {
    /* Bytes from the peer, at most WIRE_READ_SIZE. The callee may write into them; they are gone
     * when it returns. */
    void (*received)(struct wire *wire, char *bytes, size_t size);
    /* Nothing is held any more, and the socket has room. */
    void (*writable)(struct wire *wire);
    /* The connection is gone: the peer has closed it, or it broke. The wire is closed already. */
    void (*closed)(struct wire *wire);
};

enum { WIRE_READ_SIZE = 16384, WIRE_ADDRESS_SIZE = 16 };

struct wire_kind;

struct wire {
    const struct wire_callbacks *callbacks;
    const struct wire_kind *kind; /* how it sends: plain or TLS */
    struct lws *lws;              /* NULL: closed */
    int fd;                       /* -1: closed */
    bool is_blocked;              /* nothing may be sent until there is room */
    bool is_reading;
    bool was_heard;           /* the peer has sent something */
    bool is_finishing;        /* the end could not be sent yet */
    bool is_secure;           /* by TLS, here or at a trusted proxy */
    struct ip_address client; /* as a trusted proxy says; none: the peer is the client */
    struct buffer held;       /* goes out before anything else */
};

struct wires_settings {
    uv_loop_t *loop;
    const char *certificate, *key; /* files, PEM; NULL: there is no TLS */
    uint32_t handshake_timeout_ms; /* an upper bound; the owner of a wire has its own deadline */
};

/* 0; a negative errno: *reterr says what (certificate, memory). */
int wires_new(const struct wires_settings *settings, struct wires **ret_wires,
              struct failure *reterr);
bool wires_have_tls(const struct wires *wires);
/* Connections from now on are shown what is in the two files now. 0 (without TLS too); a negative
 * errno: *reterr says why, and the old certificate stays. */
int wires_reload_certificate(struct wires *wires, struct failure *reterr);
/* All wires are closed. The loop must then run until it is empty before wires_free(). */
void wires_close(struct wires *wires);
void wires_free(struct wires *wires);

/* Takes the connected socket `fd` over, whatever is returned. `with_tls`: the peer begins with a
 * TLS handshake; nothing may be sent before it has said something. 0; -ENOMEM. */
int wire_open(struct wires *wires, struct wire *wire, int fd, bool with_tls,
              const struct wire_callbacks *callbacks);
/* Ends the connection now; what is held is lost. `closed` is not called. A closed wire is fine. */
void wire_close(struct wire *wire);
/* Makes `to` the wire instead of `from`, which is closed then. */
void wire_move(struct wire *from, struct wire *to, const struct wire_callbacks *callbacks);

/* Offers the pieces to the socket. Returns how many bytes it took (fewer than offered: it is
 * full), or a negative errno: the connection is broken. Not while the wire is blocked. */
ssize_t wire_send(struct wire *wire, const struct iovec *pieces, int count);
/* Keeps copies of the pieces, to be sent before anything else. 0; -ENOMEM. */
int wire_hold(struct wire *wire, const struct iovec *pieces, int count);
/* Sends what the socket takes and holds the rest; while the wire is blocked, holds all. 0; a
 * negative errno: broken. */
int wire_write(struct wire *wire, struct sl_slice bytes);
/* What is sent from now on is held, until wire_uncork() sends it together. Not while the wire is
 * blocked. wire_uncork(): 0; a negative errno: broken. */
void wire_cork(struct wire *wire);
int wire_uncork(struct wire *wire);
/* Nothing more will be sent, and nothing is held: the peer is told so, and may close. `writable` is
 * not called any more. */
void wire_finish(struct wire *wire);

/* While a wire does not read, its peer's closing is not noticed either. */
void wire_stop_reading(struct wire *wire);
void wire_resume_reading(struct wire *wire);
/* Has the peer begun what no callback has told of yet: bytes that were not read, a TLS handshake
 * that is half done? */
bool wire_has_begun(const struct wire *wire);

/* Who is at the other end of the socket; none on a unix socket. */
struct ip_address wire_peer(const struct wire *wire);
/* The client whom this peer, a trusted proxy, speaks for; with none, for itself. */
void wire_set_client(struct wire *wire, const struct ip_address *client, bool is_secure);
/* The address of the client, be it the peer's own or behind trusted proxies, without the port: 4 or
 * 16 bytes in `room`; empty on a unix socket. What is counted by address is counted by this. */
struct sl_slice wire_client_address(const struct wire *wire, char room[static WIRE_ADDRESS_SIZE]);
