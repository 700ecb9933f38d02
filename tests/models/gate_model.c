/* SPDX-License-Identifier: MIT */
#include "instrument.h"

#include "gate_model.h"

#include <string.h>

#include "locks.h"

static enum gate_flaw flaw;

static void mute_abandon(struct lock *lock)
{
	(void)lock;
}

static const struct lock_kind *kind_or_flaw(enum lock_id id)
{
	static struct lock_kind mute;

	if (flaw != GATE_MUTE)
		return locks_kind(id);
	mute = *locks_kind(id);
	mute.abandon = mute_abandon;
	return &mute;
}

#define locks_kind kind_or_flaw
/* Their static data is part of the state. */
#include "../../shim/world.c"
#include "../../shim/gate.c"
#undef locks_kind

static struct {
	uint8_t calls[MODEL_THREADS];
	uint8_t in_kernel[MODEL_THREADS];
	int8_t holders[8]; /* by generation */
	bool holder_gone;  /* a thread left the kernel call by a jump, or died
			    * in it */
	bool struck;       /* or in the middle of something else */
} ghost;

static int calls;
static enum lock_id id;

/* The gate under test; the others are not used. */
static struct world_gate *gate(void)
{
	return &world_page.gate[id];
}

/* Without a step. */
static uint64_t gate_state(void)
{
	uint64_t state;

	memcpy(&state, gate(), sizeof(state));
	return state;
}

/* All that may be inside together weigh ALL. */
enum { ALL = 6 };

static int8_t weight(bool shares)
{
	if (id == LOCK_limit)
		return (int8_t)(ALL / lock_permits);
	return id == LOCK_rw && shares ? 1 : ALL;
}

static int8_t *holders(const struct span *span)
{
	return &ghost.holders[generation_of(span->inside) % 8];
}

static void check_alone(const struct span *span)
{
	if (model_forked())
		return;
	*holders(span) += weight(span->shared);
	if (*holders(span) > ALL && gate_state() == generation_of(span->inside))
		model_fail("two calls at once behind one lock");
}

static void body(int thread)
{
	while (ghost.calls[thread] < calls) {
		/* One in three may not share. */
		bool shares = (thread + ghost.calls[thread]) % 3 != 0;
		struct span span = {.op = OP_MADVISE,
				    .length = 4096,
				    .arg = shares ? MADV_DONTNEED
						  : MADV_NORMAL};

		ghost.calls[thread]++;
		gate_enter(&span);
		if (span.outcome == OUTCOME_GATED)
			check_alone(&span);
		ghost.in_kernel[thread] = 1;
		model_step("is in the kernel", NULL);
		ghost.in_kernel[thread] = 0;
		if (span.outcome == OUTCOME_GATED)
			*holders(&span) -= weight(span.shared);
		if (flaw == GATE_FORGETFUL && ghost.calls[thread] == calls)
			return;
		gate_leave(&span, 0);
	}
}

/* Tickets of fifo, without a step. */
static uint32_t served(const struct lock *lock)
{
	uint32_t ticket;

	memcpy(&ticket, &lock->queue, sizeof(ticket));
	return ticket;
}

static uint32_t drawn(const struct lock *lock)
{
	uint32_t ticket;

	memcpy(&ticket, (const char *)lock + offsetof(struct lock, queue) + 4,
	       sizeof(ticket));
	return ticket;
}

/* May a thread sleep on this word while the gate is closed? */
static bool is_in_use(const volatile void *word, uint64_t generation)
{
	const struct lock *lock = generation_lock(gate(), generation);

	if (id != LOCK_fifo || word == &lock->word)
		return word == &lock->word;
	for (uint32_t t = served(lock); t != drawn(lock); t++)
		if (word == &world_page.slots[t % LOCK_SLOTS])
			return true;
	return false;
}

static void at_rest(void)
{
	uint64_t state = gate_state();

	if (model_forked())
		model_fail("a child waits, and it has no other thread");
	if (ghost.struck)
		return;
	for (int i = 0; i < MODEL_THREADS; i++)
		if (model_status(i) == MODEL_ASLEEP &&
		    (state >> 8 != 0 || !is_in_use(model_sleeps_on(i), state)))
			model_fail("asleep on a lock that was given up");
	if (!ghost.holder_gone)
		model_fail("everybody sleeps and nobody will wake them");
}

static void fault(int thread, enum model_fault what, bool asleep)
{
	if (what == MODEL_FORKED)
		memset(&world_page, 0, sizeof(world_page));
	else if (ghost.in_kernel[thread])
		ghost.holder_gone = true;
	else if (asleep)
		/* It may take a wake-up with it. */
		ghost.holder_gone = true;
	else
		ghost.struck = true;
	ghost.in_kernel[thread] = 0;
}

static bool follow_child(void)
{
	return true;
}

static void reset(void)
{
	memset(&ghost, 0, sizeof(ghost));
	memset(&world_page, 0, sizeof(world_page));
	memset(&this_thread, 0, sizeof(this_thread));
	epoch = 1;
	lock_slots = world_page.slots;
	memcpy(&world_page, &epoch, sizeof(epoch)); /* its first member */
	gate_new_process = follow_child;
}

void gate_model_fill(struct model *model, enum lock_id lock,
		     int calls_per_thread, enum gate_flaw how)
{
	struct knobs knobs;

	knobs_init(&knobs);
	id = lock;
	knobs.lock = (uint8_t)lock;
	knobs.limit = (uint32_t)model->threads - 1; /* not all at once */
	knobs.calls = OPS_ALL;
	knobs.max_wait_ns = MODEL_LIMIT_NS;
	gate_init(&knobs);
	calls = calls_per_thread;
	flaw = how;
	model->reset = reset;
	model->body = body;
	model->at_rest = at_rest;
	model->fault = fault;
	model->shared[0] = (struct model_memory){&ghost, sizeof(ghost)};
	model->shared[1] = (struct model_memory){
		&world_page,
		offsetof(struct world_page, slots) + sizeof(world_page.slots)};
	model->shared[2] = (struct model_memory){&epoch, sizeof(epoch)};
	model->local = &this_thread;
	model->local_size = sizeof(this_thread);
	model->locks = gate()->locks;
	model->lock_count = WORLD_LOCKS;
}
