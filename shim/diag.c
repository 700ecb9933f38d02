/* SPDX-License-Identifier: MIT */
#include "diag.h"

#include "sys.h"
#include "text.h"

#include "poison.h"

void diag_line(const char *line)
{
	static int lines; /* the library starts in one thread */
	char buffer[1024];
	struct text out = text_over(buffer, sizeof(buffer) - 1);

	if (lines++ >= DIAG_MAX)
		return;
	text_put(&out, "mmgate: ");
	text_put(&out, line);
	*out.at++ = '\n';
	sys_write(2, buffer, (size_t)(out.at - buffer));
}
