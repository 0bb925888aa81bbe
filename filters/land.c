#include "filters/land.h"

#include <math.h>

enum { COLUMNS = 360 };

static bool is_land(int row, int column)
{
    return sl_land_table[row][column / 8] >> (column % 8) & 1;
}

/* The cell of a coordinate that is `at` degrees from the edge of the map. The far edge belongs to
 * the last cell. */
static int cell_of(double at, int count)
{
    int cell = (int)floor(at);

    return cell < count ? cell : count - 1;
}

bool sl_land_in(const struct sl_box *box)
{
    int south = cell_of(box->south + 90, SL_LAND_ROWS);
    int north = cell_of(box->north + 90, SL_LAND_ROWS);
    int west = cell_of(box->west + 180, COLUMNS);
    int east = cell_of(box->east + 180, COLUMNS);
    int width = east - west + (box->west > box->east ? COLUMNS : 0);

    for (int row = south; row <= north; row++) {
        for (int i = 0; i <= width; i++) {
            if (is_land(row, (west + i) % COLUMNS))
                return true;
        }
    }
    return false;
}
