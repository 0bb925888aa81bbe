/* src/database/forms.h - forms: storage formats that older programs cannot read.
 *
 * Newer programs write the old format until `sluice upgrade` has added the form to the field
 * `forms` of every shard's `meta`, together with `schema` 2. From then on programs before 0.2
 * refuse the database because of its schema, and later programs that do not know the form because
 * of its name. A program writes a form only in shards that have it, and always reads both
 * formats. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

enum sl_form { SL_FORM_HOMES, SL_FORM_LIKES, SL_FORMS };

struct sl_form_row {
    const char *name;    /* as in the field `forms` */
    const char *meaning; /* half a line of explanation */
};

const struct sl_form_row *sl_form_at(enum sl_form form);

/* Parses a comma-separated list of names, which may be empty, into a bit mask with 1u << form for
 * each. 0; -ESTALE: a form that this program does not know. */
int sl_forms_read(struct sl_slice names, unsigned *ret_forms, struct failure *reterr);

/* Reads the forms of a shard. 0; -ENOMEM. */
int sl_forms_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                  struct failure *reterr);
/* Adds these forms to the shard, permanently, and sets schema 2 even if the list is empty.
 * Repeatable. 0; -ENOMEM. */
int sl_upgrade_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                    unsigned forms, struct failure *reterr);
/* The reply to both calls: the forms that the shard has now. 0; errors as sl_forms_read() and
 * sl_reply_check(). */
int sl_forms_reply(const struct redisReply *reply, unsigned *ret_forms, struct failure *reterr);
