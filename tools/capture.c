/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "die.h"

/* Of a pipe, so that a program seldom waits for us; of what is taken at once,
 * so that who writes without end does not keep us from anything else. */
enum { PIPE = 1 << 20, FIRST_ROOM = 64 << 10 };

bool capture_open(struct capture *c)
{
	int ends[2];

	*c = (struct capture){.reader = -1, .writer = -1};
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	c->reader = ends[0];
	c->writer = ends[1];
	/* Where that is more than a user may have, the usual size does. */
	fcntl(c->writer, F_SETPIPE_SZ, PIPE);
	return fcntl(c->reader, F_SETFL, O_NONBLOCK) == 0;
}

/* Room for more, and for the zero byte behind it. */
static void grow(struct capture *c)
{
	if (c->size + 1 < c->room)
		return;
	c->room = c->room == 0 ? FIRST_ROOM : 2 * c->room;
	c->text = xrealloc(c->text, c->room);
}

static size_t take_some(struct capture *c)
{
	ssize_t n;

	grow(c);
	n = read(c->reader, c->text + c->size, c->room - c->size - 1);
	if (n <= 0)
		return 0;
	for (size_t i = c->size; i < c->size + (size_t)n; i++)
		if (c->text[i] == '\0')
			c->text[i] = '\n';
	c->size += (size_t)n;
	c->text[c->size] = '\0';
	c->full = c->size >= CAPTURE_MOST;
	return (size_t)n;
}

size_t capture_take(struct capture *c)
{
	size_t taken = 0, n = 1;

	while (c->reader != -1 && !c->full && n > 0 && taken < PIPE) {
		n = take_some(c);
		taken += n;
	}
	return taken;
}

static void close_end(int *end)
{
	if (*end != -1)
		close(*end);
	*end = -1;
}

void capture_finish(struct capture *c)
{
	while (capture_take(c) > 0)
		;
	close_end(&c->reader);
	close_end(&c->writer);
}

const char *capture_text(const struct capture *c)
{
	return c->size > 0 ? c->text : "";
}

void capture_free(struct capture *c)
{
	free(c->text);
	*c = (struct capture){.reader = -1, .writer = -1};
}
