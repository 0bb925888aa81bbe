/* base/figure.h - numbers in a form for people, in ASCII.
 *
 *     printf("%s behind\n", figure_seconds(lag_s).text);
 *
 * NAN means unknown and is shown as a hyphen. */
#pragma once

struct figure {
    char text[24];
};

/* 0, 3.5, 12,558 or 4.21M. */
struct figure figure_count(double count);
/* 512 B, 4.2 kB, 84 MB. */
struct figure figure_bytes(double bytes);
/* 12 us, 0.21 ms, 4.5 s, 12 min, 3.4 h, 9 days. */
struct figure figure_seconds(double seconds);
struct figure figure_percent(double part);
