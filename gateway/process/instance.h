/* gateway/process/instance.h - what a running sluiced has for itself: its ports, its data
 * directory, its private Redis.
 *
 * They are taken fresh, or from a sluiced that runs and that this one is to replace. */
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
    unsigned inherited[LISTENER_COUNT];  /* of a listener's sockets: these come first, and listen */
    const char *data_dir;                /* where a successor may ask; NULL: nowhere */
    struct private_redis *private_redis; /* NULL: the settings name another */
    bool has_predecessor;
    struct heritage heritage; /* then: what is left of it when its parts have been taken */
    char room[SL_DATA_DIR_SIZE];
};

#define INSTANCE_INIT ((struct instance){0})

/* 0; a negative errno: *reterr says which setting is in the way. instance_done() either way. */
int instance_take(const struct config *config, unsigned workers, struct instance *ret_instance,
                  struct failure *reterr);
/* The listeners are the supervisor's to close. */
void instance_done(struct instance *instance);
