/* gateway/dialects/twitter2_includes.h - what a Tweet refers to, as X's API 2 puts it beside it.
 *
 * As far as the post says it: of posts that it refers to it has the ids only. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/slice.h"

struct twitter2_reference {
    const char *member; /* of a post */
    const char *type;   /* as they call it */
};

enum { TWITTER2_REFERENCES = 3 };
extern const struct twitter2_reference twitter2_references[TWITTER2_REFERENCES];

/* As a number in text; null: there is none. NULL: out of memory. */
json_t *twitter2_id(struct sl_slice id);
/* Of a post's place, which has none: a hash of what it says. NULL: there is no place, or no memory.
 */
json_t *twitter2_place_id(const json_t *place);
/* As the media call themselves (`media_key`), else made of the post's id. null: there are none;
 * NULL: out of memory. */
json_t *twitter2_media_keys(const json_t *post);
/* What the expansions of `options` ask for. null: there is nothing; NULL: out of memory. */
json_t *twitter2_includes(const json_t *post, uint64_t options);
