/* polygon_cells.c - begins with the largest cells and splits those that an edge crosses.
 *
 * A cell entirely inside the polygon is kept, a cell entirely outside is dropped. The others are
 * replaced by their sixteen finer cells, the largest first, as long as there is room. The result is
 * cells inside, whose points need no test, and small cells along the edges.
 *
 * The map's cells end where longitudes do, so the part of a polygon beyond the antimeridian is
 * processed in a second pass, shifted by one turn to the west. */
#include "filters/polygon_cells.h"

#include <math.h>

#include "filters/box_grid.h"

/* Rounding may move a point into the next cell; this is more than it can move. */
#define MARGIN 1e-9

enum {
    ENOUGH = 32,
    MAX_PIECES = 2 * SL_GRID_MAX_CELLS, /* the initial cells: the map twice */
    TURN = 360
};

struct piece {
    uint32_t cell;
    bool is_inside;
    bool is_beyond; /* beyond the antimeridian */
};

/* Appends the cell to the list unless it is outside. */
static void consider(const struct sl_polygon *polygon, struct piece piece, struct piece *list,
                     size_t *count)
{
    struct sl_box area = sl_box_grid_area(piece.cell, MARGIN);
    enum sl_polygon_side side;

    if (area.west > area.east || area.south > area.north) /* outside the map */
        return;
    area.west += piece.is_beyond ? TURN : 0;
    area.east += piece.is_beyond ? TURN : 0;
    side = sl_polygon_side_of(polygon, &area);
    if (side == SL_POLYGON_OUTSIDE)
        return;
    piece.is_inside = side == SL_POLYGON_INSIDE;
    list[(*count)++] = piece;
}

static size_t first_pieces(const struct sl_polygon *polygon, struct piece *list)
{
    uint32_t cells[SL_GRID_MAX_CELLS];
    size_t count = 0, cell_count = sl_box_grid_top(cells);

    for (size_t i = 0; i < cell_count; i++) {
        consider(polygon, (struct piece){.cell = cells[i]}, list, &count);
        if (polygon->bounds.east > 180)
            consider(polygon, (struct piece){.cell = cells[i], .is_beyond = true}, list, &count);
    }
    return count;
}

/* Replaces the first cell of the list by its finer cells, at the end of the list. false: too
 * many. */
static bool take_apart(const struct sl_polygon *polygon, struct piece *list, size_t at,
                       size_t *count)
{
    struct piece children[SL_GRID_CHILDREN];
    size_t child_count = 0;

    for (unsigned i = 0; i < SL_GRID_CHILDREN; i++) {
        struct piece child = {.cell = sl_box_grid_child(list[at].cell, i),
                              .is_beyond = list[at].is_beyond};

        consider(polygon, child, children, &child_count);
    }
    if (*count - 1 + child_count > ENOUGH)
        return false;
    memmove(&list[at], &list[at + 1], (*count - at - 1) * sizeof(*list));
    memcpy(&list[*count - 1], children, child_count * sizeof(*list));
    *count += child_count - 1;
    return true;
}

static size_t find_pieces(const struct sl_polygon *polygon, struct piece *list)
{
    size_t count = first_pieces(polygon, list), at = 0;

    while (at < count) {
        if (list[at].is_inside || sl_box_grid_is_finest(list[at].cell) ||
            !take_apart(polygon, list, at, &count))
            at++;
    }
    return count;
}

/* Selects the cells inside, or the others. Returns their number. */
static uint32_t choose_cells(const struct piece *list, size_t count, bool is_inside,
                             uint32_t *ret_cells)
{
    uint32_t chosen = 0;

    for (size_t i = 0; i < count; i++) {
        if (list[i].is_inside == is_inside)
            ret_cells[chosen++] = list[i].cell;
    }
    return chosen;
}

void sl_polygon_write(const struct sl_point *points, size_t count, struct buffer *bytes)
{
    struct sl_polygon polygon = {.bounds = sl_polygon_bounds(points, count),
                                 .point_count = (uint32_t)count,
                                 .points = (const char *)points};
    struct piece list[MAX_PIECES];
    uint32_t cells[MAX_PIECES];
    size_t piece_count = find_pieces(&polygon, list);

    polygon.inside_count = choose_cells(list, piece_count, true, cells);
    polygon.cell_count =
        polygon.inside_count + choose_cells(list, piece_count, false, cells + polygon.inside_count);
    buffer_append(bytes, &polygon.bounds, sizeof(polygon.bounds));
    buffer_append(bytes, &polygon.inside_count, sizeof(polygon.inside_count));
    buffer_append(bytes, &polygon.cell_count, sizeof(polygon.cell_count));
    buffer_append(bytes, &polygon.point_count, sizeof(polygon.point_count));
    buffer_append(bytes, cells, polygon.cell_count * sizeof(cells[0]));
    buffer_append(bytes, points, count * sizeof(points[0]));
}
