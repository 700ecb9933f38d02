/* SPDX-License-Identifier: MIT */
/* Maps of code that programs made: sound ones, and others. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/die.h"
#include "../../tools/jit.h"
#include "check.h"
#include "make_log.h"

enum { MANY = 100000 };

static char *path;

static void write_map(const char *text, size_t length)
{
	FILE *map = fopen(path, "w");

	if (!map || fwrite(text, 1, length, map) != length || fclose(map)) {
		perror(path);
		exit(1);
	}
}

/* The name at `address` by a map of this text, in static memory. */
static const char *name_in(const char *text, uint64_t address)
{
	static char name[1024];
	const char *found;
	struct jit *jit;

	write_map(text, strlen(text));
	jit = jit_of_map(path, 0, &address, 1);
	found = jit_name(jit, address);
	snprintf(name, sizeof(name), "%s", found ? found : "");
	jit_free(jit);
	return found ? name : NULL;
}

static void test_lines(void)
{
	static const struct {
		const char *what, *text;
		uint64_t address;
		const char *name;
	} rows[] = {
		{"the first address", "1000 10 f\n", 0x1000, "f"},
		{"the last one", "1000 10 f\n", 0x100f, "f"},
		{"one before", "1000 10 f\n", 0xfff, NULL},
		{"one behind", "1000 10 f\n", 0x1010, NULL},
		{"as the JDK writes it",
		 "0x0000000000001000 0x0000000000000010 f\n", 0x100f, "f"},
		{"large digits", "ABC0 1F f\n", 0xabde, "f"},
		{"x alone", "x1000 10 f\n0x 10 f\n", 0x1000, NULL},
		{"names have spaces", "1000 10 f of g:1\n", 0x1000, "f of g:1"},
		{"the last line counts", "1000 10 old\n1000 10 new\n", 0x1000,
		 "new"},
		{"as far as it reaches", "1000 10 old\n1000 8 new\n", 0x1008,
		 "old"},
		{"a line that is not ended", "1000 10 f", 0x1000, "f"},
		{"the top of memory", "fffffffffffff000 1000 f\n", UINT64_MAX,
		 "f"},
		{"beyond it", "fffffffffffff000 2000 f\n", 0x10, NULL},
		{"all of it", "0 ffffffffffffffff f\n", 0x1000, "f"},
		{"an empty file", "", 0x1000, NULL},
		{"no size", "1000 0 f\n", 0x1000, NULL},
		{"no name", "1000 10 \n1000 10\n1000\n\n", 0x1000, NULL},
		{"no numbers", "x 10 f\n1000 x f\n-1 10 f\n", 0x1000, NULL},
		{"too long a number", "10000000000000000 10 f\n", 0, NULL},
		{"strange bytes", "1000 10 a\033[31m\xff\302\233\n", 0x1000,
		 "a?[31m???"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_text(rows[i].name, name_in(rows[i].text, rows[i].address),
			   "%s", rows[i].what);
}

static void test_files(void)
{
	const uint64_t address = 0x1000;
	char *link = xasprintf("%s.link", path);
	struct stat st;

	write_map("1000 10 f\n", 10);
	stat(path, &st);
	check_true(!jit_of_map(path,
			       ((uint64_t)st.st_mtim.tv_sec + 1) * 1000000000,
			       &address, 1),
		   "a map of an earlier process is none");
	check_true(!symlink(path, link) && !jit_of_map(link, 0, &address, 1),
		   "a link is not followed");
	unlink(link);
	check_true(!mkfifo(link, 0600) && !jit_of_map(link, 0, &address, 1),
		   "a fifo is no map");
	unlink(link);
	check_true(!jit_of_map(link, 0, &address, 1), "nor is what is not");
	check_true(geteuid() != 0 || (!chown(path, 65534, 65534) &&
				      !jit_of_map(path, 0, &address, 1)),
		   "another user's is none");
	unlink(path);
	free(link);
}

/* Each address is named once, so no number of lines is too dear. */
static void test_many(void)
{
	uint64_t *addresses = xcalloc(MANY, sizeof(*addresses));
	char *text = NULL;
	struct jit *jit;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	for (i = 0; i < MANY; i++) {
		addresses[i] = 1 + i;
		fprintf(out, "1 ffffffff f%zu\n", i);
	}
	fclose(out);
	write_map(text, size);
	jit = jit_of_map(path, 0, addresses, MANY);
	check_text("f99999", jit_name(jit, 1), "the last line");
	check_text("f99999", jit_name(jit, MANY), "of many that cover all");
	jit_free(jit);
	free(text);
	free(addresses);
}

static void test_kept(void)
{
	static const uint64_t addresses[] = {0x10, 0x1000, 0x1008, 0x2000};
	int directory = open(make_log_directory(), O_RDONLY | O_DIRECTORY);
	const char *log = strrchr(make_log_path(), '/') + 1;
	struct jit *jit;

	write_map("1000 10 f\n1008 8 g h\n2000 1 i\n", 31);
	jit = jit_of_map(path, 0, addresses, 4);
	check_int(0, jit_write(jit, directory, log), "names are kept");
	check_true(jit_write(jit, directory, log) != 0, "and not replaced");
	jit_free(jit);
	jit = jit_of_log(make_log_path());
	check_text(NULL, jit_name(jit, 0x10), "what had no name has none");
	check_text("f", jit_name(jit, 0x1000), "the first is read again");
	check_text("g h", jit_name(jit, 0x1008), "and the second");
	check_text("i", jit_name(jit, 0x2000), "and the last");
	check_text(NULL, jit_name(jit, 0x1001), "others have none");
	jit_free(jit);
	close(directory);
	check_text(NULL, jit_name(jit_of_log("/nowhere/at.all"), 1),
		   "a log without them");
}

int main(void)
{
	path = xasprintf("%s/map", make_log_directory());
	test_lines();
	test_files();
	test_many();
	test_kept();
	free(path);
	return check_done();
}
