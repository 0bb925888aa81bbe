#include "gateway/provider/discovery.h"

#include <errno.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/front/key_source.h"

static struct sl_slice text_of(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);

    return json_is_string(text) ? sl_slice(json_string_value(text), json_string_length(text))
                                : SL_SLICE_NONE;
}

static enum fetch_result read_object(const json_t *object, const char *issuer, char **ret_url,
                                     struct failure *reterr)
{
    struct sl_slice says = text_of(object, "issuer"), url = text_of(object, "jwks_uri");
    char room[LOG_QUOTE_SIZE];
    struct failure why;

    if (!says.data || !sl_slice_is(says, issuer)) {
        failure_set(reterr, -EINVAL, "the issuer in the discovery document is %s",
                    says.data ? log_quote(says, room) : "missing");
        return FETCH_WRONG_ISSUER;
    }
    if (!url.data || key_url_check(url, &why) < 0) {
        failure_set(reterr, -EINVAL, "the jwks_uri in the discovery document: %s",
                    url.data ? why.text : "missing");
        return FETCH_BAD_URL;
    }
    if (key_url_is_plain(url) && !key_url_is_plain(sl_slice_str(issuer))) {
        failure_set(reterr, -EINVAL,
                    "the discovery document came by https, but its jwks_uri is http");
        return FETCH_BAD_URL;
    }
    *ret_url = mem_strndup(url.data, url.size);
    if (*ret_url)
        return FETCH_GOOD;
    failure_set(reterr, -ENOMEM, "out of memory");
    return FETCH_NOT_WRITTEN;
}

enum fetch_result discovery_read(struct sl_slice document, const char *issuer, char **ret_url,
                                 struct failure *reterr)
{
    enum fetch_result result = FETCH_NOT_JSON;
    json_t *object = json_loadb(document.data, document.size, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(object))
        result = read_object(object, issuer, ret_url, reterr);
    else
        failure_set(reterr, -EBADMSG, "the discovery document is not a JSON object");
    json_decref(object);
    return result;
}
