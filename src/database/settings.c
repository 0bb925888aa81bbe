/* settings.c - the table of settings.def, and the conversion between texts and values.
 *
 * A duration is a number with a unit, and is printed in the largest unit that leaves no fraction. A
 * value out of bounds is refused when it is set, and reported as damaged when it is read. Changing
 * how timelines are made needs two rounds through all shards; all other settings need one. */
#include "src/database/settings.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/duration.h"
#include "src/model/id.h"
#include "src/model/keys.h"

static const struct sl_setting settings[] = {
#define SETTING(field, name, kind, lowest, highest, fallback, meaning)                             \
    {#field, name, SL_SETTING_##kind, lowest, highest, fallback, meaning},
#include "src/database/settings.def"
#undef SETTING
};

enum { SETTING_COUNT = sizeof(settings) / sizeof(settings[0]) };

_Static_assert((int)SETTING_COUNT <= SL_SETTINGS_MAX, "struct sl_settings is too small");

size_t sl_setting_count(void)
{
    return SETTING_COUNT;
}

const struct sl_setting *sl_setting_at(size_t i)
{
    assert(i < SETTING_COUNT);
    return &settings[i];
}

int sl_setting_find(struct sl_slice name, size_t *ret_i, struct failure *reterr)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (sl_slice_is(name, settings[i].name)) {
            *ret_i = i;
            return 0;
        }
    }
    return failure_set(reterr, -ENOENT, "there is no setting '%.*s'", SL_SLICE_ARG(name));
}

/* ---- text ---- */

/* Reads the digits at the beginning of `text`, at most 15, so that sums cannot overflow. Returns
 * their number. */
static size_t read_digits(struct sl_slice text, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t i;

    for (i = 0; i < text.size && i < 15 && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    *ret_number = number;
    return i;
}

static int parse_number(struct sl_slice text, uint64_t *ret_number, struct failure *reterr)
{
    size_t digits = read_digits(text, ret_number);

    if (digits == 0 || digits < text.size)
        return failure_set(reterr, -EINVAL, "'%.*s' is not a number", SL_SLICE_ARG(text));
    return 0;
}

static const char *const timelines[] = {
    [SL_TIMELINE_PUSH] = "push", [SL_TIMELINE_PULL] = "pull", [SL_TIMELINE_HYBRID] = "hybrid"};

static const char *const rests[] = {[SL_REST_KEEP] = "keep", [SL_REST_DROP] = "drop"};

/* The value of a word: its index in words[1] .. words[last]. */
static int parse_word(struct sl_slice text, const char *const *words, uint64_t last,
                      const char *list, uint64_t *ret_value, struct failure *reterr)
{
    for (uint64_t i = 1; i <= last; i++) {
        if (sl_slice_is(text, words[i])) {
            *ret_value = i;
            return 0;
        }
    }
    return failure_set(reterr, -EINVAL, "'%.*s' is not %s", SL_SLICE_ARG(text), list);
}

static int check_bounds(const struct sl_setting *setting, uint64_t value, struct failure *reterr)
{
    char lowest[SL_SETTING_TEXT_SIZE], highest[SL_SETTING_TEXT_SIZE];

    if (value >= setting->lowest && value <= setting->highest)
        return 0;
    return failure_set(reterr, -EINVAL, "%s is from %s to %s", setting->name,
                       sl_setting_print(setting, setting->lowest, lowest),
                       sl_setting_print(setting, setting->highest, highest));
}

int sl_setting_parse(const struct sl_setting *setting, struct sl_slice text, uint64_t *ret_value,
                     struct failure *reterr)
{
    uint64_t value = 0;
    int r;

    switch (setting->kind) {
    case SL_SETTING_DURATION:
        r = sl_duration_parse(text, &value, reterr);
        break;
    case SL_SETTING_TIMELINE:
        r = parse_word(text, timelines, SL_TIMELINE_HYBRID, "push, pull or hybrid", &value, reterr);
        break;
    case SL_SETTING_REST:
        r = parse_word(text, rests, SL_REST_DROP, "keep or drop", &value, reterr);
        break;
    default:
        r = parse_number(text, &value, reterr);
        break;
    }
    if (r == 0)
        r = check_bounds(setting, value, reterr);
    if (r == 0)
        *ret_value = value;
    return r;
}

const char *sl_setting_print(const struct sl_setting *setting, uint64_t value,
                             char room[static SL_SETTING_TEXT_SIZE])
{
    _Static_assert((int)SL_DURATION_TEXT_SIZE <= (int)SL_SETTING_TEXT_SIZE, "room for a duration");

    if (setting->kind == SL_SETTING_NUMBER) {
        snprintf(room, SL_SETTING_TEXT_SIZE, "%" PRIu64, value);
        return room;
    }
    if (setting->kind == SL_SETTING_TIMELINE)
        return strcpy(room, timelines[value]);
    if (setting->kind == SL_SETTING_REST)
        return strcpy(room, rests[value]);
    return sl_duration_print(value, room);
}

/* ---- calls ---- */

int sl_settings_call(struct sl_call *call, uint32_t shard, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "HMGET");
    sl_call_add_str(call, sl_key(shard, "meta", key));
    for (size_t i = 0; i < SETTING_COUNT; i++)
        sl_call_add_str(call, settings[i].field);
    return sl_call_finish(call, reterr);
}

int sl_settings_reply(const struct redisReply *reply, struct sl_settings *ret_settings,
                      struct failure *reterr)
{
    struct sl_settings read = {0};
    int r = sl_reply_check_array(reply, SETTING_COUNT, reterr);

    for (size_t i = 0; r == 0 && i < SETTING_COUNT; i++) {
        struct sl_slice text = sl_reply_at(reply, i);
        uint64_t value = settings[i].fallback;

        if (text.data &&
            (parse_number(text, &value, NULL) < 0 || check_bounds(&settings[i], value, NULL) < 0))
            return failure_set(reterr, -EBADMSG, "%s in meta is '%.*s', which %s cannot be",
                               settings[i].field, SL_SLICE_ARG(text), settings[i].name);
        read.at[i].value = value;
        read.at[i].is_set = text.data != NULL;
    }
    if (r == 0)
        *ret_settings = read;
    return r;
}

unsigned sl_setting_rounds(const struct sl_setting *setting)
{
    return setting->kind == SL_SETTING_TIMELINE ? 2 : 1;
}

int sl_setting_change_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                           const struct sl_setting *setting, const uint64_t *value,
                           struct failure *reterr)
{
    int r = value ? check_bounds(setting, *value, reterr) : 0;

    if (r < 0)
        return r;
    assert(shard < meta->shards);
    sl_call_begin_repeatable(call, &sl_script_configure, shard, meta->shards);
    call->is_write = true;
    sl_call_add_str(call, setting->field);
    if (value)
        sl_call_add_id(call, *value);
    return sl_call_finish(call, reterr);
}
