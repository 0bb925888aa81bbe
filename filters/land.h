/* filters/land.h - whether a box contains land, to the degree and without Antarctica; internal. */
#pragma once

#include <stdbool.h>

#include "filters/event_view.h"

enum { SL_LAND_ROWS = 180, SL_LAND_ROW_BYTES = 45 };

/* A bit for each cell of one degree, beginning at the south-west corner of the map: see
 * tables/make_land_table.py. */
extern const unsigned char sl_land_table[SL_LAND_ROWS][SL_LAND_ROW_BYTES];

/* `box` must be valid. Cells that it touches count as a whole. */
bool sl_land_in(const struct sl_box *box);
