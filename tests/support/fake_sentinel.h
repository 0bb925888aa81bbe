/* tests/support/fake_sentinel.h - a sentinel with prepared answers, on its own port. It reads
 * nothing unless asked to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/redis/redis_address.h"

struct fake_sentinel {
    int listener;
    int connection; /* -1: nobody has connected, or the connection was closed */
    struct sl_redis_endpoint endpoint;
};

void fake_sentinel_open(struct fake_sentinel *sentinel);
void fake_sentinel_close(struct fake_sentinel *sentinel);

/* Returns whether a client has connected, and closes the previous connection. Waits if `waits`. */
bool fake_sentinel_accept(struct fake_sentinel *sentinel, bool waits);
void fake_sentinel_hang_up(struct fake_sentinel *sentinel);

/* Sends; `format` as in printf, with the bytes of the protocol. */
void fake_sentinel_say(struct fake_sentinel *sentinel, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sends the answers to a client that has asked for the master and subscribed. */
void fake_sentinel_name(struct fake_sentinel *sentinel, const char *host, unsigned port);
/* Publishes "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT" on its channel. */
void fake_sentinel_tell(struct fake_sentinel *sentinel, const char *text);

/* Reads what has arrived so far, NUL-terminated. */
void fake_sentinel_read(struct fake_sentinel *sentinel, char *room, size_t size);
