/* Boxes, circles, the grid of cells and samples, each compared with the simplest correct
 * implementation. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/box.h"
#include "filters/box_grid.h"
#include "filters/sample.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/random_filter.h"

static const double longitudes[] = {-180, -179.984375, -90, -64, -0.25, 0, 0.25, 64, 116, 179, 180};
static const double latitudes[] = {-90, -89.75, -64, -1, 0, 0.015625, 1, 64, 89, 90};

static double some_of(struct random *random, const double *values, uint32_t count, double range)
{
    if (random_one_in(random, 4))
        return (random_below(random, 1u << 30) / (double)(1u << 29) - 1) * range;
    return values[random_below(random, count)];
}

static struct sl_point some_point(struct random *random)
{
    return (struct sl_point){some_of(random, longitudes, sizeof(longitudes) / sizeof(double), 180),
                             some_of(random, latitudes, sizeof(latitudes) / sizeof(double), 90)};
}

static struct sl_box some_box(struct random *random)
{
    struct sl_point a = some_point(random), b = some_point(random);

    return (struct sl_box){a.lon, fmin(a.lat, b.lat), b.lon, fmax(a.lat, b.lat)};
}

/* --- boxes -------------------------------------------------------------------------------- */

static bool has_longitude(const struct sl_box *box, double lon)
{
    double twin = fabs(lon) == 180 ? -lon : lon;

    if (box->west <= box->east)
        return (box->west <= lon && lon <= box->east) || (box->west <= twin && twin <= box->east);
    return lon >= box->west || lon <= box->east || twin >= box->west || twin <= box->east;
}

static bool has_point(const struct sl_box *box, double lon, double lat)
{
    return box->south <= lat && lat <= box->north && (fabs(lat) == 90 || has_longitude(box, lon));
}

/* Two boxes that share a point share one whose longitude and latitude are edges of theirs. */
static bool share_an_edge_point(const struct sl_box *a, const struct sl_box *b)
{
    const double lons[] = {a->west, a->east, b->west, b->east, 180};
    const double lats[] = {a->south, a->north, b->south, b->north};

    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 4; j++) {
            if (has_point(a, lons[i], lats[j]) && has_point(b, lons[i], lats[j]))
                return true;
        }
    }
    return false;
}

static void test_boxes_touch_when_they_share_a_point(void **state)
{
    struct random random = {1};
    int touching = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct sl_box a = some_box(&random), b = some_box(&random);
        bool touch = sl_boxes_touch(&a, &b);

        if (touch != share_an_edge_point(&a, &b) || touch != sl_boxes_touch(&b, &a))
            fail_msg("%.17g,%.17g,%.17g,%.17g and %.17g,%.17g,%.17g,%.17g", a.west, a.south, a.east,
                     a.north, b.west, b.south, b.east, b.north);
        touching += touch;
    }
    assert_in_range(touching, 10000, 90000);
}

static void test_box_out_of_range_or_south_of_itself_is_invalid(void **state)
{
    const struct sl_box bad[] = {
        {-180.5, 0, 0, 0}, {0, -91, 0, 0}, {0, 0, 181, 0}, {0, 0, 0, 90.5}, {0, 1, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(sl_box_is_valid(&bad[i]));
    assert_true(sl_box_is_valid(&(struct sl_box){180, -90, -180, 90}));
}

/* --- circles ------------------------------------------------------------------------------ */

struct vector {
    long double x, y, z;
};

static struct vector vector_of(struct sl_point point)
{
    long double lon = (long double)point.lon * M_PIl / 180,
                lat = (long double)point.lat * M_PIl / 180;

    return (struct vector){cosl(lat) * cosl(lon), cosl(lat) * sinl(lon), sinl(lat)};
}

/* By the angle between two vectors, which has no step in common with haversine. */
static double distance_km(struct sl_point from, struct sl_point to)
{
    struct vector a = vector_of(from), b = vector_of(to);
    long double x = a.y * b.z - a.z * b.y, y = a.z * b.x - a.x * b.z, z = a.x * b.y - a.y * b.x;
    long double dot = a.x * b.x + a.y * b.y + a.z * b.z;

    return (double)(6371.0088L * atan2l(sqrtl(x * x + y * y + z * z), dot));
}

static struct sl_point near(struct random *random, struct sl_point centre, double degrees)
{
    struct sl_point point = {centre.lon + (random_below(random, 2001) / 1000.0 - 1) * degrees * 2,
                             centre.lat + (random_below(random, 2001) / 1000.0 - 1) * degrees};

    point.lon = point.lon > 180 ? point.lon - 360 : point.lon < -180 ? point.lon + 360 : point.lon;
    point.lat = fmax(-90, fmin(90, point.lat));
    return point;
}

static void test_circle_has_the_points_within_its_radius_and_its_bounds_have_them_too(void **state)
{
    static const double radii[] = {0.001, 1, 25, 500};
    struct random random = {2};
    int within = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct sl_circle circle = {some_point(&random), radii[random_below(&random, 4)]};
        struct sl_point point = near(&random, circle.centre, circle.radius_km / 80);
        struct sl_box bounds = sl_circle_bounds(&circle), shape = sl_box_of_point(point);
        double distance = distance_km(circle.centre, point);
        bool has = sl_circle_has(&circle, point);

        if (fabs(distance - circle.radius_km) > 1e-7)
            assert_int_equal(has, distance <= circle.radius_km);
        if (has)
            assert_true(sl_boxes_touch(&bounds, &shape));
        within += has;
    }
    assert_in_range(within, 10000, 90000);
}

/* --- the grid ----------------------------------------------------------------------------- */

enum { BOXES = 3000 };

struct filed {
    struct sl_box box;
    uint32_t cells[SL_GRID_MAX_CELLS], positions[SL_GRID_MAX_CELLS];
    size_t count;
};

static void file_box(struct sl_box_grid *grid, struct filed *boxes, uint32_t number)
{
    struct filed *filed = &boxes[number];

    filed->count = sl_box_grid_cells(&filed->box, filed->cells);
    for (uint32_t i = 0; i < filed->count; i++)
        assert_int_equal(sl_box_grid_add(grid, filed->cells[i], (struct sl_posting){number, i},
                                         &filed->positions[i]),
                         0);
}

static void unfile_box(struct sl_box_grid *grid, struct filed *boxes, uint32_t number)
{
    struct filed *filed = &boxes[number];
    struct sl_posting moved;

    while (filed->count-- > 0) {
        if (sl_box_grid_remove(grid, filed->cells[filed->count], filed->positions[filed->count],
                               &moved))
            boxes[moved.entry].positions[moved.ordinal] = filed->positions[filed->count];
    }
    filed->count = 0;
}

static void mark_found(const struct sl_box_grid *grid, const struct buffer *keys, bool *found)
{
    const uint64_t *key = (const uint64_t *)(const void *)keys->data;

    for (size_t i = 0; i < keys->size / sizeof(*key); i++) {
        const struct sl_key_slot *slot = sl_key_table_find(&grid->cells.table, key[i]);

        if (!slot)
            continue;
        if (sl_posting_value_is_single(slot->value)) {
            found[sl_posting_single(slot->value).entry] = true;
            continue;
        }
        for (uint32_t j = 0; j < sl_posting_list(slot->value)->count; j++)
            found[sl_posting_list(slot->value)->items[j].entry] = true;
    }
}

/* Does the grid find all boxes that share a point with `shape`? Returns how many others it
 * finds. */
static size_t check_shape(const struct sl_box_grid *grid, const struct filed *boxes,
                          const struct sl_box *shape)
{
    bool found[BOXES] = {false};
    struct buffer keys = BUFFER_INIT;
    size_t others = 0;

    sl_box_grid_find(grid, shape, &keys);
    mark_found(grid, &keys, found);
    for (size_t i = 0; i < BOXES; i++) {
        const struct sl_box *box = &boxes[i].box;
        bool touch = box->west <= shape->east && shape->west <= box->east &&
                     box->south <= shape->north && shape->south <= box->north;

        assert_false(found[i] && boxes[i].count == 0);
        if (touch && boxes[i].count > 0)
            assert_true(found[i]);
        others += found[i] && !touch;
    }
    buffer_done(&keys);
    return others;
}

static struct sl_box some_small_box(struct random *random)
{
    static const double sizes[] = {0, 0.001, 0.05, 1, 20};
    struct sl_point point = some_point(random);
    double size = sizes[random_below(random, 5)];

    return (struct sl_box){point.lon, point.lat, fmin(180, point.lon + size),
                           fmin(90, point.lat + size)};
}

static void test_grid_finds_every_box_for_points_and_for_shapes_of_any_size(void **state)
{
    struct filed *boxes = calloc(BOXES, sizeof(*boxes));
    struct random random = {3};
    struct sl_box_grid grid;
    size_t others = 0;

    (void)state;
    assert_int_equal(sl_box_grid_init(&grid, 4), 0);
    for (uint32_t i = 0; i < BOXES; i++) {
        boxes[i].box = some_small_box(&random);
        if (random_one_in(&random, 16))
            boxes[i].box = (struct sl_box){-180, -90, 180, 90};
        file_box(&grid, boxes, i);
        if (random_one_in(&random, 2))
            unfile_box(&grid, boxes, random_below(&random, i + 1));
    }
    for (int i = 0; i < 2000; i++) {
        struct sl_box shape = some_small_box(&random);

        others += check_shape(&grid, boxes, &shape);
    }
    assert_true(others < 2000 * BOXES / 10);

    for (uint32_t i = 0; i < BOXES; i++)
        unfile_box(&grid, boxes, i);
    for (size_t i = 0; i < (size_t)1 << grid.branches.depth; i++)
        assert_int_equal(grid.branches.directory[i].segment->used, 0); /* nothing is left */
    sl_box_grid_done(&grid);
    free(boxes);
}

static void test_box_covers_at_most_nine_cells_or_is_in_the_coarsest_grid(void **state)
{
    struct random random = {5};
    uint32_t cells[SL_GRID_MAX_CELLS];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct sl_box box = some_small_box(&random);
        size_t count = sl_box_grid_cells(&box, cells);

        assert_in_range(count, 1, 9);
    }
    assert_int_equal(sl_box_grid_cells(&(struct sl_box){-180, -90, 180, 90}, cells), 18);
    assert_int_equal(sl_box_grid_cells(&(struct sl_box){1, 1, 1, 1}, cells), 1);
    assert_int_equal(cells[0] >> 29, 0);
}

static void test_cell_without_memory_leaves_the_grid_as_it_was(void **state)
{
    struct sl_box_grid grid;
    int failures = 0;

    (void)state;
    assert_int_equal(sl_box_grid_init(&grid, 6), 0);
    for (uint32_t i = 0; i < 1500; i++) {
        struct sl_box box = {i / 10.0, 0, i / 10.0, 0};
        uint32_t cells[SL_GRID_MAX_CELLS], position;
        int r = -ENOMEM;

        sl_box_grid_cells(&box, cells);
        for (uint64_t allowed = 0; r == -ENOMEM; allowed++) {
            mem_fail_after(allowed);
            r = sl_box_grid_add(&grid, cells[0], (struct sl_posting){i, 0}, &position);
            mem_fail_never();
            if (r == -ENOMEM) {
                failures++;
                assert_int_equal(sl_postings_count(&grid.cells, sl_box_grid_key(&grid, cells[0])),
                                 0);
            }
        }
        assert_int_equal(r, 0);
    }
    assert_true(failures > 10);
    sl_box_grid_done(&grid);
}

/* --- numbers ------------------------------------------------------------------------------ */

static void test_degrees_are_the_nearest_double_in_any_locale(void **state)
{
    double number;

    (void)state;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* has a decimal comma, if it is installed */
    assert_int_equal(sl_parse_degrees(SL_SLICE("116.397"), &number), 0);
    assert_true(number == 116.397);
    assert_int_equal(sl_parse_degrees(SL_SLICE("-0.1"), &number), 0);
    assert_true(number == -0.1);
    assert_int_equal(sl_parse_degrees(SL_SLICE("+179.99999999999999"), &number), 0);
    assert_true(number == 179.99999999999999);
    assert_int_equal(sl_parse_degrees(SL_SLICE("0.1000000000000000055511151231257827"), &number),
                     0);
    assert_true(number == 0.1);
    assert_int_equal(sl_parse_degrees(SL_SLICE("-0.0"), &number), 0);
    assert_false(signbit(number));
    setlocale(LC_ALL, "C");
}

static void test_radius_is_in_kilometres(void **state)
{
    double km;

    (void)state;
    assert_int_equal(sl_parse_radius(SL_SLICE("25km"), &km), 0);
    assert_true(km == 25);
    assert_int_equal(sl_parse_radius(SL_SLICE("0010.5MI"), &km), 0);
    assert_true(km == 10.5 * 1.609344);
    assert_int_equal(sl_parse_radius(SL_SLICE("500.0kM"), &km), 0);
    assert_int_equal(sl_parse_radius(SL_SLICE("500.001km"), &km), -EINVAL);
}

/* --- samples ------------------------------------------------------------------------------ */

static void test_hash_and_sample_are_those_that_everyone_has(void **state)
{
    (void)state;
    assert_true(stable_hash(1) == UINT64_C(0x910A2DEC89025CC1));
    assert_true(stable_hash(1001) == UINT64_C(0x533E00F7F3C606D4));
    assert_true(sl_sample_has(325165, 1001));
    assert_false(sl_sample_has(325164, 1001));
    assert_int_equal(sl_partition_of(8, 1001), 8);
}

static void test_smaller_sample_lies_within_a_larger_one_and_parts_are_even(void **state)
{
    uint32_t one = 0, ten = 0, parts[7] = {0}, both = 0;

    (void)state;
    for (uint64_t id = 0; id < 100000; id++) {
        if (sl_sample_has(10000, id)) {
            assert_true(sl_sample_has(100000, id));
            one++;
        }
        ten += sl_sample_has(100000, id);
        both += sl_sample_has(100000, id) && sl_partition_of(4, id) == 1;
        assert_in_range(sl_partition_of(7, id), 1, 7);
        parts[sl_partition_of(7, id) - 1]++;
        assert_true(sl_sample_has(SL_SAMPLE_ALL, id));
    }
    assert_in_range(one, 900, 1100);
    assert_in_range(ten, 9700, 10300);
    assert_in_range(both, 2350, 2650); /* a quarter of a tenth */
    for (size_t i = 0; i < 7; i++)
        assert_in_range(parts[i], 13900, 14700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_touch_when_they_share_a_point),
        cmocka_unit_test(test_box_out_of_range_or_south_of_itself_is_invalid),
        cmocka_unit_test(test_circle_has_the_points_within_its_radius_and_its_bounds_have_them_too),
        cmocka_unit_test(test_grid_finds_every_box_for_points_and_for_shapes_of_any_size),
        cmocka_unit_test(test_box_covers_at_most_nine_cells_or_is_in_the_coarsest_grid),
        cmocka_unit_test(test_cell_without_memory_leaves_the_grid_as_it_was),
        cmocka_unit_test(test_degrees_are_the_nearest_double_in_any_locale),
        cmocka_unit_test(test_radius_is_in_kilometres),
        cmocka_unit_test(test_hash_and_sample_are_those_that_everyone_has),
        cmocka_unit_test(test_smaller_sample_lies_within_a_larger_one_and_parts_are_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
