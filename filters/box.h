/* filters/box.h - areas on the globe: boxes in degrees, and circles.
 *
 * Edges belong to their area, 180 and -180 are the same meridian, and a pole is one point.
 * Comparisons of doubles are exact: nothing is rounded or padded. */
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

/* Whether the coordinates are in range, and north is not south of south. */
bool sl_box_is_valid(const struct sl_box *box);
bool sl_point_is_valid(const struct sl_point *point);

/* Whether the boxes have a point in common. */
bool sl_boxes_touch(const struct sl_box *a, const struct sl_box *b);

static inline struct sl_box sl_box_of_point(struct sl_point point)
{
    return (struct sl_box){point.lon, point.lat, point.lon, point.lat};
}

/* Whether the point is within the radius, by the haversine formula on a sphere of radius 6371.0088
 * km. */
bool sl_circle_has(const struct sl_circle *circle, struct sl_point point);
/* A box that contains every point of the circle; it is slightly larger than necessary. */
struct sl_box sl_circle_bounds(const struct sl_circle *circle);

/* Parses [+-]?[0-9]{1,3}(\.[0-9]+)? as the nearest double, independent of the locale. 0; -EINVAL:
 * another form; -ENOMEM. */
int sl_parse_degrees(struct sl_slice text, double *ret_degrees);
/* Parses [0-9]{1,4}(\.[0-9]+)?(km|mi), with the unit in any case, above 0 and at most 500 km. 0;
 * -EINVAL; -ENOMEM. */
int sl_parse_radius(struct sl_slice text, double *ret_km);
