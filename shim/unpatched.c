/* SPDX-License-Identifier: MIT */
/*
 * unpatched: in the place of all patch files, when HOOKS_PATCH=0.
 */
#include "patch.h"

#include "own.h"
#include "text.h"
#include "wrap.h"

#include "poison.h"

void patch_apply(enum knob_hooks hooks, const struct patch_process *process,
		 struct patch_report *report)
{
	(void)hooks;
	(void)process;
	*report = (struct patch_report){0};
	own_keep();
	for (int i = LAYER_LIBC; i <= LAYER_LOADER; i++) {
		struct text out =
			text_over(report->reason[i], sizeof(report->reason[i]));

		text_put(&out, "built without patching");
	}
}

bool patch_recheck(struct patch_report *report)
{
	uint8_t before = report->lost;

	report->lost |= own_lost() | wrap_taken();
	return report->lost != before;
}
