/* place.c - the order matters: a port that is taken says more than a directory that is. */
#include "gateway/ops/place.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "gateway/ops/folder.h"
#include "gateway/ops/listener.h"

/* --- the data directory --- */

/* NULL: there is none, which only a private Redis would mind. */
static const char *find_data_dir(const struct config *config, char room[static SL_DATA_DIR_SIZE])
{
    if (config->data_dir)
        return config->data_dir;
    return sl_data_dir(room, NULL) == 0 ? room : NULL;
}

/* Where a successor may ask for our place. Who cannot be asked serves as well: several may share a
 * directory that none of them keeps its data in. */
static void offer_takeover(const char *data_dir, struct place *place)
{
    pid_t other = data_dir && !place->has_predecessor ? takeover_find(data_dir) : 0;
    struct failure why;
    int r = 0;

    if (!data_dir)
        return;
    if (other)
        r = failure_set(&why, -EBUSY, "process %d is asked in '%s' already", (int)other, data_dir);
    else
        r = folder_make(data_dir, &why);
    if (r == 0)
        place->data_dir = data_dir;
    else
        log_warn("no_takeover", "why=\"%s\"", why.text);
}

static int open_private_redis(const struct config *config, const char *data_dir,
                              struct place *place, struct failure *reterr)
{
    struct failure why;
    int lock = -1;
    int r;

    if (!data_dir) {
        char room[SL_DATA_DIR_SIZE];

        r = sl_data_dir(room, &why);
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    }
    if (place->has_predecessor) {
        lock = place->heritage.lock;
        place->heritage.lock = -1;
    }
    r = private_redis_inherit(data_dir, config->redis_server, lock, &place->private_redis, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    return 0;
}

/* --- the port --- */

static int open_listeners(const struct config *config, const struct listen_address *address,
                          const char *data_dir, struct place *place, struct failure *reterr)
{
    struct failure why;
    pid_t other = 0;
    int r;

    r = listener_open(address, place->listener_count, place->listeners, &place->port, &why);
    if (r == -EADDRINUSE && data_dir)
        other = takeover_find(data_dir);
    if (other)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r,
                             "%s; a sluiced runs as process %d, and --takeover would take its "
                             "place",
                             why.text, (int)other);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r, "%s", why.text);
    log_debug("listening", "host=%s port=%u sockets=%u", address->host[0] ? address->host : "*",
              place->port, place->listener_count);
    return 0;
}

/* Every socket of the predecessor is ours, so that none of its connections is lost, and one for
 * each worker at least. */
static int inherit_listeners(const struct config *config, const struct listen_address *address,
                             struct place *place, struct failure *reterr)
{
    struct heritage *heritage = &place->heritage;
    unsigned workers = place->listener_count;
    char room[LISTENER_DESCRIPTION_SIZE];
    int r;

    if (config->redis && heritage->lock >= 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, -EINVAL,
                             "the running sluiced (pid %d) has a private Redis, and this one is "
                             "told to use another",
                             (int)heritage->pid);
    for (unsigned i = 0; i < heritage->listener_count; i++) {
        if (!listener_is_at(heritage->listeners[i], address, &place->port))
            return config_refuse(config, CONFIG_OPTION_takeover, reterr, -EINVAL,
                                 "the running sluiced (pid %d) serves %s, not %s",
                                 (int)heritage->pid,
                                 listener_describe(heritage->listeners[i], room), config->listen);
    }
    if (workers < heritage->listener_count)
        place->listener_count = heritage->listener_count;
    for (unsigned i = 0; i < heritage->listener_count; i++) {
        place->listeners[i] = heritage->listeners[i];
        heritage->listeners[i] = -1;
    }
    place->heritage_listeners = heritage->listener_count;
    r = listener_add(place->listeners, heritage->listener_count, place->listener_count);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, r,
                             "cannot open more sockets on port %u: %s", place->port, strerror(-r));
    return 0;
}

/* With nobody to follow we are the first. */
static int find_predecessor(const struct config *config, const char *data_dir, struct place *place,
                            struct failure *reterr)
{
    struct heritage *heritage = &place->heritage;
    struct failure why;
    int r;

    if (!config->takeover)
        return 0;
    r = data_dir ? heritage_ask(data_dir, heritage, &why) : -ENOENT;
    if (r == -ENOENT) {
        log_info("nobody_to_take_over", "data_dir=%s", data_dir ? data_dir : "none");
        return 0;
    }
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, r, "%s", why.text);
    log_info("taking_over", "pid=%d sockets=%u", (int)heritage->pid, heritage->listener_count);
    place->has_predecessor = true;
    return 0;
}

static int get_listeners(const struct config *config, const char *data_dir, struct place *place,
                         struct failure *reterr)
{
    struct listen_address address;
    struct failure why;
    int r;

    r = listen_address_parse(sl_slice_str(config->listen), &address, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r, "%s", why.text);
    if (place->has_predecessor)
        return inherit_listeners(config, &address, place, reterr);
    return open_listeners(config, &address, data_dir, place, reterr);
}

/* --- all of it --- */

int place_take(const struct config *config, unsigned workers, struct place *ret_place,
               struct failure *reterr)
{
    const char *data_dir = find_data_dir(config, ret_place->room);
    int r;

    ret_place->listener_count = workers;
    r = find_predecessor(config, data_dir, ret_place, reterr);
    if (r == 0)
        r = get_listeners(config, data_dir, ret_place, reterr);
    if (r == 0 && !config->redis)
        r = open_private_redis(config, data_dir, ret_place, reterr);
    if (r == 0)
        offer_takeover(data_dir, ret_place);
    return r;
}

void place_done(struct place *place)
{
    if (place->has_predecessor)
        heritage_done(&place->heritage);
    private_redis_free(place->private_redis);
}
