/* instance.c - acquires what can exist only once: ports, the data directory, the private Redis.
 *
 * The order matters, because a port in use makes a better error message than a directory in use. If
 * a sluiced runs in the same directory, it is asked for its sockets and its locks (takeover.h); it
 * keeps them as well, and continues to serve if a later step fails here. Blocks; this happens
 * before there are workers. */
#include "gateway/process/instance.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "gateway/http/listener.h"
#include "gateway/process/folder.h"

/* --- the data directory --- */

/* NULL: there is none, which matters only to a private Redis. */
static const char *find_data_dir(const struct config *config, char room[static SL_DATA_DIR_SIZE])
{
    if (config->data_dir)
        return config->data_dir;
    return sl_data_dir(room, NULL) == 0 ? room : NULL;
}

/* Opens the socket on which a successor may ask for what we have. A failure is no obstacle to
 * serving: several processes may share a directory that does not contain the data of any of
 * them. */
static void offer_takeover(const char *data_dir, struct instance *instance)
{
    pid_t other = data_dir && !instance->has_predecessor ? takeover_find(data_dir) : 0;
    struct failure why;
    int r = 0;

    if (!data_dir)
        return;
    if (other)
        r = failure_set(&why, -EBUSY, "process %d is asked in '%s' already", (int)other, data_dir);
    else
        r = folder_make(data_dir, &why);
    if (r == 0)
        instance->data_dir = data_dir;
    else
        log_warn("no_takeover", "why=\"%s\"", why.text);
}

static int open_private_redis(const struct config *config, const char *data_dir,
                              struct instance *instance, struct failure *reterr)
{
    struct failure why;
    int lock = -1;
    int r;

    if (!data_dir) {
        char room[SL_DATA_DIR_SIZE];

        r = sl_data_dir(room, &why);
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    }
    if (instance->has_predecessor) {
        lock = instance->handover.lock;
        instance->handover.lock = -1;
    }
    r = private_redis_inherit(data_dir, config->redis_server, lock, &instance->private_redis, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    return 0;
}

/* --- the ports --- */

static const enum config_option listener_options[LISTENER_COUNT] = {
    [LISTENER_PUBLIC] = CONFIG_OPTION_listen,
    [LISTENER_OPS] = CONFIG_OPTION_ops_listen,
};

static int open_listener(const struct config *config, enum listener_kind kind,
                         const struct listen_address *address, const char *data_dir,
                         struct instance *instance, struct failure *reterr)
{
    struct listener *listener = &instance->listeners[kind];
    struct failure why;
    pid_t other = 0;
    int r;

    r = listener_open(address, listener->count, listener->sockets, &listener->port, &why);
    if (r < 0)
        listener->count = 0;
    if (r == -EADDRINUSE && data_dir && !instance->has_predecessor)
        other = takeover_find(data_dir);
    if (r == -EADDRINUSE && kind != LISTENER_PUBLIC &&
        address->port == instance->listeners[LISTENER_PUBLIC].port)
        return config_refuse(config, listener_options[kind], reterr, r, "port %u is that of listen",
                             address->port);
    if (other)
        return config_refuse(config, listener_options[kind], reterr, r,
                             "%s; a sluiced runs as process %d, and --takeover would take its "
                             "place",
                             why.text, (int)other);
    if (r < 0)
        return config_refuse(config, listener_options[kind], reterr, r, "%s", why.text);
    log_debug("listening", "host=%s port=%u sockets=%u", address->host[0] ? address->host : "*",
              listener->port, listener->count);
    return 0;
}

/* The first of the sockets that is not bound to `address`; NULL: all are. */
static const int *find_elsewhere(struct listener *listener, const struct listen_address *address)
{
    for (unsigned i = 0; i < listener->count; i++) {
        if (!listener_is_at(listener->sockets[i], address, &listener->port))
            return &listener->sockets[i];
    }
    return NULL;
}

/* Takes every socket of the predecessor, so that none of its connections is lost, and opens more if
 * there are fewer than workers. */
static int inherit_listener(const struct config *config, enum listener_kind kind,
                            struct instance *instance, struct failure *reterr)
{
    struct listener *listener = &instance->listeners[kind];
    unsigned workers = listener->count;
    int r;

    *listener = instance->handover.listeners[kind];
    instance->handover.listeners[kind].count = 0;
    instance->inherited[kind] = listener->count;
    if (listener->count >= workers)
        return 0;
    r = listener_add(listener->sockets, listener->count, workers);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, r,
                             "cannot open more sockets on port %u: %s", listener->port,
                             strerror(-r));
    listener->count = workers;
    return 0;
}

/* Without a predecessor we are the first. */
static int find_predecessor(const struct config *config, const char *data_dir,
                            struct instance *instance, struct failure *reterr)
{
    struct handover *handover = &instance->handover;
    struct failure why;
    int r;

    if (!config->takeover)
        return 0;
    r = data_dir ? handover_request(data_dir, handover, &why) : -ENOENT;
    if (r == -ENOENT) {
        log_info("nobody_to_take_over", "data_dir=%s", data_dir ? data_dir : "none");
        return 0;
    }
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, r, "%s", why.text);
    instance->has_predecessor = true;
    if (config->redis && handover->lock >= 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, -EINVAL,
                             "the running sluiced (pid %d) has a private Redis, and this one is "
                             "told to use another",
                             (int)handover->pid);
    log_info("taking_over", "pid=%d sockets=%u", (int)handover->pid,
             handover->listeners[LISTENER_PUBLIC].count + handover->listeners[LISTENER_OPS].count);
    return 0;
}

/* The public listener must be that of the predecessor. The one for operators may differ. */
static int find_listener(const struct config *config, enum listener_kind kind, const char *data_dir,
                         struct instance *instance, bool *ret_with_proxy, struct failure *reterr)
{
    const char *text = kind == LISTENER_PUBLIC ? config->listen : config->ops_listen;
    struct handover *handover = &instance->handover;
    char room[LISTENER_DESCRIPTION_SIZE];
    struct listen_address address;
    struct failure why;
    const int *elsewhere;
    int r;

    if (!text) {
        instance->listeners[kind].count = 0;
        handover_close_listener(handover, kind);
        return 0;
    }
    r = listen_address_parse(sl_slice_str(text), &address, &why);
    if (r < 0)
        return config_refuse(config, listener_options[kind], reterr, r, "%s", why.text);
    *ret_with_proxy = address.with_proxy;
    elsewhere = find_elsewhere(&handover->listeners[kind], &address);
    if (elsewhere && kind == LISTENER_PUBLIC)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, -EINVAL,
                             "the running sluiced (pid %d) serves %s, not %s", (int)handover->pid,
                             listener_describe(*elsewhere, room), text);
    if (elsewhere)
        handover_close_listener(handover, kind);
    if (handover->listeners[kind].count > 0)
        return inherit_listener(config, kind, instance, reterr);
    return open_listener(config, kind, &address, data_dir, instance, reterr);
}

static int get_listener(const struct config *config, enum listener_kind kind, const char *data_dir,
                        struct instance *instance, struct failure *reterr)
{
    bool with_proxy = false;
    int r = find_listener(config, kind, data_dir, instance, &with_proxy, reterr);

    instance->listeners[kind].with_proxy = with_proxy; /* an inherited listener gets our setting */
    return r;
}

/* --- the whole instance --- */

int instance_take(const struct config *config, unsigned workers, struct instance *ret_instance,
                  struct failure *reterr)
{
    const char *data_dir = find_data_dir(config, ret_instance->room);
    int r;

    r = find_predecessor(config, data_dir, ret_instance, reterr);
    for (unsigned i = 0; i < LISTENER_COUNT && r == 0; i++) {
        ret_instance->listeners[i].count = workers;
        r = get_listener(config, (enum listener_kind)i, data_dir, ret_instance, reterr);
    }
    if (r == 0 && !config->redis)
        r = open_private_redis(config, data_dir, ret_instance, reterr);
    if (r == 0)
        offer_takeover(data_dir, ret_instance);
    return r;
}

void instance_done(struct instance *instance)
{
    if (instance->has_predecessor)
        handover_done(&instance->handover);
    private_redis_free(instance->private_redis);
}
