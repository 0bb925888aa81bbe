/* box_grid.c - the numbers of cells, and a tree of the cells that hold something.
 *
 * A cell is (level, x, y): level 0 has cells of 1/64 degree, x counts from -180 eastwards and y
 * from -90 northwards. Its parent cell is (level + 1, x / 4, y / 4). */
#include "filters/box_grid.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { TOP = 6, MAX_CELLS_OF_A_BOX = 9 };

struct cell {
    uint32_t level, x, y;
};

/* Columns and rows, both inclusive. */
struct range {
    uint32_t west, south, east, north;
};

static uint32_t pack(struct cell cell)
{
    return cell.level << 29 | cell.x << 14 | cell.y;
}

static struct cell unpack(uint32_t number)
{
    return (struct cell){number >> 29, number >> 14 & 0x7FFF, number & 0x3FFF};
}

static struct cell parent_of(struct cell cell)
{
    return (struct cell){cell.level + 1, cell.x / 4, cell.y / 4};
}

static uint64_t bit_of(struct cell cell)
{
    return (uint64_t)1 << (cell.y % 4 * 4 + cell.x % 4);
}

static uint64_t key_of(const struct sl_box_grid *grid, struct cell cell)
{
    return sl_box_grid_key(grid, pack(cell));
}

/* Monotonic, because each step is: a point in a box is in one of the box's cells. */
static uint32_t fine_index(double degrees, double least)
{
    return (uint32_t)((degrees - least) * 64.0);
}

static struct range fine_range(const struct sl_box *box)
{
    return (struct range){fine_index(box->west, -180.0), fine_index(box->south, -90.0),
                          fine_index(box->east, -180.0), fine_index(box->north, -90.0)};
}

static struct range at_level(struct range fine, uint32_t level)
{
    unsigned bits = 2 * level;

    return (struct range){fine.west >> bits, fine.south >> bits, fine.east >> bits,
                          fine.north >> bits};
}

static uint32_t range_size(struct range range)
{
    return (range.east - range.west + 1) * (range.north - range.south + 1);
}

int sl_box_grid_init(struct sl_box_grid *grid, uint64_t seed)
{
    int r;

    grid->seed = seed;
    r = sl_postings_init(&grid->cells);
    if (r < 0)
        return r;
    r = sl_key_table_init(&grid->branches);
    if (r < 0)
        sl_postings_done(&grid->cells);
    return r;
}

void sl_box_grid_done(struct sl_box_grid *grid)
{
    sl_postings_done(&grid->cells);
    sl_key_table_done(&grid->branches);
}

size_t sl_box_grid_cells(const struct sl_box *box, uint32_t ret_cells[static SL_GRID_MAX_CELLS])
{
    struct range fine = fine_range(box), range;
    uint32_t level = 0;
    size_t count = 0;

    while (level < TOP && range_size(at_level(fine, level)) > MAX_CELLS_OF_A_BOX)
        level++;
    range = at_level(fine, level);
    for (uint32_t y = range.south; y <= range.north; y++) {
        for (uint32_t x = range.west; x <= range.east; x++)
            ret_cells[count++] = pack((struct cell){level, x, y});
    }
    return count;
}

size_t sl_box_grid_top(uint32_t ret_cells[static SL_GRID_MAX_CELLS])
{
    return sl_box_grid_cells(&(struct sl_box){-180.0, -90.0, 180.0, 90.0}, ret_cells);
}

bool sl_box_grid_is_finest(uint32_t cell)
{
    return unpack(cell).level == 0;
}

static struct cell child_of(struct cell cell, uint32_t at)
{
    return (struct cell){cell.level - 1, cell.x * 4 + at % 4, cell.y * 4 + at / 4};
}

uint32_t sl_box_grid_child(uint32_t cell, unsigned at)
{
    return pack(child_of(unpack(cell), at));
}

struct sl_box sl_box_grid_area(uint32_t number, double margin)
{
    struct cell cell = unpack(number);
    double size = ldexp(1.0 / 64.0, 2 * (int)cell.level);
    double west = -180.0 + cell.x * size, south = -90.0 + cell.y * size;

    return (struct sl_box){fmax(west - margin, -180.0), fmax(south - margin, -90.0),
                           fmin(west + size + margin, 180.0), fmin(south + size + margin, 90.0)};
}

/* Marks the path from the top to `cell`. */
static int mark(struct sl_box_grid *grid, struct cell cell)
{
    for (; cell.level < TOP; cell = parent_of(cell)) {
        uint64_t key = key_of(grid, parent_of(cell));
        struct sl_key_slot *slot = sl_key_table_find(&grid->branches, key);
        int r;

        if (slot) {
            slot->value |= bit_of(cell);
            return 0; /* the rest of the path was marked */
        }
        r = sl_key_table_add(&grid->branches, key, bit_of(cell));
        if (r < 0)
            return r;
    }
    return 0;
}

/* Reverts mark(), up to the first cell that holds something else. */
static void unmark(struct sl_box_grid *grid, struct cell cell)
{
    for (; cell.level < TOP; cell = parent_of(cell)) {
        struct sl_key_slot *slot;

        if (sl_key_table_find(&grid->cells.table, key_of(grid, cell)) ||
            sl_key_table_find(&grid->branches, key_of(grid, cell)))
            return;
        slot = sl_key_table_find(&grid->branches, key_of(grid, parent_of(cell)));
        if (!slot)
            return;
        slot->value &= ~bit_of(cell);
        if (slot->value == 0)
            sl_key_table_remove(&grid->branches, slot);
    }
}

int sl_box_grid_add(struct sl_box_grid *grid, uint32_t cell, struct sl_posting posting,
                    uint32_t *ret_position)
{
    struct sl_posting moved;
    int r;

    r = sl_postings_add(&grid->cells, sl_box_grid_key(grid, cell), posting, ret_position);
    if (r < 0)
        return r;
    r = mark(grid, unpack(cell));
    if (r < 0)
        sl_box_grid_remove(grid, cell, *ret_position, &moved);
    return r;
}

bool sl_box_grid_remove(struct sl_box_grid *grid, uint32_t cell, uint32_t position,
                        struct sl_posting *ret_moved)
{
    bool moved = sl_postings_remove(&grid->cells, sl_box_grid_key(grid, cell), position, ret_moved);

    unmark(grid, unpack(cell));
    return moved;
}

static bool overlap(struct range a, struct range b)
{
    return a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north;
}

static void find_below(const struct sl_box_grid *grid, struct cell cell, struct range fine,
                       struct buffer *keys)
{
    uint64_t key = key_of(grid, cell);
    const struct sl_key_slot *slot;
    struct range range;

    buffer_append(keys, &key, sizeof(key));
    if (cell.level == 0)
        return;
    slot = sl_key_table_find(&grid->branches, key);
    if (!slot)
        return;
    range = at_level(fine, cell.level - 1);
    for (uint64_t bits = slot->value; bits != 0; bits &= bits - 1) {
        struct cell child = child_of(cell, (uint32_t)__builtin_ctzll(bits));

        if (overlap((struct range){child.x, child.y, child.x, child.y}, range))
            find_below(grid, child, fine, keys);
    }
}

void sl_box_grid_find(const struct sl_box_grid *grid, const struct sl_box *shape,
                      struct buffer *keys)
{
    struct range fine = fine_range(shape);
    struct range range = at_level(fine, TOP);

    if (range_size(fine) == 1) {
        for (uint32_t level = 0; level <= TOP; level++) {
            struct range at = at_level(fine, level);
            uint64_t key = key_of(grid, (struct cell){level, at.west, at.south});

            buffer_append(keys, &key, sizeof(key));
        }
        return;
    }
    for (uint32_t y = range.south; y <= range.north; y++) {
        for (uint32_t x = range.west; x <= range.east; x++)
            find_below(grid, (struct cell){TOP, x, y}, fine, keys);
    }
}

size_t sl_box_grid_bytes(const struct sl_box_grid *grid)
{
    return sl_postings_bytes(&grid->cells) + sl_key_table_bytes(&grid->branches);
}
