/* filters/polygon.h - areas with straight edges in degrees; internal.
 *
 * What is inside, docs/filters.md says in section 8. A polygon is compiled to bytes that stand in a
 * condition: the cells of the map that it touches, then its points; filters/polygon_cells.h writes
 * them. The points are unwound: on the far side of an antimeridian that it crosses, longitudes go
 * on beyond 180, so that each edge is the straight line between its two points as they are kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "filters/event_view.h"

enum { SL_POLYGON_MIN_POINTS = 3, SL_POLYGON_MAX_POINTS = 100 };

struct sl_polygon {
    struct sl_box bounds;  /* west -180 to 180, east up to west + 360 */
    uint32_t inside_count; /* of the cells, which come first: lie wholly in the polygon */
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

/* Unwinds the longitudes of `points`, which are valid ones. */
enum sl_polygon_verdict sl_polygon_unwind(struct sl_point *points, size_t count);

/* Of unwound points. */
struct sl_box sl_polygon_bounds(const struct sl_point *points, size_t count);

/* --- reading ------------------------------------------------------------------------------ */

/* The polygon borrows the bytes. */
struct sl_polygon sl_polygon_read(struct sl_slice bytes);
struct sl_point sl_polygon_point(const struct sl_polygon *polygon, uint32_t at);
uint32_t sl_polygon_cell(const struct sl_polygon *polygon, uint32_t at);

/* --- asking ------------------------------------------------------------------------------- */

/* Does it share a point with the shape of an event, on the globe? */
bool sl_polygon_touches(const struct sl_polygon *polygon, const struct sl_box *shape);

enum sl_polygon_side { SL_POLYGON_OUTSIDE, SL_POLYGON_CROSSED, SL_POLYGON_INSIDE };

/* Where is a box, west <= east, in unwound degrees? Crossed: an edge has a point in it. */
enum sl_polygon_side sl_polygon_side_of(const struct sl_polygon *polygon, const struct sl_box *box);
