#include "base/failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(struct failure *reterr, int error, const char *format, ...)
{
    va_list args;

    if (reterr) {
        va_start(args, format);
        vsnprintf(reterr->text, sizeof(reterr->text), format, args);
        va_end(args);
    }
    return error;
}
