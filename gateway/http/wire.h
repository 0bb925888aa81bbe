/* gateway/http/wire.h - the bytes of a connection, plain or over TLS.
 *
 * libwebsockets handles every connection in its raw role: it owns the socket, does TLS, and watches
 * both on the loop. Heads, bodies, responses and WebSocket frames are read and written by other
 * modules. libwebsockets is used only in wire.c.
 *
 * Output is written by us on both kinds of wire. wire_send() makes one system call on a plain wire,
 * and one TLS record for each 16 KiB otherwise. What the socket does not take stays with the
 * caller, or is held by the wire and sent before anything else. While a wire is blocked (something
 * is held, or the socket is full) nothing may be sent; the callback `writable` reports the end of
 * this.
 *
 * A wire is embedded in its owner, which may move it (wire_move()). It belongs to the loop's
 * thread. wire_close() must not be called from the wire's own callbacks. */
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
struct wire_certificate;
struct wires; /* the shared state of the wires of a worker */

struct wire_callbacks {
    /* Bytes from the peer, at most WIRE_READ_SIZE. The callee may modify them; they are valid
     * during the call. */
    void (*received)(struct wire *wire, char *bytes, size_t size);
    /* Nothing is held any more, and the socket has room. */
    void (*writable)(struct wire *wire);
    /* The connection has ended: the peer has closed it, or it broke. The wire is already closed. */
    void (*closed)(struct wire *wire);
};

enum { WIRE_READ_SIZE = 16384, WIRE_ADDRESS_SIZE = 16 };

struct wire_kind;

struct wire {
    const struct wire_callbacks *callbacks;
    const struct wire_kind *kind; /* how it sends: plain or TLS */
    struct lws *lws;              /* NULL: closed */
    int fd;                       /* -1: closed */
    bool is_blocked;              /* nothing may be sent until the socket has room */
    bool is_reading;
    bool was_heard;           /* the peer has sent something */
    bool is_finishing;        /* the end could not be sent yet */
    bool is_secure;           /* TLS, here or at a trusted proxy */
    struct ip_address client; /* as named by a trusted proxy; none: the peer is the client */
    struct buffer held;       /* sent before anything else */
};

struct wires_settings {
    uv_loop_t *loop;
    const char *certificate, *key; /* PEM files, read by wires_new() only; NULL: no TLS */
    uint32_t handshake_timeout_ms; /* an upper limit; the owner of a wire has its own deadline */
};

/* 0; a negative errno: *reterr says why (certificate, memory). */
int wires_new(const struct wires_settings *settings, struct wires **ret_wires,
              struct failure *reterr);
bool wires_have_tls(const struct wires *wires);
/* Reads a certificate and its key from PEM files, in any thread. 0; a negative errno: a file cannot
 * be read, or they do not belong together. */
int wire_certificate_new(const char *file, const char *key_file,
                         struct wire_certificate **ret_certificate, struct failure *reterr);
void wire_certificate_free(struct wire_certificate *certificate);
/* From now on new connections use this certificate. There must be TLS. */
void wires_set_certificate_take(struct wires *wires, struct wire_certificate *certificate);
/* All wires must be closed. The loop must then run until it is empty before wires_free(). */
void wires_close(struct wires *wires);
void wires_free(struct wires *wires);

/* Takes ownership of the connected socket `fd`, even on failure. `with_tls`: the peer begins with a
 * TLS handshake, and nothing may be sent before it has sent something. 0; -ENOMEM. */
int wire_open(struct wires *wires, struct wire *wire, int fd, bool with_tls,
              const struct wire_callbacks *callbacks);
/* Closes the connection at once; what is held is lost. `closed` is not called. No effect on a
 * closed wire. */
void wire_close(struct wire *wire);
/* Makes `to` the wire instead of `from`, which is then closed. */
void wire_move(struct wire *from, struct wire *to, const struct wire_callbacks *callbacks);

/* Sends the pieces. Returns how many bytes the socket took (fewer than offered: it is full), or a
 * negative errno: the connection is broken. The wire must not be blocked. */
ssize_t wire_send(struct wire *wire, const struct iovec *pieces, int count);
/* Copies the pieces, to be sent before anything else. 0; -ENOMEM. */
int wire_hold(struct wire *wire, const struct iovec *pieces, int count);
/* Sends what the socket takes and holds the rest; while the wire is blocked, holds everything. 0; a
 * negative errno: broken. */
int wire_write(struct wire *wire, struct sl_slice bytes);
/* From wire_cork() on, output is held until wire_uncork() sends it together. The wire must not be
 * blocked. wire_uncork() returns 0; a negative errno: broken. */
void wire_cork(struct wire *wire);
int wire_uncork(struct wire *wire);
/* Tells the peer that nothing more will be sent, so that it may close. Nothing may be held.
 * `writable` is not called any more. */
void wire_finish(struct wire *wire);

/* While a wire does not read, the end of its connection is not noticed either. */
void wire_stop_reading(struct wire *wire);
void wire_resume_reading(struct wire *wire);
/* Whether the peer has sent something that was not passed to a callback yet: unread bytes, or part
 * of a TLS handshake. */
bool wire_has_begun(const struct wire *wire);

/* The address of the peer; none on a Unix socket. */
struct ip_address wire_peer(const struct wire *wire);
/* Sets the client on behalf of which this peer, a trusted proxy, speaks; without one, the peer
 * itself is the client. */
void wire_set_client(struct wire *wire, const struct ip_address *client, bool is_secure);
/* The address of the client, of the peer or behind trusted proxies, without the port: 4 or 16 bytes
 * in `room`; empty on a Unix socket. It is used for all counts by address. */
struct sl_slice wire_client_address(const struct wire *wire, char room[static WIRE_ADDRESS_SIZE]);
