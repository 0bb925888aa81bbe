/* front_config.c - converts settings to the structs of front.
 *
 * The keys are read first, so that invalid settings change nothing. A limit of 0 means none in the
 * settings, and is converted to a number that is never reached. */
#include "gateway/serve/front_config.h"

#include <string.h>

#include "base/log.h"
#include "gateway/config/config_keys.h"
#include "gateway/front/dialect.h"
#include "gateway/front/token.h"

static unsigned dialects_of(const struct config *config)
{
    unsigned dialects = 0;

    if (config->dialects)
        dialects_parse(sl_slice_str(config->dialects), &dialects, NULL); /* already checked */
    return dialects;
}

static uint64_t bound(uint64_t setting)
{
    return setting > 0 ? setting : USE_UNBOUNDED;
}

static struct use_limits subject_limits(const struct config *config)
{
    return (struct use_limits){{
        [USE_CONNECTS] = bound(config->max_connects_per_minute),
        [USE_REQUESTS] = bound(config->max_requests_per_second),
        [USE_BAD_TOKENS] = USE_UNBOUNDED,
        [USE_EVENTS] = bound(config->max_events_per_day),
        [USE_BYTES] = bound(config->max_bytes_per_day),
        [USE_REPLAYED] = bound(config->max_replayed_per_day),
        [USE_STREAMS] = bound(config->max_connections_per_subject),
    }};
}

static struct use_limits address_limits(const struct config *config)
{
    return (struct use_limits){{
        [USE_CONNECTS] = bound(config->max_connects_per_minute_per_address),
        [USE_REQUESTS] = bound(config->max_requests_per_second_per_address),
        [USE_BAD_TOKENS] = bound(config->max_bad_tokens_per_minute),
        [USE_EVENTS] = bound(config->max_events_per_day_per_address),
        [USE_BYTES] = bound(config->max_bytes_per_day_per_address),
        [USE_REPLAYED] = bound(config->max_replayed_per_day_per_address),
        [USE_STREAMS] = bound(config->max_connections_per_address),
    }};
}

static struct front_settings settings_of(const struct config *config,
                                         const struct token_policy *policy)
{
    return (struct front_settings){
        .policy = policy,
        .max_gather_ms = (uint32_t)config->max_gather_ms,
        .admission = {.streams = (uint32_t)config->max_connections,
                      .per_subject = (uint32_t)config->max_connections_per_subject,
                      .per_address = (uint32_t)config->max_connections_per_address,
                      .replace = config->replace_oldest},
        .subject_uses = subject_limits(config),
        .address_uses = address_limits(config),
        .max_filter_bytes = config->max_filter_bytes,
        .max_filter_bytes_per_subject = config->max_filter_bytes_per_subject,
        .keepalive_ms = (uint32_t)config->keepalive_ms,
        .dialects = dialects_of(config),
        .takes_plain_oauth = config->plain_oauth,
        .ticket_ms = (uint32_t)config->ticket_ttl_ms,
        .has_sessions = strcmp(config->session_cookie, "on") == 0,
        .token_warning_ms = (uint32_t)config->token_warning_ms,
        .has_deflate = strcmp(config->compression, "all") == 0,
        .has_zstd = strcmp(config->compression, "off") != 0,
    };
}

/* A provider signs the tokens of all its applications with the same key. */
static bool lacks_audience(const struct config *config, const struct key_sources *sources)
{
    for (unsigned i = 0; i < sources->count && !config->jwt_audience; i++) {
        if (config->jwt_issuer && strcmp(sources->items[i].issuer, config->jwt_issuer) == 0)
            return true;
    }
    return false;
}

static struct origin_policy origins_of(const struct config *config)
{
    return (struct origin_policy){
        .any = config->dev,
        .allowed = (const char *const *)config->allow_origins.items,
        .allowed_count = config->allow_origins.count,
    };
}

int front_config_read(struct front_config *front, const struct config *config,
                      struct failure *reterr)
{
    struct key_sources sources = {0};
    const struct token_policy_settings settings = {
        .secret_file = config->jwt_secret_file,
        .public_key_files = (const char *const *)config->jwt_public_keys.items,
        .public_key_count = config->jwt_public_keys.count,
        .jwks_files = (const char *const *)config->jwks_files.items,
        .jwks_file_count = config->jwks_files.count,
        .issuer = config->jwt_issuer,
        .audience = config->jwt_audience,
        .subject_claim = config->jwt_subject_claim,
        .issuers_file = config->issuers_file,
        .remembered_tokens = (unsigned)config->remembered_tokens,
        .sources = &sources,
        .allows_bad_sets = front->allows_bad_sets,
        .metrics = front->metrics,
    };
    struct token_policy *policy;
    struct ip_networks proxies = {.count = 0};
    int r;

    if (config->trusted_proxies) {
        r = ip_networks_parse(sl_slice_str(config->trusted_proxies), &proxies, reterr);
        if (r < 0)
            return r;
    }
    r = config_key_sources(config, &sources, reterr);
    if (r == 0)
        r = token_policy_new(&settings, &policy, reterr);
    if (r < 0) {
        key_sources_done(&sources);
        return r;
    }
    front->sources = sources;
    front->lacks_audience = lacks_audience(config, &sources);
    front->origins = origins_of(config);
    front->trust.proxies = proxies;
    front->trust.reads_forwarded = strcmp(config->client_address, "forwarded") == 0;
    front->policy = policy;
    front->front = settings_of(config, policy);
    return 0;
}

void front_config_replace_take(struct front_config *front, struct front_config *next,
                               const struct config *config)
{
    front_config_done(front);
    *front = *next;
    front->origins = origins_of(config);
}

void front_config_warn(const struct front_config *front)
{
    const char *warning;

    for (unsigned i = 0; (warning = token_policy_warning(front->policy, i)) != NULL; i++)
        log_warn("weak_keys", "why=\"%s\"", warning);
    if (front->lacks_audience)
        log_warn("weak_keys",
                 "why=\"without jwt-audience tokens that the identity provider makes for "
                 "other applications are good here\"");
}

void front_config_done(struct front_config *front)
{
    token_policy_free(front->policy);
    key_sources_done(&front->sources);
}
