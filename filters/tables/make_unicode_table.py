#!/usr/bin/python3
"""Makes unicode_table.c from the files of the Unicode Character Database.

    make_unicode_table.py [folder] > unicode_table.c

The folder (default /usr/share/unicode, Debian's package unicode-data) must hold version 15.0.0:
what a filter matches must not change with the machine it was built on, so the result is part of
the source, and this program runs only when the pinned version moves. What the table means is told
in unicode_table.h; this is how its values come about:

- mapping: NFKC_Casefold, then NFC, of the code point by itself;
- FLAGGED: the mapping begins with something that can move or melt into what stands before it
  (a combining mark, or a code point with NFC_Quick_Check=Maybe), or it is an i with the dot that
  is taken out at the very end;
- MARK: a combining mark that maps to itself and never composes;
- OPEN: the mapping ends with a combining mark, which one that follows may have to pass;
- everything else is PLAIN, or UNASSIGNED.
"""
import re
import sys

UNSPACED = {"Han", "Hiragana", "Katakana", "Bopomofo", "Hangul", "Thai", "Lao", "Khmer", "Myanmar"}
SEPARATOR, WORD, UNSPACED_CLASS, EMOJI = range(4)
LETTER = 4
PLAIN, UNASSIGNED, MARK, FLAGGED = (kind << 3 for kind in range(4))
OPEN, MELTING = 8, 16  # in a record; MELTING is its FLAGGED
RECORDS_FROM = 32
VERSION = "15.0.0"
LAST = 0x10FFFF


def rows(folder, name):
    with open(f"{folder}/{name}", encoding="utf-8") as lines:
        for line in lines:
            line = line.split("#")[0].strip()
            if line:
                yield [field.strip() for field in line.split(";")]


def code_points(field):
    first, _, last = field.partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


class Database:
    def __init__(self, folder):
        with open(f"{folder}/DerivedNormalizationProps.txt", encoding="utf-8") as file:
            if not re.search(rf"-{re.escape(VERSION)}\.txt", file.readline()):
                sys.exit(f"{folder} does not hold Unicode {VERSION}")
        self.category, self.combining, self.decomposition = {}, {}, {}
        self.script, self.casefold, self.composes_backwards = {}, {}, set()
        first = None
        for row in rows(folder, "UnicodeData.txt"):
            code_point = int(row[0], 16)
            if row[1].endswith(", First>"):
                first = code_point
                continue
            for c in range(first if row[1].endswith(", Last>") else code_point, code_point + 1):
                self.category[c] = row[2]
            if row[3] != "0":
                self.combining[code_point] = int(row[3])
            if row[5] and not row[5].startswith("<"):
                self.decomposition[code_point] = tuple(int(c, 16) for c in row[5].split())
        for row in rows(folder, "Scripts.txt"):
            self.script.update((c, row[1]) for c in code_points(row[0]))
        excluded = set()
        for row in rows(folder, "DerivedNormalizationProps.txt"):
            if row[1] == "NFKC_CF":
                mapping = tuple(int(c, 16) for c in row[2].split())
                self.casefold.update((c, mapping) for c in code_points(row[0]))
            elif row[1] == "NFC_QC" and row[2] == "M":
                self.composes_backwards.update(code_points(row[0]))
            elif row[1] == "Full_Composition_Exclusion":
                excluded.update(code_points(row[0]))
        self.composition = {pair: c for c, pair in self.decomposition.items() if c not in excluded}

    def decompose(self, c):
        if 0xAC00 <= c <= 0xD7A3:  # Hangul syllables, by arithmetic (The Unicode Standard, 3.12)
            lead, vowel, trail = (c - 0xAC00) // 588, (c - 0xAC00) % 588 // 28, (c - 0xAC00) % 28
            yield from (0x1100 + lead, 0x1161 + vowel) + ((0x11A7 + trail,) if trail else ())
        elif c in self.decomposition:
            for part in self.decomposition[c]:
                yield from self.decompose(part)
        else:
            yield c

    def compose(self, a, b):
        if 0x1100 <= a < 0x1113 and 0x1161 <= b < 0x1176:
            return 0xAC00 + ((a - 0x1100) * 21 + b - 0x1161) * 28
        if 0xAC00 <= a <= 0xD7A3 and (a - 0xAC00) % 28 == 0 and 0x11A7 < b < 0x11C3:
            return a + b - 0x11A7
        return self.composition.get((a, b))

    def nfc(self, text):
        """Canonical decomposition, ordering and composition (The Unicode Standard, 3.11)."""
        parts = [part for c in text for part in self.decompose(c)]
        ccc = lambda c: self.combining.get(c, 0)
        for i in range(1, len(parts)):
            while i > 0 and parts[i - 1] != parts[i] and ccc(parts[i - 1]) > ccc(parts[i]) > 0:
                parts[i - 1], parts[i] = parts[i], parts[i - 1]
                i -= 1
        result, starter = [], None
        for c in parts:
            blocked = starter is None or (
                starter < len(result) - 1 and (ccc(result[-1]) == 0 or ccc(result[-1]) >= ccc(c)))
            composed = None if blocked else self.compose(result[starter], c)
            if composed is not None:
                result[starter] = composed
                continue
            if ccc(c) == 0:
                starter = len(result)
            result.append(c)
        return tuple(result)

    def info(self, c):
        category = self.category.get(c, "Cn")
        if category[0] in "LMN":
            unspaced = self.script.get(c) in UNSPACED or c == 0x30FC
            return (UNSPACED_CLASS if unspaced else WORD) | (LETTER if category[0] == "L" else 0)
        if c == ord("_"):
            return WORD
        return EMOJI if category == "So" or 0x1F3FB <= c <= 0x1F3FF else SEPARATOR


def utf8(text):
    return "".join(map(chr, text)).encode()


def build(database):
    """(value of each code point, [(mapping, info of the code point itself)])"""
    values, records, numbers = [], [], {}
    for c in range(LAST + 1):
        mapping = database.nfc(database.casefold.get(c, (c,)))
        composes = mapping[:1] and mapping[0] in database.composes_backwards
        flagged = (composes or (mapping[:1] and mapping[0] in database.combining) or
                   mapping == (ord("i"), 0x307))
        if mapping == (c,):
            kind = (FLAGGED if composes else MARK if flagged else
                    PLAIN if c in database.category else UNASSIGNED)
            values.append(database.info(c) | kind)
        else:
            open_end = mapping[-1:] and mapping[-1] in database.combining
            record = (utf8(mapping), database.info(c) | (OPEN if open_end else 0) |
                      (MELTING if flagged else 0))
            if record not in numbers:
                numbers[record] = len(records)
                records.append(record)
            values.append(RECORDS_FROM + numbers[record])
    return values, records


def pool_of(strings):
    pool = b""
    for string in sorted(set(strings), key=lambda s: (-len(s), s)):
        if string not in pool:
            pool += string
    return pool


def two_stages(values, bits):
    size = 1 << bits
    blocks, index = {}, []
    for start in range(0, len(values), size):
        index.append(blocks.setdefault(tuple(values[start:start + size]), len(blocks)))
    return index, [value for block in blocks for value in block]


def array(type_name, name, items, form):
    print(f"\nconst {type_name} {name}[{len(items)}] = {{")
    line = ""
    for item in items:
        text = form(item) + ","
        if len(line) + len(text) > 99:
            print(line)
            line = ""
        line += text
    print(line + "\n};")


def main():
    values, records = build(Database(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode"))
    pool = pool_of([mapping for mapping, _ in records])
    bits = min(range(4, 9), key=lambda b: sum(2 * len(part) for part in two_stages(values, b)))
    index, blocks = two_stages(values, bits)
    dotted = "i\u0307".encode()
    assert [mapping for mapping, _ in records if dotted in mapping] == [dotted]
    assert len(pool) < 1 << 16 and RECORDS_FROM + len(records) < 1 << 16
    print(f"""/* Made by make_unicode_table.py from Unicode {VERSION}; do not edit. */
/* clang-format off */
#include "filters/tables/unicode_table.h"

_Static_assert(SL_UNICODE_BLOCK_BITS == {bits}, "block size");
_Static_assert(SL_UNICODE_LONGEST_MAPPING == {max(len(m) for m, _ in records)}, "longest mapping");""")
    array("uint16_t", "sl_unicode_index", index, str)
    array("uint16_t", "sl_unicode_values", blocks, str)
    array("struct sl_unicode_record", "sl_unicode_records", records,
          lambda record: f"{{{pool.find(record[0])},{len(record[0])},{record[1]}}}")
    array("unsigned char", "sl_unicode_pool", pool, str)
    total = 2 * len(index) + 2 * len(blocks) + 4 * len(records) + len(pool)
    print(f"{total} bytes: {len(index)} + {len(blocks)} values, {len(records)} records, "
          f"{len(pool)} of text", file=sys.stderr)


main()
