/* SPDX-License-Identifier: MIT */
/*
 * leaver: maps 10 blocks by malloc; a SIGUSR1 meanwhile makes it leave that by
 * a jump and go on with the next.  Prints how many it got.
 */
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 10, BYTES = 1 << 20 };

static sigjmp_buf back;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

int main(void)
{
	void *volatile block;
	volatile int got = 0;

	signal(SIGUSR1, leave);
	mallopt(M_MMAP_THRESHOLD, BYTES / 2);
	for (volatile int i = 0; i < BLOCKS; i++) {
		if (sigsetjmp(back, 1) != 0)
			continue;
		block = malloc(BYTES);
		got += block != NULL;
	}
	printf("%d blocks\n", got);
	return 0;
}
