/* SPDX-License-Identifier: MIT */
#include "instrument.h"

#include "gate_model.h"

#include <string.h>

static enum gate_flaw flaw;

static void abandon(struct lock *lock)
{
	if (flaw != GATE_MUTE)
		lock_abandon(lock);
}

#define lock_abandon abandon
/* Their static data is part of the state. */
#include "../../shim/world.c"
#include "../../shim/gate.c"

static struct {
	uint8_t calls[MODEL_THREADS];
	uint8_t in_kernel[MODEL_THREADS];
	int8_t holders[8]; /* by generation */
	bool holder_gone;  /* a thread left the kernel call by a jump, or died
			    * in it */
	bool struck;       /* or in the middle of something else */
} ghost;

static int calls;

/* Without a step. */
static uint64_t gate_state(void)
{
	uint64_t state;

	memcpy(&state, (char *)&world_page + offsetof(struct world_page, gate),
	       sizeof(state));
	return state;
}

static void check_alone(uint32_t generation)
{
	if (model_forked())
		return;
	if (ghost.holders[generation % 8]++ != 0 && gate_state() == generation)
		model_fail("two calls at once behind one lock");
}

static void body(int thread)
{
	while (ghost.calls[thread] < calls) {
		struct gate_span span = {.op = OP_MUNMAP, .length = 4096};

		ghost.calls[thread]++;
		gate_enter(&span);
		if (span.outcome == OUTCOME_GATED)
			check_alone(span.generation);
		ghost.in_kernel[thread] = 1;
		model_step("is in the kernel", NULL);
		ghost.in_kernel[thread] = 0;
		if (span.outcome == OUTCOME_GATED)
			ghost.holders[span.generation % 8]--;
		if (flaw == GATE_FORGETFUL && ghost.calls[thread] == calls)
			return;
		gate_leave(&span, 0);
	}
}

static int lock_of(const volatile void *word)
{
	for (int i = 0; i < WORLD_LOCKS; i++)
		if (word == &world_page.gate.locks[i].word)
			return i;
	return -1;
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
		    (state >> 8 != 0 ||
		     lock_of(model_sleeps_on(i)) != (int)(state % WORLD_LOCKS)))
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
	memcpy(&world_page, &epoch, sizeof(epoch)); /* its first member */
	gate_new_process = follow_child;
}

void gate_model_fill(struct model *model, enum lock_id lock,
		     int calls_per_thread, enum gate_flaw how)
{
	struct knobs knobs;

	knobs_init(&knobs);
	knobs.lock = (uint8_t)lock;
	knobs.calls = OPS_ALL;
	knobs.max_wait_ns = MODEL_LIMIT_NS;
	gate_init(&knobs, &(struct gate_callers){0});
	calls = calls_per_thread;
	flaw = how;
	model->reset = reset;
	model->body = body;
	model->at_rest = at_rest;
	model->fault = fault;
	model->shared[0] = (struct model_memory){&ghost, sizeof(ghost)};
	model->shared[1] = (struct model_memory){
		&world_page,
		offsetof(struct world_page, gate) + sizeof(world_page.gate)};
	model->shared[2] = (struct model_memory){&epoch, sizeof(epoch)};
	model->local = &this_thread;
	model->local_size = sizeof(this_thread);
	model->locks = world_page.gate.locks;
	model->lock_count = WORLD_LOCKS;
}
