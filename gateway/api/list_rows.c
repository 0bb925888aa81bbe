/* list_rows.c - the rows of a page while they are collected.
 *
 * The JSON of all rows is concatenated in one buffer, in the order in which it becomes known; a row
 * has its position there. The content of a bare row is kept until the rest is known. A page has at
 * most as many rows as were requested, 200. */
#include "gateway/api/list_rows.h"

#include <errno.h>

#include "base/alloc.h"
#include "src/cache/cached_rows.h"
#include "src/social/row_json.h"

void api_list_done(struct api_list *list)
{
    mem_free(list->rows);
    mem_free(list->absent);
    buffer_done(&list->json);
    buffer_done(&list->texts);
    *list = (struct api_list){0};
}

int api_list_begin(struct api_list *list, size_t count)
{
    api_list_done(list);
    if (count == 0)
        return 0;
    list->rows = mem_zalloc(mem_array_size(count, sizeof(*list->rows)));
    list->absent = mem_zalloc(mem_array_size(count, sizeof(*list->absent)));
    return list->rows && list->absent ? 0 : -ENOMEM;
}

bool api_list_add_user(struct api_list *list, size_t at, const struct sl_user_row *user,
                       struct sl_slice value)
{
    struct sl_user_row whole = *user;

    if (!sl_cached_user_fill(&whole, value))
        return false;
    list->rows[at].offset = list->json.size;
    sl_user_row_json(&list->json, &whole);
    list->rows[at].size = list->json.size - list->rows[at].offset;
    return true;
}

bool api_list_add_post(struct api_list *list, size_t at, const struct sl_post_row *post,
                       struct sl_slice value)
{
    size_t offset = list->json.size;

    if (!sl_cached_post_json(&list->json, post, value))
        return false;
    list->rows[at].offset = offset;
    list->rows[at].size = list->json.size - offset;
    return true;
}

static size_t keep_text(struct api_list *list, struct sl_slice text)
{
    size_t at = list->texts.size;

    buffer_append_slice(&list->texts, text);
    return at;
}

static struct sl_slice kept_text(const struct api_list *list, size_t at, size_t size)
{
    return sl_slice_from(sl_slice(list->texts.data, at + size), at);
}

void api_list_add_bare_user(struct api_list *list, size_t at, const struct sl_user_row *user)
{
    list->rows[at].is_bare = true;
    list->rows[at].bare = (struct api_list_bare){
        .counts = {user->followers, user->following, user->posts},
        .version = user->version,
        .name_at = keep_text(list, user->user.name),
        .name_size = user->user.name.size,
    };
}

void api_list_add_bare_post(struct api_list *list, size_t at, const struct sl_post_row *post)
{
    list->rows[at].is_bare = true;
    list->rows[at].bare = (struct api_list_bare){
        .author = post->author,
        .counts = {post->likes, post->comments},
        .login_at = keep_text(list, post->login),
        .login_size = post->login.size,
        .name_at = keep_text(list, post->name),
        .name_size = post->name.size,
    };
}

struct sl_user_row api_list_bare_user(const struct api_list *list, size_t at)
{
    const struct api_list_bare *bare = &list->rows[at].bare;

    return (struct sl_user_row){
        .user = {.id = list->rows[at].id, .name = kept_text(list, bare->name_at, bare->name_size)},
        .followers = bare->counts[0],
        .following = bare->counts[1],
        .posts = bare->counts[2],
        .version = bare->version,
    };
}

struct sl_post_row api_list_bare_post(const struct api_list *list, size_t at)
{
    const struct api_list_bare *bare = &list->rows[at].bare;

    return (struct sl_post_row){
        .id = list->rows[at].id,
        .author = bare->author,
        .login = kept_text(list, bare->login_at, bare->login_size),
        .name = kept_text(list, bare->name_at, bare->name_size),
        .likes = bare->counts[0],
        .comments = bare->counts[1],
    };
}

void api_list_add_absent(struct api_list *list, size_t at)
{
    list->absent[list->absent_count++] = at;
}
