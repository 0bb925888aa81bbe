/* gateway/api/list_rows.h - internal to the API: the rows of a page while they are collected. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "gateway/api/list.h"
#include "src/social/post_rows.h"
#include "src/social/users.h"

/* Begins a page with room for `count` rows, which are not known yet. 0; -ENOMEM. */
int api_list_begin(struct api_list *list, size_t count);

/* Sets the JSON of row `at`. `value`: what the cache has of it, if that is needed. false: it is
 * needed, and the cache has nothing. */
bool api_list_add_user(struct api_list *list, size_t at, const struct sl_user_row *user,
                       struct sl_slice value);
bool api_list_add_post(struct api_list *list, size_t at, const struct sl_post_row *post,
                       struct sl_slice value);

/* Stores and returns the content of a bare row; its slices belong to the list. */
void api_list_add_bare_user(struct api_list *list, size_t at, const struct sl_user_row *user);
void api_list_add_bare_post(struct api_list *list, size_t at, const struct sl_post_row *post);
struct sl_user_row api_list_bare_user(const struct api_list *list, size_t at);
struct sl_post_row api_list_bare_post(const struct api_list *list, size_t at);

/* Marks row `at` as to be read. */
void api_list_add_absent(struct api_list *list, size_t at);
