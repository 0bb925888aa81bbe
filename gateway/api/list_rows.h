/* gateway/api/list_rows.h - inside the API: the rows of a page, as they are gathered. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "gateway/api/list.h"
#include "src/social/post_rows.h"
#include "src/social/users.h"

/* Room for `count` rows, of which none is there. 0; -ENOMEM. */
int api_list_begin(struct api_list *list, size_t count);

/* The JSON of row `at`. `value`: what the cache has of it, if that is needed. false: it is, and the
 * cache has nothing. */
bool api_list_add_user(struct api_list *list, size_t at, const struct sl_user_row *user,
                       struct sl_slice value);
bool api_list_add_post(struct api_list *list, size_t at, const struct sl_post_row *post,
                       struct sl_slice value);

/* Keeps what a bare row has, and gives it back: its slices are the list's. */
void api_list_add_bare_user(struct api_list *list, size_t at, const struct sl_user_row *user);
void api_list_add_bare_post(struct api_list *list, size_t at, const struct sl_post_row *post);
struct sl_user_row api_list_bare_user(const struct api_list *list, size_t at);
struct sl_post_row api_list_bare_post(const struct api_list *list, size_t at);

/* Row `at` is to be asked for. */
void api_list_add_absent(struct api_list *list, size_t at);
