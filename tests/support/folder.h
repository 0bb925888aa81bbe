/* tests/support/folder.h - temporary folders of test programs. */
#pragma once

/* Removes it and all that is in it. */
void folder_remove(const char *path);
