/* gateway/access/connection_id.h - ids of connections, for their owners and for operators.
 *
 *     gggggggg wwww ssssss rrrrrrrrrrrrrr     32 hexadecimal digits, without the spaces
 *
 * An id consists of the gateway (a random number chosen at its start), the worker, the connection's
 * index among all streams of the gateway, and random digits, so that nobody can guess an id. It
 * shows which worker has the connection. It is stored nowhere else, and is valid as long as the
 * connection exists. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum {
    WORKER_NAME_SIZE = 8 + 4 + 1,
    CONNECTION_ID_SIZE = 32 + 1 /* with the terminating NUL */
};

/* The name of a worker, unique among all gateways: the first digits of its connections' ids. */
void worker_name_print(uint32_t gateway, uint32_t worker, char ret_name[static WORKER_NAME_SIZE]);
bool worker_name_is_valid(struct sl_slice text);

/* `slot` must be below 2^24. The low 56 bits of `random` are used. */
void connection_id_print(const char *worker_name, uint32_t slot, uint64_t random,
                         char ret_id[static CONNECTION_ID_SIZE]);
bool connection_id_is_valid(struct sl_slice text);
/* `id` must be valid. */
void connection_id_worker(const char *id, char ret_name[static WORKER_NAME_SIZE]);
uint32_t connection_id_slot(const char *id);
