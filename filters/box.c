/* box.c - comparisons of boxes and circles, and the parser of decimals.
 *
 * A box may cross the antimeridian (west > east), and boxes that reach it from both sides touch
 * there. Circles are evaluated with the haversine formula; the box of a circle for the index is one
 * metre too wide. Degrees and radii are decimals without exponent: those with up to 15 digits are
 * parsed with one exact division, others by the C library in its "C" locale. */
#include "filters/box.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "filters/ascii.h"

#define EARTH_RADIUS_KM    6371.0088
#define DEGREES_PER_RADIAN (180.0 / M_PI)

bool sl_point_is_valid(const struct sl_point *point)
{
    return fabs(point->lon) <= 180.0 && fabs(point->lat) <= 90.0;
}

bool sl_box_is_valid(const struct sl_box *box)
{
    return fabs(box->west) <= 180.0 && fabs(box->east) <= 180.0 && fabs(box->south) <= 90.0 &&
           fabs(box->north) <= 90.0 && box->south <= box->north;
}

static bool reaches_antimeridian(const struct sl_box *box)
{
    return box->west > box->east || box->west == -180.0 || box->east == 180.0;
}

static bool longitudes_touch(const struct sl_box *a, const struct sl_box *b)
{
    bool a_crosses = a->west > a->east;
    bool b_crosses = b->west > b->east;

    if (reaches_antimeridian(a) && reaches_antimeridian(b))
        return true;
    if (a_crosses) /* then b does not */
        return b->east >= a->west || b->west <= a->east;
    if (b_crosses)
        return a->east >= b->west || a->west <= b->east;
    return a->west <= b->east && b->west <= a->east;
}

bool sl_boxes_touch(const struct sl_box *a, const struct sl_box *b)
{
    if (a->south > b->north || b->south > a->north)
        return false;
    if ((a->north == 90.0 && b->north == 90.0) || (a->south == -90.0 && b->south == -90.0))
        return true;
    return longitudes_touch(a, b);
}

bool sl_circle_has(const struct sl_circle *circle, struct sl_point point)
{
    double lat = point.lat / DEGREES_PER_RADIAN;
    double centre_lat = circle->centre.lat / DEGREES_PER_RADIAN;
    double sin_lat = sin((lat - centre_lat) / 2);
    double sin_lon = sin((point.lon - circle->centre.lon) / DEGREES_PER_RADIAN / 2);
    double h = sin_lat * sin_lat + cos(lat) * cos(centre_lat) * sin_lon * sin_lon;

    return 2 * EARTH_RADIUS_KM * asin(sqrt(fmin(h, 1.0))) <= circle->radius_km;
}

struct sl_box sl_circle_bounds(const struct sl_circle *circle)
{
    const double margin = 1e-5; /* in degrees, about a metre: more than all rounding errors here and
                                   above */
    double angle = circle->radius_km / EARTH_RADIUS_KM;
    double reach = angle * DEGREES_PER_RADIAN + margin;
    struct sl_box box = {-180.0, fmax(circle->centre.lat - reach, -90.0), 180.0,
                         fmin(circle->centre.lat + reach, 90.0)};
    double width;

    if (box.south == -90.0 || box.north == 90.0)
        return box;
    width = asin(sin(angle) / cos(circle->centre.lat / DEGREES_PER_RADIAN));
    width = width * DEGREES_PER_RADIAN + margin;
    box.west = circle->centre.lon - width;
    box.east = circle->centre.lon + width;
    if (box.west < -180.0)
        box.west += 360.0;
    if (box.east > 180.0)
        box.east -= 360.0;
    return box;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The length of [0-9]{1,max}(\.[0-9]+)? at the start of `text`; 0: none. */
static size_t decimal_length(struct sl_slice text, size_t max_digits)
{
    size_t i = 0, dot;

    while (i < text.size && is_digit(text.data[i]))
        i++;
    if (i == 0 || i > max_digits)
        return 0;
    if (i == text.size || text.data[i] != '.')
        return i;
    dot = i++;
    while (i < text.size && is_digit(text.data[i]))
        i++;
    return i > dot + 1 ? i : 0;
}

/* The nearest double of a decimal without sign. With up to 15 digits the integer and the power of
 * ten are exact, and one division rounds once. With more digits the C library is used in its "C"
 * locale. */
static int decimal_value(struct sl_slice decimal, double *ret_value)
{
    uint64_t digits = 0;
    double divisor = 1;
    bool fraction = false;
    locale_t c_locale;
    char *copy;

    if (decimal.size <= 16) {
        for (size_t i = 0; i < decimal.size; i++) {
            if (decimal.data[i] == '.') {
                fraction = true;
                continue;
            }
            digits = digits * 10 + (uint64_t)(decimal.data[i] - '0');
            if (fraction)
                divisor *= 10;
        }
        *ret_value = (double)digits / divisor;
        return 0;
    }

    copy = mem_strndup(decimal.data, decimal.size);
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!copy || !c_locale) {
        mem_free(copy);
        return -ENOMEM;
    }
    *ret_value = strtod_l(copy, NULL, c_locale);
    freelocale(c_locale);
    mem_free(copy);
    return 0;
}

int sl_parse_degrees(struct sl_slice text, double *ret_degrees)
{
    bool negative = text.size > 0 && text.data[0] == '-';
    int r;

    if (negative || (text.size > 0 && text.data[0] == '+'))
        text = sl_slice_from(text, 1);
    if (text.size == 0 || decimal_length(text, 3) != text.size)
        return -EINVAL;
    r = decimal_value(text, ret_degrees);
    if (r == 0 && negative && *ret_degrees != 0)
        *ret_degrees = -*ret_degrees;
    return r;
}

int sl_parse_radius(struct sl_slice text, double *ret_km)
{
    size_t length = decimal_length(text, 4);
    double radius;
    int r;

    if (length == 0 || text.size - length != 2)
        return -EINVAL;
    r = decimal_value(sl_slice(text.data, length), &radius);
    if (r < 0)
        return r;
    if (sl_ascii_is(sl_slice_from(text, length), "mi"))
        radius *= SL_KM_PER_MILE;
    else if (!sl_ascii_is(sl_slice_from(text, length), "km"))
        return -EINVAL;
    if (radius <= 0 || radius > SL_CIRCLE_MAX_KM)
        return -EINVAL;
    *ret_km = radius;
    return 0;
}
