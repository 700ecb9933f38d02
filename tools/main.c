/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "die.h"
#include "launch.h"
#include "opts.h"

/* clang-format off */
static const struct command *const commands[] = {
	&cmd_run,
	&cmd_report,
	&cmd_export,
	&cmd_set,
	&cmd_doctor,
	&cmd_compare,
	&cmd_tune,
};
/* clang-format on */

/* Known, and refused until they are built. */
static const char *const later[] = {"top"};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char intro[] =
	"mmgate puts a gate in front of the kernel's lock on a process's "
	"address space, and\n"
	"says how long mmap, munmap, mprotect, madvise and relatives wait and "
	"work.\n"
	"\n"
	"usage: mmgate COMMAND [options]\n"
	"       mmgate help [COMMAND]\n"
	"       mmgate --version\n"
	"\n";

static void print_help(FILE *out)
{
	fputs(intro, out);
	for (size_t i = 0; i < COUNT_OF(commands); i++)
		fprintf(out, "  %-8s %s\n", commands[i]->name,
			commands[i]->summary);
	fputs("\nExample:\n  mmgate run --lock mutex -- xz -T4 -k big.tar\n"
	      "  mmgate report\n",
	      out);
}

/* The command of that name, or death. */
static const struct command *find(const char *name)
{
	struct opts_guess guess = {.word = name};

	for (size_t i = 0; i < COUNT_OF(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
		opts_guess(&guess, commands[i]->name);
	}
	for (size_t i = 0; i < COUNT_OF(later); i++)
		if (strcmp(later[i], name) == 0)
			die(EXIT_USAGE, "%s: not in this version", name);
	if (guess.best != NULL)
		die(EXIT_USAGE, "unknown command %s; did you mean %s?", name,
		    guess.best);
	die(EXIT_USAGE, "unknown command %s; see `mmgate help`", name);
}

static int help(const char *name)
{
	if (name != NULL)
		opts_print_help(find(name));
	else
		print_help(stdout);
	return EXIT_DONE;
}

static int dispatch(int argc, char **argv)
{
	const char *word = argv[1];

	if (strcmp(word, "--version") == 0) {
		puts("mmgate " MMGATE_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return help(NULL);
	if (strcmp(word, "help") == 0)
		return help(argv[2]);
	if (*word == '-')
		die(EXIT_USAGE, "unknown option %s; see `mmgate help`", word);
	if (argc > 2 && strcmp(argv[2], "--help") == 0)
		return help(word);
	return find(word)->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status;

	launch_fill_descriptors();
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	status = dispatch(argc, argv);
	finish_stdout();
	return status;
}
