#include "gateway/config/config_keys.h"

#include <errno.h>

#include "gateway/front/issuers.h"
#include "src/model/data_dir.h"

static bool has_other_keys(const struct config *config)
{
    return config->jwt_secret_file || config->jwt_public_keys.count > 0 ||
           config->jwks_files.count > 0;
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

static int find_folder(const struct config *config, char room[static SL_DATA_DIR_SIZE],
                       const char **ret_folder, struct failure *reterr)
{
    struct failure why;
    int r = 0;

    *ret_folder = config->data_dir;
    if (!config->data_dir) {
        r = sl_data_dir(room, &why);
        *ret_folder = room;
    }
    return r < 0 ? config_refuse(config, CONFIG_OPTION_data_dir, reterr, r,
                                 "fetched keys have no place: %s", why.text)
                 : 0;
}

static int add_own(const struct config *config, struct key_sources *sources, struct failure *reterr)
{
    char room[SL_DATA_DIR_SIZE];
    const char *folder;
    int r;

    if (config->jwks_urls.count == 0 && !has_discovery(config))
        return 0;
    r = find_folder(config, room, &folder, reterr);
    if (r == 0 && has_discovery(config))
        return add(config, CONFIG_OPTION_jwt_issuer, folder, NULL, sources, reterr);
    for (unsigned i = 0; i < config->jwks_urls.count && r == 0; i++)
        r = add(config, CONFIG_OPTION_jwks_urls, folder, config->jwks_urls.items[i], sources,
                reterr);
    return r;
}

static int add_issuers(const struct config *config, const struct issuer_list *list,
                       struct key_sources *sources, struct failure *reterr)
{
    char room[SL_DATA_DIR_SIZE];
    struct failure why;
    const char *folder;
    int r = 0;

    for (unsigned i = 0; i < list->count && r == 0; i++) {
        if (!issuer_is_fetched(&list->items[i]))
            continue;
        r = find_folder(config, room, &folder, reterr);
        if (r < 0)
            return r;
        r = key_sources_add(sources, folder, list->items[i].name, list->items[i].jwks_url, &why);
        if (r < 0)
            r = config_refuse(config, CONFIG_OPTION_issuers_file, reterr, r, "%s", why.text);
    }
    return r;
}

int config_key_sources(const struct config *config, struct key_sources *sources,
                       struct failure *reterr)
{
    struct issuer_list *list = NULL;
    struct failure why;
    int r = add_own(config, sources, reterr);

    if (r < 0 || !config->issuers_file)
        return r;
    r = issuers_read(config->issuers_file, &list, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_issuers_file, reterr, r, "%s", why.text);
    r = add_issuers(config, list, sources, reterr);
    issuers_free(list);
    return r;
}
