/* SPDX-License-Identifier: MIT */
/* fuzz: what libFuzzer and its sanitizers call. */
#ifndef MMGATE_FUZZ_FUZZ_H
#define MMGATE_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Are leaks no finding here? */
int __lsan_is_turned_off(void);

#endif
