/* SPDX-License-Identifier: MIT */
/*
 * libc: what a process's start looks like under one libc or the other.
 *
 * libc_glibc.c or libc_musl.c, as the library is built for.  For the
 * constructor, unless it is said.
 */
#ifndef MMGATE_LIBC_H
#define MMGATE_LIBC_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf.h"

/* Is it the one that the library is built for?  musl's loader takes itself for
 * glibc, which passes constructors other arguments.  Before all else. */
bool libc_is_this(void);

/* The environment; argument: the constructor's third. */
char **libc_environment(char **argument);

/* The auxiliary vector, or what the library asks of it. */
const Elf64_auxv_t *libc_auxv(char **environment);

/* What the kernel put on the main thread's stack begins there or a little
 * below; argv: the constructor's second argument. */
uintptr_t libc_first_stack(char **argv, const Elf64_auxv_t *auxv);

/* Does this libc map its threads' stacks so?  At any time. */
bool libc_maps_stacks(uint32_t protection, uint32_t flags);

/* Does the thread pointer point to what libc made for a thread?  False: it is
 * the program's own, and so is what lies around it.  At any time. */
bool libc_has_thread(void);

/* libc's image; headers, count: the program's own.  loader: the image at
 * AT_BASE. */
bool libc_find(const Elf64_Phdr *headers, unsigned long count,
	       const void *loader, struct elf_image *image);

/* Has `handler` called in each child that libc's fork() makes.  False: this
 * libc cannot. */
bool libc_at_fork(const struct elf_image *libc, void (*handler)(void));

#endif
