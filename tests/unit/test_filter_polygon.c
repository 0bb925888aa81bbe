/* Polygons: which points and boxes they contain or touch, and under which cells they are filed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "filters/box_grid.h"
#include "filters/polygon_cells.h"
#include "tests/support/filter_try.h"
#include "tests/support/random_filter.h"
#include "tests/support/rounds.h"

static bool rule_has(const char *rule, double lon, double lat)
{
    struct sl_event_view event = try_post("x");
    bool as_point, as_box;

    event.has_point = true;
    event.point = (struct sl_point){lon, lat};
    as_point = try_rule(rule, &event);
    event.has_point = false;
    event.has_box = true;
    event.box = (struct sl_box){lon, lat, lon, lat};
    as_box = try_rule(rule, &event);
    assert_int_equal(as_point, as_box);
    return as_point;
}

static bool rule_touches(const char *rule, struct sl_box box)
{
    struct sl_event_view event = try_post("x");

    event.has_box = true;
    event.box = box;
    return try_rule(rule, &event);
}

static void test_edges_and_corners_belong_to_it(void **state)
{
    const char *rule = "polygon:[1 1, 5 1, 5 3, 3 5, 1 3]";

    (void)state;
    assert_true(rule_has(rule, 2, 2));
    assert_true(rule_has(rule, 1, 1));
    assert_true(rule_has(rule, 3, 5));
    assert_true(rule_has(rule, 3, 1));
    assert_true(rule_has(rule, 5, 2));
    assert_true(rule_has(rule, 4, 4));
    assert_true(rule_has(rule, 2.25, 4.25));
    assert_false(rule_has(rule, 4.000000001, 4));
    assert_false(rule_has(rule, nextafter(5, 6), 2));
    assert_false(rule_has(rule, 3, nextafter(1, 0)));
    assert_false(rule_has(rule, 0, 3));
    assert_false(rule_has(rule, 6, 3));
    assert_false(rule_has(rule, 0, 1));
    assert_false(rule_has(rule, 6, 1));
}

/* 1/10 times 3 is not 3/10 in doubles: these points are slightly beside the line, on one side of
 * it. */
static void test_nothing_is_rounded(void **state)
{
    (void)state;
    for (int i = 1; i < 100; i++) {
        double third = i / 300.0, whole = i / 100.0;
        bool left = rule_has("polygon:[0 0, 1 3, 0 3]", third, whole);
        bool right = rule_has("polygon:[0 0, 1 0, 1 3]", third, whole);
        long double over = 3.0L * third - whole; /* exact: 64 bits are sufficient */

        assert_int_equal(left, over <= 0);
        assert_int_equal(right, over >= 0);
    }
}

static void test_it_may_be_hollow_and_cross_itself(void **state)
{
    const char *tie = "polygon:[0 0, 4 4, 4 0, 0 4]";
    const char *horseshoe = "polygon:[0 0, 6 0, 6 6, 4 6, 4 2, 2 2, 2 6, 0 6]";
    const char *star = "polygon:[0 3, 6 3, 1 -1, 3 5, 5 -1]";

    (void)state;
    assert_true(rule_has(tie, 1, 2));
    assert_true(rule_has(tie, 3, 2));
    assert_true(rule_has(tie, 2, 2));
    assert_false(rule_has(tie, 2, 1));
    assert_false(rule_has(tie, 2, 3));
    assert_true(rule_has(horseshoe, 1, 5));
    assert_true(rule_has(horseshoe, 5, 5));
    assert_false(rule_has(horseshoe, 3, 5));
    assert_true(rule_has(horseshoe, 3, 2));
    assert_true(rule_touches(horseshoe, (struct sl_box){-1, 4, 9, 5}));
    assert_false(rule_touches(horseshoe, (struct sl_box){2.5, 3, 3.5, 9}));
    assert_true(rule_touches(horseshoe, (struct sl_box){2.5, 2, 3.5, 9}));
    assert_false(rule_has(star, 3, 2)); /* enclosed twice */
    assert_true(rule_has(star, 3, 4));
}

static void test_edges_go_the_shorter_way_round(void **state)
{
    const char *fiji = "polygon:[177 -20, -178 -20, -178 -15, 177 -15]";
    const char *from_the_east = "polygon:[-178 -20, -178 -15, 177 -15, 177 -20]";
    const char *half = "polygon:[-90 0, 90 0, 90 10, -90 10]";

    (void)state;
    for (int i = 0; i < 2; i++, fiji = from_the_east) {
        assert_true(rule_has(fiji, 178, -17));
        assert_true(rule_has(fiji, -179, -17));
        assert_true(rule_has(fiji, 180, -17));
        assert_true(rule_has(fiji, -180, -17));
        assert_true(rule_has(fiji, -178, -17));
        assert_false(rule_has(fiji, 176.9, -17));
        assert_false(rule_has(fiji, -177.9, -17));
        assert_false(rule_has(fiji, 0, -17));
        assert_true(rule_touches(fiji, (struct sl_box){179, -30, -179, -19}));
        assert_true(rule_touches(fiji, (struct sl_box){170, -30, 177, -19}));
        assert_true(rule_touches(fiji, (struct sl_box){-178, -30, 170, -19}));
        assert_false(rule_touches(fiji, (struct sl_box){-177, -30, 176, 0}));
        assert_true(rule_touches(fiji, (struct sl_box){-180, -17, -180, -16}));
    }
    assert_true(rule_has(half, 0, 5));
    assert_false(rule_has(half, 180, 5));
    assert_true(rule_has("polygon:[170 0, 180 0, 180 5, 170 5]", -180, 3));
    assert_true(rule_has("polygon:[-180 0, -170 0, -170 5]", 180, 0));
    assert_true(rule_has("polygon:[-180 0, 0 0, 180 0, 180 5, 0 5, -180 5]", -180, 3));
}

static void test_a_pole_is_one_point(void **state)
{
    const char *antarctica =
        "polygon:[-180 -60, -60 -60, 60 -60, 180 -60, 180 -90, 60 -90, -60 -90, "
        "-180 -90, -180 -60]";
    const char *wedge = "polygon:[0 80, 20 80, 10 90]";

    (void)state;
    for (double lon = -180; lon <= 180; lon += 7.5) {
        assert_true(rule_has(antarctica, lon, -90));
        assert_true(rule_has(antarctica, lon, -61));
        assert_true(rule_has(antarctica, lon, -60));
        assert_false(rule_has(antarctica, lon, -59));
        assert_true(rule_has(wedge, lon, 90));
    }
    assert_true(rule_touches(wedge, (struct sl_box){-100, 89, -90, 90}));
    assert_false(rule_touches(wedge, (struct sl_box){-100, 89, -90, 89.9}));
    assert_false(rule_has(wedge, 9, 89.99));
}

static void test_who_is_nowhere_is_in_none(void **state)
{
    struct sl_event_view event = try_post("x");

    (void)state;
    assert_false(try_rule("polygon:[-90 -90, 90 -90, 90 90, -90 90]", &event));
    assert_true(try_rule("x -polygon:[-90 -90, 90 -90, 90 90, -90 90]", &event));
}

/* --- at random ---------------------------------------------------------------------------- */

enum {
    STEP = 8
}; /* all numbers are multiples of an eighth of a degree: integers when multiplied by it */

struct shape {
    int64_t lon[SL_POLYGON_MAX_POINTS], lat[SL_POLYGON_MAX_POINTS];
    size_t count;
};

static struct shape some_shape(struct random *random)
{
    static const uint32_t sizes[] = {8, 40, 200, 1000};
    uint32_t size = sizes[random_below(random, 4)];
    struct shape shape = {.count = 3 + random_below(random, random_one_in(random, 8) ? 98 : 6)};
    int64_t lon = (int64_t)random_below(random, 360 * STEP - size) - 180 * STEP;
    int64_t lat = (int64_t)random_below(random, 180 * STEP - size) - 90 * STEP;

    for (size_t i = 0; i < shape.count; i++) {
        shape.lon[i] = lon + random_below(random, size + 1);
        shape.lat[i] = lat + random_below(random, size + 1);
    }
    return shape;
}

static int64_t cross(const struct shape *shape, size_t a, size_t b, int64_t lon, int64_t lat)
{
    return (shape->lon[b] - shape->lon[a]) * (lat - shape->lat[a]) -
           (shape->lat[b] - shape->lat[a]) * (lon - shape->lon[a]);
}

static bool is_between(int64_t a, int64_t b, int64_t value)
{
    return (a <= value && value <= b) || (b <= value && value <= a);
}

/* With integers: is it on an edge, or does a line to the north cross an odd number of edges? */
static bool shape_has(const struct shape *shape, int64_t lon, int64_t lat)
{
    bool inside = false;

    for (size_t a = 0; a < shape->count; a++) {
        size_t b = (a + 1) % shape->count;
        int64_t side = cross(shape, a, b, lon, lat);

        if (side == 0 && is_between(shape->lon[a], shape->lon[b], lon) &&
            is_between(shape->lat[a], shape->lat[b], lat))
            return true;
        if ((shape->lon[a] <= lon) != (shape->lon[b] <= lon))
            inside ^= (side < 0) == (shape->lon[b] > shape->lon[a]);
    }
    return inside;
}

static void write_rule(const struct shape *shape, int64_t turned, char *rule)
{
    rule += sprintf(rule, "polygon:[");
    for (size_t i = 0; i < shape->count; i++) {
        double lon = (double)(shape->lon[i] + turned) / STEP;

        if (lon > 180)
            lon -= 360;
        rule += sprintf(rule, "%s%.3f %.3f", i > 0 ? "," : "", lon, (double)shape->lat[i] / STEP);
    }
    strcpy(rule, "]");
}

/* For events at many points: in the shape, on its corners, near it. */
static unsigned check_points(struct random *random, const struct shape *shape, int64_t turned,
                             struct sl_filter *filter)
{
    unsigned inside = 0;

    for (size_t i = 0; i < 12; i++) {
        size_t corner = random_below(random, (uint32_t)shape->count);
        uint32_t far = random_one_in(random, 3) ? 1 : random_one_in(random, 2) ? 30 : 500;
        int64_t lon = shape->lon[corner] + random_below(random, 2 * far + 1) - far;
        int64_t lat = shape->lat[corner] + random_below(random, 2 * far + 1) - far;
        struct sl_event_view event = try_post("x");
        bool wanted;

        if (llabs(lat) >= 90 * STEP || llabs(lon) > 180 * STEP)
            continue;
        wanted = shape_has(shape, lon, lat);
        event.has_point = true;
        event.point = (struct sl_point){(double)(lon + turned) / STEP, (double)lat / STEP};
        if (event.point.lon > 180)
            event.point.lon -= 360;
        if (try_match(filter, &event) != wanted)
            fail_msg("%g %g: should be %d", event.point.lon, event.point.lat, wanted);
        inside += wanted;
    }
    return inside;
}

/* SLUICE_TEST_SEED repeats a run that failed. Shapes are at most half a globe wide, and are moved
 * everywhere, including across the antimeridian, by rotating the globe. */
static void test_agrees_with_integers_at_random(void **state)
{
    const char *given = getenv("SLUICE_TEST_SEED");
    struct random random = {given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)};
    unsigned inside = 0, made = 0;

    (void)state;
    print_message("SLUICE_TEST_SEED=%llu\n", (unsigned long long)random.state);
    for (int round = 0; round < TEST_ROUNDS(3000); round++) {
        struct shape shape = some_shape(&random);
        int64_t turned = random_one_in(&random, 2) ? random_below(&random, 360 * STEP) : 0;
        struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
        struct sl_filter_text text = {0};
        struct sl_filter *filter;
        char rule[8192];

        write_rule(&shape, turned, rule);
        text.rule = sl_slice_str(rule);
        if (sl_filter_new(&text, &limits, &filter, NULL) < 0)
            continue; /* collinear */
        made++;
        inside += check_points(&random, &shape, turned, filter);
        sl_filter_unref(filter);
    }
    print_message("%u polygons, %u points inside\n", made, inside);
    assert_true(made > TEST_ROUNDS(2500) && inside > made); /* otherwise this would prove nothing */
}

/* --- cells -------------------------------------------------------------------------------- */

static struct sl_polygon compiled(struct sl_point *points, size_t count, struct buffer *bytes)
{
    assert_int_equal(sl_polygon_unwind(points, count), SL_POLYGON_GOOD);
    sl_polygon_write(points, count, bytes);
    return sl_polygon_read(buffer_slice(bytes));
}

static bool cell_has(uint32_t cell, double lon, double lat)
{
    struct sl_box area = sl_box_grid_area(cell, 0);

    return lon >= area.west && lon <= area.east && lat >= area.south && lat <= area.north;
}

/* A large circle has more cells inside than along its edge. */
static void test_cells_within_it_are_known(void **state)
{
    struct sl_point points[SL_POLYGON_MAX_POINTS];
    struct buffer bytes = BUFFER_INIT;
    struct sl_polygon polygon;
    size_t seen = 0, sure = 0;

    (void)state;
    for (int i = 0; i < SL_POLYGON_MAX_POINTS; i++)
        points[i] = (struct sl_point){175 + 30 * cos(2 * M_PI * i / SL_POLYGON_MAX_POINTS),
                                      10 + 30 * sin(2 * M_PI * i / SL_POLYGON_MAX_POINTS)};
    for (int i = 0; i < SL_POLYGON_MAX_POINTS; i++)
        points[i].lon -= points[i].lon > 180 ? 360 : 0;
    polygon = compiled(points, SL_POLYGON_MAX_POINTS, &bytes);
    assert_in_range(polygon.cell_count, 8, 36);
    assert_in_range(polygon.inside_count, 2, polygon.cell_count - 1);
    for (double lon = -179.875; lon < 180; lon += 1) {
        for (double lat = -89.875; lat < 90; lat += 1) {
            struct sl_box at = {lon, lat, lon, lat};
            bool is_known = false, is_sure = false;

            for (uint32_t i = 0; i < polygon.cell_count; i++) {
                bool is_in = cell_has(sl_polygon_cell(&polygon, i), lon, lat);

                is_known |= is_in;
                is_sure |= is_in && i < polygon.inside_count;
            }
            if (is_sure)
                assert_true(sl_polygon_touches(&polygon, &at));
            if (sl_polygon_touches(&polygon, &at)) {
                assert_true(is_known);
                seen++;
                sure += is_sure;
            }
        }
    }
    print_message("%u cells, %u inside, %zu of %zu points sure\n", polygon.cell_count,
                  polygon.inside_count, sure, seen);
    assert_true(sure > seen / 3);
    buffer_done(&bytes);
}

static void test_a_small_one_has_small_cells(void **state)
{
    struct sl_point points[] = {{8.5, 47.3}, {8.6, 47.3}, {8.55, 47.4}};
    struct buffer bytes = BUFFER_INIT;
    struct sl_polygon polygon = compiled(points, 3, &bytes);
    double area = 0;

    (void)state;
    for (uint32_t i = 0; i < polygon.cell_count; i++) {
        struct sl_box cell = sl_box_grid_area(sl_polygon_cell(&polygon, i), 0);

        area += (cell.east - cell.west) * (cell.north - cell.south);
    }
    assert_true(area < 0.15); /* the triangle's own area is 0.005, its box's 0.01 */
    buffer_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges_and_corners_belong_to_it),
        cmocka_unit_test(test_nothing_is_rounded),
        cmocka_unit_test(test_it_may_be_hollow_and_cross_itself),
        cmocka_unit_test(test_edges_go_the_shorter_way_round),
        cmocka_unit_test(test_a_pole_is_one_point),
        cmocka_unit_test(test_who_is_nowhere_is_in_none),
        cmocka_unit_test(test_agrees_with_integers_at_random),
        cmocka_unit_test(test_cells_within_it_are_known),
        cmocka_unit_test(test_a_small_one_has_small_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
