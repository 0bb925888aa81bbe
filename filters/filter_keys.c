/* filter_keys.c - chooses the keys under which a filter is filed.
 *
 * An alternative of a filter can only be true if the event contains certain things. For "a b" it
 * contains both words, so filing the filter under one of them is enough, preferably the rarer; for
 * "(a OR b) -c" it contains at least one of two. So an atom returns its own key (a keyword of
 * several words the rarest pair of adjacent words), ANY the keys of all its parts, ALL those of its
 * rarest part, NOT nothing.
 *
 * The cost of a key is how often it was recently seen in events, because that is how often the
 * filters filed there are evaluated. Among keys of equal cost, such as all keys before the first
 * event, the one with fewer filters is preferred, so that popular words do not collect them all,
 * and then the longer one. */
#include "filters/index_keys.h"

#include <assert.h>
#include <errno.h>

#include "filters/verbatim.h"

#define NO_KEY UINT64_MAX /* the condition does not imply that the event has any key */
/* Added to the cost of a language or country: they are used only if there is nothing else, however
 * rare they appear while an index is new. The sum over a rule stays below NO_KEY. */
#define WIDE_COST (UINT64_C(1) << 56)

struct chooser {
    const struct sl_index_keys *index;
    const struct sl_filter_view *view;
    uint32_t condition; /* the current alternative */
    bool compares;      /* within ALL: costs are compared */
    bool is_area;       /* the alternative is only an area */
    struct buffer *keys;
};

/* One occurrence outweighs any number of filters, and one filter any length. */
enum { SEEN = 1 << 20, FILED = 1 << 8, FILED_MAX = SEEN / FILED - 1, SIZE_MAX_TIE = FILED - 1 };

static uint64_t cost_of(const struct chooser *chooser, uint64_t key, const struct sl_postings *in,
                        size_t size)
{
    uint64_t seen = sl_rarity_count(&chooser->index->rarity, key);
    uint64_t filed = sl_postings_count(in, key);

    return seen * SEEN + (filed < FILED_MAX ? filed : FILED_MAX) * FILED +
           (size < SIZE_MAX_TIE ? SIZE_MAX_TIE - size : 0);
}

static void push(struct chooser *chooser, uint64_t key)
{
    struct sl_filter_key filter_key = {.key = key, .condition = chooser->condition};

    buffer_append(chooser->keys, &filter_key, sizeof(filter_key));
}

static uint64_t add_cell(struct chooser *chooser, uint32_t cell, bool is_inside)
{
    const struct sl_box_grid *grid = &chooser->index->grid;
    struct sl_filter_key key = {.key = cell,
                                .condition = chooser->condition,
                                .is_cell = true,
                                .is_sure = is_inside && chooser->is_area};

    buffer_append(chooser->keys, &key, sizeof(key));
    return chooser->compares ? cost_of(chooser, sl_box_grid_key(grid, cell), &grid->cells, 0) : 0;
}

static uint64_t add_key(struct chooser *chooser, uint64_t key, size_t size)
{
    push(chooser, key);
    return chooser->compares ? cost_of(chooser, key, &chooser->index->postings, size) : 0;
}

static bool takes_posts(const struct chooser *chooser)
{
    return chooser->view->types & (1u << SL_EVENT_POST | 1u << SL_EVENT_DELETE);
}

/* Events of users rather than of a post. */
static bool takes_follows(const struct chooser *chooser)
{
    return chooser->view->types &
           (1u << SL_EVENT_FOLLOW | 1u << SL_EVENT_UNFOLLOW | 1u << SL_EVENT_USER);
}

static uint64_t hash_of(const struct chooser *chooser, struct sl_slice text)
{
    return sl_word_hash(&chooser->index->word_key, text.data, text.size);
}

/* For posts only: a filter that takes no posts can never match by such a key, and needs none. */
static uint64_t add_text_key(struct chooser *chooser, enum sl_key_kind kind, struct sl_slice text)
{
    if (!takes_posts(chooser))
        return 0;
    return add_key(chooser, sl_key_of_text(chooser->index, kind, text), text.size);
}

static uint64_t add_user(struct chooser *chooser, enum sl_key_kind post_kind,
                         enum sl_key_kind follow_kind, struct sl_slice id)
{
    uint64_t cost = add_text_key(chooser, post_kind, id);

    if (takes_follows(chooser))
        cost += add_key(chooser, sl_key_of_text(chooser->index, follow_kind, id), id.size);
    return cost;
}

static uint64_t add_users(struct chooser *chooser, struct sl_slice operand)
{
    uint32_t count = sl_condition_user_count(operand);
    uint64_t cost = 0;

    for (uint32_t i = 0; i < count; i++)
        cost += add_user(chooser, SL_KEY_USER, SL_KEY_FOLLOW_USER, sl_condition_user(operand, i));
    return cost;
}

static uint64_t add_keyword(struct chooser *chooser, struct sl_slice operand)
{
    const struct sl_postings *postings = &chooser->index->postings;
    struct sl_condition_token token;
    uint64_t hash, previous, key, cost, best = 0, best_cost = NO_KEY;
    size_t size;

    if (!takes_posts(chooser))
        return 0;
    sl_condition_next_token(&operand, &token);
    previous = hash_of(chooser, token.text);
    if (operand.size == 0)
        return add_key(chooser, previous, token.text.size);
    for (size = token.text.size; sl_condition_next_token(&operand, &token); previous = hash) {
        hash = hash_of(chooser, token.text);
        key = sl_word_hash_pair(&chooser->index->word_key, previous, hash);
        cost = cost_of(chooser, key, postings, size + token.text.size);
        if (cost < best_cost) {
            best = key;
            best_cost = cost;
        }
        size = token.text.size;
    }
    push(chooser, best);
    return best_cost;
}

static uint64_t add_whole_word(struct chooser *chooser, struct sl_slice operand)
{
    uint64_t cost = add_keyword(chooser, operand);
    struct sl_slice word;

    if (sl_whole_word_is_of_links(operand, &word))
        cost += add_text_key(chooser, SL_KEY_LINK_WORD, word);
    return cost;
}

static uint64_t add_place(struct chooser *chooser, struct sl_slice operand)
{
    struct sl_condition_token token;
    uint64_t hash = 0;

    if (!takes_posts(chooser))
        return 0;
    while (sl_condition_next_token(&operand, &token))
        hash = sl_word_hash_pair(&chooser->index->word_key, hash, hash_of(chooser, token.text));
    return add_key(chooser, sl_key_of_hash(chooser->index, SL_KEY_PLACE, hash), 0);
}

static uint64_t add_url(struct chooser *chooser, struct sl_slice operand)
{
    const struct sl_index_keys *index = chooser->index;
    struct sl_slice host, path;

    sl_condition_read_url(operand, &host, &path);
    if (path.size == 0 || !takes_posts(chooser))
        return add_text_key(chooser, SL_KEY_HOST, host);
    return add_key(chooser, sl_key_of_url(index, hash_of(chooser, host), path), operand.size);
}

static uint64_t add_cells(struct chooser *chooser, struct sl_box box)
{
    uint32_t cells[SL_GRID_MAX_CELLS];
    size_t count = sl_box_grid_cells(&box, cells);
    uint64_t cost = 0;

    for (size_t i = 0; i < count; i++)
        cost += add_cell(chooser, cells[i], false);
    return cost;
}

static uint64_t add_area(struct chooser *chooser, const struct sl_box *box)
{
    if (!takes_posts(chooser))
        return 0;
    if (box->west <= box->east)
        return add_cells(chooser, *box);
    return add_cells(chooser, (struct sl_box){box->west, box->south, 180.0, box->north}) +
           add_cells(chooser, (struct sl_box){-180.0, box->south, box->east, box->north});
}

static uint64_t add_poles(struct chooser *chooser, const struct sl_box *box)
{
    uint64_t cost = 0;

    if (box->north == 90.0 && takes_posts(chooser))
        cost += add_key(chooser, sl_key_of_pole(chooser->index, SL_NORTH_POLE), 0);
    if (box->south == -90.0 && takes_posts(chooser))
        cost += add_key(chooser, sl_key_of_pole(chooser->index, SL_SOUTH_POLE), 0);
    return cost;
}

static uint64_t add_box(struct chooser *chooser, struct sl_slice operand)
{
    struct sl_box box;

    memcpy(&box, operand.data, sizeof(box));
    return add_area(chooser, &box) + add_poles(chooser, &box);
}

static uint64_t add_polygon(struct chooser *chooser, struct sl_slice operand)
{
    struct sl_polygon polygon = sl_polygon_read(operand);
    uint64_t cost = 0;

    if (!takes_posts(chooser))
        return 0;
    for (uint32_t i = 0; i < polygon.cell_count; i++)
        cost += add_cell(chooser, sl_polygon_cell(&polygon, i), i < polygon.inside_count);
    return cost + add_poles(chooser, &polygon.bounds);
}

static uint64_t add_circle(struct chooser *chooser, struct sl_slice operand)
{
    struct sl_circle circle;
    struct sl_box bounds;

    memcpy(&circle, operand.data, sizeof(circle));
    bounds = sl_circle_bounds(&circle);
    return add_area(chooser, &bounds);
}

static struct sl_slice first_subtag(struct sl_slice range)
{
    const char *end = memchr(range.data, '-', range.size);

    return end ? sl_slice(range.data, (size_t)(end - range.data)) : range;
}

/* Everything; for posts, only those in one of the languages. */
static uint64_t add_anything(struct chooser *chooser)
{
    struct sl_slice rest = chooser->view->languages;
    struct sl_condition languages, language;

    for (unsigned type = 0; type < SL_EVENT_TYPE_COUNT; type++) {
        bool is_post = type == SL_EVENT_POST || type == SL_EVENT_DELETE;

        if (chooser->view->types & 1u << type && (rest.size == 0 || !is_post))
            push(chooser, sl_key_of_type(chooser->index, type));
    }
    if (rest.size == 0 || !takes_posts(chooser))
        return 0;
    sl_condition_next(&rest, &languages);
    rest = languages.kind == SL_CONDITION_ANY ? languages.operand : languages.whole;
    while (sl_condition_next(&rest, &language))
        add_text_key(chooser, SL_KEY_LANGUAGE, first_subtag(language.operand));
    return 0;
}

static uint64_t add_wide(struct chooser *chooser, enum sl_key_kind kind, struct sl_slice text)
{
    return add_text_key(chooser, kind, text) + WIDE_COST;
}

static uint64_t add_condition(struct chooser *chooser, const struct sl_condition *condition);

static uint64_t add_any(struct chooser *chooser, struct sl_slice rest)
{
    struct sl_condition part;
    uint64_t cost = 0, part_cost;

    while (sl_condition_next(&rest, &part)) {
        part_cost = add_condition(chooser, &part);
        if (part_cost == NO_KEY)
            return NO_KEY;
        cost += part_cost;
    }
    return cost;
}

/* The keys of each part are appended after the best ones so far, and replace them if they are
 * better. */
static uint64_t add_rarest(struct chooser *chooser, struct sl_slice rest)
{
    struct buffer *keys = chooser->keys;
    const size_t start = keys->size;
    size_t best_end = start;
    uint64_t cost, best_cost = NO_KEY;
    struct sl_condition part;

    chooser->compares = true;
    while (sl_condition_next(&rest, &part)) {
        cost = add_condition(chooser, &part);
        if (keys->failed)
            return 0;
        if (cost < best_cost) {
            best_cost = cost;
            if (best_end > start)
                memmove(keys->data + start, keys->data + best_end, keys->size - best_end);
            best_end = start + (keys->size - best_end);
        }
        keys->size = best_end;
    }
    return best_cost;
}

/* All its terms are in the text. */
static uint64_t add_near(struct chooser *chooser, struct sl_slice operand)
{
    unsigned between;

    return add_rarest(chooser, sl_condition_near_terms(operand, &between));
}

static uint64_t add_condition(struct chooser *chooser, const struct sl_condition *condition)
{
    struct sl_slice operand = condition->operand;

    switch (condition->kind) {
    case SL_CONDITION_ANYTHING:
        return add_anything(chooser);
    case SL_CONDITION_ALL:
        return add_rarest(chooser, operand);
    case SL_CONDITION_ANY:
        return add_any(chooser, operand);
    case SL_CONDITION_KEYWORD:
        return add_keyword(chooser, operand);
    case SL_CONDITION_WHOLE_WORD:
        return add_whole_word(chooser, operand);
    case SL_CONDITION_VERBATIM:
        return add_text_key(chooser, SL_KEY_VERBATIM, operand);
    case SL_CONDITION_HASHTAG:
        return add_text_key(chooser, SL_KEY_HASHTAG, operand);
    case SL_CONDITION_MENTION:
        return add_text_key(chooser, SL_KEY_MENTION, operand);
    case SL_CONDITION_CASHTAG:
        return add_text_key(chooser, SL_KEY_CASHTAG, operand);
    case SL_CONDITION_USERS:
        return add_users(chooser, operand);
    case SL_CONDITION_AUTHOR:
        return add_user(chooser, SL_KEY_AUTHOR, SL_KEY_FOLLOW_FROM, operand);
    case SL_CONDITION_REPLY_TO:
        return add_user(chooser, SL_KEY_REPLY_TO, SL_KEY_FOLLOW_TO, operand);
    case SL_CONDITION_REPOST_OF:
        return add_text_key(chooser, SL_KEY_REPOST_OF, operand);
    case SL_CONDITION_AUTHOR_LOGIN:
        return add_text_key(chooser, SL_KEY_AUTHOR_LOGIN, operand);
    case SL_CONDITION_REPLY_TO_LOGIN:
        return add_text_key(chooser, SL_KEY_REPLY_TO_LOGIN, operand);
    case SL_CONDITION_REPOST_OF_LOGIN:
        return add_text_key(chooser, SL_KEY_REPOST_OF_LOGIN, operand);
    case SL_CONDITION_URL:
        return add_url(chooser, operand);
    case SL_CONDITION_PLACE:
        return add_place(chooser, operand);
    case SL_CONDITION_BOX:
        return add_box(chooser, operand);
    case SL_CONDITION_CIRCLE:
        return add_circle(chooser, operand);
    case SL_CONDITION_NEAR:
        return add_near(chooser, operand);
    case SL_CONDITION_POLYGON:
        return add_polygon(chooser, operand);
    case SL_CONDITION_LANGUAGE:
        return add_wide(chooser, SL_KEY_LANGUAGE, first_subtag(operand));
    case SL_CONDITION_COUNTRY:
        return add_wide(chooser, SL_KEY_COUNTRY, operand);
    case SL_CONDITION_NOT:
    case SL_CONDITION_TRAIT:
    case SL_CONDITION_SAMPLE:
        break;
    }
    return NO_KEY;
}

/* Adds the keys of one alternative. */
static void choose(struct chooser *chooser, const struct sl_condition *alternative)
{
    uint64_t cost;

    chooser->condition = (uint32_t)(alternative->whole.data - chooser->view->condition.data);
    chooser->compares = false;
    chooser->is_area = alternative->kind == SL_CONDITION_POLYGON;
    cost = add_condition(chooser, alternative);
    assert(cost != NO_KEY); /* rules without an anchor are refused */
    (void)cost;
}

int sl_filter_keys(const struct sl_index_keys *index, const struct sl_filter_view *view,
                   struct buffer *ret_keys)
{
    struct chooser chooser = {.index = index, .view = view, .keys = ret_keys};
    struct sl_slice rest = view->condition;
    struct sl_condition root, alternative;

    sl_condition_next(&rest, &root);
    rest = root.kind == SL_CONDITION_ANY ? root.operand : root.whole;
    while (sl_condition_next(&rest, &alternative))
        choose(&chooser, &alternative);
    return ret_keys->failed ? -ENOMEM : 0;
}

int sl_alternative_keys(const struct sl_index_keys *index, const struct sl_filter_view *view,
                        uint32_t condition, struct buffer *ret_keys)
{
    struct chooser chooser = {.index = index, .view = view, .keys = ret_keys};
    struct sl_slice rest = sl_slice_from(view->condition, condition);
    struct sl_condition alternative;

    sl_condition_next(&rest, &alternative);
    choose(&chooser, &alternative);
    return ret_keys->failed ? -ENOMEM : 0;
}

uint32_t sl_key_cost(const struct sl_index_keys *index, uint64_t key, bool is_cell)
{
    if (is_cell)
        key = sl_box_grid_key(&index->grid, (uint32_t)key);
    return sl_rarity_count(&index->rarity, key);
}
