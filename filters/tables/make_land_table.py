#!/usr/bin/python3
"""Makes land_table.c from a map of the world: in which cells of one degree is there land?

    make_land_table.py build/dev/web/node_modules/world-atlas/land-50m.json > land_table.c

The map is the npm package world-atlas (which the dashboard draws), made from Natural Earth, which is
in the public domain. It is TopoJSON: rings are made of arcs, an arc of steps in units of a grid. A cell
is land when the coast goes through it or its middle lies inside of a ring. Antarctica is left out,
since hardly anything is posted there, and the figures of a box that were swapped often end there.
"""
import json
import math
import sys

SOUTHERNMOST = -60


def read_arcs(topology):
    (x_scale, y_scale), (x_at, y_at) = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for step in arc:
            x, y = x + step[0], y + step[1]
            points.append((x * x_scale + x_at, y * y_scale + y_at))
        yield points


def read_rings(topology):
    arcs = list(read_arcs(topology))
    [land] = topology["objects"]["land"]["geometries"]
    for polygon in land["arcs"]:
        for ring in polygon:
            yield [point for at in ring for point in (arcs[at] if at >= 0 else arcs[~at][::-1])]


def mark_coast(cells, ring):
    for (x1, y1), (x2, y2) in zip(ring, ring[1:]):
        steps = max(1, math.ceil(max(abs(x2 - x1), abs(y2 - y1)) / 0.05))
        for step in range(steps + 1):
            cells.add((math.floor(x1 + (x2 - x1) * step / steps), math.floor(y1 + (y2 - y1) * step / steps)))


def mark_inside(cells, rings):
    for row in range(-90, 90):
        y = row + 0.5
        crossings = sorted(x1 + (x2 - x1) * (y - y1) / (y2 - y1)
                           for ring in rings for (x1, y1), (x2, y2) in zip(ring, ring[1:])
                           if (y1 > y) != (y2 > y))
        for begin, end in zip(crossings[::2], crossings[1::2]):
            cells.update((x, row) for x in range(math.ceil(begin - 0.5), math.floor(end - 0.5) + 1))


def print_table(cells):
    print("""/* Made by make_land_table.py from Natural Earth; do not edit. */
#include "filters/land.h"

/* clang-format off */
const unsigned char sl_land_table[SL_LAND_ROWS][SL_LAND_ROW_BYTES] = {""")
    for row in range(-90, 90):
        octets = [sum(1 << bit for bit in range(8) if (8 * at + bit - 180, row) in cells) for at in range(45)]
        if row < SOUTHERNMOST:
            octets = [0]
        print("    {%s}," % ", ".join(str(octet) for octet in octets))
    print("};")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rings = list(read_rings(json.load(file)))
    cells = set()
    for ring in rings:
        mark_coast(cells, ring)
    mark_inside(cells, rings)
    print_table({((x + 180) % 360 - 180, min(y, 89)) for x, y in cells})


main()
