/* src/model/id_check.h - checks the id of a user or post. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "src/model/database.h"

/* Checks that the id can belong to a user or post of this database. 0; -EINVAL. */
int sl_id_check(uint64_t id, const struct sl_meta *meta, struct failure *reterr);
