/* filters/polygon_cells.h - finds the cells of the map that a polygon touches; internal.
 *
 * There are up to 36, of all sizes: large ones inside the polygon, small ones along its edges. */
#pragma once

#include "base/buffer.h"
#include "filters/polygon.h"

/* Appends the compiled form of unwound points, including their cells. Any event that has a point in
 * common with the polygon looks up one of these cells. */
void sl_polygon_write(const struct sl_point *points, size_t count, struct buffer *bytes);
