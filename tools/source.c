/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source.h"

static const char *look(struct source *s)
{
	struct stat st;

	if (fstat(s->fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	s->size = (uint64_t)st.st_size;
	s->device = st.st_dev;
	s->inode = st.st_ino;
	return NULL;
}

const char *source_open(struct source *s, const char *path)
{
	const char *wrong;

	memset(s, 0, sizeof(*s));
	/* O_NONBLOCK: a fifo must not keep us. */
	s->fd = open(path,
		     O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s->fd < 0)
		return errno == ELOOP ? "is a symbolic link; they are not "
					"followed"
				      : strerror(errno);
	wrong = look(s);
	if (wrong)
		source_close(s);
	return wrong;
}

void source_close(struct source *s)
{
	close(s->fd);
	s->fd = -1;
}

int source_read(struct source *s, void *to, size_t length, uint64_t at)
{
	char *out = to;
	ssize_t n;

	if (at > INT64_MAX - length)
		return -EOVERFLOW;
	while (length > 0) {
		n = pread(s->fd, out, length, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		out += n;
		at += (uint64_t)n;
		length -= (size_t)n;
	}
	memset(out, 0, length);
	return 0;
}

/* Where the data at or behind `at` begin.  A file system that cannot tell has
 * data everywhere. */
static uint64_t data_from(const struct source *s, uint64_t at)
{
	off_t data;

	if (at >= s->size)
		return UINT64_MAX;
	data = lseek(s->fd, (off_t)at, SEEK_DATA);
	if (data >= 0)
		return (uint64_t)data;
	return errno == ENXIO ? UINT64_MAX : at;
}

uint64_t source_hole(struct source *s, uint64_t at)
{
	if (at < s->hole_from || at >= s->hole_to) {
		s->hole_from = at;
		s->hole_to = data_from(s, at);
	}
	return s->hole_to - at;
}
