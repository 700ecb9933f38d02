/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "utf8.h"

void utf8_clean(char *to, const char *from, size_t max, char keep)
{
	size_t length, i;

	length = strnlen(from, max);
	memcpy(to, from, length);
	to[length] = '\0';
	for (i = 0; to[i]; i += length) {
		length = utf8_length(to + i);
		if (length > 0 && (to[i] == keep || !utf8_is_control(to + i)))
			continue;
		/* Of a C1 control both bytes go, or one would be left over. */
		memset(to + i, '?', length ? length : 1);
		length = length ? length : 1;
	}
}
