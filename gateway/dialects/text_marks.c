/* text_marks.c - one pass over the text; links are found first, then the marks between them.
 *
 * The only state is the position. */
#include "gateway/dialects/text_marks.h"

#include "base/utf8.h"

static bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool ascii_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Punctuation and spaces of Unicode that occur next to words. */
static bool is_punctuation(const unsigned char *at, size_t size)
{
    unsigned code;

    if (size != 3)
        return size == 2 && at[0] == 0xC2; /* U+0080 to U+00BF */
    code = (at[0] & 0xFu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    return (code >= 0x2000 && code <= 0x206F) ||
           (code >= 0x3000 && code <= 0x303F && code != 0x3005) ||
           (code >= 0xFF00 && code <= 0xFF0F) || (code >= 0xFF1A && code <= 0xFF20) ||
           (code >= 0xFF3B && code <= 0xFF40) || (code >= 0xFF5B && code <= 0xFF65);
}

/* The number of bytes of the letter, digit or `_` at `at`; 0: another character. */
static size_t letter_size(struct sl_slice text, size_t at)
{
    const unsigned char *from = (const unsigned char *)text.data + at;
    size_t size;

    if (at == text.size)
        return 0;
    if (from[0] < 0x80)
        return ascii_is_letter(text.data[at]) || ascii_is_digit(text.data[at]) ||
               text.data[at] == '_';
    size = utf8_code_point_size(from, (const unsigned char *)text.data + text.size);
    return is_punctuation(from, size) ? 0 : size;
}

/* The end of the word at `at`; *ret_has_letter: it contains more than digits and `_`. */
static size_t word_end(struct sl_slice text, size_t at, bool *ret_has_letter)
{
    size_t size;

    *ret_has_letter = false;
    while ((size = letter_size(text, at)) > 0) {
        *ret_has_letter =
            *ret_has_letter || !(ascii_is_digit(text.data[at]) || text.data[at] == '_');
        at += size;
    }
    return at;
}

static size_t cashtag_end(struct sl_slice text, size_t at)
{
    size_t end = at;

    while (end < text.size && end - at < 7 && ascii_is_letter(text.data[end]))
        end++;
    return end - at >= 1 && end - at <= 6 && letter_size(text, end) == 0 ? end : at;
}

static size_t login_end(struct sl_slice text, size_t at)
{
    bool has_letter;

    return word_end(text, at, &has_letter);
}

static size_t hashtag_end(struct sl_slice text, size_t at)
{
    bool has_letter;
    size_t end = word_end(text, at, &has_letter);

    return has_letter ? end : at;
}

static size_t marked_end(struct sl_slice text, size_t at)
{
    switch (text.data[at]) {
    case '#':
        return hashtag_end(text, at + 1);
    case '@':
        return login_end(text, at + 1);
    case '$':
        return cashtag_end(text, at + 1);
    default:
        return at + 1;
    }
}

static enum text_mark_kind kind_of(char sign)
{
    return sign == '#' ? TEXT_MARK_HASHTAG : sign == '@' ? TEXT_MARK_MENTION : TEXT_MARK_CASHTAG;
}

/* Searches up to the next link. */
static bool find_between(struct text_marks *marks, size_t end, struct text_mark *ret_mark)
{
    struct sl_slice text = sl_slice(marks->text.data, end);

    while (marks->at < end) {
        size_t at = marks->at, size = letter_size(text, at);

        if (size > 0) {
            marks->is_in_word = (unsigned char)text.data[at] < 0x80;
            marks->at += size;
            continue;
        }
        marks->at = marks->is_in_word ? at + 1 : marked_end(text, at);
        marks->is_in_word = marks->at > at + 1 || text.data[at] == '&';
        if (marks->at > at + 1) {
            *ret_mark = (struct text_mark){kind_of(text.data[at]), at, marks->at};
            return true;
        }
    }
    return false;
}

bool text_marks_next(struct text_marks *marks, struct text_mark *ret_mark)
{
    if (!marks->is_read) {
        marks->has_link = sl_url_find(marks->text, marks->at, &marks->link);
        marks->is_read = true;
    }
    if (find_between(marks, marks->has_link ? marks->link.start : marks->text.size, ret_mark))
        return true;
    if (!marks->has_link)
        return false;
    *ret_mark = (struct text_mark){TEXT_MARK_LINK, marks->link.start, marks->link.end};
    marks->at = marks->link.end;
    marks->is_in_word = marks->is_read = false;
    return true;
}

void text_marks_append_letters(struct sl_slice text, struct buffer *letters)
{
    for (size_t at = 0, size; at<text.size; at += size> 0 ? size : 1) {
        size = letter_size(text, at);
        buffer_append(letters, text.data + at, size);
    }
}
