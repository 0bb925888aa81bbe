/* token_claims.c - applies the rules of gateway/front/token.h before a token is signed.
 *
 * A server ignores unknown scopes, so that newer tokens work with older servers, and refuses a
 * token with unknown limits. Here both are refused, because in a token made by hand they are typing
 * errors. The names come from the table that the server uses (src/model/token.def); other claims
 * are not checked. */
#include "cli/token_claims.h"

#include <string.h>

#include "base/nearest.h"
#include "src/model/id.h"
#include "src/social/posts.h"

#define SCOPE(symbol, name) " " name
const char token_scope_names[] =
#include "src/model/token.def"
    ;

static const struct limit {
    const char *name;
    bool is_percent;
    uint64_t most;
} limits[] = {
#define LIMIT(field, name)   {name, false, UINT32_MAX},
#define PERCENT(field, name) {name, true, 100},
#define USE(symbol, name)    {name, false, SL_ID_MAX},
#include "src/model/token.def"
};

enum { WORD_SIZE = 64 };

/* Reads the word at `*at`, and advances. false: there is none. */
static bool next_word(const char **at, char room[static WORD_SIZE])
{
    size_t size;

    *at += strspn(*at, " ");
    size = strcspn(*at, " ");
    snprintf(room, WORD_SIZE, "%.*s", (int)size, *at);
    *at += size;
    return size > 0;
}

static void check_scope(const struct cli *cli, const char *scope)
{
    struct nearest search = {.text = scope};
    char word[WORD_SIZE], meant[WORD_SIZE];
    const char *at = token_scope_names;

    while (next_word(&at, word)) {
        if (strcmp(word, scope) == 0)
            return;
        nearest_see(&search, word);
        if (search.best == word)
            search.best = strcpy(meant, word);
    }
    if (search.best)
        cli_usage(cli, "unknown scope '%s'; is '%s' meant?", scope, search.best);
    cli_usage(cli, "unknown scope '%s'; there are%s", scope, token_scope_names);
}

static void check_scopes(const struct cli *cli, const json_t *scopes)
{
    const char *at = json_string_value(scopes);
    char word[WORD_SIZE];
    bool is_empty = true;

    if (!at)
        cli_usage(cli, "the claim scope must be one string of scopes separated by spaces");
    for (; next_word(&at, word); is_empty = false)
        check_scope(cli, word);
    if (is_empty)
        cli_usage(cli, "a token without a scope permits nothing; there are%s", token_scope_names);
}

static void check_limit(const struct cli *cli, const char *name, const json_t *value)
{
    double number = json_number_value(value);

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (strcmp(name, limits[i].name) != 0)
            continue;
        if (limits[i].is_percent && !(json_is_number(value) && number >= 0 && number <= 100))
            cli_usage(cli, "the limit %s must be a percentage, a number from 0 to 100", name);
        if (!limits[i].is_percent &&
            !(json_is_integer(value) && number >= 0 && number <= (double)limits[i].most))
            cli_usage(cli, "the limit %s must be a whole number from 0 to %llu", name,
                      (unsigned long long)limits[i].most);
        return;
    }
    cli_usage(cli,
              "unknown limit '%s', with which every sluiced would refuse the token; there are "
              "track, follow, boxes, rules, sample, connects, requests, streams, events, bytes "
              "and replayed",
              name);
}

static void check_limits(const struct cli *cli, json_t *lim)
{
    const char *name;
    json_t *value;

    if (!lim)
        return;
    if (!json_is_object(lim))
        cli_usage(cli, "the claim lim must be an object, as in --claim 'lim={\"track\":50}'");
    json_object_foreach(lim, name, value) check_limit(cli, name, value);
}

static void check_subject(const struct cli *cli, const json_t *claims)
{
    const json_t *sub = json_object_get(claims, "sub");
    const char *scopes = json_string_value(json_object_get(claims, "scope"));
    uint64_t id;

    if (!json_is_string(sub) || json_string_length(sub) < 1 ||
        json_string_length(sub) > SL_USER_ID_TEXT_MAX)
        cli_usage(cli, "the subject must be a string of 1 to %d bytes", SL_USER_ID_TEXT_MAX);
    if (token_claims_need_user(scopes) &&
        sl_id_parse(sl_slice_str(json_string_value(sub)), &id) < 0)
        cli_usage(cli,
                  "'%s' is not the id of a user, which these scopes need; --sub LOGIN looks "
                  "the id up",
                  json_string_value(sub));
}

static void check_times(const struct cli *cli, const json_t *claims, int64_t now_s)
{
    const json_t *exp = json_object_get(claims, "exp"), *nbf = json_object_get(claims, "nbf");

    if (!json_is_number(exp) || (nbf && !json_is_number(nbf)))
        cli_usage(cli, "the claims exp and nbf must be numbers: Unix times in seconds");
    if (json_number_value(exp) <= (double)now_s)
        cli_usage(cli, "the token would have expired already");
}

bool token_claims_need_user(const char *scopes)
{
    bool is_admin = false, acts = false;
    char word[WORD_SIZE];

    while (next_word(&scopes, word)) {
        is_admin |= strcmp(word, "admin") == 0;
        if (strcmp(word, "stream:home") == 0)
            return true;
        acts |= strcmp(word, "read") == 0 || strcmp(word, "write") == 0;
    }
    return acts && !is_admin;
}

void token_claims_check(const struct cli *cli, const json_t *claims, int64_t now_s)
{
    check_scopes(cli, json_object_get(claims, "scope"));
    check_limits(cli, json_object_get(claims, "lim"));
    check_subject(cli, claims);
    check_times(cli, claims, now_s);
}
