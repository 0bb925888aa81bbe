#include "cli/settings.h"

#include <inttypes.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/reply.h"

#define SETTING(field, name, ...) " " name
const char settings_names[] =
#include "src/database/settings.def"
    ;
#undef SETTING

static int read_shard(struct database *database, uint32_t shard, struct sl_settings *ret_settings,
                      struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = database_run(database, &call, sl_settings_call(&call, shard, reterr), &reply, reterr);
    if (r == 0)
        r = sl_settings_reply(reply, ret_settings, reterr);
    freeReplyObject(reply);
    return r;
}

static int differs(const struct cli *cli, size_t which, uint32_t shard)
{
    return cli_failed_with(cli, "%s differs between shards 0 and %" PRIu32 "; set it once more",
                           sl_setting_at(which)->name, shard);
}

int settings_read(struct database *database, const struct cli *cli,
                  struct sl_settings *ret_settings)
{
    struct sl_settings first, other;
    struct failure failure;

    if (read_shard(database, 0, &first, &failure) < 0)
        return cli_failed(cli, &failure);
    for (uint32_t shard = 1; shard < database->meta.shards; shard++) {
        if (read_shard(database, shard, &other, &failure) < 0)
            return cli_failed(cli, &failure);
        for (size_t i = 0; i < sl_setting_count(); i++) {
            if (other.at[i].value != first.at[i].value)
                return differs(cli, i, shard);
        }
    }
    *ret_settings = first;
    return CLI_GOOD;
}

struct setting_change setting_change_parse(const struct cli *cli, size_t which, const char *text)
{
    struct setting_change change = {.which = which, .to_default = strcmp(text, "default") == 0};
    struct failure failure;

    if (!change.to_default &&
        sl_setting_parse(sl_setting_at(which), sl_slice_str(text), &change.value, &failure) < 0)
        cli_usage(cli, "%s", failure.text);
    return change;
}

static int change_shard(struct database *database, uint32_t shard,
                        const struct setting_change *change, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_setting_change_call(&call, &database->meta, shard, sl_setting_at(change->which),
                               change->to_default ? NULL : &change->value, reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_reply_check(reply, reterr);
    freeReplyObject(reply);
    return r;
}

int settings_change(struct database *database, const struct cli *cli,
                    const struct setting_change *change)
{
    const uint32_t shards = database->meta.shards;
    const uint32_t calls = shards * sl_setting_rounds(sl_setting_at(change->which));
    struct failure failure;

    for (uint32_t i = 0; i < calls; i++) {
        if (change_shard(database, i % shards, change, &failure) < 0)
            return cli_failed(cli, &failure);
    }
    return CLI_GOOD;
}
