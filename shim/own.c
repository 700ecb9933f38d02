/* SPDX-License-Identifier: MIT */
#include "own.h"

#include <stdbool.h>

#include "wrap.h"

#include "poison.h"

/* What a jump to anywhere takes. */
enum { BEGINNING = 16 };

static const uint8_t ops[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) OP_##NAME,
#include "ops.def"
};

static unsigned char kept[WRAP_ENTRIES][BEGINNING];

void own_keep(void)
{
	for (unsigned i = 0; i < WRAP_ENTRIES; i++) {
		const unsigned char *at = wrap_exports[i];

		for (unsigned k = 0; k < BEGINNING; k++)
			kept[i][k] = at[k];
	}
}

static bool is_kept(unsigned entry)
{
	const unsigned char *at = wrap_exports[entry];

	for (unsigned k = 0; k < BEGINNING; k++)
		if (at[k] != kept[entry][k])
			return false;
	return true;
}

uint8_t own_lost(void)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < WRAP_ENTRIES; i++)
		if (!is_kept(i))
			lost |= 1u << ops[i];
	return (uint8_t)lost;
}
