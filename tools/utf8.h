/* SPDX-License-Identifier: MIT */
/*
 * utf8: which bytes are one printable character.
 *
 * For text that came from a file, a name or a program: it may be anything.
 */
#ifndef MMGATE_UTF8_H
#define MMGATE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes (1 to 4) of the character at the '\0'-terminated `s`; 0 when it is no
 * shortest-form UTF-8 or a surrogate.  pre: *s is not '\0'. */
static inline size_t utf8_length(const char *s)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *u = (const unsigned char *)s;
	uint32_t c;
	size_t length, i;

	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	length = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	c = u[0] & (0x7fu >> length);
	for (i = 1; i < length; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return length;
}

/* Is the character at `s` a control character, one of the C1 set included,
 * which terminals obey?  pre: utf8_length(s) is not 0. */
static inline int utf8_is_control(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] == 0xc2)
		return u[1] < 0xa0;
	return u[0] < 0x20 || u[0] == 0x7f;
}

/* Copies up to `max` bytes of `from`, which may lack its end, to the
 * max + 1 bytes at `to`; what is no text becomes '?'.  `keep` is a control
 * character to let through, or 0. */
void utf8_clean(char *to, const char *from, size_t max, char keep);

#endif
