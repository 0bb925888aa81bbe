/* replay.c - passes the files in the folders named as arguments to a fuzzer, once each: the test of
 * builds without libFuzzer. A folder that does not exist counts as empty. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"

static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, room = 0;

    if (!file) {
        perror(path);
        return false;
    }
    do {
        if (size == room) {
            room = room ? room * 2 : 4096;
            data = realloc(data, room);
            if (!data)
                abort();
        }
        size += fread(data + size, 1, room - size, file);
    } while (!feof(file) && !ferror(file));
    fclose(file);
    data = realloc(data, size ? size : 1); /* so that asan notices reads past the end */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return true;
}

static bool replay_folder(const char *folder, size_t *count)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    bool good = true;

    if (!entries)
        return true;
    while ((entry = readdir(entries))) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        good &= replay_file(path);
        ++*count;
    }
    closedir(entries);
    return good;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    bool good = true;

    for (int i = 1; i < argc; i++)
        good &= replay_folder(argv[i], &count);
    printf("%zu inputs\n", count);
    return good && count > 0 ? 0 : 1;
}
