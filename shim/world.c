/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <sys/mman.h>

#include "poison.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct world_page world_page;

/* Ordinary memory, so a child starts with its parent's.  0: not started. */
static uint32_t epoch;

_Static_assert(sizeof(struct world_page) % SYS_PAGE_MAX == 0, "whole pages");

static void set_self(bool active)
{
	atomic_store_explicit(&world_page.self,
			      active ? epoch : epoch | WORLD_PASSIVE,
			      memory_order_release);
}

int world_init(void)
{
	epoch = 1;
	lock_slots = world_page.slots;
	set_self(false);
	return (int)sys_madvise(&world_page, sizeof(world_page),
				MADV_WIPEONFORK);
}

void world_start(bool active)
{
	set_self(active);
}

bool world_arrive(void)
{
	uint32_t none = 0;

	if (epoch == 0)
		return false; /* before our constructor */
	if (!atomic_compare_exchange_strong(&world_page.self, &none,
					    WORLD_ARRIVING))
		return false;
	/* 31 bits of forks in a line are enough for anybody, but 0 and the
	 * flag must not come up. */
	epoch = epoch % 0x7ffffffe + 1;
	return true;
}

void world_arrived(bool active)
{
	set_self(active);
}

uint32_t world_epoch(void)
{
	return epoch;
}
