/* SPDX-License-Identifier: MIT */
/*
 * scan_files: threads map, read and unmap many small files.
 *
 * What search tools and virus scanners do.  The data come from the page
 * cache, so mapping and unmapping is much of the work; reading the same files
 * with read() is the remedy to compare with.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES 256
#define MIN_BYTES ((size_t)4 * 1024)
#define MAX_BYTES ((size_t)64 * 1024)

static const char *const variant_names[] = {"map", "read", NULL};
enum { VARIANT_MAP, VARIANT_READ };

static unsigned int variant;
static const char *parent;
static char directory[4096];
static int directory_fd = -1;
static volatile sig_atomic_t made; /* files */
static volatile sig_atomic_t ending;

static size_t size_of(unsigned int file)
{
	uint64_t spread = (MAX_BYTES - MIN_BYTES) / sizeof(uint64_t);
	uint64_t mixed = (file + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return MIN_BYTES + mixed % spread * sizeof(uint64_t);
}

static uint64_t word_of(unsigned int file, size_t at)
{
	return ((uint64_t)file << 32) + at;
}

/* The file's number in decimal; also in a signal handler. */
static const char *name_of(unsigned int file, char name[12])
{
	char *digit = name + 11;

	*digit = '\0';
	do
		*--digit = (char)('0' + file % 10);
	while (file /= 10);
	return digit;
}

static void remove_files(void)
{
	char name[12];

	while (made)
		unlinkat(directory_fd, name_of((unsigned int)--made, name), 0);
	if (directory_fd >= 0)
		rmdir(directory);
}

static void end_by_signal(int signal)
{
	ending = 1;
	remove_files();
	kill(getpid(), signal); /* its action is the default again */
}

static void remove_at_end(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {
		.sa_handler = end_by_signal,
		.sa_flags = (int)SA_RESETHAND,
	};
	struct sigaction old;

	atexit(remove_files);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static void make_directory(void)
{
	if (!parent)
		parent = getenv("TMPDIR");
	if (!parent || !*parent)
		parent = "/tmp";
	if ((size_t)snprintf(directory, sizeof(directory),
			     "%s/scan_files.XXXXXX",
			     parent) >= sizeof(directory))
		common_refuse("the directory's name is too long");
	if (!mkdtemp(directory))
		common_refuse("cannot make '%s': %s, give a directory with -p",
			      directory, strerror(errno));
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd < 0) {
		rmdir(directory);
		common_refuse("cannot open '%s'", directory);
	}
}

static void write_file(int fd, unsigned int file)
{
	static uint64_t words[MAX_BYTES / sizeof(uint64_t)];
	size_t bytes = size_of(file), done = 0;

	for (size_t at = 0; at < bytes / sizeof(*words); at++)
		words[at] = word_of(file, at);
	while (done < bytes) {
		ssize_t got =
			write(fd, (const char *)words + done, bytes - done);

		if (got < 0)
			common_fail("cannot write to '%s': %s", directory,
				    strerror(errno));
		done += (size_t)got;
	}
}

static void make_files(void)
{
	make_directory();
	remove_at_end();
	for (unsigned int file = 0; file < FILES; file++) {
		char name[12];
		int fd;

		made++; /* first: a signal may end us as soon as it is there */
		fd = openat(directory_fd, name_of(file, name),
			    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			common_fail("cannot make a file in '%s': %s", directory,
				    strerror(errno));
		write_file(fd, file);
		close(fd);
	}
}

static void scan(unsigned int file, const uint64_t *words)
{
	for (size_t at = 0; at < size_of(file) / sizeof(*words); at++)
		if (words[at] != word_of(file, at))
			common_fail("file %u: word %zu is %#" PRIx64
				    ", not %#" PRIx64 " as written",
				    file, at, words[at], word_of(file, at));
}

static void scan_mapped(unsigned int file, int fd)
{
	size_t bytes = size_of(file);
	void *words;
	int result;

	common_enter_call();
	words = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	common_leave_call();
	if (words == MAP_FAILED)
		common_fail("mmap of file %u: %s", file, strerror(errno));
	scan(file, words);
	common_enter_call();
	result = munmap(words, bytes);
	common_leave_call();
	if (result)
		common_fail("munmap of file %u: %s", file, strerror(errno));
}

static void scan_read(unsigned int file, int fd, uint64_t *buffer)
{
	char *at = (char *)buffer;
	size_t left = size_of(file);

	while (left > 0) {
		ssize_t got = read(fd, at, left);

		if (got <= 0)
			common_fail("cannot read file %u: %s", file,
				    got ? strerror(errno) : "it is too short");
		at += got;
		left -= (size_t)got;
	}
	scan(file, buffer);
}

static int open_file(unsigned int file)
{
	char name[12];
	int fd =
		openat(directory_fd, name_of(file, name), O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	while (ending)
		pause(); /* the files are gone, and so is this process soon */
	common_fail("cannot open file %u: %s", file, strerror(errno));
}

static void work(struct common_worker *worker)
{
	uint64_t buffer[MAX_BYTES / sizeof(uint64_t)];

	while (common_more(worker)) {
		uint64_t turn = worker->index * 31 + worker->done;
		unsigned int file = (unsigned int)(turn % FILES);
		int fd = open_file(file);

		if (variant == VARIANT_MAP)
			scan_mapped(file, fd);
		else
			scan_read(file, fd, buffer);
		close(fd);
	}
}

static void take_option(int letter, const char *value)
{
	if (letter == 'p')
		parent = value;
	else
		variant = common_choice(letter, value, variant_names);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "scan_files",
	.about =
"Makes 256 files of 4 to 64 KiB in a new directory, which it removes at the\n"
"end.  Each loop of a thread opens one, maps it, checks every word of it,\n"
"unmaps and closes it.  Calls: 1 mmap and 1 munmap a loop; none with -v read.\n",
	.letters = "v:p:",
	.usage = "\n                  [-v VARIANT] [-p DIR]",
	.options =
"  -v VARIANT   map, read: how a file is read (default map)\n"
"  -p DIR       where the new directory is made (default $TMPDIR, or /tmp)\n",
	.example = "-t 4 -d 2.5 -v read",
	.option = take_option,
	.threads = 8,
	.iterations = 10000,
	.mutex = true,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	make_files();
	printf("scan_files: %s of a file of %zu to %zu KiB, by %s\n\n",
	       common_size(), MIN_BYTES / 1024, MAX_BYTES / 1024,
	       variant_names[variant]);
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
