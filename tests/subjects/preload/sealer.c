/* SPDX-License-Identifier: MIT */
/*
 * sealer: a library that seals libc's code, as a hardened libc may do itself.
 *
 * To be linked with -z initfirst and named last in LD_PRELOAD, so that it comes
 * before all others.  Ends the program with 77 when this kernel cannot seal.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

enum { CANNOT = 77 };

/* The executable segment of the module whose function lies at `address`. */
static int seal(struct dl_phdr_info *info, size_t size, void *address)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + h->p_vaddr,
			  to = from + h->p_memsz;

		if (h->p_type != PT_LOAD || (h->p_flags & PF_X) == 0 ||
		    (uintptr_t)address < from || (uintptr_t)address >= to)
			continue;
		to = (to + 4095) & ~(uintptr_t)4095;
		if (syscall(SYS_mseal, from, to - from, 0) != 0)
			_exit(CANNOT);
		return 1;
	}
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	if (dl_iterate_phdr(seal, dlsym(RTLD_NEXT, "mmap")) == 0)
		_exit(CANNOT);
}
