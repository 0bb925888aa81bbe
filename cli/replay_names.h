/* cli/replay_names.h - what the file calls a user or a post, and what the database does.
 *
 * Users are known by login, or by id where the file gives no login; the file may name them either
 * way later on. Of posts the latest million are known: a stream on standard input may be endless.
 */
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
    uint64_t id; /* in the database; 0: on its way */
    struct person *author;
    bool is_restricted;      /* not for everybody: what refers to it does not say whose it is */
    struct known_post *next; /* the next younger one */
    size_t key_size;
    char key[];
};

struct replay_names *replay_names_new(size_t max_posts);
void replay_names_free(struct replay_names *names);

/* The person that the file means, new if need be. NULL: out of memory. */
struct person *replay_person(struct replay_names *names, const struct replay_user *user);
/* Is known by another login from now on, unless somebody else is by that. 0; -ENOMEM. */
int replay_person_rename(struct replay_names *names, struct person *person, struct sl_slice login);
/* NULL: nobody of this id has been seen. */
struct person *replay_person_by_id(const struct replay_names *names, struct sl_slice file_id);

/* NULL: not known (any more). */
struct known_post *replay_post(const struct replay_names *names, struct sl_slice file_id);
/* A post of this id by `author` is on its way; the oldest may be forgotten for it. NULL: out of
 * memory. */
struct known_post *replay_post_add(struct replay_names *names, struct sl_slice file_id,
                                   struct person *author);
