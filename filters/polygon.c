/* polygon.c - tests whether a point is in a polygon, and whether a polygon touches a box.
 *
 * Everything is reduced to one question, on which side of a line a point is, which is answered
 * exactly: by two products if their difference is larger than the rounding error, otherwise by
 * adding up everything that the products round away (Shewchuk, "Adaptive Precision Floating-Point
 * Arithmetic and Fast Robust Geometric Predicates", 1997). So points on an edge are known to be on
 * it, and a point between two polygons that share an edge is always in at least one of them.
 *
 * A point is inside if the line from it to the east crosses an odd number of edges. An edge
 * includes its southern end but not its northern one, so that a line through a corner is counted
 * correctly. On the globe, the shape of an event is tested where it is and one turn to either
 * side. */
#include "filters/polygon.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "filters/box.h"

#define TURN 360.0
#define FLAT 1e-9 /* degrees: a tenth of a millimetre */

/* --- the side of a line ------------------------------------------------------------------- */

/* An exact sum: *ret_rest is the rounding error of the result. */
static double add(double a, double b, double *ret_rest)
{
    double sum = a + b, b_part = sum - a, a_part = sum - b_part;

    *ret_rest = (a - a_part) + (b - b_part);
    return sum;
}

enum { PRODUCTS = 6 };

/* The sign of a sum of products, computed exactly: its parts are kept separately, from the smallest
 * on. */
static int sign_of_sum(const double factors[PRODUCTS][2])
{
    double parts[2 * PRODUCTS];
    size_t count = 0;

    for (size_t i = 0; i < PRODUCTS; i++) {
        double product = factors[i][0] * factors[i][1];
        double terms[2] = {fma(factors[i][0], factors[i][1], -product), product};

        for (size_t j = 0; j < 2; j++) {
            double sum = terms[j];

            for (size_t k = 0; k < count; k++)
                sum = add(sum, parts[k], &parts[k]);
            parts[count++] = sum;
        }
    }
    while (count > 0 && parts[count - 1] == 0)
        count--;
    return count == 0 ? 0 : parts[count - 1] > 0 ? 1 : -1;
}

/* 1: `c` is left of the line from `a` to `b`; -1: right; 0: on it. */
static int side_of(struct sl_point a, struct sl_point b, struct sl_point c)
{
    double left = (a.lon - c.lon) * (b.lat - c.lat);
    double right = (a.lat - c.lat) * (b.lon - c.lon);
    double difference = left - right;
    const double factors[PRODUCTS][2] = {{a.lon, b.lat},  {-a.lon, c.lat}, {-c.lon, b.lat},
                                         {-a.lat, b.lon}, {a.lat, c.lon},  {c.lat, b.lon}};

    if (fabs(difference) > 4 * DBL_EPSILON * (fabs(left) + fabs(right)))
        return difference > 0 ? 1 : -1;
    return sign_of_sum(factors);
}

/* For boxes with west <= east. */
static bool overlap(const struct sl_box *a, const struct sl_box *b)
{
    return a->west <= b->east && b->west <= a->east && a->south <= b->north && b->south <= a->north;
}

static bool edge_touches(struct sl_point a, struct sl_point b, const struct sl_box *box)
{
    int first;

    if ((a.lon < box->west && b.lon < box->west) || (a.lon > box->east && b.lon > box->east) ||
        (a.lat < box->south && b.lat < box->south) || (a.lat > box->north && b.lat > box->north))
        return false;
    first = side_of(a, b, (struct sl_point){box->west, box->south});
    return first == 0 || first != side_of(a, b, (struct sl_point){box->east, box->south}) ||
           first != side_of(a, b, (struct sl_point){box->west, box->north}) ||
           first != side_of(a, b, (struct sl_point){box->east, box->north});
}

/* --- making ------------------------------------------------------------------------------- */

/* How often the path from one point to the next crosses the antimeridian eastwards. */
static int turns_between(struct sl_point from, struct sl_point to)
{
    double way = to.lon - from.lon;

    return way > TURN / 2 ? -1 : way < -TURN / 2 ? 1 : 0;
}

struct sl_box sl_polygon_bounds(const struct sl_point *points, size_t count)
{
    struct sl_box bounds = sl_box_of_point(points[0]);

    for (size_t i = 1; i < count; i++) {
        bounds.west = fmin(bounds.west, points[i].lon);
        bounds.south = fmin(bounds.south, points[i].lat);
        bounds.east = fmax(bounds.east, points[i].lon);
        bounds.north = fmax(bounds.north, points[i].lat);
    }
    return bounds;
}

/* Whether every point is within FLAT of the line through the first point and the one farthest from
 * it. */
static bool is_flat(const struct sl_point *points, size_t count)
{
    double lon = 0, lat = 0, farthest = 0;

    for (size_t i = 1; i < count; i++) {
        double east = points[i].lon - points[0].lon, north = points[i].lat - points[0].lat;

        if (hypot(east, north) > farthest) {
            farthest = hypot(east, north);
            lon = east;
            lat = north;
        }
    }
    for (size_t i = 1; i < count; i++) {
        double east = points[i].lon - points[0].lon, north = points[i].lat - points[0].lat;

        if (fabs(lon * north - lat * east) > FLAT * farthest)
            return false;
    }
    return true;
}

enum sl_polygon_verdict sl_polygon_unwind(struct sl_point *points, size_t count)
{
    int turns[SL_POLYGON_MAX_POINTS] = {0}, least = 0;
    struct sl_box bounds;

    for (size_t i = 1; i < count; i++) {
        turns[i] = turns[i - 1] + turns_between(points[i - 1], points[i]);
        least = turns[i] < least ? turns[i] : least;
    }
    if (turns[count - 1] + turns_between(points[count - 1], points[0]) != 0)
        return SL_POLYGON_ROUND;
    for (size_t i = 0; i < count; i++)
        points[i].lon += TURN * (turns[i] - least);
    bounds = sl_polygon_bounds(points, count);
    if (bounds.east - bounds.west > TURN)
        return SL_POLYGON_ROUND;
    return is_flat(points, count) ? SL_POLYGON_FLAT : SL_POLYGON_GOOD;
}

/* --- decoding ---------------------------------------------------------------------------- */

static void take(struct sl_slice *rest, void *value, size_t size)
{
    memcpy(value, rest->data, size);
    *rest = sl_slice_from(*rest, size);
}

struct sl_polygon sl_polygon_read(struct sl_slice bytes)
{
    struct sl_polygon polygon;

    take(&bytes, &polygon.bounds, sizeof(polygon.bounds));
    take(&bytes, &polygon.inside_count, sizeof(polygon.inside_count));
    take(&bytes, &polygon.cell_count, sizeof(polygon.cell_count));
    take(&bytes, &polygon.point_count, sizeof(polygon.point_count));
    polygon.cells = bytes.data;
    polygon.points = bytes.data + polygon.cell_count * sizeof(uint32_t);
    return polygon;
}

struct sl_point sl_polygon_point(const struct sl_polygon *polygon, uint32_t at)
{
    struct sl_point point;

    memcpy(&point, polygon->points + at * sizeof(point), sizeof(point));
    return point;
}

uint32_t sl_polygon_cell(const struct sl_polygon *polygon, uint32_t at)
{
    uint32_t cell;

    memcpy(&cell, polygon->cells + at * sizeof(cell), sizeof(cell));
    return cell;
}

/* --- tests ------------------------------------------------------------------------------- */

/* Whether the line from `point` to the east crosses the edge from `a` to `b`. *ret_on: the point is
 * on the edge. */
static bool crosses(struct sl_point a, struct sl_point b, struct sl_point point, bool *ret_on)
{
    bool goes_north = b.lat > point.lat;
    int side;

    *ret_on = false;
    if ((a.lat > point.lat) == goes_north) { /* on it as an end point, or on an edge along a
                                                parallel */
        *ret_on = (a.lon == point.lon && a.lat == point.lat) ||
                  (a.lat == point.lat && b.lat == point.lat &&
                   (a.lon < point.lon) != (b.lon < point.lon));
        return false;
    }
    if (a.lon < point.lon && b.lon < point.lon)
        return false;
    if (a.lon > point.lon && b.lon > point.lon)
        return true;
    side = side_of(a, b, point);
    *ret_on = side == 0;
    return (side > 0) == goes_north;
}

static bool has_point(const struct sl_polygon *polygon, struct sl_point point)
{
    struct sl_point from = sl_polygon_point(polygon, polygon->point_count - 1);
    bool is_inside = false, is_on;

    for (uint32_t i = 0; i < polygon->point_count; i++) {
        struct sl_point to = sl_polygon_point(polygon, i);

        is_inside ^= crosses(from, to, point, &is_on);
        if (is_on)
            return true;
        from = to;
    }
    return is_inside;
}

enum sl_polygon_side sl_polygon_side_of(const struct sl_polygon *polygon, const struct sl_box *box)
{
    struct sl_point from = sl_polygon_point(polygon, polygon->point_count - 1);

    if (!overlap(&polygon->bounds, box))
        return SL_POLYGON_OUTSIDE;
    for (uint32_t i = 0; i < polygon->point_count; i++) {
        struct sl_point to = sl_polygon_point(polygon, i);

        if (edge_touches(from, to, box))
            return SL_POLYGON_CROSSED;
        from = to;
    }
    return has_point(polygon, (struct sl_point){box->west, box->south}) ? SL_POLYGON_INSIDE
                                                                        : SL_POLYGON_OUTSIDE;
}

static bool touches_here(const struct sl_polygon *polygon, const struct sl_box *shape)
{
    if (shape->west < shape->east || shape->south < shape->north)
        return sl_polygon_side_of(polygon, shape) != SL_POLYGON_OUTSIDE;
    return overlap(&polygon->bounds, shape) &&
           has_point(polygon, (struct sl_point){shape->west, shape->south});
}

bool sl_polygon_touches(const struct sl_polygon *polygon, const struct sl_box *shape)
{
    struct sl_box here = *shape;

    if ((shape->north == 90.0 && polygon->bounds.north == 90.0) ||
        (shape->south == -90.0 && polygon->bounds.south == -90.0))
        return true;
    if (here.west > here.east)
        here.east += TURN;
    for (int turn = -1; turn <= 1; turn++) {
        struct sl_box there = {here.west + TURN * turn, here.south, here.east + TURN * turn,
                               here.north};

        if (touches_here(polygon, &there))
            return true;
    }
    return false;
}
