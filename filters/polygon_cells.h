/* filters/polygon_cells.h - which cells of the map does a polygon touch? internal.
 *
 * Up to 36, of all sizes: large ones where the polygon fills them, small ones along its edges. */
#pragma once

#include "base/buffer.h"
#include "filters/polygon.h"

/* Appends the compiled form of unwound points, their cells included: whatever event shares a point
 * with the polygon asks the grid for one of those. */
void sl_polygon_write(const struct sl_point *points, size_t count, struct buffer *bytes);
