/* SPDX-License-Identifier: MIT */
/*
 * calls TRACE: makes every wrapped call, good and failing, and says on stdout
 * what came back; writes to TRACE what a log of it must hold, in the columns
 * op,addr,length,arg,flags,fd,offset,result,error.
 *
 * Nothing here maps by itself: all text is kept in static memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNTOUCHED = 77, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };

/* Free on every 64-bit Linux, and the same in every run. */
#define BASE ((char *)0x200000000000)

struct paper {
	size_t used;
	char text[32768];
};

static struct paper trace, said;
static size_t page;

__attribute__((format(printf, 2, 3))) static void put(struct paper *p,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	p->used += (size_t)vsnprintf(p->text + p->used,
				     sizeof(p->text) - p->used, format, args);
	va_end(args);
}

static void flush(const struct paper *p, int fd)
{
	if (write(fd, p->text, p->used) != (ssize_t)p->used)
		_exit(1);
}

/* A number that the kernel gave back, with errno as the call left it. */
static void say(const char *what, long result, int error)
{
	put(&said, "%s: %ld, errno %d\n", what, result, error);
}

static void *map(const char *what, void *addr, size_t length, int prot,
		 int flags, int fd, off_t offset)
{
	void *at;
	int error;

	errno = UNTOUCHED;
	at = mmap(addr, length, prot, flags, fd, offset);
	error = errno;
	if (at == MAP_FAILED)
		say(what, -1, error);
	else
		say(what, addr ? (char *)at - BASE : 0, error);
	put(&trace, "mmap,0x%lx,%zu,%u,%u,%d,%ld,", (unsigned long)addr, length,
	    (unsigned)prot, (unsigned)flags, fd, (long)offset);
	if (at == MAP_FAILED)
		put(&trace, "-1,%d\n", error);
	else
		put(&trace, "0x%lx,0\n", (unsigned long)at);
	return at;
}

/* The end of a line of a call that returns 0 or -1. */
static void outcome(const char *what, int result, int error)
{
	say(what, result, error);
	put(&trace, "%d,%d\n", result, result == -1 ? error : 0);
}

static void unmap(const char *what, void *addr, size_t length)
{
	int result, error;

	errno = UNTOUCHED;
	result = munmap(addr, length);
	error = errno;
	put(&trace, "munmap,0x%lx,%zu,,,,,", (unsigned long)addr, length);
	outcome(what, result, error);
}

static void protect(const char *what, void *addr, size_t length, int prot)
{
	int result, error;

	errno = UNTOUCHED;
	result = mprotect(addr, length, prot);
	error = errno;
	put(&trace, "mprotect,0x%lx,%zu,%u,,,,", (unsigned long)addr, length,
	    (unsigned)prot);
	outcome(what, result, error);
}

static void advise(const char *what, void *addr, size_t length, int advice)
{
	int result, error;

	errno = UNTOUCHED;
	result = madvise(addr, length, advice);
	error = errno;
	put(&trace, "madvise,0x%lx,%zu,%u,,,,", (unsigned long)addr, length,
	    (unsigned)advice);
	outcome(what, result, error);
}

/* Returns the error and leaves errno; DONTNEED is no system call. */
static void posix_advise(const char *what, void *addr, size_t length,
			 int advice)
{
	int result;

	errno = UNTOUCHED;
	result = posix_madvise(addr, length, advice);
	say(what, result, errno);
	if (advice == POSIX_MADV_DONTNEED)
		return;
	put(&trace, "madvise,0x%lx,%zu,%u,,,,%d,%d\n", (unsigned long)addr,
	    length, (unsigned)advice, result ? -1 : 0, result);
}

static void remap(const char *what, void *addr, size_t length,
		  size_t new_length, int flags, void *new_addr)
{
	void *at;
	int error;

	errno = UNTOUCHED;
	at = flags & MREMAP_FIXED
		     ? mremap(addr, length, new_length, flags, new_addr)
		     : mremap(addr, length, new_length, flags);
	error = errno;
	say(what, at == MAP_FAILED ? -1 : (char *)at - BASE, error);
	put(&trace, "mremap,0x%lx,%zu,%zu,%u,,", (unsigned long)addr, length,
	    new_length, (unsigned)flags);
	if (flags & MREMAP_FIXED)
		put(&trace, "0x%lx", (unsigned long)new_addr);
	if (at == MAP_FAILED)
		put(&trace, ",-1,%d\n", error);
	else
		put(&trace, ",0x%lx,0\n", (unsigned long)at);
}

/* Without a key it is mprotect itself. */
static void key_protect(const char *what, void *addr, size_t length, int prot,
			int key)
{
	int result, error;

	errno = UNTOUCHED;
	result = pkey_mprotect(addr, length, prot, key);
	error = errno;
	if (key == -1)
		put(&trace, "mprotect,0x%lx,%zu,%u,,,,", (unsigned long)addr,
		    length, (unsigned)prot);
	else
		put(&trace, "pkey_mprotect,0x%lx,%zu,%u,,%d,,",
		    (unsigned long)addr, length, (unsigned)prot, key);
	outcome(what, result, error);
}

static void check(int good, const char *what)
{
	put(&said, "%s: %s\n", what, good ? "yes" : "NO");
}

static void maps(int fd)
{
	char *file;

	map("map anywhere", NULL, page, PROT_READ, PRIVATE, -1, 0);
	map("map here", BASE, 16 * page, PROT_READ | PROT_WRITE,
	    PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);
	map("map where something is", BASE, page, PROT_READ,
	    PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);
	map("map over it", BASE + 4 * page, page, PROT_READ | PROT_WRITE,
	    PRIVATE | MAP_FIXED, -1, 0);
	file = map("map a file", BASE + 32 * page, page, PROT_READ,
		   MAP_PRIVATE | MAP_FIXED, fd, (off_t)page);
	check(file != MAP_FAILED && file[0] == 'B', "the file's second page");
	map("map nothing", NULL, 0, PROT_READ, PRIVATE, -1, 0);
	map("map a closed descriptor", NULL, page, PROT_READ, MAP_PRIVATE, 999,
	    0);
	map("map an odd offset", NULL, page, PROT_READ, MAP_PRIVATE, fd, 1);
	map("map too much", NULL, (size_t)1 << 62, PROT_READ, PRIVATE, -1, 0);
	map("map without a type", NULL, page, PROT_READ, MAP_ANONYMOUS, -1, 0);
}

static void advice(void)
{
	BASE[0] = 'x';
	advise("give back", BASE, page, MADV_DONTNEED);
	check(BASE[0] == 0, "the page is empty");
	advise("random", BASE, 16 * page, MADV_RANDOM);
	advise("unknown advice", BASE, page, 12345);
	advise("negative advice", BASE, page, -1);
	advise("odd address", BASE + 1, page, MADV_NORMAL);
	advise("nothing there", BASE + 100 * page, page, MADV_DONTNEED);
	advise("no length", BASE, 0, MADV_NORMAL);
	BASE[0] = 'y';
	posix_advise("posix: do not need", BASE, page, POSIX_MADV_DONTNEED);
	check(BASE[0] == 'y', "the page is whole");
	posix_advise("posix: sequential", BASE, page, POSIX_MADV_SEQUENTIAL);
	posix_advise("posix: unknown", BASE, page, 12345);
	posix_advise("posix: nothing there", BASE + 100 * page, page,
		     POSIX_MADV_WILLNEED);
}

static void protections(void)
{
	protect("read only", BASE, page, PROT_READ);
	protect("back", BASE, page, PROT_READ | PROT_WRITE);
	protect("none", BASE + page, 2 * page, PROT_NONE);
	protect("nothing there", BASE + 100 * page, page, PROT_READ);
	protect("odd address", BASE + 1, page, PROT_READ);
	protect("unknown protection", BASE, page, -1);
	key_protect("no key", BASE, page, PROT_READ | PROT_WRITE, -1);
	key_protect("a key that nobody has", BASE, page, PROT_READ, 15);
	key_protect("a key that cannot be", BASE, page, PROT_READ, 4711);
}

static void moves(void)
{
	BASE[8 * page] = 'm';
	remap("shrink", BASE + 8 * page, 4 * page, 2 * page, 0, NULL);
	remap("move", BASE + 8 * page, 2 * page, 2 * page,
	      MREMAP_MAYMOVE | MREMAP_FIXED, BASE + 64 * page);
	check(BASE[64 * page] == 'm', "the data moved along");
	remap("grow", BASE + 64 * page, 2 * page, 3 * page, 0, NULL);
	remap("nothing there", BASE + 100 * page, page, 2 * page, 0, NULL);
	remap("unknown flags", BASE, page, page, 1 << 20, NULL);
	remap("fixed but not free to move", BASE, page, page, MREMAP_FIXED,
	      BASE + 80 * page);
	remap("to nothing", BASE, page, 0, 0, NULL);
	remap("far more than 32 bits", BASE + 64 * page, 3 * page,
	      ((size_t)1 << 62) + page, MREMAP_MAYMOVE, NULL);
}

static void unmaps(void)
{
	unmap("unmap", BASE, page);
	unmap("unmap it again", BASE, page);
	unmap("unmap an odd address", BASE + 1, page);
	unmap("unmap nothing", BASE, 0);
	unmap("unmap the rest", BASE, 128 * page);
}

static int make_file(void)
{
	int fd = memfd_create("calls", 0);
	char one = 'B';

	if (fd == -1 || ftruncate(fd, 2 * (off_t)page) != 0 ||
	    pwrite(fd, &one, 1, (off_t)page) != 1)
		_exit(1);
	return fd;
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 2)
		return 2;
	page = (size_t)sysconf(_SC_PAGESIZE);
	maps(make_file());
	advice();
	protections();
	moves();
	unmaps();
	flush(&said, STDOUT_FILENO);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd == -1)
		return 1;
	flush(&trace, fd);
	return 0;
}
