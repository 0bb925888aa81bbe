#include "gateway/config/config_keys.h"

#include <errno.h>

#include "src/model/data_dir.h"

static bool has_other_keys(const struct config *config)
{
    return config->jwt_secret_file || config->jwt_public_keys.count > 0;
}

static bool has_discovery(const struct config *config)
{
    return config->jwt_issuer && config->jwks_urls.count == 0 && !has_other_keys(config) &&
           key_issuer_has_discovery(sl_slice_str(config->jwt_issuer));
}

static int add(const struct config *config, enum config_option option, const char *folder,
               const char *url, struct key_sources *sources, struct failure *reterr)
{
    struct failure why;
    int r = key_sources_add(sources, folder, config->jwt_issuer, url, &why);

    return r < 0 ? config_refuse(config, option, reterr, r, "%s", why.text) : 0;
}

int config_key_sources(const struct config *config, struct key_sources *sources,
                       struct failure *reterr)
{
    const char *folder = config->data_dir;
    char room[SL_DATA_DIR_SIZE];
    struct failure why;
    int r = 0;

    if (config->jwks_urls.count == 0 && !has_discovery(config))
        return 0;
    if (!folder) {
        r = sl_data_dir(room, &why);
        if (r < 0)
            return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r,
                                 "fetched keys have no place: %s", why.text);
        folder = room;
    }
    if (has_discovery(config))
        return add(config, CONFIG_OPTION_jwt_issuer, folder, NULL, sources, reterr);
    for (unsigned i = 0; i < config->jwks_urls.count && r == 0; i++)
        r = add(config, CONFIG_OPTION_jwks_urls, folder, config->jwks_urls.items[i], sources,
                reterr);
    return r;
}
