/* SPDX-License-Identifier: MIT */
/*
 * ops: the wrapped calls by number and name, from ops.def.
 *
 * Part of the pure bottom: the tools include it too.
 */
#ifndef MMGATE_OPS_H
#define MMGATE_OPS_H

#include <stdint.h>

enum op {
#define OP(NAME, name, gated) OP_##NAME,
#include "ops.def"
	OP_COUNT
};

/* The ops that MMGATE_CALLS holds by default, a bit each. */
#define OP(NAME, name, gated) | ((gated) ? 1u << OP_##NAME : 0u)
enum {
	OPS_DEFAULT = 0u
#include "ops.def"
	,
	OPS_ALL = (1u << OP_COUNT) - 1
};

/* Name of an op as the log, the report and MMGATE_CALLS spell it. */
static inline const char *op_name(unsigned op)
{
	static const char *const names[] = {
#define OP(NAME, name, gated) #name,
#include "ops.def"
	};

	return op < OP_COUNT ? names[op] : "unknown";
}

#endif
