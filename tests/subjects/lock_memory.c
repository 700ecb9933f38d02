/* SPDX-License-Identifier: MIT */
/* lock_memory: locks a page, all that is mapped, and what will be; prints how
 * that went. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static char page[4096];

static void say(const char *what, int result)
{
	printf("%s: %s\n", what, strerror(result != 0 ? errno : 0));
}

int main(void)
{
	say("a page", mlock(page, sizeof(page)));
	say("all", mlockall(MCL_CURRENT));
	say("none", munlockall());
	say("future", mlockall(MCL_FUTURE));
	return 0;
}
