/* SPDX-License-Identifier: MIT */
/*
 * wrap_number: wrapped calls by the number of the system call, as code that
 * makes them itself knows them.
 */
#include <errno.h>

#include "place.h"
#include "sys.h"
#include "wrap.h"

#include "poison.h"

enum {
	NUMBER_MMAP = __NR_mmap,
	NUMBER_MUNMAP = __NR_munmap,
	NUMBER_MPROTECT = __NR_mprotect,
	NUMBER_MADVISE = __NR_madvise,
	NUMBER_MREMAP = __NR_mremap,
	NUMBER_PKEY_MPROTECT = __NR_pkey_mprotect,
};

const struct wrap_entry wrap_entries[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) {#symbol, OP_##NAME, NUMBER_##NAME},
#include "ops.def"
};

enum op wrap_op(long number)
{
	switch (number) {
	case __NR_mmap:
		return OP_MMAP;
	case __NR_munmap:
		return OP_MUNMAP;
	case __NR_mprotect:
		return OP_MPROTECT;
	case __NR_madvise:
		return OP_MADVISE;
	case __NR_mremap:
		return OP_MREMAP;
	case __NR_brk:
		return OP_BRK;
	case __NR_pkey_mprotect:
		return OP_PKEY_MPROTECT;
	default:
		return OP_COUNT;
	}
}

/* How the record sees a brk: it fails by not moving. */
static long brk_outcome(uint64_t wanted, long end)
{
	return wanted != 0 && (uint64_t)end != wanted ? -ENOMEM : end;
}

long wrap_call(long number, const uint64_t a[6], const void *caller)
{
	struct span span = {.op = wrap_op(number),
			    .caller = wrap_caller(caller),
			    .addr = a[0],
			    .length = number == __NR_brk ? 0 : a[1]};
	long result;

	switch (span.op) {
	case OP_MMAP:
		span.arg = (uint32_t)a[2];
		span.flags = (uint32_t)a[3];
		span.fd = (int32_t)a[4];
		span.offset = a[5];
		break;
	case OP_MREMAP:
		span.arg = (uint32_t)a[2];
		span.fd = (int32_t)(a[2] >> 32);
		span.flags = (uint32_t)a[3];
		span.offset = a[4];
		break;
	case OP_PKEY_MPROTECT:
		span.fd = (int32_t)a[3];
		span.arg = (uint32_t)a[2];
		break;
	case OP_MPROTECT:
	case OP_MADVISE:
		span.arg = (uint32_t)a[2];
		break;
	default:
		break;
	}
	place_enter(&span);
	result = sys_call6(number, (long)span.hint, (long)a[1], (long)a[2],
			   (long)a[3], (long)a[4], (long)a[5]);
	place_leave(&span,
		    span.op == OP_BRK ? brk_outcome(a[0], result) : result);
	return result;
}
