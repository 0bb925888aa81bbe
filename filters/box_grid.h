/* filters/box_grid.h - boxes -> map cells -> the entries that are filed there.
 *
 * Seven grids lie over the map, with cells of 1/64, 1/16, 1/4, 1, 4, 16 and 64 degrees; each cell
 * holds sixteen of the next finer grid. A box is filed in the finest grid in which it covers at
 * most nine cells, under each of those. A point then needs one look in each grid. The shape of a
 * place may cover millions of fine cells, so each cell also knows which of its sixteen hold
 * anything, and a search goes down only there: its cost follows what it finds.
 *
 * Cells are found by key, as words are: nothing is stored for the empty parts of the map. Longitude
 * is taken as it is, from -180 to 180; whoever asks knows that both ends are one meridian. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/stable_hash.h"
#include "filters/box.h"
#include "filters/postings.h"

enum {
    SL_GRID_MAX_CELLS = 18, /* the whole world: 6 x 3 of the coarsest grid */
    SL_GRID_CHILDREN = 16   /* of the next finer grid in a cell */
};

struct sl_box_grid {
    uint64_t seed;
    struct sl_postings cells;
    struct sl_key_table branches; /* cell -> a bit for each finer cell in it that holds anything */
};

int sl_box_grid_init(struct sl_box_grid *grid, uint64_t seed);
void sl_box_grid_done(struct sl_box_grid *grid);

/* The cells, numbers of 32 bits, under which a box is filed. west <= east. */
size_t sl_box_grid_cells(const struct sl_box *box, uint32_t ret_cells[static SL_GRID_MAX_CELLS]);

/* For areas that are filed in cells of several grids: the coarsest, which are the whole map; those
 * within a cell that is not one of the finest; and what of the map is within `margin` degrees of a
 * cell: west > east or south > north: nothing. */
size_t sl_box_grid_top(uint32_t ret_cells[static SL_GRID_MAX_CELLS]);
bool sl_box_grid_is_finest(uint32_t cell);
uint32_t sl_box_grid_child(uint32_t cell, unsigned at);
struct sl_box sl_box_grid_area(uint32_t cell, double margin);

/* Like sl_postings_add() and sl_postings_remove(). */
int sl_box_grid_add(struct sl_box_grid *grid, uint32_t cell, struct sl_posting posting,
                    uint32_t *ret_position);
bool sl_box_grid_remove(struct sl_box_grid *grid, uint32_t cell, uint32_t position,
                        struct sl_posting *ret_moved);

/* Appends to `keys` (of uint64_t) the keys in grid->cells of all cells in which a box that shares
 * a point with `shape` can be filed. west <= east. */
void sl_box_grid_find(const struct sl_box_grid *grid, const struct sl_box *shape,
                      struct buffer *keys);

size_t sl_box_grid_bytes(const struct sl_box_grid *grid);

/* One to one, so that a key never leads to another cell. */
static inline uint64_t sl_box_grid_key(const struct sl_box_grid *grid, uint32_t cell)
{
    return stable_hash(grid->seed ^ cell);
}
