/* SPDX-License-Identifier: MIT */
/*
 * A map of code that a program made, of any bytes: what it names is clean, and
 * what is kept of it names the same.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/die.h"
#include "../../tools/jit.h"
#include "../../tools/utf8.h"
#include "forge.h"
#include "fuzz.h"
#include "stage.h"

enum { MOST = 8 };

static char *map_path, *log_path;
static int directory;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *path;

	(void)argc;
	(void)argv;
	stage_begin();
	map_path = stage_path("map");
	log_path = stage_path("log");
	path = stage_path(".");
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(path);
	stage_check(directory != -1, "the directory opens");
	return 0;
}

static void write_file(const char *path, const struct forge *f)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	stage_check(fd != -1 && write(fd, f->at, f->left) == (ssize_t)f->left,
		    "the map is written");
	close(fd);
}

/* Sorted, as they are asked for. */
static size_t take_addresses(struct forge *f, uint64_t *addresses)
{
	size_t count = forge_byte(f) % MOST + 1, i;
	uint64_t last = 0, step;

	for (i = 0; i < count; i++) {
		step = forge_number(f);
		last = step < UINT64_MAX - last ? last + step : UINT64_MAX;
		addresses[i] = last;
	}
	return count;
}

static void check_clean(const char *name)
{
	size_t size = strlen(name) + 1;
	char *clean = xcalloc(1, size);

	utf8_clean(clean, name, size - 1, 0);
	stage_check(size > 1 && !strcmp(clean, name), "a name is clean");
	free(clean);
}

static void check_kept(const struct jit *jit, const uint64_t *addresses,
		       size_t count)
{
	struct jit *kept;
	size_t i;

	stage_check(jit_write(jit, directory, "log") == 0, "names are kept");
	kept = jit_of_log(log_path);
	for (i = 0; i < count; i++) {
		const char *name = jit_name(jit, addresses[i]);
		const char *again = jit_name(kept, addresses[i]);

		stage_check(!name == !again, "what is named stays named");
		if (name) {
			check_clean(name);
			stage_check(!strcmp(name, again), "by the same name");
		}
	}
	jit_free(kept);
}

/* What stands in its place may be any bytes, too. */
static void read_as_kept(const struct forge *f, const char *path,
			 uint64_t address)
{
	struct jit *jit;

	write_file(path, f);
	jit = jit_of_log(log_path);
	if (jit_name(jit, address))
		check_clean(jit_name(jit, address));
	jit_free(jit);
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct forge f = {data, size};
	uint64_t addresses[MOST];
	size_t count = take_addresses(&f, addresses);
	char *kept = xasprintf("%s" JIT_SUFFIX, log_path);
	struct jit *jit;

	write_file(map_path, &f);
	jit = jit_of_map(map_path, 0, addresses, count);
	if (jit)
		check_kept(jit, addresses, count);
	jit_free(jit);
	unlink(kept);
	read_as_kept(&f, kept, addresses[0]);
	free(kept);
	return 0;
}
