/* src/database/settings.h - what may be set in a database: names, bounds, defaults; reading and
 * changing.
 *
 * A setting is a field of every shard's `meta`; one that is not there has its default. The scripts
 * look at them in each call, so a change counts at once, whoever writes. The table is
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
    SL_SETTING_DURATION, /* milliseconds; people write 90s, 30m, 24h, 7d */
    SL_SETTING_TIMELINE, /* enum sl_timeline; people write push, pull, hybrid */
    SL_SETTING_REST,     /* enum sl_rest; people write keep, drop */
};

/* What becomes of posts beyond profile-max where there is no archive. */
enum sl_rest { SL_REST_KEEP = 1, SL_REST_DROP };

/* How posts come to home timelines (home_read.h). */
enum sl_timeline { SL_TIMELINE_PUSH = 1, SL_TIMELINE_PULL, SL_TIMELINE_HYBRID };

struct sl_setting {
    const char *field; /* of `meta` */
    const char *name;  /* "log-count" */
    enum sl_setting_kind kind;
    uint64_t lowest, highest, fallback; /* fallback: the default */
    const char *meaning;                /* half a line */
};

/* All settings, in the order of the table: 0 .. sl_setting_count() - 1. */
SL_EXPORT size_t sl_setting_count(void);
SL_EXPORT const struct sl_setting *sl_setting_at(size_t i);

/* By its name: *ret_i says where it stands. 0; -ENOENT. */
SL_EXPORT int sl_setting_find(struct sl_slice name, size_t *ret_i, struct failure *reterr);

/* What somebody wrote -> value. 0; -EINVAL: not of this kind, or out of bounds. */
SL_EXPORT int sl_setting_parse(const struct sl_setting *setting, struct sl_slice text,
                               uint64_t *ret_value, struct failure *reterr);

enum { SL_SETTING_TEXT_SIZE = 32 };

/* value -> what sl_setting_parse() takes; a duration in the largest unit that is exact. Returns
 * `room`. */
SL_EXPORT const char *sl_setting_print(const struct sl_setting *setting, uint64_t value,
                                       char room[static SL_SETTING_TEXT_SIZE]);

enum { SL_SETTINGS_MAX = 64 }; /* settings there may be */

struct sl_settings {
    struct {
        uint64_t value;
        bool is_set; /* else it is the default */
    } at[SL_SETTINGS_MAX];
};

/* All settings of a shard. 0; -ENOMEM. */
SL_EXPORT int sl_settings_call(struct sl_call *call, uint32_t shard, struct failure *reterr);
/* 0; -EBADMSG: a value that could not have been set; else as sl_reply_check(). */
SL_EXPORT int sl_settings_reply(const struct redisReply *reply, struct sl_settings *ret_settings,
                                struct failure *reterr);

/* Sets one in one shard; `value` NULL: back to the default. To be sent to every shard, and in as
 * many rounds as sl_setting_rounds() says: what a shard kept for another value of `timeline` counts
 * no more when the last shard has the new one. A log whose
 * limit falls is trimmed at once, as far as one call may take (see docs/events.md). 0; -EINVAL: out
 * of bounds; -ENOMEM. The answer is read with sl_reply_check(). */
SL_EXPORT unsigned sl_setting_rounds(const struct sl_setting *setting);
SL_EXPORT int sl_setting_change_call(struct sl_call *call, const struct sl_meta *meta,
                                     uint32_t shard, const struct sl_setting *setting,
                                     const uint64_t *value, struct failure *reterr);
