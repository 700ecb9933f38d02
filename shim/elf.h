/* SPDX-License-Identifier: MIT */
/*
 * elf: symbols of a module that is mapped into this process.
 *
 * Reads the mapped image alone: no loader lock, no file, no allocation.
 */
#ifndef MMGATE_ELF_H
#define MMGATE_ELF_H

/* Address of the defined symbol `name` of the image whose ELF header lies at
 * `image`, by its hash table; NULL when it has none. */
void *elf_symbol(const void *image, const char *name);

#endif
