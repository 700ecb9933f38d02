/* SPDX-License-Identifier: MIT */
#include "rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66
#endif

enum { CODE = PROT_READ | PROT_EXEC };

/* A page of this file, executable and ours alone; MAP_FAILED, and errno. */
static void *map_code(size_t size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *page;

	if (fd == -1)
		return mmap(NULL, size, CODE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	page = mmap(NULL, size, CODE, MAP_PRIVATE, fd, 0);
	close(fd);
	return page;
}

/* 0 or the errno. */
static int write_in_place(char *page, size_t size)
{
	volatile char *byte = page;

	if (mprotect(page, size, CODE | PROT_WRITE) != 0)
		return errno;
	*byte = (char)(*byte + 1);
	return mprotect(page, size, CODE) != 0 ? errno : 0;
}

static int write_by_proc(const char *page)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), error = 0;
	char byte = (char)(*page + 1);

	if (fd == -1)
		return errno;
	if (pwrite(fd, &byte, 1, (off_t)(uintptr_t)page) != 1)
		error = errno;
	close(fd);
	return error;
}

/* Both errors; the second only where the first is one. */
static void try_both(int *in_place, int *by_proc)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *page = map_code(size);

	*by_proc = 0;
	if (page == MAP_FAILED) {
		*in_place = *by_proc = errno;
		return;
	}
	*in_place = write_in_place(page, size);
	if (*in_place != 0)
		*by_proc = write_by_proc(page);
	munmap(page, size);
}

enum rewrite_way rewrite_try(void)
{
	int in_place, by_proc;

	try_both(&in_place, &by_proc);
	if (in_place == 0)
		return REWRITE_IN_PLACE;
	return by_proc == 0 ? REWRITE_BY_PROC : REWRITE_REFUSED;
}

static bool is_hardened(void)
{
	return prctl(PR_GET_MDWE, 0, 0, 0, 0) > 0;
}

const char *rewrite_obstacle(void)
{
	static char line[256];
	int in_place, by_proc, n;

	try_both(&in_place, &by_proc);
	line[0] = '\0';
	if (in_place == 0)
		return line;
	n = snprintf(line, sizeof(line), "mprotect: %s%s", strerror(in_place),
		     is_hardened() ? " (PR_SET_MDWE, as by systemd's "
				     "MemoryDenyWriteExecute)"
				   : "");
	if (by_proc != 0)
		snprintf(line + n, sizeof(line) - (size_t)n,
			 "; /proc/self/mem: %s", strerror(by_proc));
	return line;
}
