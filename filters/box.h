/* filters/box.h - areas on the globe: boxes in degrees, and circles.
 *
 * Edges belong to their area, 180 and -180 are one meridian, a pole is one point. Comparisons are
 * exact on doubles: nothing is rounded and nothing padded. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"
#include "filters/event_view.h"

struct sl_circle {
    struct sl_point centre;
    double radius_km;
};

#define SL_CIRCLE_MAX_KM 500.0
#define SL_KM_PER_MILE   1.609344

/* In range, and not south of itself? */
bool sl_box_is_valid(const struct sl_box *box);
bool sl_point_is_valid(const struct sl_point *point);

/* Do the two share a point? */
bool sl_boxes_touch(const struct sl_box *a, const struct sl_box *b);

static inline struct sl_box sl_box_of_point(struct sl_point point)
{
    return (struct sl_box){point.lon, point.lat, point.lon, point.lat};
}

/* Within the radius, by haversine on a sphere of radius 6371.0088 km? */
bool sl_circle_has(const struct sl_circle *circle, struct sl_point point);
/* A box that holds every point of the circle, and a little more. */
struct sl_box sl_circle_bounds(const struct sl_circle *circle);

/* Reads [+-]?[0-9]{1,3}(\.[0-9]+)? as the nearest double, whatever the locale.
 * 0; -EINVAL: not that; -ENOMEM. */
int sl_parse_degrees(struct sl_slice text, double *ret_degrees);
/* Reads [0-9]{1,4}(\.[0-9]+)?(km|mi), the unit in any case, above 0 and at most 500 km.
 * 0; -EINVAL; -ENOMEM. */
int sl_parse_radius(struct sl_slice text, double *ret_km);
