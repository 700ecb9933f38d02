/* SPDX-License-Identifier: MIT */
/* json_check: is this JSON?  By RFC 8259, and in UTF-8. */
#ifndef MMGATE_FUZZ_JSON_CHECK_H
#define MMGATE_FUZZ_JSON_CHECK_H

#include <stdbool.h>

/* Is `text` exactly `count` values, with white space between them? */
bool json_check(const char *text, unsigned count);

#endif
