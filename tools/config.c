/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "launch.h"

enum { LINE = 1024, VALUE = 4200 };

static const char blanks[] = " \t\n";

/* What is being parsed, for messages. */
struct parse {
	struct config *config;
	const char *option;
};

static _Noreturn void refuse(const struct parse *p, const char *word,
			     const char *why)
{
	die(EXIT_USAGE, "%s '%s': %s: %s", p->option, p->config->text, word,
	    why);
}

static const char *const of_logs[] = {
	"o", "log-size", "log-total", "events", "stacks", "stack-size", NULL,
};

static bool is_of_logs(const char *name)
{
	const char *const *n = of_logs;

	while (*n != NULL && strcmp(name, *n) != 0)
		n++;
	return *n != NULL;
}

/* --- cpus --- */

static void take_first(struct config *c, uint64_t count)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &c->cpus) && count > 0)
			count--;
		else
			CPU_CLR(cpu, &c->cpus);
}

/* "2" or "0-3", `len` long. */
static bool parse_range(const char *s, size_t len, uint64_t *from, uint64_t *to)
{
	const char *dash = memchr(s, '-', len);
	size_t first = dash != NULL ? (size_t)(dash - s) : len;

	if (text_parse_u64(s, first, from) != 0)
		return false;
	*to = *from;
	if (dash != NULL && text_parse_u64(dash + 1, len - first - 1, to) != 0)
		return false;
	return *from <= *to && *to < CPU_SETSIZE;
}

static bool parse_list(const char *value, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (;;) {
		size_t len = text_word(value);
		uint64_t from, to;

		if (!parse_range(value, len, &from, &to))
			return false;
		for (; from <= to; from++)
			CPU_SET((int)from, set);
		if (value[len] == '\0')
			return true;
		value += len + 1;
	}
}

static void take_list(const struct parse *p, const char *word,
		      const char *value)
{
	cpu_set_t *allowed = &p->config->cpus, wanted, both;

	if (!parse_list(value, &wanted))
		refuse(p, word,
		       "give a number of CPUs, or a list such as "
		       "0,2-3");
	CPU_AND(&both, &wanted, allowed);
	if (!CPU_EQUAL(&both, &wanted))
		refuse(p, word, "not all of these CPUs may be used here");
	*allowed = both;
}

static void parse_cpus(const struct parse *p, const char *word,
		       const char *value)
{
	struct config *c = p->config;
	char why[64];
	uint64_t count;
	int most;

	if (sched_getaffinity(0, sizeof(c->cpus), &c->cpus) != 0)
		die_errno(EXIT_USAGE, "cannot tell which CPUs may be used");
	most = CPU_COUNT(&c->cpus);
	c->has_cpus = true;
	if (text_parse_u64(value, strlen(value), &count) != 0) {
		take_list(p, word, value);
		return;
	}
	snprintf(why, sizeof(why), "1 to %d may be used here", most);
	if (count < 1 || count > (uint64_t)most)
		refuse(p, word, why);
	take_first(c, count);
}

/* --- words --- */

static size_t find_knob(const char *name)
{
	size_t i = 0;

	while (i < knob_count() && strcmp(knob_at(i)->option, name) != 0)
		i++;
	return i;
}

static _Noreturn void refuse_name(const struct parse *p, const char *word,
				  const char *name)
{
	struct opts_guess guess = {.word = name};
	char why[128] =
		"not bare, cpus=... or NAME=VALUE with an option of run";

	opts_guess(&guess, strchr(word, '=') != NULL ? "cpus" : "bare");
	for (size_t i = 0; i < knob_count(); i++)
		if (strchr(word, '=') != NULL &&
		    !is_of_logs(knob_at(i)->option))
			opts_guess(&guess, knob_at(i)->option);
	if (guess.best != NULL)
		snprintf(why, sizeof(why), "unknown; did you mean %s?",
			 guess.best);
	refuse(p, word, why);
}

static void set_knob(const struct parse *p, size_t knob, const char *value)
{
	char line[LINE];
	struct text complaint = text_over(line, sizeof(line));

	if (opts_settings_set(&p->config->settings, knob, value, OPTS_OPTION,
			      &complaint) != 0)
		die(EXIT_USAGE, "%s '%s': %s", p->option, p->config->text,
		    line);
}

/* `word` stays, as values point into it. */
static void parse_word(const struct parse *p, char *word)
{
	char *equals = strchr(word, '='), *name;

	if (strcmp(word, "bare") == 0) {
		p->config->bare = true;
		return;
	}
	if (equals == NULL)
		refuse_name(p, word, word);
	name = xasprintf("%.*s", (int)(equals - word), word);
	if (is_of_logs(name))
		refuse(p, word,
		       "measured runs have no log, no events and no "
		       "stacks");
	if (strcmp(name, "cpus") == 0)
		parse_cpus(p, word, equals + 1);
	else if (find_knob(name) < knob_count())
		set_knob(p, find_knob(name), equals + 1);
	else
		refuse_name(p, word, name);
	free(name);
}

static bool has_options(const struct config *c)
{
	for (size_t i = 0; i < knob_count(); i++)
		if (c->settings.given[i].source == OPTS_OPTION)
			return true;
	return false;
}

static char *trimmed(const char *text)
{
	size_t len;

	text += strspn(text, blanks);
	len = strlen(text);
	while (len > 0 && strchr(blanks, text[len - 1]) != NULL)
		len--;
	return xasprintf("%.*s", (int)len, text);
}

void config_parse(struct config *config, const char *option, const char *text)
{
	const struct parse p = {config, option};
	char *at = NULL;

	*config = (struct config){.text = trimmed(text)};
	if (*config->text == '\0')
		die(EXIT_USAGE, "%s '%s': empty; say lock=none, or bare",
		    option, text);
	opts_settings_init(&config->settings);
	opts_settings_environment(&config->settings);
	config->words = xstrdup(text);
	for (char *word = strtok_r(config->words, blanks, &at); word != NULL;
	     word = strtok_r(NULL, blanks, &at))
		parse_word(&p, word);
	if (config->bare && has_options(config))
		refuse(&p, "bare",
		       "there is no library for the other words; "
		       "only cpus goes with it");
}

void config_free(struct config *config)
{
	free(config->text);
	free(config->words);
	free(config->settings.given);
}

/* --- what a launch needs --- */

char **config_bare_variables(void)
{
	char **variables = xcalloc(2, sizeof(*variables));
	char *rest = launch_preload_without(getenv("LD_PRELOAD"));

	variables[0] = *rest != '\0' ? xasprintf("LD_PRELOAD=%s", rest)
				     : xstrdup("LD_PRELOAD");
	free(rest);
	return variables;
}

bool config_gives(const struct config *config, size_t knob)
{
	return config->settings.given[knob].value != NULL &&
	       !is_of_logs(knob_at(knob)->option);
}

char **config_variables(const struct config *config, const char *library,
			const char *runtimes, const char *log)
{
	char *preload, **variables;
	size_t n = 0;

	if (config->bare)
		return config_bare_variables();
	preload = launch_preload(library, runtimes, getenv("LD_PRELOAD"));
	variables = xcalloc(knob_count() + 5, sizeof(*variables));
	for (size_t i = 0; i < knob_count(); i++)
		if (config_gives(config, i))
			variables[n++] =
				xasprintf("%s=%s", knob_at(i)->variable,
					  config->settings.given[i].value);
	variables[n++] = xstrdup("MMGATE_EVENTS=off");
	variables[n++] = xstrdup("MMGATE_STACKS=off");
	variables[n++] = log != NULL ? xasprintf("MMGATE_LOG=%s", log)
				     : xstrdup("MMGATE_LOG");
	variables[n] = xasprintf("LD_PRELOAD=%s", preload);
	free(preload);
	return variables;
}

/* --- what if --- */

static void show(const struct config *c, size_t knob, char value[VALUE])
{
	struct text out = text_over(value, VALUE);

	knob_at(knob)->show(&c->settings.knobs, &out);
}

static bool same_knob(const struct config *a, const struct config *b,
		      size_t knob)
{
	char x[VALUE] = "", y[VALUE] = "";

	show(a, knob, x);
	show(b, knob, y);
	return strcmp(x, y) == 0;
}

bool config_differ_by_delay(const struct config *a, const struct config *b)
{
	if (a->bare || b->bare || a->has_cpus != b->has_cpus ||
	    (a->has_cpus && !CPU_EQUAL(&a->cpus, &b->cpus)))
		return false;
	for (size_t i = 0; i < knob_count(); i++)
		if (strcmp(knob_at(i)->option, "delay") != 0 &&
		    !same_knob(a, b, i))
			return false;
	return true;
}

static enum op find_op(const char *name, size_t len)
{
	unsigned op = 0;

	while (op < OP_COUNT && !text_is(name, len, op_name(op)))
		op++;
	return (enum op)op;
}

bool config_delay(const struct config *config, enum op *op, uint64_t *ns)
{
	size_t knob = find_knob("delay");
	const char *value = config->settings.given[knob].value, *colon;

	*op = OP_COUNT;
	*ns = 0;
	if (value == NULL || strcmp(value, "none") == 0)
		return true;
	colon = strchr(value, ':');
	if (colon == NULL || value[text_word(value)] != '\0')
		return false;
	*op = find_op(value, (size_t)(colon - value));
	return text_parse_duration(colon + 1, strlen(colon + 1), ns) == 0 &&
	       *op != OP_COUNT;
}
