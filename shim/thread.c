/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <stdatomic.h>

#include "clock.h"
#include "log.h"
#include "sys.h"

#include "poison.h"

__thread struct thread this_thread;

_Static_assert(sizeof(struct thread) <= 64, "static TLS is scarce");

void thread_register(struct thread *t, uint32_t self)
{
	struct thread fresh = {.patience = 1};

	if (log_is_open()) {
		fresh.tid = sys_gettid();
		fresh.stripe = (uint8_t)log_thread();
		fresh.left = clock_ticks();
		fresh.random = (fresh.left ^ (uint64_t)fresh.tid << 32) | 1;
	}
	/* Whole before it counts: a handler's call may come in between. */
	*t = fresh;
	atomic_signal_fence(memory_order_seq_cst);
	t->self = self;
}
