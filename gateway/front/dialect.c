#include "gateway/front/dialect.h"

#include <errno.h>
#include <string.h>

#include "gateway/http/form.h"
#include "gateway/http/http.h"

static const char *const names_of[DIALECT_COUNT] = {
    [DIALECT_TWITTER1] = "twitter1",
    [DIALECT_MASTODON] = "mastodon",
    [DIALECT_TWITTER2] = "twitter2",
    [DIALECT_JETSTREAM] = "jetstream",
};

int dialects_parse(struct sl_slice names, unsigned *ret_dialects, struct failure *reterr)
{
    unsigned dialects = 0;

    while (names.size > 0) {
        struct sl_slice name = http_next_element(&names, ',');
        unsigned i = 0;

        while (i < DIALECT_COUNT && !sl_slice_is(name, names_of[i]))
            i++;
        if (i == DIALECT_COUNT)
            return failure_set(reterr, -EINVAL, "there is no dialect '%.*s'", SL_SLICE_ARG(name));
        dialects |= 1u << i;
    }
    *ret_dialects = dialects;
    return 0;
}

static bool has_path(const struct dialect_route *route, struct sl_slice path)
{
    struct sl_slice own = sl_slice_str(route->path);

    if (own.data[own.size - 1] != '*')
        return sl_slice_is(path, route->path);
    return sl_slice_starts_with(path, sl_slice(own.data, own.size - 1));
}

const struct dialect_route *dialect_find(dialect_table *table, unsigned dialects,
                                         struct sl_slice path, const struct dialect **ret_dialect)
{
    for (unsigned i = 0; i < DIALECT_COUNT; i++) {
        const struct dialect *dialect = (*table)[i];

        for (unsigned route = 0; dialects & 1u << i && route < dialect->route_count; route++) {
            if (has_path(&dialect->routes[route], path)) {
                *ret_dialect = dialect;
                return &dialect->routes[route];
            }
        }
    }
    return NULL;
}

int dialect_answer_nothing(const struct dialect_request *request, struct buffer *ret_body,
                           struct http_answer *ret_answer, struct http_refusal *refusal)
{
    struct sl_slice path = request->http->path;

    (void)ret_body;
    (void)ret_answer;
    return http_refuse(refusal, 404, "not_found", NULL, "there is nothing at %.*s",
                       path.size < 200 ? (int)path.size : 200, path.data);
}

void dialect_ask(struct dialect_stream *asked, const char *name, struct sl_slice value)
{
    if (!value.data)
        return;
    asked->parameters[asked->parameter_count].name = name;
    asked->parameters[asked->parameter_count++].value = value;
}

struct sl_slice dialect_query_token(const struct http_request *http)
{
    const struct sl_slice begin = SL_SLICE("access_token=");
    struct sl_slice rest = http->query;

    while (rest.size > 0) {
        struct sl_slice pair = http_next_element(&rest, '&');

        if (sl_slice_starts_with(pair, begin))
            return sl_slice_from(pair, begin.size);
    }
    return SL_SLICE_NONE;
}

int dialect_read_form(const struct dialect_request *request, struct form *form,
                      struct http_refusal *refusal)
{
    const struct sl_slice texts[] = {request->http->query, request->http->body};
    int r = form_read(form, texts, request->http->method == HTTP_POST ? 2 : 1, refusal);

    return r == -EPROTO && strcmp(refusal->code, "unknown_parameter") == 0 ? 0 : r;
}
