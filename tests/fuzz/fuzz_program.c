/* SPDX-License-Identifier: MIT */
/* A program or a script that may hold anything, as run and doctor judge it. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../tools/die.h"
#include "../../tools/preflight.h"
#include "fuzz.h"
#include "stage.h"

static char *path;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stage_begin();
	path = stage_path("program");
	return 0;
}

static int judge(int argc, char **argv)
{
	struct preflight p;
	size_t i;

	(void)argc;
	preflight_check(&p, argv[1], NULL);
	preflight_arguments(&p, argv + 1, NULL);
	stage_check((p.status != EXIT_DONE) == (p.reason[0] != '\0'),
		    "a refusal has its reason");
	if (p.status != EXIT_DONE)
		warn("%s", p.reason);
	for (i = 0; i < p.note_count; i++)
		warn("%s", p.notes[i]);
	preflight_free(&p);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	struct stage_end end;

	stage_check(fd != -1 && write(fd, data, size) == (ssize_t)size,
		    "the program is written");
	close(fd);
	end = stage_run(judge, "judge DIR/program", STAGE_TEXT);
	stage_check(!end.died, "it does not stop the command");
	return 0;
}
