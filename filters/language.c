/* language.c - looks up codes in ICU, and names and common wrong codes in a table.
 *
 * ICU knows all codes of two letters (ISO 639-1), but only some of the 8,000 of three letters; the
 * latter are accepted without a check.
 *
 * The table has only the most frequent names. For others the message only says that they are not a
 * code, and suggests none. */
#include "filters/language.h"

#include <unicode/uloc.h>

bool sl_language_is_known(struct sl_slice subtag)
{
    char code[] = {subtag.data[0], subtag.data[1], '\0'};

    return subtag.size == 3 || (subtag.size == 2 && uloc_getISO3Language(code)[0] != '\0');
}

const char *sl_language_meant(struct sl_slice subtag)
{
    static const struct {
        const char *written, *code;
    } rows[] = {
        {"arabic", "ar"},  {"bengali", "bn"},  {"chinese", "zh"},  {"cn", "zh"},
        {"cz", "cs"},      {"czech", "cs"},    {"danish", "da"},   {"deutsch", "de"},
        {"dk", "da"},      {"dutch", "nl"},    {"english", "en"},  {"espanol", "es"},
        {"finnish", "fi"}, {"francais", "fr"}, {"french", "fr"},   {"german", "de"},
        {"greek", "el"},   {"gr", "el"},       {"hebrew", "he"},   {"hindi", "hi"},
        {"irish", "ga"},   {"italian", "it"},  {"japanese", "ja"}, {"jp", "ja"},
        {"korean", "ko"},  {"latin", "la"},    {"norsk", "no"},    {"persian", "fa"},
        {"polish", "pl"},  {"romanian", "ro"}, {"russian", "ru"},  {"spanish", "es"},
        {"swedish", "sv"}, {"tamil", "ta"},    {"thai", "th"},     {"turkish", "tr"},
        {"ua", "uk"},      {"urdu", "ur"},     {"welsh", "cy"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (sl_slice_is(subtag, rows[i].written))
            return rows[i].code;
    }
    return NULL;
}
