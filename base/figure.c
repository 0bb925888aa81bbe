#include "base/figure.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

enum { DAYS_FROM_HOURS = 48 };

static const struct figure unknown = {"-"};

/* As many decimals as are significant for a number of this size. */
static int decimals(double value)
{
    if (value == floor(value) || value >= 99.5)
        return 0;
    return value >= 9.95 ? 0 : value >= 0.995 ? 1 : 2;
}

static struct figure with_unit(double value, const char *unit)
{
    struct figure figure;

    snprintf(figure.text, sizeof(figure.text), "%.*f%s", decimals(value), value, unit);
    return figure;
}

struct figure figure_count(double count)
{
    static const char *const units[] = {"M", "G", "T"};
    struct figure figure;
    double value = count;
    size_t unit = 0;

    if (isnan(count))
        return unknown;
    if (count < 999.5)
        return with_unit(count, "");
    if (count < 999999.5) {
        long whole = lround(count);

        snprintf(figure.text, sizeof(figure.text), "%ld,%03ld", whole / 1000, whole % 1000);
        return figure;
    }
    for (value /= 1e6; value >= 999.5 && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
        value /= 1000;
    snprintf(figure.text, sizeof(figure.text), "%.2f%s", value, units[unit]);
    return figure;
}

struct figure figure_bytes(double bytes)
{
    static const char *const units[] = {" B", " kB", " MB", " GB", " TB"};
    double value = bytes;
    size_t unit = 0;

    if (isnan(bytes))
        return unknown;
    for (; value >= 999.5 && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
        value /= 1000;
    return with_unit(unit == 0 ? round(value) : value, units[unit]);
}

struct figure figure_seconds(double seconds)
{
    if (isnan(seconds))
        return unknown;
    if (seconds == 0)
        return with_unit(0, " s");
    if (seconds < 0.0001)
        return with_unit(seconds * 1e6, " us");
    if (seconds < 0.9995)
        return with_unit(seconds * 1000, " ms");
    if (seconds < 59.5)
        return with_unit(seconds, " s");
    if (seconds < 59.5 * 60)
        return with_unit(round(seconds / 60), " min");
    if (seconds < DAYS_FROM_HOURS * 3600)
        return with_unit(seconds / 3600, " h");
    return with_unit(round(seconds / 86400), " days");
}

struct figure figure_percent(double part)
{
    return isnan(part) ? unknown : with_unit(round(part * 100), " %");
}
