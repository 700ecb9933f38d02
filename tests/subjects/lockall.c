/* SPDX-License-Identifier: MIT */
/*
 * lockall: keeps all of its memory, now and later, from being swapped out.
 * Prints what the call returned, and errno.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

int main(void)
{
	int result = mlockall(MCL_CURRENT | MCL_FUTURE);

	printf("mlockall: %d, errno %d\n", result, result ? errno : 0);
	return 0;
}
