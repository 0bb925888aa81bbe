/* gateway/process/instance.h - what a running sluiced owns exclusively: its ports, its data
 * directory, its private Redis.
 *
 * They are newly acquired, or taken from a running sluiced that this one replaces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/process/private_redis.h"
#include "gateway/process/takeover.h"
#include "src/model/data_dir.h"

struct instance {
    struct listener listeners[LISTENER_COUNT];
    unsigned inherited[LISTENER_COUNT];  /* number of a listener's sockets that were inherited,
                                            which come first and already listen */
    const char *data_dir;                /* where a successor may ask; NULL: nowhere */
    struct private_redis *private_redis; /* NULL: the settings name another Redis */
    bool has_predecessor;
    struct handover handover; /* with a predecessor: what was not taken from it */
    char room[SL_DATA_DIR_SIZE];
};

#define INSTANCE_INIT ((struct instance){0})

/* 0; a negative errno: *reterr says which setting is the reason. Call instance_done() in any
 * case. */
int instance_take(const struct config *config, unsigned workers, struct instance *ret_instance,
                  struct failure *reterr);
/* The supervisor closes the listeners. */
void instance_done(struct instance *instance);
