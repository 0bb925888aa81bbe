#include "src/database/forms.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"

/* The names are those of FORMS in src/scripts/common.lua. */
static const struct sl_form_row forms[SL_FORMS] = {
    [SL_FORM_HOMES] = {"homes", "home timelines are lists, of a quarter of the memory"},
    [SL_FORM_LIKES] = {"likes", "every like is on the list of what its user likes"},
};

const struct sl_form_row *sl_form_at(enum sl_form form)
{
    assert(form < SL_FORMS);
    return &forms[form];
}

static int find(struct sl_slice name, unsigned *ret_form, struct failure *reterr)
{
    for (unsigned i = 0; i < SL_FORMS; i++) {
        if (sl_slice_is(name, forms[i].name)) {
            *ret_form = 1U << i;
            return 0;
        }
    }
    return failure_set(reterr, -ESTALE,
                       "the database has the form '%.*s', which this program does not know",
                       SL_SLICE_ARG(name));
}

int sl_forms_read(struct sl_slice names, unsigned *ret_forms, struct failure *reterr)
{
    unsigned found = 0, form = 0;

    while (names.size > 0) {
        const char *comma = memchr(names.data, ',', names.size);
        size_t size = comma ? (size_t)(comma - names.data) : names.size;
        int r = find(sl_slice(names.data, size), &form, reterr);

        if (r < 0)
            return r;
        found |= form;
        names = sl_slice_from(names, comma ? size + 1 : size);
    }
    *ret_forms = found;
    return 0;
}

int sl_forms_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                  struct failure *reterr)
{
    assert(shard < meta->shards);
    sl_call_begin_repeatable(call, &sl_script_upgrade, shard, meta->shards);
    sl_call_add_str(call, "0");
    return sl_call_finish(call, reterr);
}

int sl_upgrade_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                    unsigned wanted, struct failure *reterr)
{
    assert(shard < meta->shards);
    sl_call_begin_repeatable(call, &sl_script_upgrade, shard, meta->shards);
    call->is_write = true;
    sl_call_add_str(call, "1");
    for (unsigned i = 0; i < SL_FORMS; i++) {
        if (wanted & 1U << i)
            sl_call_add_str(call, forms[i].name);
    }
    return sl_call_finish(call, reterr);
}

int sl_forms_reply(const struct redisReply *reply, unsigned *ret_forms, struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_STRING)
        return sl_reply_unexpected(reterr);
    return sl_forms_read(sl_slice(reply->str, reply->len), ret_forms, reterr);
}
