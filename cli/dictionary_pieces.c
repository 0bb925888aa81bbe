/* dictionary_pieces.c - counts the authors of all strings of all lengths, shortest first.
 *
 * If a string has too few authors, so has every longer one that begins with it: so each round
 * examines only positions where the round before has found enough. A table has a slot for each
 * distinct string, by its hash: its last author and their number; this counts every author once,
 * because samples are sorted by author. Two strings with the same hash would be counted together;
 * so the chosen strings are finally searched in the samples, byte by byte.
 *
 * Each sample is split into the longest permitted pieces. They are chosen as in COVER (Liao, Petri,
 * Moffat, Wirth: "Effective construction of relative Lempel-Ziv dictionaries", 2016): first the one
 * whose short strings are most frequent in relation to its size, then the same among what it
 * leaves. The origin of a piece is not kept, so pieces cannot be related to each other. */
#include "cli/dictionary_pieces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const uint16_t lengths[] = {PIECE_MIN, 6,  7,  8,  9,  10, 12, 14, 16,  18,  20,  24,
                                   28,        32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), DIGITS_MAX = 4 };

#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15) /* odd; 2^64 divided by the golden ratio */

struct slot {
    uint64_t hash; /* 0: free */
    uint32_t author, authors;
};

struct table {
    struct slot *slots;
    size_t capacity; /* a power of two */
};

struct finder {
    const struct piece_sample *samples;
    size_t count;
    size_t *begins;    /* offset of each sample in the bytes of all */
    uint16_t *longest; /* for each byte: the length of the longest permitted string from here; 0:
                          none */
    struct table table;
    struct table grams; /* strings of PIECE_MIN bytes: `authors` is the frequency, `author` is 1 if
                           covered */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static struct slot *slot_of(const struct table *table, uint64_t hash)
{
    size_t mask = table->capacity - 1, i = (size_t)(hash ^ hash >> 32) & mask;

    while (table->slots[i].hash && table->slots[i].hash != hash)
        i = (i + 1) & mask;
    return &table->slots[i];
}

/* ---- all strings of a length ---- */

struct window {
    struct sl_slice text;
    size_t at, length;
    uint64_t hash, top; /* of the string at `at`; MULTIPLIER to the power of its length minus one */
};

static uint64_t value_of(char byte)
{
    return (uint64_t)(unsigned char)byte + 1;
}

/* false: the text is shorter than that. */
static bool window_begin(struct window *window, struct sl_slice text, size_t length)
{
    *window = (struct window){.text = text, .length = length, .top = 1};
    if (text.size < length)
        return false;
    for (size_t i = 0; i < length; i++) {
        window->hash = window->hash * MULTIPLIER + value_of(text.data[i]);
        window->top *= i > 0 ? MULTIPLIER : 1;
    }
    return true;
}

/* false: that was the last one. */
static bool window_next(struct window *window)
{
    const char *from = window->text.data + window->at;

    if (window->at + window->length == window->text.size)
        return false;
    window->hash -= value_of(from[0]) * window->top;
    window->hash = window->hash * MULTIPLIER + value_of(from[window->length]);
    window->at++;
    return true;
}

static uint64_t hash_of(const struct window *window)
{
    return window->hash ? window->hash : 1; /* 0 marks a free slot */
}

/* ---- permitted strings ---- */

typedef void (*visit_fn)(struct finder *finder, const struct window *window, size_t sample,
                         uint16_t *longest);

/* Visits all strings of this length whose beginning, of length `before`, is permitted. */
static void visit_strings(struct finder *finder, size_t length, size_t before, visit_fn visit)
{
    for (size_t i = 0; i < finder->count; i++) {
        struct window window;
        bool is_there = window_begin(&window, finder->samples[i].json, length);

        for (; is_there; is_there = window_next(&window)) {
            uint16_t *longest = &finder->longest[finder->begins[i] + window.at];

            if (*longest >= before)
                visit(finder, &window, i, longest);
        }
    }
}

static void count_author(struct finder *finder, const struct window *window, size_t sample,
                         uint16_t *longest)
{
    struct slot *slot = slot_of(&finder->table, hash_of(window));
    uint32_t author = finder->samples[sample].author;

    (void)longest;
    if (slot->hash && slot->author == author)
        return;
    slot->hash = hash_of(window);
    slot->author = author;
    slot->authors++;
}

static void permit(struct finder *finder, const struct window *window, size_t sample,
                   uint16_t *longest)
{
    (void)sample;
    if (slot_of(&finder->table, hash_of(window))->authors >= PIECE_AUTHORS)
        *longest = (uint16_t)window->length;
}

/* Ids and times will be different tomorrow: a piece does not begin with a digit, and has at most
 * DIGITS_MAX of them. */
static void spare_digits(struct finder *finder)
{
    for (size_t i = 0; i < finder->count; i++) {
        const struct sl_slice json = finder->samples[i].json;
        uint16_t *longest = finder->longest + finder->begins[i];
        size_t digits = 0, end = 0; /* number of digits in between, including `at` and excluding
                                       `end` */

        for (size_t at = 0; at < json.size; at++) {
            while (end < json.size && digits + is_digit(json.data[end]) <= DIGITS_MAX)
                digits += is_digit(json.data[end++]);
            if (is_digit(json.data[at]) || end - at < PIECE_MIN)
                longest[at] = 0;
            else if (longest[at] > end - at)
                longest[at] = (uint16_t)(end - at);
            digits -= is_digit(json.data[at]);
        }
    }
}

static void find_longest(struct finder *finder)
{
    for (int i = 0; i < LENGTHS; i++) {
        size_t before = i > 0 ? lengths[i - 1] : 0;

        memset(finder->table.slots, 0, finder->table.capacity * sizeof(struct slot));
        visit_strings(finder, lengths[i], before, count_author);
        visit_strings(finder, lengths[i], before, permit);
    }
    spare_digits(finder);
}

/* ---- choosing ---- */

static void count_gram(struct finder *finder, const struct window *window, size_t sample,
                       uint16_t *longest)
{
    struct slot *slot = slot_of(&finder->grams, hash_of(window));

    (void)sample;
    (void)longest;
    slot->hash = hash_of(window);
    slot->authors++;
}

/* Removes covered parts at both ends: returns the value of what is left. */
static double worth_of(const struct finder *finder, struct sl_slice *piece)
{
    size_t first = SIZE_MAX, last = 0;
    struct window window;
    double worth = 0;

    for (bool is_there = window_begin(&window, *piece, PIECE_MIN); is_there;
         is_there = window_next(&window)) {
        const struct slot *slot = slot_of(&finder->grams, hash_of(&window));

        if (slot->author != 0)
            continue;
        if (first == SIZE_MAX)
            first = window.at;
        last = window.at;
        worth += slot->authors;
    }
    if (first == SIZE_MAX)
        return 0;
    *piece = sl_slice(piece->data + first, last - first + PIECE_MIN);
    return worth / (double)(piece->size + 1);
}

static void cover(struct finder *finder, struct sl_slice piece)
{
    struct window window;

    for (bool is_there = window_begin(&window, piece, PIECE_MIN); is_there;
         is_there = window_next(&window)) {
        struct slot *slot = slot_of(&finder->grams, hash_of(&window));

        slot->author = slot->hash != 0;
    }
}

struct candidate {
    struct sl_slice piece;
    double worth; /* an upper limit */
};

/* A heap with the best piece at its top. */
struct heap {
    struct candidate *at;
    size_t count;
};

static void heap_sink(struct heap *heap, size_t i)
{
    for (;;) {
        size_t best = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->count; child++) {
            if (heap->at[child].worth > heap->at[best].worth)
                best = child;
        }
        if (best == i)
            return;
        struct candidate moved = heap->at[i];

        heap->at[i] = heap->at[best];
        heap->at[best] = moved;
        i = best;
    }
}

/* Splits all samples into pieces. Equal ones are all included: the second is worthless once the
 * first is chosen. */
static int fill_heap(struct finder *finder, struct heap *heap)
{
    size_t room = 0;

    for (size_t i = 0; i < finder->count; i++)
        room += finder->samples[i].json.size / PIECE_MIN;
    heap->at = mem_alloc(mem_array_size(room + 1, sizeof(*heap->at)));
    if (!heap->at)
        return -ENOMEM;
    for (size_t i = 0; i < finder->count; i++) {
        struct sl_slice json = finder->samples[i].json;
        size_t length;

        for (size_t at = 0; at < json.size; at += length ? length : 1) {
            struct candidate candidate;

            length = finder->longest[finder->begins[i] + at];
            candidate.piece = sl_slice(json.data + at, length);
            candidate.worth = length ? worth_of(finder, &candidate.piece) : 0;
            if (candidate.worth > 0)
                heap->at[heap->count++] = candidate;
        }
    }
    for (size_t i = heap->count; i-- > 0;)
        heap_sink(heap, i);
    return 0;
}

/* Removes the best piece; its value may have decreased since it was added. */
static bool take_best(struct finder *finder, struct heap *heap, struct sl_slice *ret_piece)
{
    while (heap->count > 0) {
        struct candidate *top = &heap->at[0];
        double worth = worth_of(finder, &top->piece);
        bool is_best = worth > 0 && worth >= top->worth;

        *ret_piece = top->piece;
        top->worth = worth;
        if (is_best || worth <= 0)
            *top = heap->at[--heap->count];
        heap_sink(heap, 0);
        if (is_best)
            return true;
    }
    return false;
}

static int choose(struct finder *finder, size_t room, struct pieces *pieces)
{
    struct heap heap = {0};
    struct sl_slice piece;
    int r = fill_heap(finder, &heap);

    pieces->at = mem_alloc(mem_array_size(room / (PIECE_MIN + 1) + 1, sizeof(*pieces->at)));
    if (!pieces->at)
        r = -ENOMEM;
    while (r == 0 && room > PIECE_MIN && take_best(finder, &heap, &piece)) {
        if (piece.size + 1 > room)
            piece.size = room - 1;
        cover(finder, piece);
        if (pieces_authors(finder->samples, finder->count, piece) < PIECE_AUTHORS)
            continue;
        pieces->at[pieces->count++] = piece;
        room -= piece.size + 1;
    }
    mem_free(heap.at);
    return r;
}

/* ---- public functions ---- */

uint32_t pieces_authors(const struct piece_sample *samples, size_t count, struct sl_slice piece)
{
    uint32_t authors = 0;

    for (size_t i = 0; i < count && authors < PIECE_AUTHORS;) {
        uint32_t author = samples[i].author;
        bool is_there = memmem(samples[i].json.data, samples[i].json.size, piece.data, piece.size);

        authors += is_there;
        i++;
        while (is_there && i < count && samples[i].author == author)
            i++; /* counted once */
    }
    return authors;
}

static int by_author(const void *one, const void *other)
{
    const struct piece_sample *a = one, *b = other;

    if (a->author != b->author)
        return a->author < b->author ? -1 : 1;
    return a->json.data < b->json.data ? -1 : a->json.data > b->json.data;
}

static int table_init(struct table *table, size_t strings)
{
    table->capacity = 16;
    while (table->capacity < 2 * strings)
        table->capacity *= 2;
    table->slots = mem_zalloc(mem_array_size(table->capacity, sizeof(*table->slots)));
    return table->slots ? 0 : -ENOMEM;
}

static int finder_init(struct finder *finder)
{
    size_t bytes = 0;

    finder->begins = mem_alloc(mem_array_size(finder->count + 1, sizeof(*finder->begins)));
    if (!finder->begins)
        return -ENOMEM;
    for (size_t i = 0; i < finder->count; i++) {
        finder->begins[i] = bytes;
        bytes += finder->samples[i].json.size;
    }
    finder->longest = mem_zalloc(mem_array_size(bytes + 1, sizeof(*finder->longest)));
    if (!finder->longest || table_init(&finder->table, bytes) < 0)
        return -ENOMEM;
    return 0;
}

int pieces_find(struct piece_sample *samples, size_t count, size_t room, struct pieces *ret_pieces)
{
    struct finder finder = {.samples = samples, .count = count};
    struct pieces pieces = {0};
    int r;

    qsort(samples, count, sizeof(*samples), by_author);
    r = finder_init(&finder);
    if (r == 0) {
        find_longest(&finder);
        finder.grams = finder.table; /* no longer needed for that */
        memset(finder.grams.slots, 0, finder.grams.capacity * sizeof(struct slot));
        visit_strings(&finder, PIECE_MIN, PIECE_MIN, count_gram);
        r = choose(&finder, room, &pieces);
    }
    mem_free(finder.begins);
    mem_free(finder.longest);
    mem_free(finder.table.slots);
    if (r < 0)
        pieces_done(&pieces);
    else
        *ret_pieces = pieces;
    return r;
}

void pieces_done(struct pieces *pieces)
{
    mem_free(pieces->at);
    *pieces = (struct pieces){0};
}
