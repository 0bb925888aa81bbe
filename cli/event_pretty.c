/* event_pretty.c - the output of `sluice tail --pretty`.
 *
 *     10:04:33 @ada (Ada Lovelace): Tea at five
 *     10:05:01 @bob, answering 114871006871552: On my way
 *     10:06:12 114871006871552 is deleted
 *     10:06:30 @bob follows @ada
 *     10:07:02 @cyd (Cyd) is new
 *     10:08:11 @cyd (Cyd C.) has another name
 *
 * Missing members are left out. Further lines of a text are indented. */
#include "cli/event_pretty.h"

#include <string.h>
#include <time.h>

#include <jansson.h>

#include "cli/cli.h"

static const char *member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* Indents further lines, so that no text can look like another event. */
static void print_text(FILE *file, const char *text)
{
    while (*text) {
        size_t size = strcspn(text, "\n");

        cli_print(file, sl_slice(text, size));
        text += size;
        if (*text == '\n') {
            fputs("\n        ", file);
            text++;
        }
    }
}

/* Prints local hours, minutes and seconds; an invalid time is printed unchanged. */
static void print_time(FILE *file, const char *at)
{
    struct tm utc = {0}, local;
    time_t seconds;

    if (!strptime(at, "%Y-%m-%dT%H:%M:%S", &utc)) {
        print_text(file, at);
        return;
    }
    seconds = timegm(&utc);
    localtime_r(&seconds, &local);
    fprintf(file, "%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

static void print_user(FILE *file, const json_t *user)
{
    const char *login = member(user, "login");

    if (*login)
        fputc('@', file);
    print_text(file, *login ? login : member(user, "id"));
}

static void print_reference(FILE *file, const json_t *post, const char *name, const char *words)
{
    const char *other = member(json_object_get(post, name), "post");

    if (!*other)
        return;
    fprintf(file, ", %s ", words);
    print_text(file, other);
}

static void print_user_and_name(FILE *file, const json_t *user)
{
    const char *name = member(user, "name");

    print_user(file, user);
    if (!*name || strcmp(name, member(user, "login")) == 0)
        return;
    fputs(" (", file);
    print_text(file, name);
    fputc(')', file);
}

static void print_post(FILE *file, const json_t *post)
{
    print_user_and_name(file, json_object_get(post, "user"));
    print_reference(file, post, "reply_to", "answering");
    print_reference(file, post, "repost_of", "passing on");
    print_reference(file, post, "quote_of", "quoting");
    fputs(": ", file);
    print_text(file, member(post, "text"));
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
    if (strcmp(member(event, "change"), "created") == 0) {
        fputs(" is new", file);
        return;
    }
    if (count == 0)
        fputs(" has changed", file);
    json_array_foreach(members, i, name)
    {
        fputs(i == 0 ? " has another " : i + 1 == count ? " and " : ", ", file);
        print_text(file, json_string_value(name) ? json_string_value(name) : "");
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

bool event_pretty_print(FILE *file, struct sl_slice event)
{
    json_t *json = json_loadb(event.data, event.size, 0, NULL);
    const json_t *post = json_object_get(json, "post");
    const char *type = member(json, "type");
    const char *relation = find_relation(type);
    bool is_post = strcmp(type, "post") == 0, is_deletion = strcmp(type, "delete") == 0;
    bool is_change = strcmp(type, "user") == 0;

    if (!relation && !is_change && !(post && (is_post || is_deletion))) {
        json_decref(json);
        return false;
    }
    if (*member(json, "at")) {
        print_time(file, member(json, "at"));
        fputc(' ', file);
    }
    if (is_post) {
        print_post(file, post);
    } else if (is_deletion) {
        print_text(file, member(post, "id"));
        fputs(" is deleted", file);
    } else if (is_change) {
        print_change(file, json);
    } else {
        print_user(file, json_object_get(json, "user"));
        fprintf(file, " %s ", relation);
        print_user(file, json_object_get(json, "target"));
    }
    fputc('\n', file);
    json_decref(json);
    return true;
}
