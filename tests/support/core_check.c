#include "tests/support/core_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "tests/support/cmocka_all.h"

/* "sluice:{S}:NAME", "sluice:{S}:NAME:OWNER" or "sluice:{S}:NAME:OWNER:REST" */
struct key {
    const char *text;
    unsigned shard;
    char name[32];
    uint64_t owner; /* 0: none */
};

static const char *checked; /* printed before every failure */

__attribute__((format(printf, 2, 3))) static void expect(bool is_good, const char *format, ...)
{
    char text[512];
    va_list args;

    if (is_good)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fail_msg("%s: %s", checked, text);
}

static struct key parse_key(const char *text)
{
    struct key key = {.text = text};

    expect(sscanf(text, "sluice:{%u}:%31[^:]:%" SCNu64, &key.shard, key.name, &key.owner) >= 2,
           "what is the key %s?", text);
    return key;
}

static bool is_member(struct core *core, const char *set, uint64_t owner, const char *member,
                      const char *score)
{
    char text[65536], key[SL_KEY_SIZE];

    if (!score)
        return core_number(core, "SISMEMBER %s %s", sl_key_of(set, owner, key), member) == 1;
    core_text(core, text, "ZSCORE %s %s", sl_key_of(set, owner, key), member);
    return strcmp(text, score) == 0;
}

/* Finds the follow ids that a part of a set of followers may hold: those after *ret_after, up to
 * *ret_last. The open part has no end. */
static void find_part(struct core *core, const struct key *key, uint64_t *ret_after,
                      uint64_t *ret_last)
{
    char index[SL_KEY_SIZE];
    redisReply *lasts =
        core_command(core, "ZRANGE %s 0 -1", sl_key_of("follower_parts", key->owner, index));
    uint64_t last = UINT64_MAX;
    size_t i = 0;

    sscanf(key->text, "sluice:{%*u}:followers:%*u:%" SCNu64, &last);
    *ret_after = 0;
    while (i < lasts->elements && strtoull(lasts->element[i]->str, NULL, 10) < last)
        *ret_after = strtoull(lasts->element[i++]->str, NULL, 10);
    expect(last == UINT64_MAX ||
               (i < lasts->elements && strtoull(lasts->element[i]->str, NULL, 10) == last),
           "%s is not among the parts", key->text);
    *ret_last = last;
    freeReplyObject(lasts);
}

/* Each follower is in the set of followers, in the right part; that nobody else is there follows
 * from the counters. */
static void check_followers(struct core *core, const struct key *key)
{
    redisReply *members = core_command(core, "ZRANGE %s 0 -1 WITHSCORES", key->text);
    char owner[SL_ID_TEXT_SIZE];
    uint64_t after, last;

    find_part(core, key, &after, &last);
    for (size_t i = 0; i < members->elements; i += 2) {
        uint64_t since = strtoull(members->element[i + 1]->str, NULL, 10);

        expect(is_member(core, "following", strtoull(members->element[i]->str, NULL, 10),
                         sl_id_print(key->owner, owner), members->element[i + 1]->str),
               "%s holds %s, who does not follow since %s", key->text, members->element[i]->str,
               members->element[i + 1]->str);
        expect(since > after && since <= last, "%s holds %s, who belongs to another part",
               key->text, members->element[i]->str);
    }
    freeReplyObject(members);
}

/* No part is empty. */
static void check_follower_parts(struct core *core, const struct key *key)
{
    redisReply *lasts = core_command(core, "ZRANGE %s 0 -1", key->text);
    char part[SL_KEY_SIZE];

    sl_key_of("followers", key->owner, part);
    for (size_t i = 0; i < lasts->elements; i++)
        expect(core_number(core, "EXISTS %s:%s", part, lasts->element[i]->str) == 1,
               "%s knows of %s, which is not there", key->text, lasts->element[i]->str);
    freeReplyObject(lasts);
}

static void check_mirrored_set(struct core *core, const struct key *key, const char *mirror)
{
    redisReply *members = core_command(core, "SMEMBERS %s", key->text);
    char owner[SL_ID_TEXT_SIZE];

    for (size_t i = 0; i < members->elements; i++)
        expect(is_member(core, mirror, strtoull(members->element[i]->str, NULL, 10),
                         sl_id_print(key->owner, owner), NULL),
               "%s holds %s, but %s of that does not", key->text, members->element[i]->str, mirror);
    freeReplyObject(members);
}

/* Members are ids of posts, or begin with one. */
static void check_posts_exist(struct core *core, const struct key *key)
{
    redisReply *members = core_command(core, "ZRANGE %s 0 -1", key->text);
    char post[SL_KEY_SIZE];

    for (size_t i = 0; i < members->elements; i++) {
        uint64_t id = strtoull(members->element[i]->str, NULL, 10);

        expect(core_number(core, "EXISTS %s", sl_key_of("post", id, post)) == 1,
               "%s holds %s, which does not exist", key->text, members->element[i]->str);
    }
    freeReplyObject(members);
}

/* The comments of an existing post, each of which refers to it. */
static void check_comments(struct core *core, const struct key *key)
{
    redisReply *members = core_command(core, "ZRANGE %s 0 -1", key->text);
    char text[65536], post[SL_KEY_SIZE];

    check_posts_exist(core, key);
    expect(core_number(core, "EXISTS %s", sl_key_of("post", key->owner, post)) == 1,
           "%s belongs to no post", key->text);
    for (size_t i = 0; i < members->elements; i++) {
        uint64_t id = strtoull(members->element[i]->str, NULL, 10);

        core_text(core, text, "HGET %s parent", sl_key_of("post", id, post));
        expect(strtoull(text, NULL, 10) == key->owner, "%s holds %s, which answers '%s'", key->text,
               members->element[i]->str, text);
    }
    freeReplyObject(members);
}

/* Existing users like an existing post. */
static void check_likes(struct core *core, const struct key *key)
{
    redisReply *members = core_command(core, "ZRANGE %s 0 -1", key->text);
    char other[SL_KEY_SIZE];

    expect(core_number(core, "EXISTS %s", sl_key_of("post", key->owner, other)) == 1,
           "%s belongs to no post", key->text);
    for (size_t i = 0; i < members->elements; i++) {
        uint64_t id = strtoull(members->element[i]->str, NULL, 10);

        expect(core_number(core, "EXISTS %s", sl_key_of("user", id, other)) == 1,
               "%s holds %s, who does not exist", key->text, members->element[i]->str);
    }
    freeReplyObject(members);
}

/* One login per user, one user per login. */
static void check_logins(struct core *core, const struct key *key)
{
    redisReply *users = core_command(core, "HVALS %s", key->text);
    redisReply *keys = core_command(core, "KEYS sluice:{%u}:user:*", key->shard);
    char user[SL_KEY_SIZE];

    expect(users->elements == keys->elements, "%s: %zu logins of %zu users", key->text,
           users->elements, keys->elements);
    for (size_t i = 0; i < users->elements; i++) {
        uint64_t id = strtoull(users->element[i]->str, NULL, 10);

        expect(core_number(core, "EXISTS %s", sl_key_of("user", id, user)) == 1,
               "%s holds %s, who does not exist", key->text, users->element[i]->str);
    }
    freeReplyObject(users);
    freeReplyObject(keys);
}

static long long sum_parts(struct core *core, const char *set, uint64_t owner)
{
    char key[SL_KEY_SIZE];
    redisReply *parts;
    long long sum;

    sl_key_of(set, owner, key);
    sum = core_number(core, "ZCARD %s", key);
    parts = core_command(core, "KEYS %s:*", key);
    for (size_t i = 0; i < parts->elements; i++)
        sum += core_number(core, "ZCARD %s", parts->element[i]->str);
    freeReplyObject(parts);
    return sum;
}

static void check_counter(struct core *core, const struct key *user, const char *counter,
                          long long expected)
{
    char text[65536];

    core_text(core, text, "HGET %s %s", user->text, counter);
    expect(strtoll(text, NULL, 10) == expected, "%s has %s %s, not %lld", user->text, text, counter,
           expected);
}

static void check_user(struct core *core, const struct key *key)
{
    check_counter(core, key, "followers", sum_parts(core, "followers", key->owner));
    check_counter(core, key, "following", sum_parts(core, "following", key->owner));
    check_counter(core, key, "posts", sum_parts(core, "profile", key->owner));
}

static void check_post(struct core *core, const struct key *key)
{
    char text[65536], id[SL_ID_TEXT_SIZE];

    core_text(core, text, "HGET %s user", key->text);
    expect(is_member(core, "profile", strtoull(text, NULL, 10), sl_id_print(key->owner, id), id),
           "%s is not in the profile of %s", key->text, text);
    core_text(core, text, "HGET %s parent", key->text);
    if (text[0] && core_number(core, "EXISTS %s",
                               sl_key_of("post", strtoull(text, NULL, 10), (char[64]){0})) == 1)
        expect(
            is_member(core, "comments", strtoull(text, NULL, 10), sl_id_print(key->owner, id), id),
            "%s is not among the comments of %s", key->text, text);
}

static void check_log(struct core *core, const struct key *key)
{
    redisReply *log = core_command(core, "XRANGE %s - +", key->text);
    unsigned long long previous = 0;

    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *fields = log->element[i]->element[1];
        unsigned long long said = strtoull(fields->element[1]->str, NULL, 10);

        expect(i == 0 || said == previous, "%s: %s is behind %llu, not %llu", key->text,
               log->element[i]->element[0]->str, previous, said);
        previous = strtoull(log->element[i]->element[0]->str, NULL, 10);
    }
    freeReplyObject(log);
}

static void check_empty(struct core *core, const struct key *key)
{
    expect(core_number(core, "XLEN %s", key->text) == 0, "%s is not empty", key->text);
}

static void check_gone(struct core *core, const struct key *key)
{
    (void)core;
    expect(false, "%s is left behind", key->text);
}

static void check_hidden_from(struct core *core, const struct key *key)
{
    check_mirrored_set(core, key, "hidden_by");
}

static void check_hidden_by(struct core *core, const struct key *key)
{
    check_mirrored_set(core, key, "hidden_from");
}

static void check_mutes(struct core *core, const struct key *key)
{
    check_mirrored_set(core, key, "muted_by");
}

static void check_muted_by(struct core *core, const struct key *key)
{
    check_mirrored_set(core, key, "mutes");
}

static const struct {
    const char *name;
    void (*check)(struct core *core, const struct key *key);
} checks[] = {
    {"user", check_user},
    {"post", check_post},
    {"profile", check_posts_exist},
    {"comments", check_comments},
    {"likes", check_likes},
    {"logins", check_logins},
    {"home", check_posts_exist},
    {"followers", check_followers},
    {"follower_parts", check_follower_parts},
    {"hidden_from", check_hidden_from},
    {"hidden_by", check_hidden_by},
    {"mutes", check_mutes},
    {"muted_by", check_muted_by},
    {"log", check_log},
    {"tasks", check_empty},
    {"dead", check_empty},
    {"task", check_gone},
};

/* The sums of followers and followed agree: with each follower's follow checked, no follow lacks
 * its mirror. */
static void check_sums(struct core *core, const redisReply *keys)
{
    long long following = 0, followers = 0;

    for (size_t i = 0; i < keys->elements; i++) {
        const struct key key = parse_key(keys->element[i]->str);

        if (strcmp(key.name, "following") == 0)
            following += core_number(core, "ZCARD %s", key.text);
        else if (strcmp(key.name, "followers") == 0)
            followers += core_number(core, "ZCARD %s", key.text);
    }
    expect(following == followers, "%lld follow, but %lld are followed", following, followers);
}

void core_check(struct core *core, const char *what)
{
    redisReply *keys = core_command(core, "KEYS *");

    checked = what;
    for (size_t i = 0; i < keys->elements; i++) {
        const struct key key = parse_key(keys->element[i]->str);

        for (size_t k = 0; k < sizeof(checks) / sizeof(checks[0]); k++) {
            if (strcmp(key.name, checks[k].name) == 0)
                checks[k].check(core, &key);
        }
    }
    check_sums(core, keys);
    freeReplyObject(keys);
}
