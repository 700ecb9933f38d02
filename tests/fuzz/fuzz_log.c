/* SPDX-License-Identifier: MIT */
/* One log that may hold anything, through every command that reads logs. */
#include <stdlib.h>

#include "../../tools/cmd.h"
#include "fuzz.h"
#include "forge.h"
#include "stage.h"

static char *path;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stage_begin();
	path = stage_path("77-1700000000000000000.mmgate");
	return 0;
}

/* A log is sound or is refused, in the same way by all. */
static void check_end(struct stage_end end, struct stage_end first)
{
	stage_check(!end.died, "a bad log does not stop a command");
	stage_check(end.status == 0 || end.status == 1, "status 0 or 1");
	stage_check(end.complaints == (unsigned)end.status,
		    "one line for a bad log, none for a good one");
	stage_check(end.status == first.status, "all commands agree");
}

/* A part of a run is refused where no event tells it. */
static void check_part(struct stage_end end, struct stage_end first)
{
	if (end.status == 1 && first.status == 0)
		first.status = 1;
	check_end(end, first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct forge f = {data, size};
	struct stage_end end;

	forge_log(&f, path);
	end = stage_run(cmd_report.run, "report DIR", STAGE_TEXT);
	check_end(end, end);
	check_end(stage_run(cmd_report.run, "report --format json DIR",
			    STAGE_JSON),
		  end);
	check_end(
		stage_run(cmd_export.run, "export --format csv DIR", STAGE_CSV),
		end);
	check_end(stage_run(cmd_export.run, "export --format jsonl DIR",
			    STAGE_JSON_LINES),
		  end);
	check_end(stage_run(cmd_export.run, "export --format folded DIR",
			    STAGE_TEXT),
		  end);
	check_end(stage_run(cmd_export.run, "export --format chrome DIR",
			    STAGE_JSON),
		  end);
	check_end(stage_run(cmd_export.run, "export --format prometheus DIR",
			    STAGE_TEXT),
		  end);
	check_part(stage_run(cmd_report.run,
			     "report --worst 3 --since 0 --until 99999s DIR",
			     STAGE_TEXT),
		   end);
	check_end(stage_run(cmd_report.run,
			    "report --worst 1000 --by size --format json DIR",
			    STAGE_JSON),
		  end);
	check_end(stage_run(cmd_report.run, "report --format html DIR",
			    STAGE_HTML),
		  end);
	return 0;
}
