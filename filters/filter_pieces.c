/* filter_pieces.c - splits lists at their commas, and a rule where its parser says.
 *
 * The pieces of a rule are its outermost alternatives or, if there is only one, its items;
 * parentheses stay together. Nothing is copied: pieces are slices of the members, and at most
 * SL_FILTER_PIECES_MAX of them are stored. */
#include "filters/filter_pieces.h"

#include "filters/parse.h"
#include "filters/scan.h"

struct splitter {
    const struct sl_filter_text *whole;
    struct sl_filter_piece *pieces;
    size_t count;
};

/* NULL: no room for it. */
static struct sl_filter_piece *add(struct splitter *splitter, const char *param,
                                   struct sl_slice value)
{
    const struct sl_filter_text *whole = splitter->whole;
    struct sl_filter_piece *piece;

    if (splitter->count++ >= SL_FILTER_PIECES_MAX)
        return NULL;
    piece = &splitter->pieces[splitter->count - 1];
    *piece = (struct sl_filter_piece){.param = param,
                                      .value = value,
                                      .text = {.language = whole->language,
                                               .sample = whole->sample,
                                               .partition = whole->partition,
                                               .types = whole->types}};
    return piece;
}

static void split_track(struct splitter *splitter)
{
    struct sl_slice rest = splitter->whole->track, item;

    while (sl_scan_item(&rest, &item)) {
        struct sl_filter_piece *piece = item.size > 0 ? add(splitter, "track", item) : NULL;

        if (piece)
            piece->text.track = item;
    }
}

static void split_follow(struct splitter *splitter)
{
    struct sl_slice rest = splitter->whole->follow, item;

    while (sl_scan_item(&rest, &item)) {
        struct sl_filter_piece *piece = item.size > 0 ? add(splitter, "follow", item) : NULL;

        if (piece)
            piece->text.follow = item;
    }
}

/* Each piece has four numbers. */
static void split_locations(struct splitter *splitter)
{
    struct sl_slice rest = splitter->whole->locations, first, item;

    while (sl_scan_item(&rest, &first)) {
        struct sl_filter_piece *piece;

        for (int i = 0; i < 3; i++) {
            if (!sl_scan_item(&rest, &item))
                return;
        }
        item = sl_slice(first.data, (size_t)(item.data + item.size - first.data));
        piece = add(splitter, "locations", item);
        if (piece)
            piece->text.locations = item;
    }
}

static void split_rule(struct splitter *splitter)
{
    struct sl_slice rule = splitter->whole->rule;
    struct sl_rule_pieces found;
    bool has_items;
    size_t count;

    if (sl_parse_rule_pieces(rule, &found) < 0)
        return;
    has_items = found.alternative_count == 1;
    count = has_items ? found.item_count : found.alternative_count;
    for (size_t i = 0; i < count; i++) {
        struct sl_slice value = has_items ? found.items[i] : found.alternatives[i];
        size_t before = (size_t)(value.data - rule.data);
        struct sl_filter_piece *piece = add(splitter, "rule", value);

        if (!piece)
            continue;
        piece->text.rule = value;
        if (has_items && count > 1) {
            piece->rest_before = sl_slice(rule.data, before);
            piece->rest_behind = sl_slice_from(rule, before + value.size);
        }
    }
}

size_t sl_filter_pieces(const struct sl_filter_text *text,
                        struct sl_filter_piece ret_pieces[static SL_FILTER_PIECES_MAX])
{
    struct splitter splitter = {.whole = text, .pieces = ret_pieces};

    if (text->track.data)
        split_track(&splitter);
    if (text->follow.data)
        split_follow(&splitter);
    if (text->locations.data)
        split_locations(&splitter);
    if (text->rule.data)
        split_rule(&splitter);
    return splitter.count;
}
