/* tests/support/folder.h - folders of a test program's own. */
#pragma once

/* Removes it and all that is in it. */
void folder_remove(const char *path);
