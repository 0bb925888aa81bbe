/* gateway/dialects/twitter2_includes.h - the objects that a Tweet refers to, which X's API 2 puts
 * next to it.
 *
 * They contain what the post says; of posts it refers to, it only has the ids. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/slice.h"

struct twitter2_reference {
    const char *member; /* in our posts */
    const char *type;   /* in X's API */
};

enum { TWITTER2_REFERENCES = 3 };
extern const struct twitter2_reference twitter2_references[TWITTER2_REFERENCES];

/* A string with a number; null: there is no id. NULL: out of memory. */
json_t *twitter2_id(struct sl_slice id);
/* The id of a post's place. Our places have none, so it is a hash of the place's members. NULL:
 * there is no place, or out of memory. */
json_t *twitter2_place_id(const json_t *place);
/* The keys in the media (`media_key`), or else keys made from the post's id. null: no media; NULL:
 * out of memory. */
json_t *twitter2_media_keys(const json_t *post);
/* The objects that the expansions in `options` ask for. null: none; NULL: out of memory. */
json_t *twitter2_includes(const json_t *post, uint64_t options);
