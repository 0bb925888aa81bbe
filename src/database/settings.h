/* src/database/settings.h - the settings of a database: names, bounds, defaults, reading and
 * changing.
 *
 * A setting is a field of every shard's `meta`; a missing one has its default. The scripts read the
 * settings in each call, so a change takes effect at once for all writers. The table is
 * src/database/settings.def. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

enum sl_setting_kind {
    SL_SETTING_NUMBER,
    SL_SETTING_DURATION, /* in milliseconds; people write 90s, 30m, 24h, 7d */
    SL_SETTING_TIMELINE, /* enum sl_timeline; people write push, pull, hybrid */
    SL_SETTING_REST,     /* enum sl_rest; people write keep, drop */
};

/* What happens to posts beyond profile-max if there is no archive. */
enum sl_rest { SL_REST_KEEP = 1, SL_REST_DROP };

/* How posts get onto home timelines (home_read.h). */
enum sl_timeline { SL_TIMELINE_PUSH = 1, SL_TIMELINE_PULL, SL_TIMELINE_HYBRID };

struct sl_setting {
    const char *field; /* in `meta` */
    const char *name;  /* "log-count" */
    enum sl_setting_kind kind;
    uint64_t lowest, highest, fallback; /* fallback is the default */
    const char *meaning;                /* half a line of explanation */
};

/* All settings, in the order of the table: 0 .. sl_setting_count() - 1. */
SL_EXPORT size_t sl_setting_count(void);
SL_EXPORT const struct sl_setting *sl_setting_at(size_t i);

/* Finds a setting by its name; *ret_i is its index. 0; -ENOENT. */
SL_EXPORT int sl_setting_find(struct sl_slice name, size_t *ret_i, struct failure *reterr);

/* Parses a value written by a person. 0; -EINVAL: not of this kind, or out of bounds. */
SL_EXPORT int sl_setting_parse(const struct sl_setting *setting, struct sl_slice text,
                               uint64_t *ret_value, struct failure *reterr);

enum { SL_SETTING_TEXT_SIZE = 32 };

/* Writes a value in the form that sl_setting_parse() takes; a duration in the largest unit that is
 * exact. Returns `room`. */
SL_EXPORT const char *sl_setting_print(const struct sl_setting *setting, uint64_t value,
                                       char room[static SL_SETTING_TEXT_SIZE]);

enum { SL_SETTINGS_MAX = 64 }; /* upper limit of the number of settings */

struct sl_settings {
    struct {
        uint64_t value;
        bool is_set; /* false: the value is the default */
    } at[SL_SETTINGS_MAX];
};

/* Reads all settings of a shard. 0; -ENOMEM. */
SL_EXPORT int sl_settings_call(struct sl_call *call, uint32_t shard, struct failure *reterr);
/* 0; -EBADMSG: a value that cannot have been set; else as sl_reply_check(). */
SL_EXPORT int sl_settings_reply(const struct redisReply *reply, struct sl_settings *ret_settings,
                                struct failure *reterr);

/* Changes a setting in one shard; `value` NULL resets it to the default. Send it to every shard, in
 * as many rounds as sl_setting_rounds() says: what a shard has kept for another value of `timeline`
 * becomes invalid when the last shard has the new one. If the limit of a log is lowered, the log is
 * trimmed at once, as far as one call may do (see docs/events.md). 0; -EINVAL: out of bounds;
 * -ENOMEM. The answer is read with sl_reply_check(). */
SL_EXPORT unsigned sl_setting_rounds(const struct sl_setting *setting);
SL_EXPORT int sl_setting_change_call(struct sl_call *call, const struct sl_meta *meta,
                                     uint32_t shard, const struct sl_setting *setting,
                                     const uint64_t *value, struct failure *reterr);
