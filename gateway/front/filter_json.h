/* gateway/front/filter_json.h - reads a filter in JSON: its id, its tag and the text of its
 * members.
 *
 *     {"id":"quakes","tag":"red","rule":"(地震 OR quake) -is:repost","language":"zh,en"}
 *
 * The members are parsed by sl_filter_new(); this checks only their JSON types, in the order of
 * docs/filters.md, section 11: bad_json, bad_id, bad_type, bad_tag. Unknown members are ignored,
 * the last of repeated members counts, null is absent. */
#pragma once

#include <jansson.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/filter.h"
#include "gateway/http/http.h"

struct filter_json {
    struct sl_slice id;  /* as read by filter_json_id() */
    struct sl_slice tag; /* without data: none */
    struct sl_filter_text text;
};

/* Parses one JSON text: valid UTF-8, no U+0000 and no lone surrogates in its strings, numbers of
 * any size. 0: the caller owns *ret_json; -EINVAL: *reterr says bad_json; -ENOMEM (jansson may
 * report out of memory within a token as bad_json). */
int filter_json_load(struct sl_slice text, json_t **ret_json, struct sl_filter_error *reterr);

/* The slices of all results belong to the JSON that was read. -EINVAL: *reterr says why. */

/* Reads the whole filter, including `id`. NULL or anything but an object: bad_json. */
int filter_json_read(const json_t *json, struct filter_json *ret_filter,
                     struct sl_filter_error *reterr);
/* Reads an id that is not within its filter. */
int filter_json_id(const json_t *id, struct sl_slice *ret_id, struct sl_filter_error *reterr);
/* Reads all members but `id`. */
int filter_json_members(const json_t *json, struct filter_json *ret_filter,
                        struct sl_filter_error *reterr);

/* Fills *refusal with the reason for which a filter was refused. Returns -EPROTO. */
int filter_json_refuse(const struct sl_filter_error *error, struct http_refusal *refusal);

/* Appends the members of a warning: "code":..,"message":..,"param":..,"at":.. */
void filter_json_append_warning(const struct sl_filter_error *warning, struct buffer *json);

/* Fills *reterr for an id that is already in use. Returns -EEXIST. */
int filter_json_duplicate_id(struct sl_filter_error *reterr);
