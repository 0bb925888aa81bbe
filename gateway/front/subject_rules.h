/* gateway/front/subject_rules.h - the rules that a token's subject keeps, for streams that stay the
 * same while their rules change.
 *
 * A plain value: what Redis has of them (access/rule_store.h), in the order of their ids. What a
 * rule says is in the words of a dialect, and never changes: another text is another rule. */
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
    uint64_t version; /* rises with each change; 0: there never were any */
    struct subject_rule *list;
    size_t count, room;
};

/* A text that was kept. 0; -EBADMSG: it is none; -ENOMEM. */
int subject_rules_add(struct subject_rules *rules, uint64_t id, struct sl_slice json);
/* All have been added. */
void subject_rules_sort(struct subject_rules *rules);
void subject_rules_done(struct subject_rules *rules);

/* NULL: there is none. */
const struct subject_rule *subject_rules_find(const struct subject_rules *rules, uint64_t id);
/* The first of them. `tag` is not looked at. */
const struct subject_rule *subject_rules_find_value(const struct subject_rules *rules,
                                                    struct sl_slice value);

/* The text that is kept. `tag` NULL: none. */
void subject_rule_print(const char *value, const char *tag, struct buffer *ret_json);

/* What is to be done to them: ids, and texts. */
struct rules_change {
    uint64_t *removed;
    size_t removed_count;
    struct sl_slice *added;
    size_t added_count;
};
