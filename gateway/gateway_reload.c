/* gateway_reload.c - on SIGHUP: the settings, keys, certificate and the auditor's file are read and
 * opened by a thread of the loop's pool, and applied on the loop.
 *
 * Until then the old settings are in use, so a slow disk or a large key set delays the new ones and
 * nothing else. The thread reads the current settings too, which is safe because only the end of
 * the reading changes them. Everything is applied, or, if anything is invalid, nothing but the
 * auditor's file. A worker that is stopping ignores what was read. */
#include "gateway/gateway_private.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/access/audit_log.h"
#include "gateway/config/config_reload.h"
#include "gateway/delivery/deliver.h"
#include "gateway/front/audit_file.h"
#include "gateway/http/wire.h"
#include "gateway/serve/access_watch.h"
#include "gateway/serve/server.h"
#include "gateway/serve/worker_keys.h"

struct gateway_reading {
    struct gateway *gateway;
    uv_work_t work;
    struct config *fresh; /* NULL: they could not be read */
    struct config merged;
    struct front_config front;
    struct wire_certificate *certificate; /* NULL: there is no TLS */
    int r;
    struct failure why;
    int audit_fd; /* -1: it is off, or see audit_r */
    int audit_r;
    struct failure audit_why;
};

int gateway_use_front(struct gateway *gateway, struct failure *reterr)
{
    if (gateway->access)
        access_watch_set_policy(gateway->access, gateway->front.policy);
    if (gateway->parts->worker == 0) /* one worker is enough */
        front_config_warn(&gateway->front);
    return worker_keys_renew(gateway->keys) < 0 ? failure_set(reterr, -ENOMEM, "out of memory") : 0;
}

/* --- in the thread --- */

static int read_all(struct gateway_reading *reading)
{
    const struct config *merged = &reading->merged;
    int r = config_reload_read(reading->gateway->parts->config, &reading->fresh, &reading->why);

    if (r < 0)
        return r;
    config_reload_merge(reading->gateway->parts->config, reading->fresh, &reading->merged);
    if (merged->tls_cert)
        r = wire_certificate_new(merged->tls_cert, merged->tls_key, &reading->certificate,
                                 &reading->why);
    return r == 0 ? front_config_read(&reading->front, merged, &reading->why) : r;
}

static void read_aside(uv_work_t *work)
{
    struct gateway_reading *reading = work->data;
    const char *audit;

    reading->r = read_all(reading);
    audit = config_audit_log(reading->r == 0 ? &reading->merged : reading->gateway->parts->config);
    reading->audit_fd = audit ? audit_file_open(audit, &reading->audit_why) : -1;
    reading->audit_r = audit && reading->audit_fd < 0 ? reading->audit_fd : 0;
}

/* --- on the loop --- */

static void audit_reload(struct gateway *gateway)
{
    struct buffer json;

    if (gateway->parts->worker == 0 && audit_begin(gateway->audit, "reloaded", &json))
        audit_end_take(gateway->audit, &json);
}

/* Existing streams are unchanged: their tokens and certificates were valid when they began. */
static int apply(struct gateway_reading *reading)
{
    struct gateway *gateway = reading->gateway;
    struct config *config = gateway->parts->config;

    config_reload_apply_take(config, reading->fresh, NULL); /* the parent reports what is left */
    reading->fresh = NULL;
    front_config_replace_take(&gateway->front, &reading->front, config);
    reading->front = (struct front_config){.policy = NULL};
    if (reading->certificate)
        server_set_certificate_take(gateway->server, reading->certificate);
    reading->certificate = NULL;
    deliver_set_limits(gateway->deliver, config->max_owed_bytes, config->max_shared_bytes,
                       config->max_home_bytes, config->max_lag_ms);
    return gateway_use_front(gateway, &reading->why);
}

static void set_audit_log(struct gateway_reading *reading)
{
    struct gateway *gateway = reading->gateway;
    char room[LOG_QUOTE_SIZE];

    if (reading->audit_r == 0)
        audit_log_set_file_take(gateway->audit, reading->audit_fd);
    else
        log_error("audit_log_not_opened", "worker=%u why=%s", gateway->parts->worker,
                  log_quote(sl_slice_str(reading->audit_why.text), room));
    reading->audit_fd = -1;
}

static void report(const struct gateway *gateway, int r, const struct failure *why)
{
    char room[LOG_QUOTE_SIZE];

    if (r == 0)
        log_info("worker_reloaded", "worker=%u", gateway->parts->worker);
    else
        log_error("worker_not_reloaded", "worker=%u why=%s", gateway->parts->worker,
                  log_quote(sl_slice_str(why->text), room));
}

static void reading_free(struct gateway_reading *reading)
{
    front_config_done(&reading->front);
    wire_certificate_free(reading->certificate);
    config_free(reading->fresh);
    if (reading->audit_fd >= 0)
        close(reading->audit_fd);
    mem_free(reading);
}

static void on_read(uv_work_t *work, int status)
{
    struct gateway_reading *reading = work->data;
    struct gateway *gateway = reading->gateway;

    (void)status; /* never cancelled */
    gateway->reading = NULL;
    if (!gateway->is_stopping) {
        if (reading->r == 0)
            reading->r = apply(reading);
        set_audit_log(reading);
        if (reading->r == 0)
            audit_reload(gateway);
        report(gateway, reading->r, &reading->why);
    }
    reading_free(reading);
    if (gateway->is_reading_again && !gateway->is_stopping)
        gateway_reload(gateway);
}

void gateway_reload(struct gateway *gateway)
{
    struct gateway_reading *reading;

    gateway->is_reading_again = gateway->reading != NULL;
    if (gateway->reading)
        return;
    reading = mem_zalloc(sizeof(*reading));
    if (reading) {
        reading->gateway = gateway;
        reading->work.data = reading;
        reading->front.metrics = gateway->metrics;
        reading->audit_fd = -1;
    }
    if (reading && uv_queue_work(&gateway->loop, &reading->work, read_aside, on_read) == 0) {
        gateway->reading = reading;
        return;
    }
    mem_free(reading);
    report(gateway, -ENOMEM, &(struct failure){"out of memory"});
}
