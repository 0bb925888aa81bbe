/* event_pretty.c - the output of `sluice tail --pretty` on streams of events.
 *
 *     10:04:33 @ada (Ada Lovelace): Tea at five
 *     10:05:01 @bob, answering 114871006871552: On my way
 *     10:06:12 114871006871552 is deleted
 *     10:06:30 @bob follows @ada
 *     10:07:02 @cyd (Cyd) is new
 *     10:08:11 @cyd (Cyd C.) has another name
 *
 * The date is printed before a time of another day. Missing members are left out. Further lines of
 * a text are indented. */
#include "cli/event_pretty.h"

#include <string.h>

#include "base/clock.h"
#include "cli/pretty.h"

/* An invalid time is printed unchanged. */
static void print_time(FILE *file, const char *at)
{
    uint64_t unix_ms;

    if (clock_parse_rfc3339(sl_slice_str(at), &unix_ms) < 0)
        pretty_text(file, at);
    else
        pretty_time(file, unix_ms);
}

static void print_user(FILE *file, const json_t *user)
{
    const char *login = pretty_member(user, "login");

    if (*login)
        fputc('@', file);
    pretty_text(file, *login ? login : pretty_member(user, "id"));
}

static void print_reference(FILE *file, const json_t *post, const char *name, const char *words)
{
    const char *other = pretty_member(json_object_get(post, name), "post");

    if (!*other)
        return;
    fprintf(file, ", %s ", words);
    pretty_text(file, other);
}

static void print_user_and_name(FILE *file, const json_t *user)
{
    const char *name = pretty_member(user, "name");

    print_user(file, user);
    if (!*name || strcmp(name, pretty_member(user, "login")) == 0)
        return;
    fputs(" (", file);
    pretty_text(file, name);
    fputc(')', file);
}

static void print_post(FILE *file, const json_t *post)
{
    print_user_and_name(file, json_object_get(post, "user"));
    print_reference(file, post, "reply_to", "answering");
    print_reference(file, post, "repost_of", "passing on");
    print_reference(file, post, "quote_of", "quoting");
    fputs(": ", file);
    pretty_text(file, pretty_member(post, "text"));
}

/* Events that relate two users. */
static const struct {
    const char *type, *words;
} relations[] = {{"follow", "follows"}, {"unfollow", "follows no more"}};

/* What is different, as far as that is known. */
static void print_change(FILE *file, const json_t *event)
{
    const json_t *members = json_object_get(event, "members"), *name;
    size_t i, count = json_array_size(members);

    print_user_and_name(file, json_object_get(event, "user"));
    if (strcmp(pretty_member(event, "change"), "created") == 0) {
        fputs(" is new", file);
        return;
    }
    if (count == 0)
        fputs(" has changed", file);
    json_array_foreach(members, i, name)
    {
        fputs(i == 0 ? " has another " : i + 1 == count ? " and " : ", ", file);
        pretty_text(file, json_string_value(name) ? json_string_value(name) : "");
    }
}

static const char *find_relation(const char *type)
{
    for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
        if (strcmp(type, relations[i].type) == 0)
            return relations[i].words;
    }
    return NULL;
}

bool event_pretty_print(FILE *file, const json_t *event)
{
    const json_t *post = json_object_get(event, "post");
    const char *type = pretty_member(event, "type");
    const char *relation = find_relation(type);
    bool is_post = strcmp(type, "post") == 0, is_deletion = strcmp(type, "delete") == 0;
    bool is_change = strcmp(type, "user") == 0;

    if (!relation && !is_change && !(post && (is_post || is_deletion)))
        return false;
    if (*pretty_member(event, "at")) {
        print_time(file, pretty_member(event, "at"));
        fputc(' ', file);
    }
    if (is_post) {
        print_post(file, post);
    } else if (is_deletion) {
        pretty_text(file, pretty_member(post, "id"));
        fputs(" is deleted", file);
    } else if (is_change) {
        print_change(file, event);
    } else {
        print_user(file, json_object_get(event, "user"));
        fprintf(file, " %s ", relation);
        print_user(file, json_object_get(event, "target"));
    }
    fputc('\n', file);
    return true;
}
