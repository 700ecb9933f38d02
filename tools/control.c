/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "die.h"

enum {
	STEP_MS = 5,
	ANSWER_STEPS =
		1500 / STEP_MS, /* a program that calls answers at once */
	LOCK_STEPS = 2 * ANSWER_STEPS, /* the other one may wait for its own */
	CONTROL_AT = offsetof(struct record_header, control),
	CHECK = offsetof(struct record_control, check),
};

static void wait_a_step(void)
{
	const struct timespec step = {0, STEP_MS * 1000000};

	nanosleep(&step, NULL);
}

/* --- the log --- */

static bool refuse(char **why, char *line)
{
	*why = line;
	return false;
}

static bool find_log(struct control *c, const char *directory, uint32_t pid,
		     char **why)
{
	char *line;

	c->path = log_dir_newest(directory, pid, &line);
	if (c->path)
		return true;
	if (log_pid_ended(pid))
		*why = xasprintf("there is no process %u, and %s", pid, line);
	else
		*why = xasprintf("%s; --dir names the one that it was started "
				 "with (-o, MMGATE_LOG)",
				 line);
	free(line);
	return false;
}

/* Only the program's own user may write there, and root. */
static bool open_file(struct control *c, bool change, uint32_t pid, char **why)
{
	c->fd = open(c->path, (change ? O_RDWR : O_RDONLY) | O_NOFOLLOW |
				      O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (c->fd >= 0)
		return true;
	if (errno == EACCES || errno == EPERM)
		return refuse(why, xasprintf("%s: %s: process %u is another "
					     "user's; only that user, or root, "
					     "may change its settings",
					     c->path, strerror(errno), pid));
	return refuse(why, xasprintf("%s: %s", c->path, strerror(errno)));
}

static bool read_log(struct control *c, char **why)
{
	char what[256];

	if (c->log)
		log_close(c->log);
	c->log = log_open_new(c->path, what);
	if (!c->log)
		return refuse(why, xasprintf("%s: %s", c->path, what));
	return true;
}

static bool is_running(const struct control *c)
{
	return log_process_runs(log_process(c->log));
}

/* One `set` at a time, as each repeats what the last one asked for. */
static bool lock_file(struct control *c, char **why)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	for (int i = 0; fcntl(c->fd, F_OFD_SETLK, &all) != 0; i++) {
		if ((errno != EAGAIN && errno != EACCES) || i == LOCK_STEPS)
			return refuse(why,
				      xasprintf("%s: another `mmgate set` is "
						"at it: %s",
						c->path, strerror(errno)));
		wait_a_step();
	}
	return true;
}

static bool read_request(struct control *c, char **why)
{
	ssize_t n = pread(c->fd, &c->request, sizeof(c->request), CONTROL_AT);

	if (n == sizeof(c->request))
		return true;
	return refuse(why, xasprintf("%s: cannot be read: %s", c->path,
				     n < 0 ? strerror(errno) : "truncated"));
}

bool control_open(struct control *c, const char *directory, uint32_t pid,
		  bool change, char **why)
{
	*c = (struct control){.fd = -1};
	if (find_log(c, directory, pid, why) &&
	    open_file(c, change, pid, why) && (!change || lock_file(c, why)) &&
	    read_log(c, why)) {
		if (is_running(c)) {
			if (read_request(c, why))
				return true;
		} else {
			*why = xasprintf("process %u has ended, or executes "
					 "another program by now",
					 pid);
		}
	}
	control_close(c);
	return false;
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->log)
		log_close(c->log);
	free(c->path);
	*c = (struct control){.fd = -1};
}

/* --- what is asked for --- */

static size_t index_of(const struct knob *knob)
{
	return (size_t)(knob - knob_at(0));
}

/* Takes what is understood: the file may hold anything. */
static void take_line(struct control_values *values, const char *line)
{
	size_t name = strcspn(line, "=");
	const struct knob *knob = knob_find(line, name);
	struct knobs scratch;
	char **value;

	knobs_init(&scratch);
	if (line[name] != '=' || !knob || !knob_is_live(knob) ||
	    knob->parse(&scratch, line + name + 1) != 0)
		return;
	value = &values->of[index_of(knob)];
	free(*value);
	*value = xstrdup(line + name + 1);
}

struct control_values control_pending(const struct control *c)
{
	struct control_values values = {
		xcalloc(knob_count(), sizeof(*values.of))};
	char text[sizeof(c->request.text)], *rest = text, *line;

	memcpy(text, c->request.text, sizeof(text));
	if (c->request.serial == c->request.answered ||
	    c->request.check != record_control_check(c->request.serial, text,
						     sizeof(text)) ||
	    text[sizeof(text) - 1] != '\0')
		return values;
	while ((line = strsep(&rest, "\n")))
		take_line(&values, line);
	return values;
}

void control_free(struct control_values *values)
{
	for (size_t i = 0; i < knob_count(); i++)
		free(values->of[i]);
	free(values->of);
	values->of = NULL;
}

const char *control_no_room(const struct control *c, const struct knob *knob,
			    const char *value)
{
	const struct record_pool *pool = log_stacks(c->log)->pool;
	struct knobs wanted;

	knobs_init(&wanted);
	wanted.events = EVENTS_OFF;
	knob->parse(&wanted, value);
	if (wanted.events != EVENTS_OFF && !log_has_rings(c->log))
		return "its log has no room for single events: it was started "
		       "with --events off, or with too small a log";
	if ((wanted.stacks_every != 0 && pool[POOL_EVERY].slots == 0) ||
	    (wanted.stacks_slow && pool[POOL_SLOW].slots == 0))
		return "its log has no room for these stacks: it was started "
		       "without them (--stacks), or with too small a log";
	return NULL;
}

/* --- the request --- */

static int write_text(const struct control_values *values, char *text,
		      size_t size)
{
	struct text out = text_over(text, size);

	memset(text, 0, size);
	for (size_t i = 0; i < knob_count(); i++) {
		if (!values->of[i])
			continue;
		knob_name(knob_at(i), &out);
		text_put(&out, "=");
		text_put(&out, values->of[i]);
		text_put(&out, "\n");
	}
	return out.cut ? -E2BIG : 0;
}

static int write_at(int fd, const void *from, size_t size, off_t at)
{
	ssize_t n = pwrite(fd, from, size, at);

	if (n < 0)
		return -errno;
	return n == (ssize_t)size ? 0 : -EIO;
}

int control_ask(struct control *c, const struct control_values *values)
{
	struct record_control *r = &c->request;
	int error = write_text(values, r->text, sizeof(r->text));

	if (error)
		return error;
	r->serial = r->serial + 1 != 0 ? r->serial + 1 : 1;
	r->check = record_control_check(r->serial, r->text, sizeof(r->text));
	/* The serial last: then the rest is there. */
	error = write_at(c->fd, (const char *)r + CHECK, sizeof(*r) - CHECK,
			 CONTROL_AT + CHECK);
	if (error)
		return error;
	return write_at(c->fd, &r->serial, sizeof(r->serial), CONTROL_AT);
}

enum control_answer control_wait(struct control *c)
{
	uint32_t serial = c->request.serial;
	enum control_answer answer = CONTROL_SILENT;
	char *why;

	for (int i = 0; i < ANSWER_STEPS; i++) {
		if (!read_request(c, &why))
			die(EXIT_FAILED, "%s", why);
		if (c->request.answered == serial)
			break;
		if (!is_running(c))
			return CONTROL_ENDED;
		wait_a_step();
	}
	if (c->request.answered == serial)
		answer = c->request.refused ? CONTROL_REFUSED : CONTROL_DONE;
	if (!read_log(c, &why))
		die(EXIT_FAILED, "%s", why);
	return answer;
}
