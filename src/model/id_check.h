/* src/model/id_check.h - can that be the id of a user or post of this database? */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "src/model/database.h"

/* 0; -EINVAL. */
int sl_id_check(uint64_t id, const struct sl_meta *meta, struct failure *reterr);
