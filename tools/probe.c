/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "knobs.h"
#include "launch.h"
#include "log.h"
#include "preflight.h"
#include "rundir.h"

/* `key` is the layer's name in a log. */
static const struct {
	const char *name, *key, *hooks;
} layers[PROBE_LAYERS] = {
	[PROBE_SYMBOL] = {"symbol", "symbols", "symbols"},
	[PROBE_LIBC] = {"libc", "libc", "libc"},
	[PROBE_LOADER] = {"ld.so", "ld.so", "libc"},
	[PROBE_SYSCALL] = {"syscall()", "syscall", "all"},
	[PROBE_INLINE] = {"inline", "inline", "all"},
};

/* One start of the command. */
struct trial {
	struct probe *probe;
	const char *hooks; /* MMGATE_HOOKS */
	struct rundir dir;
	struct launch launch;
};

int probe_child(void)
{
	probe_calls();
	return EXIT_DONE;
}

__attribute__((format(printf, 2, 3))) static void fail(struct probe *probe,
						       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(probe->problem, sizeof(probe->problem), format, args);
	va_end(args);
}

/* --- what it left --- */

static bool asks_for(const struct trial *t, int layer)
{
	return strcmp(layers[layer].hooks, t->hooks) == 0;
}

static int take_event(void *context, const struct log_event *event)
{
	struct trial *t = context;
	int layer = probe_layer_of(&event->raw);

	if (event->raw.kind == EVENT_CALL && layer != PROBE_LAYERS &&
	    asks_for(t, layer))
		t->probe->layers[layer].seen |= 1u << event->raw.op;
	return 0;
}

/* Is `word` in a list with commas? */
static bool lists(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == len && memcmp(list, word, len) == 0)
			return true;
	return false;
}

static void take_claims(const struct log_process *p, int layer,
			struct probe_result *result)
{
	char list[128];

	log_setting(p->hooks, layers[layer].key, result->outcome,
		    sizeof(result->outcome));
	for (unsigned op = 0; op < OP_COUNT; op++) {
		log_setting(p->coverage, op_name(op), list, sizeof(list));
		if (lists(list, layers[layer].key))
			result->claimed |= 1u << op;
	}
}

static void read_log(struct trial *t, struct log *log)
{
	if (!log_has_rings(log)) {
		fail(t->probe, "its log has no room for single events: %s",
		     log_process(log)->limits);
		return;
	}
	for (int i = 0; i < PROBE_LAYERS; i++)
		if (asks_for(t, i))
			take_claims(log_process(log), i, &t->probe->layers[i]);
	if (log_each_event(log, take_event, t) != 0)
		fail(t->probe, "its log could not be read to the end");
}

static void fail_trial(const struct trial *t, bool logged)
{
	struct record_dir info;
	const char *why =
		!logged && rundir_read(&t->dir, &info) ? info.unlogged_why : "";

	fail(t->probe,
	     "a program started with the library ended with status %d and left "
	     "%s log%s%s",
	     launch_exit_status(t->launch.status), logged ? "a" : "no",
	     *why != '\0' ? ": " : "", why);
}

static void read_trial(struct trial *t)
{
	bool logged = rundir_logs(&t->dir, 0) != 0;
	struct log_dir *logs;

	if (t->launch.status != 0 || !logged) {
		fail_trial(t, logged);
		return;
	}
	logs = log_dir_open(t->dir.path);
	if (logs->count != 1)
		fail(t->probe, "a program left %zu readable logs, not one",
		     logs->count);
	else
		read_log(t, logs->logs[0]);
	log_dir_close(logs);
}

/* --- starting it --- */

/* Its own settings, not those that may be being examined. */
static void clear_environment(void)
{
	for (size_t i = 0; i < knob_count(); i++)
		unsetenv(knob_at(i)->variable);
}

static void start_trial(struct trial *t)
{
	int error = launch_start(&t->launch);

	if (error != 0) {
		fail(t->probe, "%s cannot be started: %s", t->launch.path,
		     strerror(error));
		return;
	}
	launch_wait(&t->launch);
	read_trial(t);
}

/* Each with logs in a directory of its own. */
static void try_hooks(struct probe *probe, const char *hooks, const char *path,
		      const char *preload, const char *parent)
{
	static char name[] = "mmgate", doctor[] = "doctor",
		    option[] = "--" PROBE_OPTION;
	char *argv[] = {name, doctor, option, NULL};
	char *directory = xasprintf("%s/%s", parent, hooks);
	char *variables[] = {xasprintf("LD_PRELOAD=%s", preload),
			     xasprintf("MMGATE_LOG=%s", directory),
			     xasprintf("MMGATE_HOOKS=%s", hooks), NULL};
	const struct record_dir info = {.magic = RECORD_MAGIC,
					.version = RECORD_VERSION};
	struct trial t = {.probe = probe, .hooks = hooks};

	t.launch.path = path;
	t.launch.argv = argv;
	t.launch.variables = variables;
	rundir_check(&t.dir, directory);
	rundir_make(&t.dir, &info);
	start_trial(&t);
	rundir_close(&t.dir);
	rundir_remove(directory);
	for (char **v = variables; *v != NULL; v++)
		free(*v);
	free(directory);
}

static void try_all(struct probe *probe, const char *library,
		    const char *directory)
{
	static const char *const hooks[] = {"symbols", "libc", "all"};
	char *path = launch_own_path(), *preload;
	struct preflight self;

	preflight_check(&self, path, library);
	preload = launch_preload(library, self.runtimes, NULL);
	clear_environment();
	if (self.status != EXIT_DONE)
		fail(probe, "%s", self.reason);
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		if (probe->problem[0] == '\0')
			try_hooks(probe, hooks[i], path, preload, directory);
	preflight_free(&self);
	free(preload);
	free(path);
}

void probe_run(struct probe *probe, const char *library)
{
	const char *tmp = getenv("TMPDIR");
	char *directory = xasprintf("%s/mmgate-doctor-XXXXXX",
				    tmp != NULL && *tmp == '/' ? tmp : "/tmp");

	*probe = (struct probe){0};
	for (int i = 0; i < PROBE_LAYERS; i++) {
		probe->layers[i].name = layers[i].name;
		probe->layers[i].hooks = layers[i].hooks;
	}
	if (mkdtemp(directory) == NULL) {
		fail(probe, "cannot make %s: %s", directory, strerror(errno));
	} else {
		try_all(probe, library, directory);
		rmdir(directory);
	}
	free(directory);
}
