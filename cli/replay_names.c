/* replay_names.c - three hash maps: users by login, users by the file's id, posts by the file's id.
 *
 * Posts are also in a list by age: beyond `max_posts` the oldest is forgotten, so that an endless
 * stream needs limited memory; its deletion is then reported as one of an unknown post. Users are
 * never forgotten: there are as many as the database has users from that file. */
#include "cli/replay_names.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/hash_map.h"

struct replay_names {
    struct hash_map *people; /* login -> user, which it owns */
    struct hash_map *ids;    /* file's user id -> person */
    struct hash_map *posts;  /* file's post id -> known_post */
    struct known_post *oldest, *youngest;
    size_t max_posts;
};

static void person_free(struct person *person)
{
    mem_free(person->login);
    mem_free(person->name);
    mem_free(person->complaint);
    mem_free(person);
}

struct replay_names *replay_names_new(size_t max_posts)
{
    struct replay_names *names = mem_zalloc(sizeof(*names));

    if (!names)
        return NULL;
    names->max_posts = max_posts;
    names->people = hash_map_new();
    names->ids = hash_map_new();
    names->posts = hash_map_new();
    if (names->people && names->ids && names->posts)
        return names;
    replay_names_free(names);
    return NULL;
}

void replay_names_free(struct replay_names *names)
{
    void *person;

    if (!names)
        return;
    if (names->people) {
        for (size_t at = 0; hash_map_next(names->people, &at, NULL, &person);)
            person_free(person);
    }
    while (names->oldest) {
        struct known_post *next = names->oldest->next;

        mem_free(names->oldest);
        names->oldest = next;
    }
    hash_map_free(names->people);
    hash_map_free(names->ids);
    hash_map_free(names->posts);
    mem_free(names);
}

static struct person *person_new(struct replay_names *names, struct sl_slice login,
                                 struct sl_slice name)
{
    struct person *person = mem_zalloc(sizeof(*person));

    if (!person)
        return NULL;
    person->login = mem_strndup(login.data, login.size);
    if (name.data)
        person->name = mem_strndup(name.data, name.size);
    if (!person->login || (name.data && !person->name) ||
        hash_map_add(names->people, login, person) < 0) {
        person_free(person);
        return NULL;
    }
    return person;
}

struct person *replay_person_by_id(const struct replay_names *names, struct sl_slice file_id)
{
    return file_id.data ? hash_map_get(names->ids, file_id) : NULL;
}

struct person *replay_person(struct replay_names *names, const struct replay_user *user)
{
    struct sl_slice login = user->login.data ? user->login : user->id;
    struct person *person;

    if (!user->login.data) {
        person = replay_person_by_id(names, user->id);
        if (person)
            return person;
    }
    person = hash_map_get(names->people, login);
    if (!person)
        person = person_new(names, login, user->name);
    if (!person || !user->id.data || replay_person_by_id(names, user->id) == person)
        return person;
    hash_map_remove(names->ids, user->id);
    return hash_map_add(names->ids, user->id, person) < 0 ? NULL : person;
}

int replay_person_rename(struct replay_names *names, struct person *person, struct sl_slice login)
{
    char *copy;

    if (hash_map_get(names->people, login))
        return 0;
    copy = mem_strndup(login.data, login.size);
    if (!copy || hash_map_add(names->people, login, person) < 0) {
        mem_free(copy);
        return -ENOMEM;
    }
    hash_map_remove(names->people, sl_slice_str(person->login));
    mem_free(person->login);
    person->login = copy;
    return 0;
}

struct known_post *replay_post(const struct replay_names *names, struct sl_slice file_id)
{
    return file_id.data ? hash_map_get(names->posts, file_id) : NULL;
}

static void forget_oldest(struct replay_names *names)
{
    struct known_post *post = names->oldest;

    names->oldest = post->next;
    if (!names->oldest)
        names->youngest = NULL;
    hash_map_remove(names->posts, sl_slice(post->key, post->key_size));
    mem_free(post);
}

static struct known_post *known_post_new(struct replay_names *names, struct sl_slice file_id)
{
    struct known_post *post = mem_zalloc(sizeof(*post) + file_id.size);

    if (!post)
        return NULL;
    post->key_size = file_id.size;
    memcpy(post->key, file_id.data, file_id.size);
    if (hash_map_add(names->posts, file_id, post) < 0) {
        mem_free(post);
        return NULL;
    }
    if (names->youngest)
        names->youngest->next = post;
    else
        names->oldest = post;
    names->youngest = post;
    return post;
}

struct known_post *replay_post_add(struct replay_names *names, struct sl_slice file_id,
                                   struct person *author)
{
    struct known_post *post = replay_post(names, file_id);

    if (!post) {
        if (hash_map_count(names->posts) >= names->max_posts)
            forget_oldest(names);
        post = known_post_new(names, file_id);
        if (!post)
            return NULL;
    }
    post->id = 0;
    post->author = author;
    return post;
}
