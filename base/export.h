/* base/export.h - marks the symbols that the shared libraries export; all others are hidden. */
#pragma once

#define SL_EXPORT __attribute__((visibility("default")))
