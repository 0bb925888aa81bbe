/* filters/polygon.h - areas with straight edges in degrees; internal.
 *
 * docs/filters.md, section 8, defines what is inside. A polygon is compiled to bytes within a
 * condition: the cells of the map that it touches, then its points; filters/polygon_cells.h writes
 * them. The points are unwound: beyond an antimeridian that the polygon crosses, longitudes
 * continue above 180, so that each edge is the straight line between its two stored points. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "filters/event_view.h"

enum { SL_POLYGON_MIN_POINTS = 3, SL_POLYGON_MAX_POINTS = 100 };

struct sl_polygon {
    struct sl_box bounds;  /* west from -180 to 180, east up to west + 360 */
    uint32_t inside_count; /* the first of the cells, which lie entirely in the polygon */
    uint32_t cell_count;
    uint32_t point_count;
    const char *cells;  /* of uint32_t, not aligned */
    const char *points; /* of struct sl_point, not aligned */
};

/* --- making ------------------------------------------------------------------------------- */

enum sl_polygon_verdict {
    SL_POLYGON_GOOD,
    SL_POLYGON_FLAT,  /* all points are on one line */
    SL_POLYGON_ROUND, /* it goes round a pole, or is wider than the globe */
};

/* Unwinds the longitudes of `points`, which must be valid. */
enum sl_polygon_verdict sl_polygon_unwind(struct sl_point *points, size_t count);

/* The bounds of unwound points. */
struct sl_box sl_polygon_bounds(const struct sl_point *points, size_t count);

/* --- reading ------------------------------------------------------------------------------ */

/* Decodes a polygon, which borrows the bytes. */
struct sl_polygon sl_polygon_read(struct sl_slice bytes);
struct sl_point sl_polygon_point(const struct sl_polygon *polygon, uint32_t at);
uint32_t sl_polygon_cell(const struct sl_polygon *polygon, uint32_t at);

/* --- asking ------------------------------------------------------------------------------- */

/* Whether the polygon has a point in common with the shape of an event, on the globe. */
bool sl_polygon_touches(const struct sl_polygon *polygon, const struct sl_box *shape);

enum sl_polygon_side { SL_POLYGON_OUTSIDE, SL_POLYGON_CROSSED, SL_POLYGON_INSIDE };

/* Whether a box, west <= east in unwound degrees, is inside, outside, or crossed by an edge, which
 * means that the edge has a point in it. */
enum sl_polygon_side sl_polygon_side_of(const struct sl_polygon *polygon, const struct sl_box *box);
