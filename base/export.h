/* base/export.h - marks what the shared libraries offer; everything else stays hidden. */
#pragma once

#define SL_EXPORT __attribute__((visibility("default")))
