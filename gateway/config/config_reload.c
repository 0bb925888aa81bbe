/* config_reload.c - reads all settings again and applies those that may change.
 *
 * The table of options has the offset and size of each field, so that old and new values are
 * compared and exchanged without code for each. The caller is told which other settings have
 * changed; these keep their values. TLS may get another certificate, but cannot be switched on or
 * off. */
#include "gateway/config/config_reload.h"

#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "gateway/config/config_files.h"

/* Settings that are read each time they are used, or about which the worker informs its parts.
 * Everything that other settings determined at the start (sizes of tables, sockets, Redis) stays as
 * it is. */
static const enum config_option reloadable[] = {
    CONFIG_OPTION_jwt_secret_file,
    CONFIG_OPTION_jwt_public_keys,
    CONFIG_OPTION_jwks_files,
    CONFIG_OPTION_jwt_issuer,
    CONFIG_OPTION_jwks_urls,
    CONFIG_OPTION_jwks_ca,
    CONFIG_OPTION_jwks_timeout_ms,
    CONFIG_OPTION_jwks_refresh_min_ms,
    CONFIG_OPTION_jwks_refresh_max_ms,
    CONFIG_OPTION_jwks_again_ms,
    CONFIG_OPTION_keys_removed,
    CONFIG_OPTION_keys_removed_after_ms,
    CONFIG_OPTION_jwt_audience,
    CONFIG_OPTION_jwt_subject_claim,
    CONFIG_OPTION_issuers_file,
    CONFIG_OPTION_remembered_tokens,
    CONFIG_OPTION_tls_cert,
    CONFIG_OPTION_tls_key,
    CONFIG_OPTION_allow_origins,
    CONFIG_OPTION_ticket_ttl_ms,
    CONFIG_OPTION_session_cookie,
    CONFIG_OPTION_audit_log,
    CONFIG_OPTION_dev,
    CONFIG_OPTION_trusted_proxies,
    CONFIG_OPTION_client_address,
    CONFIG_OPTION_log_level,
    CONFIG_OPTION_log_format,
    CONFIG_OPTION_drain_timeout_ms,
    CONFIG_OPTION_worker_timeout_ms,
    CONFIG_OPTION_keepalive_ms,
    CONFIG_OPTION_max_connections,
    CONFIG_OPTION_max_connections_per_subject,
    CONFIG_OPTION_max_connections_per_address,
    CONFIG_OPTION_replace_oldest,
    CONFIG_OPTION_max_connects_per_minute,
    CONFIG_OPTION_max_connects_per_minute_per_address,
    CONFIG_OPTION_max_bad_tokens_per_minute,
    CONFIG_OPTION_max_requests_per_second,
    CONFIG_OPTION_max_requests_per_second_per_address,
    CONFIG_OPTION_max_events_per_day,
    CONFIG_OPTION_max_events_per_day_per_address,
    CONFIG_OPTION_max_bytes_per_day,
    CONFIG_OPTION_max_bytes_per_day_per_address,
    CONFIG_OPTION_max_replayed_per_day,
    CONFIG_OPTION_max_replayed_per_day_per_address,
    CONFIG_OPTION_max_request_bytes,
    CONFIG_OPTION_max_filter_bytes,
    CONFIG_OPTION_max_filter_bytes_per_subject,
    CONFIG_OPTION_max_home_bytes,
    CONFIG_OPTION_max_owed_bytes,
    CONFIG_OPTION_max_shared_bytes,
    CONFIG_OPTION_max_lag_ms,
};

enum kind { KIND_TEXT, KIND_LIST, KIND_NUMBER, KIND_FLAG };

static const struct field {
    enum kind kind;
    size_t offset, size; /* in struct config */
    const char *name;
} fields[] = {
#define FIELD(kind, field, name)                                                                   \
    {kind, offsetof(struct config, field), sizeof(((struct config *)0)->field), name},
#define SECTION(title)
#define TEXT(field, name, ...)   FIELD(KIND_TEXT, field, name)
#define LIST(field, name, ...)   FIELD(KIND_LIST, field, name)
#define NUMBER(field, name, ...) FIELD(KIND_NUMBER, field, name)
#define BYTES(field, name, ...)  FIELD(KIND_NUMBER, field, name)
#define TIME(field, name, ...)   FIELD(KIND_NUMBER, field, name)
#define FLAG(field, name, ...)   FIELD(KIND_FLAG, field, name)
#include "gateway/config/config_table.def"
#undef FIELD
};

static bool texts_are_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool lists_are_equal(const struct config_list *a, const struct config_list *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++) {
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    }
    return true;
}

static bool is_equal(const struct field *field, const struct config *a, const struct config *b)
{
    const void *in_a = (const char *)a + field->offset;
    const void *in_b = (const char *)b + field->offset;

    switch (field->kind) {
    case KIND_TEXT:
        return texts_are_equal(*(char *const *)in_a, *(char *const *)in_b);
    case KIND_LIST:
        return lists_are_equal(in_a, in_b);
    case KIND_NUMBER:
    case KIND_FLAG:
        return memcmp(in_a, in_b, field->size) == 0;
    }
    return true;
}

/* Afterwards `from` has the old value of `to`, for config_free(). */
static void exchange(enum config_option option, struct config *to, struct config *from)
{
    char *a = (char *)to + fields[option].offset;
    char *b = (char *)from + fields[option].offset;
    char room[sizeof(struct config_list)];
    size_t size = fields[option].size;

    memcpy(room, a, size);
    memcpy(a, b, size);
    memcpy(b, room, size);
    to->origins[option] = from->origins[option];
}

/* Whether TLS is switched on or off, as opposed to a change of the certificate. */
static bool changes_tls(const struct config *config, const struct config *fresh)
{
    return !config->tls_cert != !fresh->tls_cert;
}

static bool is_reloadable(enum config_option option, bool with_tls)
{
    if (!with_tls && (option == CONFIG_OPTION_tls_cert || option == CONFIG_OPTION_tls_key))
        return false;
    for (size_t i = 0; i < sizeof(reloadable) / sizeof(reloadable[0]); i++) {
        if (reloadable[i] == option)
            return true;
    }
    return false;
}

int config_reload_read(const struct config *config, struct config **ret_fresh,
                       struct failure *reterr)
{
    return config_read(config->sources.argc, config->sources.argv, config->sources.environment,
                       ret_fresh, reterr);
}

void config_reload_merge(const struct config *config, const struct config *fresh,
                         struct config *ret_merged)
{
    bool with_tls = !changes_tls(config, fresh);

    *ret_merged = *config;
    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        const struct field *field = &fields[i];

        if (is_reloadable((enum config_option)i, with_tls))
            memcpy((char *)ret_merged + field->offset, (const char *)fresh + field->offset,
                   field->size);
    }
}

void config_reload_apply_take(struct config *config, struct config *fresh, struct buffer *ret_left)
{
    bool with_tls = !changes_tls(config, fresh);

    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        enum config_option option = (enum config_option)i;

        if (is_equal(&fields[i], config, fresh))
            continue;
        if (is_reloadable(option, with_tls))
            exchange(option, config, fresh);
        else if (ret_left)
            buffer_append_format(ret_left, ", %s", fields[i].name);
    }
    config_set_log(config);
    config_free(fresh);
}

int config_reload(struct config *config, struct buffer *ret_left, struct failure *reterr)
{
    struct config *fresh;
    int r = config_reload_read(config, &fresh, reterr);

    if (r < 0)
        return r;
    r = config_check_files(fresh, reterr);
    if (r == 0)
        config_reload_apply_take(config, fresh, ret_left);
    else
        config_free(fresh);
    return r;
}
