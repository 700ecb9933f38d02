/* SPDX-License-Identifier: MIT */
/*
 * gate_model: the real gate.c and world.c as a model.
 *
 * In a file of its own, since what shim/ may not use it may not either.
 */
#ifndef MMGATE_GATE_MODEL_H
#define MMGATE_GATE_MODEL_H

#include "explore.h"
#include "knobs.h"

/* Negative controls. */
enum gate_flaw {
	GATE_SOUND,
	GATE_MUTE,      /* opens, and does not tell who sleeps */
	GATE_FORGETFUL, /* a thread ends inside */
};

void gate_model_fill(struct model *model, enum lock_id lock,
		     int calls_per_thread, enum gate_flaw how);

#endif
