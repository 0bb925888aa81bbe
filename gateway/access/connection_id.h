/* gateway/access/connection_id.h - the name of a connection, for its owner and for operators.
 *
 *     gggggggg wwww ssssss rrrrrrrrrrrrrr     32 hexadecimal digits, without the spaces
 *
 * The gateway (a number that it draws when it starts), the worker, the slot among all streams of
 * the gateway, and random digits, so that nobody names a connection that has not been told of it.
 * So whoever has an id knows which worker to ask. It is kept nowhere, and ends with the connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum {
    WORKER_NAME_SIZE = 8 + 4 + 1,
    CONNECTION_ID_SIZE = 32 + 1 /* with the NUL */
};

/* A worker of all gateways: the first digits of its connections' ids. */
void worker_name_print(uint32_t gateway, uint32_t worker, char ret_name[static WORKER_NAME_SIZE]);
bool worker_name_is_valid(struct sl_slice text);

/* `slot` below 2^24; of `random` 56 bits count. */
void connection_id_print(const char *worker_name, uint32_t slot, uint64_t random,
                         char ret_id[static CONNECTION_ID_SIZE]);
bool connection_id_is_valid(struct sl_slice text);
/* Of a valid id. */
void connection_id_worker(const char *id, char ret_name[static WORKER_NAME_SIZE]);
uint32_t connection_id_slot(const char *id);
