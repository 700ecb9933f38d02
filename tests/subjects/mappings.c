/* SPDX-License-Identifier: MIT */
/*
 * mappings: says how many mappings it has, and how many of them are writable
 * and executable.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char text[1 << 20];

static size_t read_maps(void)
{
	size_t used = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);

	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	return used;
}

int main(void)
{
	int lines = 0, open_ones = 0;

	if (read_maps() == 0)
		return 1;
	for (char *line = strtok(text, "\n"); line != NULL;
	     line = strtok(NULL, "\n")) {
		const char *rights = strchr(line, ' ');

		lines++;
		open_ones +=
			rights != NULL && rights[2] == 'w' && rights[3] == 'x';
	}
	printf("mappings: %d, writable and executable: %d\n", lines, open_ones);
	return 0;
}
