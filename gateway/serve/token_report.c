#include "gateway/serve/token_report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/config/config_files.h"
#include "gateway/front/token_words.h"
#include "gateway/serve/front_config.h"

static struct sl_slice read_token(char *room, size_t size)
{
    size_t end = fread(room, 1, size, stdin), begin = 0;

    while (end > 0 && strchr(" \t\r\n", room[end - 1]))
        end--;
    while (begin < end && strchr(" \t\r\n", room[begin]))
        begin++;
    return sl_slice(room + begin, end - begin);
}

int token_report(const struct config *config, struct failure *reterr)
{
    char room[2 * TOKEN_MAX_BYTES]; /* a longer text is too long in any case */
    struct buffer words = BUFFER_INIT;
    struct front_config front = {.allows_bad_sets = false};
    enum token_fault fault;
    int r;

    r = config_check_files(config, reterr);
    if (r == 0)
        r = front_config_read(&front, config, reterr);
    if (r < 0)
        return r;
    fault = token_words(front.policy, read_token(room, sizeof(room)), clock_wall_ms(), &words);
    if (fault != TOKEN_OK)
        r = failure_set(reterr, -EACCES, "the token is refused");
    if (fwrite(words.data, 1, words.size, stdout) != words.size || fflush(stdout) != 0)
        r = failure_set(reterr, -EIO, "cannot write what is to be said");
    buffer_done(&words);
    front_config_done(&front);
    return r;
}
