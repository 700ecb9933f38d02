/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stddef.h>

#include "rules.h"
#include "turn.h"
#include "ways.h"

#include "poison.h"

uint32_t request_seen;

static struct turn following;

/* False: it is not understood. */
static bool change_settings(struct thread *t, char *text)
{
	struct knobs before = *rules_settings();

	if (!rules_change(text))
		return false;
	ways_follow(t, &before);
	log_settings(rules_settings());
	return true;
}

void request_follow(struct thread *t)
{
	/* Not on a signal handler's small stack. */
	static char text[sizeof(((struct record_control *)NULL)->text)];
	uint32_t serial;

	if (!turn_begin(&following))
		return;
	serial = log_request();
	if (serial != __atomic_load_n(&request_seen, __ATOMIC_RELAXED)) {
		log_answer(serial,
			   !log_read_request(serial, text, sizeof(text)) ||
				   !change_settings(t, text));
		__atomic_store_n(&request_seen, serial, __ATOMIC_RELAXED);
	}
	turn_end(&following);
}

void request_begin_child(void)
{
	__atomic_store_n(&request_seen, 0, __ATOMIC_RELAXED);
	turn_end(&following);
}
