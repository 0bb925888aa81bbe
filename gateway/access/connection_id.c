#include "gateway/access/connection_id.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_DIGITS = 6 };

static bool is_hexadecimal(struct sl_slice text, size_t size)
{
    if (text.size != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = text.data[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

void worker_name_print(uint32_t gateway, uint32_t worker, char ret_name[static WORKER_NAME_SIZE])
{
    assert(worker <= UINT16_MAX);
    snprintf(ret_name, WORKER_NAME_SIZE, "%08" PRIx32 "%04" PRIx32, gateway, worker & UINT16_MAX);
}

bool worker_name_is_valid(struct sl_slice text)
{
    return is_hexadecimal(text, WORKER_NAME_SIZE - 1);
}

void connection_id_print(const char *worker_name, uint32_t slot, uint64_t random,
                         char ret_id[static CONNECTION_ID_SIZE])
{
    assert(slot < UINT32_C(1) << 24);
    snprintf(ret_id, CONNECTION_ID_SIZE, "%s%06" PRIx32 "%014" PRIx64, worker_name, slot,
             random & ((UINT64_C(1) << 56) - 1));
}

bool connection_id_is_valid(struct sl_slice text)
{
    return is_hexadecimal(text, CONNECTION_ID_SIZE - 1);
}

void connection_id_worker(const char *id, char ret_name[static WORKER_NAME_SIZE])
{
    memcpy(ret_name, id, WORKER_NAME_SIZE - 1);
    ret_name[WORKER_NAME_SIZE - 1] = '\0';
}

uint32_t connection_id_slot(const char *id)
{
    char digits[SLOT_DIGITS + 1] = "";

    memcpy(digits, id + WORKER_NAME_SIZE - 1, SLOT_DIGITS);
    return (uint32_t)strtoul(digits, NULL, 16);
}
