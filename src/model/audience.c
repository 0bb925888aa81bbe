/* audience.c - parses audiences in their stored form: a word, and after a colon a list of ids.
 *
 * Lists are parsed in place, item by item, up to SL_AUDIENCE_USERS_MAX; nothing is copied. Logins
 * occur only in audiences written by people, before the post is created. */
#include "src/model/audience.h"

#include <errno.h>
#include <inttypes.h>

#include "base/buffer.h"
#include "src/model/id.h"

static const struct sl_slice only = {"only:", 5}, except = {"except:", 7},
                             followers_except = {"followers-except:", 17};

/* Removes the first item from *list; false: there is none. */
static bool next_item(struct sl_slice *list, struct sl_slice *ret_item)
{
    const char *comma;

    if (!list->data)
        return false;
    comma = list->size > 0 ? memchr(list->data, ',', list->size) : NULL;
    *ret_item = comma ? sl_slice(list->data, (size_t)(comma - list->data)) : *list;
    *list = comma ? sl_slice_from(*list, ret_item->size + 1) : SL_SLICE_NONE;
    return true;
}

static bool is_listed(struct sl_slice list, struct sl_slice user)
{
    struct sl_slice item;

    while (next_item(&list, &item)) {
        if (sl_slice_equal(item, user))
            return true;
    }
    return false;
}

static int check_list(struct sl_slice list, const struct sl_meta *meta, struct failure *reterr)
{
    struct sl_slice item;
    size_t count = 0;
    uint64_t id;

    while (next_item(&list, &item)) {
        if (sl_id_parse(item, &id) < 0 || sl_id_shard(id) >= meta->shards)
            return failure_set(reterr, -EINVAL,
                               "the audience lists '%.*s', which is no user's id of this database",
                               item.size < 64 ? (int)item.size : 64, item.data);
        if (++count > SL_AUDIENCE_USERS_MAX)
            return failure_set(reterr, -EINVAL, "the audience lists more than %d users",
                               SL_AUDIENCE_USERS_MAX);
    }
    return 0;
}

int sl_audience_check(struct sl_slice audience, const struct sl_meta *meta, struct failure *reterr)
{
    if (sl_slice_is(audience, "public") || sl_slice_is(audience, "followers"))
        return 0;
    if (sl_slice_starts_with(audience, only))
        return check_list(sl_slice_from(audience, only.size), meta, reterr);
    if (sl_slice_starts_with(audience, except))
        return check_list(sl_slice_from(audience, except.size), meta, reterr);
    if (sl_slice_starts_with(audience, followers_except))
        return check_list(sl_slice_from(audience, followers_except.size), meta, reterr);
    return failure_set(reterr, -EINVAL,
                       "the audience is not public, followers, only:ID,ID, except:ID,ID or "
                       "followers-except:ID,ID");
}

bool sl_audience_allows(struct sl_slice audience, struct sl_slice reader, bool follows)
{
    if (!audience.data || sl_slice_is(audience, "public"))
        return true;
    if (reader.size == 0)
        return false;
    if (sl_slice_is(audience, "followers"))
        return follows;
    if (sl_slice_starts_with(audience, only))
        return is_listed(sl_slice_from(audience, only.size), reader);
    if (sl_slice_starts_with(audience, except))
        return !is_listed(sl_slice_from(audience, except.size), reader);
    if (sl_slice_starts_with(audience, followers_except))
        return follows && !is_listed(sl_slice_from(audience, followers_except.size), reader);
    return false;
}

/* --- logins --- */

/* The offset of the list; 0: there is none. */
static size_t list_at(struct sl_slice audience)
{
    const char *colon = audience.size > 0 ? memchr(audience.data, ':', audience.size) : NULL;

    return colon ? (size_t)(colon - audience.data) + 1 : 0;
}

int sl_audience_logins(struct sl_slice audience,
                       struct sl_slice ret_logins[static SL_AUDIENCE_USERS_MAX], size_t *ret_count,
                       struct failure *reterr)
{
    const size_t at = audience.data ? list_at(audience) : 0;
    struct sl_slice list = at > 0 ? sl_slice_from(audience, at) : SL_SLICE_NONE, item;
    size_t count = 0;

    while (next_item(&list, &item)) {
        if (item.size == 0 || item.data[0] != '@')
            continue;
        if (count == SL_AUDIENCE_USERS_MAX)
            return failure_set(reterr, -EINVAL, "the audience lists more than %d users",
                               SL_AUDIENCE_USERS_MAX);
        ret_logins[count++] = sl_slice_from(item, 1);
    }
    *ret_count = count;
    return 0;
}

void sl_audience_with_ids(struct buffer *text, struct sl_slice audience, const uint64_t *ids)
{
    const size_t at = list_at(audience);
    struct sl_slice list = sl_slice_from(audience, at), item;
    const char *separator = "";

    buffer_append(text, audience.data, at);
    while (next_item(&list, &item)) {
        buffer_append_str(text, separator);
        if (item.size > 0 && item.data[0] == '@')
            buffer_append_format(text, "%" PRIu64, *ids++);
        else
            buffer_append_slice(text, item);
        separator = ",";
    }
}
