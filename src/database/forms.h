/* src/database/forms.h - forms of data that older programs cannot read, and how a database gets
 * them.
 *
 * What a newer program writes is what older programs read, until `sluice upgrade` has named another
 * form in the field `forms` of every shard's `meta`, with `schema` 2. Programs of before 0.2 refuse
 * the database from then on for its schema, later ones that do not know the form for its name. So a
 * program writes a form only where the shard has it, and reads both. */
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
    const char *name;    /* in `forms` */
    const char *meaning; /* half a line */
};

const struct sl_form_row *sl_form_at(enum sl_form form);

/* Names with commas between them, or nothing: a bit 1u << form for each. 0; -ESTALE: one that this
 * program does not know. */
int sl_forms_read(struct sl_slice names, unsigned *ret_forms, struct failure *reterr);

/* Asks which forms the shard has. 0; -ENOMEM. */
int sl_forms_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                  struct failure *reterr);
/* Gives the shard these forms, too, for good, and schema 2 even if there are none. May be sent
 * again. 0; -ENOMEM. */
int sl_upgrade_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                    unsigned forms, struct failure *reterr);
/* What both answer: the forms that the shard has then. 0; as sl_forms_read() and sl_reply_check().
 */
int sl_forms_reply(const struct redisReply *reply, unsigned *ret_forms, struct failure *reterr);
