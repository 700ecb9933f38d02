/* SPDX-License-Identifier: MIT */
/* A program or a script that may hold anything, as run and doctor judge it. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../tools/die.h"
#include "../../tools/preflight.h"
#include "fuzz.h"
#include "stage.h"

static char *path;
static bool looked; /* the file was found and opened, whatever came of it */

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
	(void)argv;
	preflight_check(&p, path, NULL);
	preflight_arguments(&p, (char *[]){path, NULL}, NULL);
	looked = p.path != NULL;
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
	looked = false;
	end = stage_run(judge, "judge", STAGE_TEXT);
	stage_check(!end.died, "it does not stop the command");
	stage_check(looked, "the program is looked at");
	return 0;
}
