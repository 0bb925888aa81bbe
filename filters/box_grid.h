/* filters/box_grid.h - finds boxes by place: map cells, and the entries filed under them.
 *
 * Seven grids cover the map, with cells of 1/64, 1/16, 1/4, 1, 4, 16 and 64 degrees; each cell
 * contains sixteen cells of the next finer grid. A box is filed in the finest grid in which it
 * covers at most nine cells, under each of these cells. To find the boxes at a point, one cell of
 * each grid is looked up. The shape of a place may cover millions of fine cells; therefore each
 * cell also records which of its sixteen finer cells hold anything, and a search descends only into
 * those. Its cost depends on what it finds.
 *
 * Cells are found by key, like words: nothing is stored for empty parts of the map. Longitudes are
 * taken as they are, from -180 to 180; the caller handles that both ends are the same meridian. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/stable_hash.h"
#include "filters/box.h"
#include "filters/postings.h"

enum {
    SL_GRID_MAX_CELLS = 18, /* the whole world: 6 x 3 cells of the coarsest grid */
    SL_GRID_CHILDREN = 16   /* cells of the next finer grid in a cell */
};

struct sl_box_grid {
    uint64_t seed;
    struct sl_postings cells;
    struct sl_key_table branches; /* cell -> a bit for each finer cell that holds anything */
};

int sl_box_grid_init(struct sl_box_grid *grid, uint64_t seed);
void sl_box_grid_done(struct sl_box_grid *grid);

/* The cells, as 32-bit numbers, under which a box is filed. Requires west <= east. */
size_t sl_box_grid_cells(const struct sl_box *box, uint32_t ret_cells[static SL_GRID_MAX_CELLS]);

/* For areas that are filed in cells of several grids. sl_box_grid_top(): the coarsest cells, which
 * cover the whole map. sl_box_grid_child(): the finer cells within a cell that is not one of the
 * finest. sl_box_grid_area(): the part of the map within `margin` degrees of a cell; empty if west
 * > east or south > north. */
size_t sl_box_grid_top(uint32_t ret_cells[static SL_GRID_MAX_CELLS]);
bool sl_box_grid_is_finest(uint32_t cell);
uint32_t sl_box_grid_child(uint32_t cell, unsigned at);
struct sl_box sl_box_grid_area(uint32_t cell, double margin);

/* Like sl_postings_add() and sl_postings_remove(). */
int sl_box_grid_add(struct sl_box_grid *grid, uint32_t cell, struct sl_posting posting,
                    uint32_t *ret_position);
bool sl_box_grid_remove(struct sl_box_grid *grid, uint32_t cell, uint32_t position,
                        struct sl_posting *ret_moved);

/* Appends to `keys` (of uint64_t) the keys in grid->cells of all cells under which a box that has a
 * point in common with `shape` can be filed. Requires west <= east. */
void sl_box_grid_find(const struct sl_box_grid *grid, const struct sl_box *shape,
                      struct buffer *keys);

size_t sl_box_grid_bytes(const struct sl_box_grid *grid);

/* A bijection, so a key belongs to exactly one cell. */
static inline uint64_t sl_box_grid_key(const struct sl_box_grid *grid, uint32_t cell)
{
    return stable_hash(grid->seed ^ cell);
}
