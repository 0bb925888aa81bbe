/* cli/replay_names.h - maps users and posts of the file to those of the database.
 *
 * Users are known by login, or by id if the file gives no login; the file may name them either way
 * later. Only the latest million posts are known, because standard input may be endless. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "cli/replay_event.h"

struct replay_names;

struct person {
    uint64_t id; /* in the database; 0: not looked up yet */
    char *login;
    char *name;      /* NULL: none */
    char *complaint; /* why there is no such user; NULL: none */
};

struct known_post {
    uint64_t id; /* in the database; 0: being created */
    struct person *author;
    bool is_restricted;      /* not public: references to it must not name its author */
    struct known_post *next; /* the next newer one */
    size_t key_size;
    char key[];
};

struct replay_names *replay_names_new(size_t max_posts);
void replay_names_free(struct replay_names *names);

/* The user named in the file, added if necessary. NULL: out of memory. */
struct person *replay_person(struct replay_names *names, const struct replay_user *user);
/* Changes the login of a user, unless another user has it. 0; -ENOMEM. */
int replay_person_rename(struct replay_names *names, struct person *person, struct sl_slice login);
/* NULL: no user with this id has occurred. */
struct person *replay_person_by_id(const struct replay_names *names, struct sl_slice file_id);

/* NULL: unknown, or forgotten. */
struct known_post *replay_post(const struct replay_names *names, struct sl_slice file_id);
/* Adds a post with this id by `author`, which is being created; the oldest one may be forgotten.
 * NULL: out of memory. */
struct known_post *replay_post_add(struct replay_names *names, struct sl_slice file_id,
                                   struct person *author);
