/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "die.h"

#define LIBRARY "libmmgate.so"

void launch_fill_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++) {
		/* What is written to none is an error all the same. */
		int mode = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;

		if (fcntl(fd, F_GETFD) == -1 &&
		    open("/dev/null", mode | O_CLOEXEC) == -1)
			_exit(EXIT_USAGE);
	}
}

char *launch_own_path(void)
{
	/* Without /proc, by the name we were started with. */
	char *path = realpath("/proc/self/exe", NULL);
	unsigned long name = getauxval(AT_EXECFN);

	if (path == NULL && name != 0)
		path = realpath((const char *)name, NULL);
	return path;
}

/* In the build directory, or as installed. */
static char *find_library(const char *directory)
{
	static const char *const places[] = {
		"/" LIBRARY, "/../lib/mmgate/" LIBRARY, "/../lib/" LIBRARY};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char *name = xasprintf("%s%s", directory, places[i]);
		char *path = realpath(name, NULL);

		free(name);
		if (path != NULL)
			return path;
	}
	return NULL;
}

char *launch_library(char why[512])
{
	char *own = launch_own_path(), *library;

	if (own == NULL) {
		snprintf(why, 512, "cannot tell where mmgate itself lies: %s",
			 strerror(errno));
		return NULL;
	}
	library = find_library(dirname(own));
	if (library == NULL) {
		snprintf(why, 512,
			 LIBRARY " is neither in %s nor in ../lib/mmgate or "
				 "../lib beside it; build or install it there",
			 own);
	} else if (strpbrk(library, " :$") != NULL) {
		snprintf(why, 512,
			 "%s: a library path with a space, colon or dollar "
			 "cannot be preloaded; move it",
			 library);
		free(library);
		library = NULL;
	}
	free(own);
	return library;
}

static bool is_runtime(const char *entry, size_t len)
{
	static const char *const globs[] = {"lib*san.so*", "*/lib*san.so*",
					    "libclang_rt.*", "*/libclang_rt.*"};
	char *name = xasprintf("%.*s", (int)len, entry);
	bool found = false;

	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++)
		found |= text_glob(globs[i], text_len(globs[i]), name);
	free(name);
	return found;
}

static bool is_library(const char *entry, size_t len)
{
	const size_t name = sizeof(LIBRARY) - 1;

	return len >= name && strncmp(entry + len - name, LIBRARY, name) == 0 &&
	       (len == name || entry[len - name - 1] == '/');
}

/* Is the entry in the list already? */
static bool listed(const char *list, const char *entry, size_t len)
{
	for (; *list != '\0'; list += strspn(list, ": ")) {
		size_t n = strcspn(list, ": ");

		if (n == len && strncmp(list, entry, len) == 0)
			return true;
		list += n;
	}
	return false;
}

static bool is_other(const char *entry, size_t len)
{
	return !is_runtime(entry, len);
}

static bool is_foreign(const char *entry, size_t len)
{
	return !is_library(entry, len);
}

/* Adds the entries of `from` that are wanted, and not there. */
static char *append(char *list, const char *from,
		    bool (*wanted)(const char *entry, size_t len))
{
	for (from += strspn(from, ": "); *from != '\0';
	     from += strspn(from, ": ")) {
		size_t len = strcspn(from, ": ");

		if (wanted(from, len) && !listed(list, from, len)) {
			char *longer = xasprintf("%s%s%.*s", list,
						 *list != '\0' ? ":" : "",
						 (int)len, from);

			free(list);
			list = longer;
		}
		from += len;
	}
	return list;
}

char *launch_preload_without(const char *inherited)
{
	return append(xstrdup(""), inherited != NULL ? inherited : "",
		      is_foreign);
}

char *launch_preload(const char *library, const char *runtimes,
		     const char *inherited)
{
	char *list = xstrdup("");

	if (inherited == NULL)
		inherited = "";
	list = append(list, inherited, is_runtime);
	list = append(list, runtimes, is_runtime);
	list = append(list, library, is_other);
	return append(list, inherited, is_other);
}

char **launch_variables(const struct opts_settings *settings,
			const char *preload)
{
	char **variables = xcalloc(knob_count() + 2, sizeof(*variables));
	size_t n = 0;

	for (size_t i = 0; i < knob_count(); i++)
		if (settings->given[i].value != NULL)
			variables[n++] =
				xasprintf("%s=%s", knob_at(i)->variable,
					  settings->given[i].value);
	variables[n] = xasprintf("LD_PRELOAD=%s", preload);
	return variables;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

void launch_hold(struct launch_signals *signals)
{
	static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
				     SIGILL,  SIGTRAP, SIGSYS};
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t held;

	sigfillset(&held);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&held, faults[i]);
	sigprocmask(SIG_BLOCK, &held, &signals->mask);
	/* An ignored SIGCHLD would take the status away from us. */
	sigaction(SIGCHLD, &standard, &signals->child_action);
}

void launch_release(const struct launch_signals *signals)
{
	sigaction(SIGCHLD, &signals->child_action, NULL);
	sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

void launch_ignore_size(struct launch *launch)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	launch->size_ignored =
		sigaction(SIGXFSZ, &ignore, &launch->size_action) == 0;
}

static void set_variables(char **variables)
{
	char started[32];

	for (; *variables != NULL; variables++)
		putenv(*variables);
	snprintf(started, sizeof(started), "%d", (int)getpid());
	setenv(OPTS_STARTED, started, 1);
}

static bool set_files(const struct launch *launch)
{
	return launch->output == NULL ||
	       (dup2(launch->input, STDIN_FILENO) != -1 &&
		dup2(launch->output[0].writer, STDOUT_FILENO) != -1 &&
		dup2(launch->output[1].writer, STDERR_FILENO) != -1);
}

/* 0, or an errno. */
static int set_up(const struct launch *launch)
{
	set_variables(launch->variables);
	if (launch->held != NULL)
		setpgid(0, 0);
	if (!set_files(launch))
		return errno;
	if (launch->cpus != NULL &&
	    sched_setaffinity(0, sizeof(*launch->cpus), launch->cpus) != 0)
		return errno;
	return 0;
}

static _Noreturn void become(const struct launch *launch, int report)
{
	int error = set_up(launch);

	launch_release(launch->held != NULL ? launch->held : &launch->signals);
	if (launch->size_ignored)
		sigaction(SIGXFSZ, &launch->size_action, NULL);
	if (error == 0) {
		execvp(launch->path, launch->argv);
		error = errno;
	}
	while (write(report, &error, sizeof(error)) == -1 && errno == EINTR)
		;
	_exit(EXIT_NOT_RUN);
}

/* Nothing comes through the pipe when the exec closed it. */
static int exec_error(int report)
{
	int error = 0;
	ssize_t n;

	do
		n = read(report, &error, sizeof(error));
	while (n == -1 && errno == EINTR);
	return n == (ssize_t)sizeof(error) ? error : 0;
}

int launch_start(struct launch *launch)
{
	int pipe_fd[2], error;

	if (pipe2(pipe_fd, O_CLOEXEC) == -1)
		return errno;
	if (launch->held == NULL)
		launch_hold(&launch->signals);
	launch->started_ns = clocks_now();
	launch->next_tick_ns = launch->started_ns + launch->tick_ns;
	launch->pid = fork();
	if (launch->pid == 0)
		become(launch, pipe_fd[1]);
	error = launch->pid == -1 ? errno : 0;
	close(pipe_fd[1]);
	if (error == 0) {
		error = exec_error(pipe_fd[0]);
		if (error != 0)
			waitpid(launch->pid, NULL, 0);
	}
	close(pipe_fd[0]);
	if (error != 0 && launch->held == NULL)
		launch_release(&launch->signals);
	return error;
}

static bool is_stop(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* The kernel sends these to everybody at the terminal. */
static bool from_terminal(const siginfo_t *info)
{
	int s = info->si_signo;

	return info->si_code > 0 &&
	       (is_stop(s) || s == SIGINT || s == SIGQUIT || s == SIGHUP ||
		s == SIGWINCH || s == SIGCONT);
}

static void pass_on(pid_t pid, const siginfo_t *info)
{
	/* The kernel's SIGPIPE for a write of ours is our own business. */
	if (from_terminal(info) || info->si_pid == getpid())
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(pid, info->si_signo, info->si_value);
	else
		kill(pid, info->si_signo);
}

/* Where a launch stands with job control: we stop when we were asked to and
 * the program did. */
struct job {
	bool asked, stopped;
	int stop_signal;
};

static void stop_with(pid_t pid, struct job *job)
{
	if (!job->asked || !job->stopped)
		return;
	*job = (struct job){0};
	raise(SIGSTOP); /* returns when somebody continues us */
	kill(pid, SIGCONT);
}

/* True when it has ended. */
static bool reap(struct launch *launch, struct job *job)
{
	int status;

	while (wait4(launch->pid, &status, WNOHANG | WUNTRACED | WCONTINUED,
		     &launch->usage) == launch->pid) {
		if (WIFSTOPPED(status)) {
			job->stopped = true;
			job->stop_signal = WSTOPSIG(status);
		} else if (WIFCONTINUED(status)) {
			job->stopped = false;
		} else {
			launch->status = status;
			launch->ended = true;
			return true;
		}
	}
	return launch->ended;
}

static void take_signal(struct launch *launch, const siginfo_t *info,
			struct job *job)
{
	if (is_stop(info->si_signo))
		job->asked = true;
	else if (info->si_signo == SIGCONT)
		job->asked = false;
	pass_on(launch->pid, info);
}

/* What came for a program that has just gone is not for us. */
static void drop_pending(const sigset_t *held)
{
	const struct timespec now = {0};

	while (sigtimedwait(held, NULL, &now) > 0)
		;
}

/* How long until something is to be done; UINT64_MAX: nothing is. */
static uint64_t tick_wait(const struct launch *launch)
{
	uint64_t now = clocks_now();

	if (launch->tick == NULL)
		return UINT64_MAX;
	return launch->next_tick_ns > now ? launch->next_tick_ns - now : 0;
}

static void tick_if_due(struct launch *launch)
{
	if (tick_wait(launch) > 0)
		return;
	launch->tick_ns = launch->tick(launch->tick_context);
	launch->next_tick_ns = clocks_now() + launch->tick_ns;
}

/* Waits for a signal, and ticks meanwhile.  As sigwaitinfo(). */
static int wait_signal(struct launch *launch, const sigset_t *held,
		       siginfo_t *info)
{
	struct timespec left;
	uint64_t wait = tick_wait(launch);

	if (wait == UINT64_MAX)
		return sigwaitinfo(held, info);
	left = timespec_of(wait);
	if (wait > 0)
		return sigtimedwait(held, info, &left);
	tick_if_due(launch);
	return 0;
}

void launch_wait(struct launch *launch)
{
	struct job job = {0};
	siginfo_t info;
	sigset_t held;

	sigprocmask(SIG_SETMASK, NULL, &held);
	while (!reap(launch, &job)) {
		stop_with(launch->pid, &job);
		if (wait_signal(launch, &held, &info) > 0 &&
		    info.si_signo != SIGCHLD)
			take_signal(launch, &info, &job);
	}
	launch->wall_ns = clocks_now() - launch->started_ns;
	drop_pending(&held);
	launch_release(&launch->signals);
}

/* --- watched --- */

enum { PATIENCE_S = 2 }; /* from the gentle signal to the one by force */

/* A signal that is held back comes all the same. */
static bool is_ignored(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static sigset_t ending_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!is_ignored(numbers[i]))
			sigaddset(&set, numbers[i]);
	return set;
}

int launch_asked(void)
{
	const sigset_t ending = ending_signals();
	const struct timespec now = {0};
	int number = sigtimedwait(&ending, NULL, &now);

	return number > 0 ? number : 0;
}

static bool is_asked(void)
{
	const sigset_t ending = ending_signals();
	sigset_t pending;

	sigpending(&pending);
	sigandset(&pending, &pending, &ending);
	return !sigisemptyset(&pending);
}

struct group launch_group(const struct launch *launch)
{
	return (struct group){launch->pid, launch->adopts};
}

/* --- what they write --- */

bool launch_overflowed(const struct launch *launch)
{
	return launch->output != NULL &&
	       (launch->output[0].full || launch->output[1].full);
}

/* Its own, and that of the one beside it. */
static size_t take_output(struct launch *launch)
{
	size_t taken = 0;

	for (; launch != NULL; launch = launch->beside)
		for (int i = 0; launch->output != NULL && i < 2; i++)
			taken += capture_take(&launch->output[i]);
	return taken;
}

/* More is no reason to look again once that has been answered. */
static bool is_too_much(const struct launch *launch)
{
	const struct launch *beside = launch->beside;

	return !launch->forced &&
	       (launch_overflowed(launch) ||
		(beside != NULL && launch_overflowed(beside)));
}

/* Until one of the signals comes, or so long; without `signals_only` also until
 * something is written. */
static void wait_once(struct launch *launch, int signals, bool signals_only,
		      uint64_t ns)
{
	const uint64_t longest_ns = UINT64_C(10000000000), blind_ns = 10000000,
		       pause_ns = 1000000;
	const uint64_t due = tick_wait(launch);
	struct pollfd fds[5] = {{.fd = signals, .events = POLLIN}};
	struct timespec time;
	nfds_t count = 1;

	for (; launch != NULL && !signals_only; launch = launch->beside)
		for (int i = 0; launch->output != NULL && i < 2; i++)
			fds[count++] = (struct pollfd){
				.fd = launch->output[i].full
					      ? -1
					      : launch->output[i].reader,
				.events = POLLIN,
			};
	if (ns > due)
		ns = due;
	if (ns > longest_ns)
		ns = longest_ns;
	if (signals == -1 && ns > blind_ns)
		ns = blind_ns;
	if (signals_only && ns > pause_ns)
		ns = pause_ns;
	time = timespec_of(ns);
	ppoll(fds, count, &time, NULL);
}

/* As sigtimedwait(), and takes meanwhile what is written; as if interrupted
 * when that is too much. */
static int wait_taking(struct launch *launch, const sigset_t *signals,
		       uint64_t longest_ns)
{
	const uint64_t from = clocks_now(), few = 16 << 10;
	const struct timespec now = {0};
	int fd = signalfd(-1, signals, SFD_CLOEXEC), number;
	uint64_t spent;
	size_t taken = 0;

	for (;;) {
		number = sigtimedwait(signals, NULL, &now);
		spent = clocks_now() - from;
		if (number > 0 || errno != EAGAIN || spent >= longest_ns)
			break;
		/* Who writes line by line shall not wake us with each. */
		wait_once(launch, fd, taken > 0 && taken < few,
			  longest_ns - spent);
		taken = take_output(launch);
		tick_if_due(launch);
		if (is_too_much(launch)) {
			errno = EINTR;
			break;
		}
	}
	if (fd != -1) {
		int error = errno;

		close(fd);
		errno = error;
	}
	return number;
}

static void rest(struct launch *launch, uint64_t ns)
{
	sigset_t none;

	sigemptyset(&none);
	wait_taking(launch, &none, ns);
}

/* --- all that belongs to them --- */

struct signalling {
	const struct launch *launch;
	int number;
};

static bool stop_or_go(const struct group_member *member, void *context)
{
	const struct signalling *s = context;

	if (member->group != s->launch->pid)
		kill(member->pid, s->number);
	return false;
}

static void signal_one(const struct launch *launch, int number)
{
	struct signalling s = {launch, number};

	kill(-launch->pid, number);
	group_any(launch_group(launch), stop_or_go, &s);
}

static void signal_all(const struct launch *launch, int number)
{
	signal_one(launch, number);
	if (launch->beside != NULL && !launch->beside->ended)
		signal_one(launch->beside, number);
}

static bool is_in_group(const struct group_member *member, void *context)
{
	const struct launch *launch = context;

	return member->group == launch->pid;
}

/* Nobody else's: its number may be another's when the program has ended and
 * nobody is left in the group. */
static void kill_group(struct launch *launch)
{
	if (!launch->ended ||
	    group_any(launch_group(launch), is_in_group, launch))
		kill(-launch->pid, SIGKILL);
}

static void force(struct launch *launch)
{
	kill_group(launch);
	if (!launch->ended) /* one that left its own group */
		kill(launch->pid, SIGKILL);
	launch->forced = true;
}

/* Our own child keeps its number until we look, so that none but it gets the
 * signal; its children are ours next. */
static bool signal_orphan(const struct group_member *member, void *context)
{
	const struct signalling *s = context;

	if (member->parent == getpid() && member->group != s->launch->pid)
		kill(member->pid, s->number);
	return false;
}

/* Those that lost their parents and are in other groups. */
static void signal_orphans(const struct launch *launch, int number)
{
	struct signalling s = {launch, number};

	if (launch->adopts)
		group_any(launch_group(launch), signal_orphan, &s);
}

/* Those that lost their parents and have ended. */
static void reap_orphans(const struct launch *launch)
{
	const struct launch *beside = launch->beside;
	siginfo_t info = {0};

	if (!launch->adopts && (beside == NULL || !beside->adopts))
		return;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0 &&
	       (launch->ended || info.si_pid != launch->pid) &&
	       (beside == NULL || beside->ended ||
		info.si_pid != beside->pid)) {
		waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}

static bool is_alive(const struct launch *launch, char *name)
{
	reap_orphans(launch);
	return group_alive(launch_group(launch), name);
}

/* Waits until nothing of it is alive, up to so long, and kills it meanwhile or
 * not.  False: something is. */
static bool await_all(struct launch *launch, uint64_t longest_ns, bool killing,
		      char *name)
{
	const uint64_t step_ns = 2000000, from = clocks_now();

	while (is_alive(launch, name)) {
		if (clocks_now() - from >= longest_ns)
			return false;
		if (killing) {
			kill_group(launch);
			signal_orphans(launch, SIGKILL);
		}
		rest(launch, step_ns);
	}
	return true;
}

/* Kills what is left of it and waits until that is gone, unless the kernel
 * holds it up.  True: there was something that did not end by itself, as what a
 * shell began beside its last command does. */
static bool clear(struct launch *launch, char *name)
{
	const uint64_t grace_ns = 100000000, longest_ns = 1000000000;

	if (await_all(launch, grace_ns, false, name))
		return false;
	await_all(launch, longest_ns, true, NULL);
	return true;
}

/* We do as the terminal says, and the programs with us. */
static void pause_with(struct launch *launch)
{
	uint64_t from = clocks_now();

	signal_all(launch, SIGSTOP);
	raise(SIGSTOP); /* returns when somebody continues us */
	signal_all(launch, SIGCONT);
	launch->paused = true;
	launch->paused_ns += clocks_now() - from;
}

/* Returns what ends the watch: `ending`, or `number` if that is the first. */
static int end_gently(struct launch *launch, int ending, int number)
{
	const sigset_t ends = ending_signals();
	bool late = number < 0 && errno == EAGAIN;

	if (late || (number > 0 && ending != 0 && sigismember(&ends, number)))
		force(launch);
	if (late && ending == 0)
		launch->too_long = true;
	if (ending != 0 || number <= 0 || !sigismember(&ends, number))
		return ending;
	kill(-launch->pid, SIGTERM);
	return number;
}

static uint64_t time_left(const struct launch *launch)
{
	uint64_t spent = clocks_now() - launch->started_ns - launch->paused_ns;

	return spent < launch->limit_ns ? launch->limit_ns - spent : 0;
}

static int next_signal(struct launch *launch, const sigset_t *held, bool ending)
{
	uint64_t patience = UINT64_MAX;

	if (ending)
		patience = PATIENCE_S * UINT64_C(1000000000);
	else if (launch->limit_ns != 0 && !launch->too_long)
		patience = time_left(launch);
	return wait_taking(launch, held, patience);
}

/* Has the one beside it ended, or stopped? */
static bool is_alone(const struct launch *launch)
{
	struct launch *beside = launch->beside;
	struct job job = {0};

	if (beside == NULL)
		return false;
	if (reap(beside, &job))
		return true;
	if (job.stopped)
		beside->stopped_by = job.stop_signal;
	return beside->stopped_by != 0;
}

/* What stopped does not go on by itself, what is alone has no purpose, and what
 * is not kept is not measured. */
static void end_lost(struct launch *launch, const struct job *job)
{
	if (job->stopped)
		launch->stopped_by = job->stop_signal;
	if (is_alone(launch) || job->stopped || is_too_much(launch))
		force(launch);
}

int launch_watch(struct launch *launch)
{
	struct job job = {0};
	int ending = 0, number;
	sigset_t held;

	sigprocmask(SIG_SETMASK, NULL, &held);
	while (!reap(launch, &job)) {
		end_lost(launch, &job);
		reap_orphans(launch);
		number = next_signal(launch, &held, ending != 0);
		if (number > 0 && is_stop(number) && !is_ignored(number))
			pause_with(launch);
		else
			ending = end_gently(launch, ending, number);
	}
	launch->wall_ns = clocks_now() - launch->started_ns;
	launch->left = clear(launch, launch->left_name) && ending == 0 &&
		       !launch->forced;
	return ending;
}

bool launch_look(struct launch *launch, uint64_t ns)
{
	struct job job = {0};
	sigset_t child;

	if (reap(launch, &job))
		return true;
	end_lost(launch, &job);
	reap_orphans(launch);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	wait_taking(launch, &child, ns);
	return reap(launch, &job);
}

static const uint64_t end_step_ns = 20000000;

/* And all of it: what was started may be a script about a server, or one that
 * put it in a group of its own, which was not asked yet. */
static bool has_ended(struct launch *launch)
{
	if (!launch_look(launch, end_step_ns))
		return false;
	if (!is_alive(launch, NULL))
		return true;
	if (!launch->orphans_asked)
		signal_orphans(launch, SIGTERM);
	launch->orphans_asked = true;
	rest(launch, end_step_ns);
	return false;
}

static void wait_end(struct launch *launch, uint64_t patience_ns)
{
	uint64_t from = clocks_now(), spent = 0;

	while (!has_ended(launch)) {
		spent = clocks_now() - from;
		launch->late = spent > patience_ns;
		if (launch->late ||
		    (is_asked() && spent > PATIENCE_S * UINT64_C(1000000000)))
			break;
	}
}

void launch_end(struct launch *launch, uint64_t patience_ns)
{
	if (!launch->ended) {
		kill(-launch->pid, SIGTERM);
		if (launch->stopped_by == 0)
			wait_end(launch, patience_ns);
		force(launch);
	}
	while (!launch_look(launch, end_step_ns))
		;
	clear(launch, NULL);
}

int launch_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}
