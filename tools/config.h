/* SPDX-License-Identifier: MIT */
/*
 * config: one of the configurations that are measured beside each other.
 *
 * Its text is words: NAME=VALUE with the names of run's options, such as
 * lock=mutex place=thread; bare, which is without the library; cpus=N, the
 * first N of the CPUs that we may use, or cpus=LIST, such as 0,2-3 (2-2 is
 * CPU 2 alone).  What it does not say is as the environment says, or default.
 * Measured runs have no log, so what belongs to it cannot be said.
 */
#ifndef MMGATE_CONFIG_H
#define MMGATE_CONFIG_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "opts.h"

struct config {
	char *text;  /* as given */
	char *words; /* what the values point into */
	bool bare;
	bool has_cpus;
	cpu_set_t cpus;
	struct opts_settings settings;
};

/* Dies of what it does not understand, in the name of `option`. */
void config_parse(struct config *config, const char *option, const char *text);

void config_free(struct config *config);

/* Is that knob given, here or in the environment, and in force in measured
 * runs? */
bool config_gives(const struct config *config, size_t knob);

/* What a launch's environment needs for it.  `log`: a directory for histograms,
 * or NULL. */
char **config_variables(const struct config *config, const char *library,
			const char *runtimes, const char *log);

/* What it needs to run without the library. */
char **config_bare_variables(void);

/* Is delay all that they differ in? */
bool config_differ_by_delay(const struct config *a, const struct config *b);

/* The delay if it is of one op at most: OP_COUNT and 0 when there is none. */
bool config_delay(const struct config *config, enum op *op, uint64_t *ns);

#endif
