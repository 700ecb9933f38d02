/* SPDX-License-Identifier: MIT */
/*
 * rewrite: may a process change its own code here?
 *
 * What the library does to libc's functions, tried on a private copy of a page
 * of this command's own code.  What binds this process (PR_SET_MDWE, a seccomp
 * filter, SELinux, a hidden /proc) binds what it starts.
 */
#ifndef MMGATE_REWRITE_H
#define MMGATE_REWRITE_H

enum rewrite_way {
	REWRITE_IN_PLACE, /* by mprotect */
	REWRITE_BY_PROC,  /* by /proc/self/mem only */
	REWRITE_REFUSED,
};

enum rewrite_way rewrite_try(void);

/* What stands in the way of mprotect and of /proc/self/mem, one line; "" when
 * mprotect works.  Static memory. */
const char *rewrite_obstacle(void);

#endif
