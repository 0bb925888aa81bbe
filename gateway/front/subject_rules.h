/* gateway/front/subject_rules.h - the stored rules of a token's subject, for streams that continue
 * while their rules change.
 *
 * A plain value: the content of Redis (access/rule_store.h), sorted by id. The text of a rule is in
 * the words of a dialect, and never changes: another text is another rule. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

struct subject_rule {
    uint64_t id;
    const char *value;
    const char *tag; /* NULL: none */
};

struct subject_rules {
    uint64_t version; /* increases with each change; 0: there never were any */
    struct subject_rule *list;
    size_t count, room;
};

/* Adds a stored text. 0; -EBADMSG: invalid; -ENOMEM. */
int subject_rules_add(struct subject_rules *rules, uint64_t id, struct sl_slice json);
/* Must be called after all were added. */
void subject_rules_sort(struct subject_rules *rules);
void subject_rules_done(struct subject_rules *rules);

/* NULL: there is none. */
const struct subject_rule *subject_rules_find(const struct subject_rules *rules, uint64_t id);
/* The first one with this value. Ignores `tag`. */
const struct subject_rule *subject_rules_find_value(const struct subject_rules *rules,
                                                    struct sl_slice value);

/* Writes the text to be stored. `tag` NULL: none. */
void subject_rule_print(const char *value, const char *tag, struct buffer *ret_json);

/* A change of the rules: ids to remove, and texts to add. */
struct rules_change {
    uint64_t *removed;
    size_t removed_count;
    struct sl_slice *added;
    size_t added_count;
};
