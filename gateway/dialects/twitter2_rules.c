/* twitter2_rules.c - requests about rules: reading, deciding, answering.
 *
 * If one rule of an `add` is invalid, none is added; if some exist already, the others are added.
 * Two rules are equal if their values are, whatever their tags. */
#include "gateway/dialects/twitter2_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/twitter2_problem.h"
#include "gateway/dialects/twitter2_rule_text.h"
#include "gateway/front/json_request.h"
#include "gateway/front/subject_rules.h"
#include "gateway/http/form.h"
#include "src/database/stream_rules.h"

enum { RESULTS_MAX = 1000, TAG_MAX_BYTES = 255, ID_MAX_BYTES = 19 };

enum parameter {
    PARAMETER_DELETE_ALL,
    PARAMETER_DRY_RUN,
    PARAMETER_IDS,
    PARAMETER_MAX_RESULTS,
    PARAMETER_PAGINATION_TOKEN,
    PARAMETERS
};
static const char *const names[PARAMETERS] = {"delete_all", "dry_run", "ids", "max_results",
                                              "pagination_token"};

enum operation { LIST, COUNT, ADD, DELETE, DELETE_ALL };

struct asked {
    enum operation operation;
    bool is_dry_run;
    uint64_t now_ms;
    uint32_t cap;
    char subject[TOKEN_SUBJECT_SIZE];
    json_t *body;        /* for ADD and DELETE */
    json_t *ids;         /* for LIST: the requested ids; NULL: all */
    uint64_t after, max; /* for LIST */
    size_t invalid;      /* for ADD: the number of invalid rules */
    /* The decision. */
    json_t *answer; /* "data", "errors"; an added rule has a number `new` instead of an id */
    json_t *meta;   /* without the time */
    int status;
    struct rules_change change;
    struct buffer texts; /* of added rules, one after the other */
};

/* --- reading
 * ----------------------------------------------------------------------------------- */

static int read_flag(const char *name, struct sl_slice text, bool *ret_flag,
                     struct http_refusal *refusal)
{
    *ret_flag = sl_slice_is(text, "true") || sl_slice_is(text, "True") || sl_slice_is(text, "1");
    if (!text.data || *ret_flag || sl_slice_is(text, "false") || sl_slice_is(text, "False") ||
        sl_slice_is(text, "0"))
        return 0;
    return http_refuse(refusal, 400, "bad_flag", name, "The `%s` query parameter is not a boolean",
                       name);
}

static bool read_id(struct sl_slice text, uint64_t *ret_id)
{
    uint64_t id = 0;

    if (text.size == 0 || text.size > ID_MAX_BYTES)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        id = id * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret_id = id;
    return true;
}

static int read_max(struct sl_slice text, uint64_t *ret_max, struct http_refusal *refusal)
{
    *ret_max = RESULTS_MAX;
    if (!text.data || (read_id(text, ret_max) && *ret_max >= 1 && *ret_max <= RESULTS_MAX))
        return 0;
    return http_refuse(refusal, 400, "bad_max_results", "max_results",
                       "The `max_results` query parameter is not between 1 and %d", RESULTS_MAX);
}

static int read_ids(struct sl_slice text, json_t **ret_ids, struct http_refusal *refusal)
{
    uint64_t id;

    if (!text.data)
        return 0;
    *ret_ids = json_array();
    while (text.size > 0) {
        struct sl_slice item = http_next_element(&text, ',');

        if (!read_id(item, &id))
            return http_refuse(refusal, 400, "bad_ids", "ids",
                               "The `ids` query parameter value [%.*s] is not valid",
                               (int)(item.size < 64 ? item.size : 64), item.data);
        if (json_array_append_new(*ret_ids, json_integer((json_int_t)id)) < 0)
            return -ENOMEM;
    }
    if (json_array_size(*ret_ids) >= 1 && json_array_size(*ret_ids) <= RESULTS_MAX)
        return 0;
    return http_refuse(refusal, 400, "bad_ids", "ids",
                       "The number of values in the `ids` query parameter is not between 1 and %d",
                       RESULTS_MAX);
}

static int read_list(const struct sl_slice *values, struct asked *asked,
                     struct http_refusal *refusal)
{
    struct sl_slice token = values[PARAMETER_PAGINATION_TOKEN];
    int r = read_max(values[PARAMETER_MAX_RESULTS], &asked->max, refusal);

    if (r == 0)
        r = read_ids(values[PARAMETER_IDS], &asked->ids, refusal);
    if (r == 0 && token.data && !read_id(token, &asked->after))
        r = http_refuse(refusal, 400, "bad_pagination_token", "pagination_token",
                        "The `pagination_token` query parameter value is not valid");
    return r;
}

static int refuse_member(struct http_refusal *refusal, const char *message)
{
    return http_refuse(refusal, 400, "bad_rules", NULL, "%s", message);
}

static int check_added(const json_t *add, struct http_refusal *refusal)
{
    if (!json_is_array(add) || json_array_size(add) < 1 ||
        json_array_size(add) > SL_RULES_ADDED_MAX)
        return refuse_member(refusal, "$.add: an array of 1 to 1000 rules");
    for (size_t i = 0; i < json_array_size(add); i++) {
        const json_t *rule = json_array_get(add, i), *tag = json_object_get(rule, "tag");

        if (!json_is_string(json_object_get(rule, "value")))
            return refuse_member(refusal, "$.add: a rule is an object with a `value`, a string");
        if (tag && !json_is_null(tag) &&
            (!json_is_string(tag) || json_string_length(tag) > TAG_MAX_BYTES))
            return refuse_member(refusal, "$.add: a `tag` is a string of at most 255 bytes");
    }
    return 0;
}

/* Checks a list of strings, or of ids in digits; it may be absent or empty. */
static int check_texts(const json_t *list, bool are_ids, struct http_refusal *refusal)
{
    uint64_t id;

    if (!list || (json_is_array(list) && json_array_size(list) == 0))
        return 0;
    if (!json_is_array(list) || json_array_size(list) > RESULTS_MAX)
        return refuse_member(refusal, "$.delete: arrays of at most 1000 `ids`, or `values`");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *text = json_array_get(list, i);

        if (!json_is_string(text) ||
            (are_ids && !read_id(sl_slice_str(json_string_value(text)), &id)))
            return refuse_member(refusal, "$.delete: `ids` are digits in strings, and `values` "
                                          "strings");
    }
    return 0;
}

static int check_deleted(const json_t *deleted, struct http_refusal *refusal)
{
    const json_t *ids = json_object_get(deleted, "ids"),
                 *values = json_object_get(deleted, "values");
    int r = check_texts(ids, true, refusal);

    if (r == 0)
        r = check_texts(values, false, refusal);
    if (r == 0 && json_array_size(ids) + json_array_size(values) == 0)
        r = refuse_member(refusal, "$.delete: `ids` or `values` of the rules are missing");
    return r;
}

static int read_change(const struct dialect_request *request, struct asked *asked,
                       struct http_refusal *refusal)
{
    bool deletes_all = asked->operation == DELETE_ALL;
    const json_t *add, *deleted;
    int r;

    if (deletes_all && request->http->body.size == 0)
        return 0;
    r = json_request_body(request->http, &asked->body, refusal);
    if (r == -EPROTO)
        refusal->status = 400; /* X has no other status for an invalid body */
    if (r < 0)
        return r;
    add = json_object_get(asked->body, "add");
    deleted = json_object_get(asked->body, "delete");
    if (deletes_all && !add && !deleted)
        return 0;
    if (deletes_all || !add == !deleted) /* deleted rules cannot be recovered, so never guess */
        return refuse_member(refusal, "$: one of `add`, `delete` and `?delete_all=true` is needed");
    asked->operation = add ? ADD : DELETE;
    return add ? check_added(add, refusal) : check_deleted(deleted, refusal);
}

static int read_query(const struct dialect_request *request, unsigned known, struct asked *asked,
                      struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    bool deletes_all = false;
    int r = form_read(&form, &request->http->query, 1, refusal);

    for (unsigned i = 0; r == 0 && i < PARAMETERS; i++) {
        if (values[i].data && !(known & 1u << i))
            r = http_refuse(refusal, 400, "unknown_parameter", names[i],
                            "The query parameter [%s] is not one of those that this takes",
                            names[i]);
    }
    if (r == 0 && request->http->method == HTTP_GET)
        r = read_list(values, asked, refusal);
    if (r == 0)
        r = read_flag("dry_run", values[PARAMETER_DRY_RUN], &asked->is_dry_run, refusal);
    if (r == 0)
        r = read_flag("delete_all", values[PARAMETER_DELETE_ALL], &deletes_all, refusal);
    if (deletes_all)
        asked->operation = DELETE_ALL;
    form_done(&form);
    return r;
}

/* --- invalid rules --- */

/* Appends an element to the array with that name; takes ownership of `json`. */
static int add_to(json_t *object, const char *name, json_t *json)
{
    json_t *array = json_object_get(object, name);

    if (!array && json_object_set_new(object, name, array = json_array()) < 0) {
        json_decref(json);
        return -ENOMEM;
    }
    return json_array_append_new(array, json) < 0 ? -ENOMEM : 0;
}

static int check_value(const struct token *token, const json_t *rule, char *detail)
{
    const char *text = json_string_value(json_object_get(rule, "value"));
    struct sl_filter *filter = NULL;
    struct http_refusal refusal;
    int r = twitter2_rule_filter(sl_slice_str(text), &token->limits, &filter, detail);

    if (r == 0 && stream_filter_permitted(token, filter, &refusal) < 0) {
        snprintf(detail, TWITTER2_DETAIL_SIZE, "%s", refusal.message);
        r = -EINVAL;
    }
    sl_filter_unref(filter);
    return r;
}

/* An invalid rule is invalid independently of the existing rules. */
static int check_values(const struct token *token, struct asked *asked)
{
    const json_t *add = json_object_get(asked->body, "add"), *rule;
    char detail[TWITTER2_DETAIL_SIZE];
    size_t i;

    json_array_foreach(add, i, rule)
    {
        int r = check_value(token, rule, detail);

        if (r == -ENOMEM)
            return r;
        if (r == 0)
            continue;
        asked->invalid++;
        r = add_to(asked->answer, "errors",
                   json_pack("{s:O,s:[s],s:s,s:s}", "value", json_object_get(rule, "value"),
                             "details", detail, "title", "UnprocessableEntity", "type",
                             TWITTER2_PROBLEMS "invalid-rules"));
        if (r < 0)
            return r;
    }
    return 0;
}

static int read(const struct dialect_request *request, const struct token *token, void *owner,
                struct http_refusal *refusal)
{
    const unsigned of_get =
        1u << PARAMETER_IDS | 1u << PARAMETER_MAX_RESULTS | 1u << PARAMETER_PAGINATION_TOKEN;
    const unsigned of_post = 1u << PARAMETER_DRY_RUN | 1u << PARAMETER_DELETE_ALL;
    bool is_get = request->http->method == HTTP_GET;
    struct asked *asked = owner;
    int r;

    asked->now_ms = request->times.now_ms;
    asked->cap = token->limits.rules;
    asked->answer = json_object();
    if (!asked->answer)
        return -ENOMEM;
    r = read_query(request, is_get ? of_get : of_post, asked, refusal);
    if (r == 0 && !is_get)
        r = read_change(request, asked, refusal);
    return r == 0 && asked->operation == ADD ? check_values(token, asked) : r;
}

static int read_count(const struct dialect_request *request, const struct token *token, void *owner,
                      struct http_refusal *refusal)
{
    struct asked *asked = owner;

    asked->operation = COUNT;
    asked->now_ms = request->times.now_ms;
    asked->cap = token->limits.rules;
    memcpy(asked->subject, token->holder, sizeof(asked->subject));
    asked->answer = json_object();
    return asked->answer ? read_query(request, 0, asked, refusal) : -ENOMEM;
}

/* --- rules of streams
 * -------------------------------------------------------------------------- */

int twitter2_check_rules(const struct subject_rules *rules, struct http_refusal *refusal)
{
    if (rules->count > 0)
        return 0;
    return http_refuse(refusal, 409, "no_rules", NULL,
                       "Rules must be configured before connecting to the stream.");
}

/* The rule was valid when it was added, but perhaps for a token with greater limits. */
int twitter2_read_rule(const struct subject_rule *rule, const struct token *token,
                       struct sl_filter **ret_filter, struct http_refusal *refusal)
{
    struct sl_filter_limits limits = token->limits;
    char detail[TWITTER2_DETAIL_SIZE];
    struct sl_filter *filter = NULL;
    int r = twitter2_rule_filter(sl_slice_str(rule->value), &limits, &filter, detail);

    if (r == -EINVAL)
        r = http_refuse(refusal, 403, "bad_rule", NULL, "rule %" PRIu64 " is not valid here: %s",
                        rule->id, detail);
    if (r == 0)
        r = stream_filter_permitted(token, filter, refusal);
    if (r < 0)
        sl_filter_unref(filter);
    else
        *ret_filter = filter;
    return r;
}

/* --- deciding
 * ---------------------------------------------------------------------------------- */

static json_t *id_text(uint64_t id)
{
    return json_sprintf("%" PRIu64, id);
}

static json_t *rule_json(const struct subject_rule *rule)
{
    json_t *json = json_pack("{s:o,s:s}", "id", id_text(rule->id), "value", rule->value);

    if (json && rule->tag)
        json_object_set_new(json, "tag", json_string(rule->tag));
    return json;
}

static bool is_wanted(const struct asked *asked, uint64_t id)
{
    size_t i;
    json_t *wanted;

    json_array_foreach(asked->ids, i, wanted)
    {
        if ((uint64_t)json_integer_value(wanted) == id)
            return true;
    }
    return !asked->ids;
}

static int list(struct asked *asked, const struct subject_rules *rules)
{
    size_t told = 0;
    int r = 0;

    asked->meta = json_object();
    for (size_t i = 0; r == 0 && i < rules->count; i++) {
        const struct subject_rule *rule = &rules->list[i];

        if (rule->id <= asked->after || !is_wanted(asked, rule->id))
            continue;
        if (told == asked->max) {
            json_t *data = json_object_get(asked->answer, "data");

            json_object_set(asked->meta, "next_token",
                            json_object_get(json_array_get(data, told - 1), "id"));
            break;
        }
        r = add_to(asked->answer, "data", rule_json(rule));
        told++;
    }
    json_object_set_new(asked->meta, "result_count", json_integer((json_int_t)told));
    return asked->meta ? r : -ENOMEM;
}

static int count(struct asked *asked, const struct subject_rules *rules)
{
    json_int_t n = (json_int_t)rules->count;
    json_t *data =
        json_pack("{s:i,s:i,s:{s:s,s:I},s:I,s:[{s:s,s:I}]}", "cap_per_client_app", (int)asked->cap,
                  "cap_per_project", (int)asked->cap, "client_app_rules_count", "client_app_id",
                  asked->subject, "rule_count", n, "project_rules_count", n,
                  "all_project_client_apps", "client_app_id", asked->subject, "rule_count", n);

    asked->meta = json_object();
    return json_object_set_new(asked->answer, "data", data) < 0 || !asked->meta ? -ENOMEM : 0;
}

static int summarise(struct asked *asked, json_t *summary)
{
    asked->meta = json_pack("{s:o}", "summary", summary);
    return asked->meta ? 0 : -ENOMEM;
}

static int summarise_added(struct asked *asked, size_t created, size_t invalid, size_t all)
{
    return summarise(asked, json_pack("{s:I,s:I,s:I,s:I}", "created", (json_int_t)created,
                                      "not_created", (json_int_t)(all - created), "valid",
                                      (json_int_t)(all - invalid), "invalid", (json_int_t)invalid));
}

/* Maps the values of the existing rules to their ids. NULL: out of memory. */
static json_t *ids_by_value(const struct subject_rules *rules)
{
    json_t *ids = json_object();

    for (size_t i = 0; ids && i < rules->count; i++) {
        if (json_object_set_new(ids, rules->list[i].value, id_text(rules->list[i].id)) == 0)
            continue;
        json_decref(ids);
        ids = NULL;
    }
    return ids;
}

static int note_added(struct asked *asked, const json_t *rule)
{
    const char *value = json_string_value(json_object_get(rule, "value"));
    const char *tag = json_string_value(json_object_get(rule, "tag"));
    json_t *json = json_pack("{s:s}", "value", value);
    size_t before = asked->texts.size;

    if (json && tag)
        json_object_set_new(json, "tag", json_string(tag));
    subject_rule_print(value, tag, &asked->texts);
    if (asked->texts.failed || add_to(asked->answer, "data", json) < 0)
        return -ENOMEM;
    /* The address is set when all texts are complete. */
    asked->change.added[asked->change.added_count++] = sl_slice(NULL, asked->texts.size - before);
    return 0;
}

static void place_added(struct asked *asked)
{
    const char *at = asked->texts.data;

    for (size_t i = 0; i < asked->change.added_count; i++) {
        asked->change.added[i].data = at;
        at += asked->change.added[i].size;
    }
}

static int note_duplicate(struct asked *asked, const json_t *rule, json_t *id)
{
    return add_to(asked->answer, "errors",
                  json_pack("{s:O,s:O,s:s,s:s}", "value", json_object_get(rule, "value"), "id", id,
                            "title", "DuplicateRule", "type", TWITTER2_PROBLEMS "duplicate-rules"));
}

/* A rule that occurs twice in the request has no id yet. */
static int add_each(struct asked *asked, const struct subject_rules *rules, size_t *ret_same)
{
    const json_t *add = json_object_get(asked->body, "add"), *rule;
    json_t *ids = ids_by_value(rules);
    int r = ids ? 0 : -ENOMEM;
    size_t i;

    *ret_same = 0;
    json_array_foreach(add, i, rule)
    {
        const char *value = json_string_value(json_object_get(rule, "value"));
        json_t *id = json_object_get(ids, value);

        if (r < 0)
            break;
        *ret_same += id != NULL;
        if (id)
            r = note_duplicate(asked, rule, id);
        else if (json_object_set_new(ids, value, json_string("")) < 0)
            r = -ENOMEM;
        else
            r = note_added(asked, rule);
    }
    json_decref(ids);
    place_added(asked);
    return r;
}

static int refuse_cap(struct asked *asked, const struct subject_rules *rules, size_t all)
{
    json_object_del(asked->answer, "data");
    json_object_del(asked->answer, "errors");
    asked->change.added_count = 0;
    asked->status = 422;
    if (add_to(asked->answer, "errors",
               json_pack("{s:s,s:o,s:s}", "title", "RulesCapExceeded", "detail",
                         json_sprintf("There are %zu rules, and %" PRIu32 " are permitted",
                                      rules->count, asked->cap),
                         "type", TWITTER2_PROBLEMS "rule-cap")) < 0)
        return -ENOMEM;
    return summarise_added(asked, 0, 0, all);
}

static int add(struct asked *asked, const struct subject_rules *rules)
{
    size_t all = json_array_size(json_object_get(asked->body, "add")), same;
    int r;

    if (asked->invalid > 0) {
        asked->status = 400;
        return summarise_added(asked, 0, asked->invalid, all);
    }
    asked->change.added = mem_alloc(mem_array_size(all, sizeof(*asked->change.added)));
    if (!asked->change.added)
        return -ENOMEM;
    r = add_each(asked, rules, &same);
    if (r < 0)
        return r;
    if (asked->change.added_count > 0 && rules->count + asked->change.added_count > asked->cap)
        return refuse_cap(asked, rules, all);
    asked->status = asked->change.added_count > 0 ? 201 : 200;
    return summarise_added(asked, asked->change.added_count, same, all);
}

static void remove_one(struct asked *asked, const struct subject_rule *rule)
{
    for (size_t i = 0; i < asked->change.removed_count; i++) {
        if (asked->change.removed[i] == rule->id)
            return;
    }
    asked->change.removed[asked->change.removed_count++] = rule->id;
}

static int note_missing(struct asked *asked)
{
    return add_to(asked->answer, "errors",
                  json_pack("{s:[{s:s,s:{}}],s:s,s:s,s:s}", "errors", "message",
                            "Rule does not exist", "parameters", "title", "Invalid Request",
                            "detail", "One or more parameters to your request was invalid.", "type",
                            TWITTER2_PROBLEMS "invalid-request"));
}

static int delete_each(struct asked *asked, const struct subject_rules *rules, const json_t *list,
                       bool are_ids, size_t *missing)
{
    json_t *text;
    size_t i;

    json_array_foreach((json_t *)list, i, text)
    {
        struct sl_slice value = sl_slice_str(json_string_value(text));
        const struct subject_rule *rule;
        uint64_t id = 0;

        rule = are_ids && read_id(value, &id) ? subject_rules_find(rules, id)
                                              : subject_rules_find_value(rules, value);
        if (rule)
            remove_one(asked, rule);
        else if (++*missing && note_missing(asked) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int delete (struct asked *asked, const struct subject_rules *rules)
{
    const json_t *deleted = json_object_get(asked->body, "delete");
    size_t missing = 0;
    int r = 0;

    asked->change.removed =
        mem_alloc(mem_array_size(rules->count + 1, sizeof(*asked->change.removed)));
    if (!asked->change.removed)
        return -ENOMEM;
    for (size_t i = 0; asked->operation == DELETE_ALL && i < rules->count; i++)
        asked->change.removed[asked->change.removed_count++] = rules->list[i].id;
    if (asked->operation == DELETE)
        r = delete_each(asked, rules, json_object_get(deleted, "ids"), true, &missing);
    if (r == 0 && asked->operation == DELETE)
        r = delete_each(asked, rules, json_object_get(deleted, "values"), false, &missing);
    return r < 0 ? r
                 : summarise(asked, json_pack("{s:I,s:I}", "deleted",
                                              (json_int_t)asked->change.removed_count,
                                              "not_deleted", (json_int_t)missing));
}

/* Undoes a decision, because the rules have changed since. */
static void forget_decision(struct asked *asked)
{
    json_decref(asked->meta);
    asked->meta = NULL;
    mem_free(asked->change.added);
    mem_free(asked->change.removed);
    asked->change = (struct rules_change){.added_count = 0};
    buffer_clear(&asked->texts);
    json_object_del(asked->answer, "data");
    if (asked->invalid == 0)
        json_object_del(asked->answer, "errors");
}

static int decide(void *owner, const struct subject_rules *rules, struct rules_change *ret_change)
{
    static int (*const deciding[])(struct asked * asked, const struct subject_rules *rules) = {
        [LIST] = list, [COUNT] = count, [ADD] = add, [DELETE] = delete, [DELETE_ALL] = delete};
    struct asked *asked = owner;
    int r;

    forget_decision(asked);
    asked->status = 200;
    r = deciding[asked->operation](asked, rules);
    if (r == 0 && !asked->is_dry_run)
        *ret_change = asked->change;
    return r;
}

/* --- answering
 * --------------------------------------------------------------------------------- */

/* In a dry run the ids belong to no rule. */
static void name_added(const struct asked *asked, uint64_t version)
{
    json_t *rule;
    size_t i;

    json_array_foreach(json_object_get(asked->answer, "data"), i, rule)
        json_object_set_new(rule, "id", id_text(sl_rules_id(version + asked->is_dry_run, i)));
}

static int answer(void *owner, uint64_t version, struct buffer *ret_body,
                  struct http_answer *ret_answer)
{
    char sent[CLOCK_RFC3339_SIZE];
    struct asked *asked = owner;

    if (asked->operation == ADD)
        name_added(asked, version);
    clock_format_rfc3339(asked->now_ms, sent);
    ret_answer->status = asked->status;
    if (json_object_set_new(asked->meta, "sent", json_string(sent)) < 0 ||
        json_object_set(asked->answer, "meta", asked->meta) < 0)
        return -ENOMEM;
    return event_json_append(asked->answer, 0, ret_body);
}

static void done(void *owner)
{
    struct asked *asked = owner;

    forget_decision(asked);
    buffer_done(&asked->texts);
    json_decref(asked->answer);
    json_decref(asked->body);
    json_decref(asked->ids);
}

const struct dialect_rules twitter2_rules = {
    .asked_size = sizeof(struct asked),
    .read = read,
    .decide = decide,
    .answer = answer,
    .done = done,
};

const struct dialect_rules twitter2_rule_counts = {
    .asked_size = sizeof(struct asked),
    .read = read_count,
    .decide = decide,
    .answer = answer,
    .done = done,
};
