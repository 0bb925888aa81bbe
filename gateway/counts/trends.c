/* trends.c - slices in a ring, and a table of all terms of a window while it is printed.
 *
 * Unions of users are the most expensive part, so they are computed only for terms that could be in
 * the result: the numbers of users in the slices give a lower and an upper bound for the window.
 * The table is built and searched in steps whose size the caller limits. */
#include "gateway/counts/trends.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/counts/distinct.h"
#include "gateway/counts/trend_slice.h"
#include "src/model/id.h"

enum {
    SLICES = 2 * TREND_PARTS,
    NONE = -1,
    CLOSE_POST_WORK = 64, /* units for closing slices with each post: a post has about a
                             dozen terms, so a slice is closed before the next one is full */
    BEGIN_WORK = 1024,    /* for starting a survey */
    UNION_WORK = 10,      /* for a union of users */
    MENTION_WORK = 3      /* and for each set in it */
};

static_assert((int)TREND_PARTS <= (int)PEOPLE_SETS_MAX, "a union has all parts");
static_assert((int)TREND_OF_HASHTAGS == (int)SL_TERM_HASHTAG &&
                  (int)TREND_OF_WORDS == (int)SL_TERM_WORD &&
                  (int)TREND_OF_LINKS == (int)SL_TERM_LINK &&
                  (int)TREND_OF_USERS == (int)SL_TERM_USER &&
                  (int)TREND_OF_CASHTAGS == (int)SL_TERM_CASHTAG,
              "what can be asked for is what there is");

static const double smoothing_posts = 100, smoothing_users = 0.5;

struct survey;

struct trends {
    struct trend_question question;
    enum trend_of of;
    uint64_t newest;       /* number of the open slice, counted from 1970; 0: none yet */
    uint64_t to_close;     /* ended slices from this number on are to be closed */
    struct survey *survey; /* in progress; NULL: none */
    struct trend_slice slices[SLICES]; /* slice n is at n % SLICES */
};

struct trends *trends_new(const struct trend_question *question, enum trend_of of)
{
    struct trends *trends = mem_zalloc(sizeof(*trends));

    if (!trends)
        return NULL;
    trends->question = *question;
    trends->of = of;
    return trends;
}

static void survey_free(struct survey *survey);

void trends_free(struct trends *trends)
{
    if (!trends)
        return;
    survey_free(trends->survey);
    for (size_t i = 0; i < SLICES; i++)
        trend_slice_done(&trends->slices[i]);
    mem_free(trends);
}

/* --- adding posts --- */

static struct trend_slice *slice_of(struct trends *trends, uint64_t number)
{
    return &trends->slices[number % SLICES];
}

static void advance(struct trends *trends, uint64_t number)
{
    for (uint64_t i = 1; i <= SLICES && trends->newest + i <= number; i++)
        trend_slice_done(slice_of(trends, trends->newest + i));
    trends->newest = number;
    if (trends->to_close + SLICES <= number)
        trends->to_close = number - SLICES + 1;
}

/* 0: all slices that have ended are closed; 1: not yet; -ENOMEM. */
static int close_over(struct trends *trends, size_t *work)
{
    int r = 0;

    while (trends->to_close < trends->newest && r == 0) {
        r = trend_slice_close(slice_of(trends, trends->to_close), work);
        trends->to_close += r == 0;
    }
    return r;
}

static uint64_t number_of(const struct trends *trends, uint64_t id)
{
    return sl_id_time_ms(id) / trend_slice_ms(&trends->question);
}

bool trends_can_add(const struct trends *trends, const struct event *post)
{
    const struct trend_slice *newest = &trends->slices[trends->newest % SLICES];

    return number_of(trends, post->id) >= trends->newest &&
           !(post->is_late && trend_slice_is_full(newest));
}

/* Without data: the term is too long to be counted. */
static struct sl_slice whole(const struct sl_term *term, char room[static TREND_TERM_BYTES])
{
    if (term->text.size + term->path.size > TREND_TERM_BYTES)
        return SL_SLICE_NONE;
    if (term->path.size == 0)
        return term->text;
    memcpy(room, term->text.data, term->text.size);
    memcpy(room + term->text.size, term->path.data, term->path.size);
    return sl_slice(room, term->text.size + term->path.size);
}

int trends_add(struct trends *trends, const struct event *post, const struct sl_words *words)
{
    uint64_t number = number_of(trends, post->id), user = distinct_hash(post->view.user);
    struct trend_slice *slice = slice_of(trends, number);
    char room[TREND_TERM_BYTES];
    size_t work = CLOSE_POST_WORK;
    struct sl_term term;

    assert(!trends->survey);
    if (number > trends->newest)
        advance(trends, number);
    if (close_over(trends, &work) < 0)
        return -ENOMEM;
    slice->posts++;
    for (size_t at = 0; sl_words_next_term(words, (enum sl_term_kind)trends->of, &at, &term);) {
        struct sl_slice text = whole(&term, room);

        if (text.size > 0 && trend_slice_add(slice, text, term.hash, post->id, user) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* --- all terms of a window --- */

/* A term in a slice. */
struct mention {
    const struct trend_cell *cell;
    int32_t next; /* of the same term, or NONE */
    int32_t part; /* slice of the window; NONE: before it */
};

struct term {
    struct sl_slice text;
    uint64_t hash, posts, posts_before;
    uint64_t users_most, users_least; /* bounds for the window */
    uint64_t before_most, before_least;
    uint64_t known_before; /* the part of survey.unseen_before that does not apply to this term */
    int32_t mentions;      /* the first one */
    int32_t next;          /* in the same chain, or NONE */
};

struct rising {
    const struct term *term;
    uint64_t users, before;
    int64_t score; /* in tenths */
};

struct survey {
    uint64_t last; /* number of the window's last slice */
    struct term *terms;
    struct mention *mentions;
    int32_t *heads;
    size_t term_count, mention_count, head_count; /* head_count is a power of two */
    uint64_t posts, posts_before;
    uint64_t unseen_before; /* the most earlier users of a term that no slice of the past has */
    double rate;            /* posts of the window, divided by those before */
    size_t slice, cell;     /* position: slices, newest first, have been read up to here */
    size_t looked_at;       /* terms that have been processed */
    size_t rising_count;    /* among the processed terms */
    struct rising rising[TREND_LIMIT_MAX];
    struct people_union people;
};

static struct term *find(const struct survey *survey, const struct trend_cell *cell)
{
    int32_t i = survey->heads[cell->hash & (survey->head_count - 1)];

    for (; i != NONE; i = survey->terms[i].next) {
        struct term *term = &survey->terms[i];

        if (term->hash == cell->hash && trend_compare_terms(term->text, trend_cell_term(cell)) == 0)
            return term;
    }
    return NULL;
}

static struct term *add(struct survey *survey, const struct trend_cell *cell)
{
    int32_t *head = &survey->heads[cell->hash & (survey->head_count - 1)];
    struct term *term = &survey->terms[survey->term_count];

    *term = (struct term){
        .text = trend_cell_term(cell), .hash = cell->hash, .mentions = NONE, .next = *head};
    *head = (int32_t)survey->term_count++;
    return term;
}

static void note(struct survey *survey, struct term *term, const struct trend_slice *slice,
                 const struct trend_cell *cell, int32_t part)
{
    uint64_t users = cell->users;
    uint64_t *most = part == NONE ? &term->before_most : &term->users_most;
    uint64_t *least = part == NONE ? &term->before_least : &term->users_least;

    survey->mentions[survey->mention_count] = (struct mention){cell, term->mentions, part};
    term->mentions = (int32_t)survey->mention_count++;
    *(part == NONE ? &term->posts_before : &term->posts) += cell->posts;
    *most += users;
    *least = users > *least ? users : *least;
    if (part == NONE)
        term->known_before += slice->unseen - cell->unseen;
}

static void note_cell(struct survey *survey, const struct trend_slice *slice,
                      struct trend_cell *cell, int32_t part)
{
    struct term *term = find(survey, cell);

    if (slice->order) /* open */
        cell->users = (uint32_t)people_count(&cell->people);
    if (!term && part != NONE)
        term = add(survey, cell);
    if (term)
        note(survey, term, slice, cell, part);
}

/* The slices of the window come first: of the past, only the window's terms matter. */
static void note_slices(struct trends *trends, struct survey *survey, size_t *work)
{
    while (survey->slice < SLICES) {
        const struct trend_slice *slice = slice_of(trends, survey->last - survey->slice);
        bool is_before = survey->slice >= TREND_PARTS;
        int32_t part = is_before ? NONE : (int32_t)(TREND_PARTS - 1 - survey->slice);

        for (; survey->cell < slice->count && *work != 0; survey->cell++, --*work)
            note_cell(survey, slice, &slice->cells[survey->cell], part);
        if (survey->cell < slice->count)
            return;
        *(is_before ? &survey->posts_before : &survey->posts) += slice->posts;
        survey->unseen_before += is_before ? slice->unseen : 0;
        survey->slice++;
        survey->cell = 0;
    }
}

static void survey_free(struct survey *survey)
{
    if (!survey)
        return;
    mem_free(survey->terms);
    mem_free(survey->mentions);
    mem_free(survey->heads);
    mem_free(survey);
}

static void survey_end(struct trends *trends)
{
    survey_free(trends->survey);
    trends->survey = NULL;
}

/* For the window whose last slice is `last`. 0; -ENOMEM. */
static int survey_begin(struct trends *trends, uint64_t last)
{
    struct survey *survey = mem_zalloc(sizeof(*survey));
    size_t terms = 1, mentions = 1;

    if (!survey)
        return -ENOMEM;
    trends->survey = survey;
    survey->last = last;
    for (uint64_t i = 0; i < SLICES; i++) {
        size_t count = slice_of(trends, last - i)->count;

        terms += i < TREND_PARTS ? count : 0;
        mentions += count;
    }
    for (survey->head_count = 64; survey->head_count < 2 * terms;)
        survey->head_count *= 2;
    survey->terms = mem_alloc(terms * sizeof(*survey->terms));
    survey->mentions = mem_alloc(mentions * sizeof(*survey->mentions));
    survey->heads = mem_alloc(survey->head_count * sizeof(*survey->heads));
    if (!survey->terms || !survey->mentions || !survey->heads) {
        survey_end(trends);
        return -ENOMEM;
    }
    memset(survey->heads, 0xff, survey->head_count * sizeof(*survey->heads)); /* NONE */
    return 0;
}

/* --- the highest scores --- */

static void spend(size_t *work, size_t units)
{
    *work -= units < *work ? units : *work;
}

static double square(double x)
{
    return x * x;
}

/* In tenths, so that rounding errors never change the order. */
static int64_t score(double rate, uint64_t users, bool is_estimated, uint64_t before,
                     bool was_estimated)
{
    double u = (double)users, b = (double)before, e = rate * b + smoothing_users;
    double variance = u + square(rate) * b + smoothing_users;

    if (is_estimated)
        variance += square(PEOPLE_ERROR * u);
    if (was_estimated)
        variance += square(PEOPLE_ERROR * rate * b);
    return (int64_t)floor((u - e) / sqrt(variance) * 10 + 0.5);
}

static uint64_t clamp(uint64_t number, uint64_t least, uint64_t most)
{
    return number < least ? least : number > most ? most : number;
}

/* The users of the term in the window, or before it. */
static uint64_t users_of(struct survey *survey, const struct term *term, bool before,
                         bool *ret_is_estimated, size_t *work)
{
    people_union_begin(&survey->people);
    spend(work, UNION_WORK);
    for (int32_t i = term->mentions; i != NONE; i = survey->mentions[i].next) {
        if ((survey->mentions[i].part == NONE) != before)
            continue;
        people_union_add(&survey->people, &survey->mentions[i].cell->people);
        spend(work, MENTION_WORK);
    }
    *ret_is_estimated = survey->people.is_estimated;
    return people_union_count(&survey->people);
}

static bool is_stop_word(const struct survey *survey, const struct term *term)
{
    if (survey->posts_before >= TREND_STOP_POSTS)
        return term->posts_before * TREND_STOP > survey->posts_before;
    return survey->posts >= TREND_STOP_POSTS && term->posts * TREND_STOP > survey->posts;
}

static bool goes_before(const struct rising *a, const struct rising *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    if (a->users != b->users)
        return a->users > b->users;
    return trend_compare_terms(a->term->text, b->term->text) < 0;
}

static void insert(struct rising *list, size_t *count, size_t limit, const struct rising *rising)
{
    size_t i = *count;

    if (*count == limit && !goes_before(rising, &list[limit - 1]))
        return;
    if (*count == limit)
        i--;
    else
        ++*count;
    for (; i > 0 && goes_before(rising, &list[i - 1]); i--)
        list[i] = list[i - 1];
    list[i] = *rising;
}

/* The maximum number of earlier users that the slices can have missed. The score includes them;
 * otherwise a term could seem to rise because it was not counted before. */
static uint64_t unseen_before(const struct survey *survey, const struct term *term)
{
    return survey->unseen_before - term->known_before;
}

/* false: the term is no trend, or certainly not among the first `limit`. */
static bool could_rise(const struct survey *survey, enum trend_of of, const struct term *term,
                       int64_t least)
{
    if (term->users_most < TREND_USERS_MIN || (of == TREND_OF_WORDS && is_stop_word(survey, term)))
        return false;
    return score(survey->rate, term->users_most, false,
                 term->before_least + unseen_before(survey, term), false) >= least;
}

static void look_at(struct trends *trends, struct survey *survey, const struct term *term,
                    size_t *work)
{
    size_t limit = trends->question.limit, count = survey->rising_count;
    struct rising rising = {.term = term};
    bool is_estimated, was_estimated;

    if (!could_rise(survey, trends->of, term, count == limit ? survey->rising[limit - 1].score : 1))
        return;
    rising.users = clamp(users_of(survey, term, false, &is_estimated, work), term->users_least,
                         term->users_most);
    rising.before = clamp(users_of(survey, term, true, &was_estimated, work), term->before_least,
                          term->before_most);
    rising.score = score(survey->rate, rising.users, is_estimated,
                         rising.before + unseen_before(survey, term), was_estimated);
    if (rising.users >= TREND_USERS_MIN && rising.score > 0)
        insert(survey->rising, &survey->rising_count, limit, &rising);
}

int trends_survey(struct trends *trends, uint64_t end_ms, size_t *work)
{
    uint64_t last = trend_slices_until(&trends->question, end_ms) - 1;
    struct survey *survey = trends->survey;
    int r;

    if (!survey && last > trends->newest)
        advance(trends, last);
    r = close_over(trends, work);
    if (r != 0)
        return r;
    if (*work == 0)
        return 1;
    if (!survey) {
        spend(work, BEGIN_WORK);
        if (survey_begin(trends, last) < 0)
            return -ENOMEM;
        survey = trends->survey;
    }
    assert(survey->last == last);
    note_slices(trends, survey, work);
    if (survey->slice < SLICES)
        return 1;
    survey->rate = ((double)survey->posts + smoothing_posts) /
                   ((double)survey->posts_before + smoothing_posts);
    for (; survey->looked_at<survey->term_count && * work> 0; survey->looked_at++) {
        spend(work, 1);
        look_at(trends, survey, &survey->terms[survey->looked_at], work);
    }
    return survey->looked_at < survey->term_count;
}

/* --- printing --- */

static const char *const signs[TREND_OF_COUNT] = {
    [TREND_OF_HASHTAGS] = "#", [TREND_OF_WORDS] = "",     [TREND_OF_LINKS] = "",
    [TREND_OF_USERS] = "@",    [TREND_OF_CASHTAGS] = "$",
};

static void print_term(const struct trends *trends, const struct rising *rising,
                       struct buffer *json)
{
    char room[1 + TREND_TERM_BYTES];
    const char *sign = signs[trends->of];
    size_t size = strlen(sign);

    memcpy(room, sign, size);
    memcpy(room + size, rising->term->text.data, rising->term->text.size);
    buffer_append_json_string(json, sl_slice(room, size + rising->term->text.size));
}

/* The number of users in each slice of the window. */
static void print_past(const struct survey *survey, const struct term *term, struct buffer *json)
{
    uint64_t past[TREND_PARTS] = {0};

    for (int32_t i = term->mentions; i != NONE; i = survey->mentions[i].next) {
        const struct mention *mention = &survey->mentions[i];

        if (mention->part != NONE)
            past[mention->part] = mention->cell->users;
    }
    for (size_t i = 0; i < TREND_PARTS; i++) {
        buffer_append_str(json, i ? "," : ",\"past\":[");
        buffer_append_decimal(json, past[i]);
    }
    buffer_append_char(json, ']');
}

static void print_rising(const struct trends *trends, const struct survey *survey,
                         const struct rising *rising, struct buffer *json)
{
    buffer_append_str(json, "{\"term\":");
    print_term(trends, rising, json);
    buffer_append_str(json, ",\"posts\":");
    buffer_append_decimal(json, rising->term->posts);
    buffer_append_str(json, ",\"users\":");
    buffer_append_decimal(json, rising->users);
    buffer_append_str(json, ",\"before\":");
    buffer_append_decimal(json, rising->before);
    buffer_append_str(json, ",\"score\":");
    buffer_append_decimal(json, (uint64_t)rising->score / 10);
    buffer_append_char(json, '.');
    buffer_append_decimal(json, (uint64_t)rising->score % 10);
    print_past(survey, rising->term, json);
    buffer_append_char(json, '}');
}

/* The larger of the errors of the window and of its past. */
static uint64_t error_of(struct trends *trends, uint64_t last)
{
    uint64_t error = 0, before = 0;

    for (uint64_t i = 0; i < TREND_PARTS; i++) {
        error += slice_of(trends, last - i)->error;
        before += slice_of(trends, last - TREND_PARTS - i)->error;
    }
    return error > before ? error : before;
}

void trends_print(struct trends *trends, uint64_t end_ms, struct buffer *json)
{
    const struct survey *survey;
    size_t work = SIZE_MAX;

    if (trends_survey(trends, end_ms, &work) < 0) {
        json->failed = true;
        return;
    }
    survey = trends->survey;
    buffer_append_str(json, "\"error\":");
    buffer_append_decimal(json, error_of(trends, survey->last));
    buffer_append_str(json, ",\"terms\":[");
    for (size_t i = 0; i < survey->rising_count; i++) {
        if (i)
            buffer_append_char(json, ',');
        print_rising(trends, survey, &survey->rising[i], json);
    }
    buffer_append_char(json, ']');
    survey_end(trends);
}
