/* SPDX-License-Identifier: MIT */
#include "preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "die.h"
#include "record.h"
#include "rewrite.h"
#include "text.h"
#include "units.h"

enum {
	LINE_ROOM = 256, /* what the kernel reads of a #! line */
	LEVELS = 5,      /* interpreters of interpreters that it follows */
	MOST_HEADERS = 512,
	MOST_DYNAMIC = 1 << 20, /* bytes */
	MOST_NAMES = 64 << 20,
	NAME_ROOM = 256,
};

static bool decided(const struct preflight *p)
{
	return p->status != EXIT_DONE;
}

__attribute__((format(printf, 3, 4))) static void
refuse(struct preflight *p, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->reason, sizeof(p->reason), format, args);
	va_end(args);
	p->status = status;
}

static void note(struct preflight *p, char *text)
{
	if (p->note_count < PREFLIGHT_NOTES)
		p->notes[p->note_count++] = text;
	else
		free(text);
}

/* --- which file --- */

/* 0 or why execve would not take it. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* The file that execvp would take, or NULL and errno. */
static char *search_path(const char *command)
{
	const char *at = getenv("PATH");
	int error = ENOENT;

	if (at == NULL)
		at = "/bin:/usr/bin";
	for (;; at++) {
		size_t len = strcspn(at, ":");
		char *path = xasprintf("%.*s/%s", len != 0 ? (int)len : 1,
				       len != 0 ? at : ".", command);
		int e = executable(path);

		if (e == 0)
			return path;
		free(path);
		if (e == EACCES)
			error = e;
		at += len;
		if (*at == '\0')
			break;
	}
	errno = error;
	return NULL;
}

static char *find(struct preflight *p, const char *command)
{
	char *path = NULL;
	int error = ENOENT;

	if (strchr(command, '/') != NULL) {
		error = executable(command);
		if (error == 0)
			path = xstrdup(command);
	} else if (*command != '\0') {
		path = search_path(command);
		error = errno;
	}
	if (*command == '\0')
		refuse(p, EXIT_NOT_FOUND, "the command is empty");
	else if (path == NULL && (error == ENOENT || error == ENOTDIR))
		refuse(p, EXIT_NOT_FOUND, "%s: command not found", command);
	else if (path == NULL)
		refuse(p, EXIT_NOT_RUN, "%s: cannot be executed: %s", command,
		       strerror(error));
	return path;
}

/* --- #! --- */

/* Reads the #! line without the #!; false when there is none. */
static bool read_line(const char *path, char line[LINE_ROOM])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd == -1)
		return false;
	n = pread(fd, line, LINE_ROOM - 1, 0);
	close(fd);
	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	memmove(line, line + 2, strlen(line + 2) + 1);
	return true;
}

static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t len = strcspn(word, " \t");

	*line = word + len;
	if (**line != '\0')
		*(*line)++ = '\0';
	return word;
}

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list != NULL && strcmp(word, *list) != 0)
		list++;
	return *list != NULL;
}

/* What a word means to env. */
enum env_word {
	ENV_PROGRAM, /* what it starts */
	ENV_PASSING, /* an option, or a variable */
	ENV_LOSING,  /* the same, and LD_PRELOAD is lost by it */
	ENV_OTHER,   /* an option that we do not know, or the end */
};

static enum env_word env_word(const char *word)
{
	static const char *const passing[] = {"-S", "-v", "-vS", "--", NULL};
	static const char *const losing[] = {"-",
					     "-i",
					     "-iS",
					     "--ignore-environment",
					     "-uLD_PRELOAD",
					     "--unset=LD_PRELOAD",
					     NULL};

	if (is_one_of(word, losing) || text_after(word, "LD_PRELOAD=") != NULL)
		return ENV_LOSING;
	if (is_one_of(word, passing))
		return ENV_PASSING;
	if (*word == '-' || *word == '\0')
		return ENV_OTHER;
	return strchr(word, '=') != NULL ? ENV_PASSING : ENV_PROGRAM;
}

static void note_loss(struct preflight *p, const char *where)
{
	if (!p->loses_library)
		note(p, xasprintf("%s takes LD_PRELOAD out of the environment "
				  "(env -i): what it starts runs without the "
				  "library",
				  where));
	p->loses_library = true;
}

/* The program that `env ARG...` of a first line starts, past its assignments
 * and its options, or NULL. */
static char *behind_env(struct preflight *p, char *rest)
{
	for (;;) {
		char *word = next_word(&rest);
		enum env_word meaning = env_word(word);

		if (meaning == ENV_LOSING)
			note_loss(p, "its first line");
		else if (meaning != ENV_PASSING)
			return meaning == ENV_PROGRAM ? find(p, word) : NULL;
	}
}

static bool named(const char *path, const char *name)
{
	return strcmp(text_base_name(path), name) == 0;
}

/* The next file in a line of interpreters, or NULL at its end. */
static char *interpreter(struct preflight *p, const char *path)
{
	char line[LINE_ROOM], *rest = line, *word, *next;
	int error;

	if (!read_line(path, line))
		return NULL;
	word = next_word(&rest);
	error = executable(word);
	if (error != 0) {
		refuse(p, error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN,
		       "%s: its interpreter %s cannot be executed: %s", path,
		       word, strerror(error));
		return NULL;
	}
	if (named(word, "env")) {
		next = behind_env(p, rest);
		if (next != NULL || decided(p))
			return next;
	}
	return xstrdup(word);
}

/* execvp hands what the kernel does not know to the shell. */
static char *shell_for(const char *path)
{
	char magic[SELFMAG] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd == -1 ? -1 : pread(fd, magic, SELFMAG, 0);

	if (fd != -1)
		close(fd);
	if (n == -1 || memcmp(magic, ELFMAG, SELFMAG) == 0)
		return NULL;
	return xstrdup("/bin/sh");
}

static void follow_interpreters(struct preflight *p)
{
	p->program = xstrdup(p->path);
	for (int level = 0; level <= LEVELS; level++) {
		char *next = interpreter(p, p->program);

		if (decided(p))
			return;
		if (next == NULL)
			next = shell_for(p->program);
		if (next == NULL)
			return;
		free(p->program);
		p->program = next;
	}
	refuse(p, EXIT_NOT_RUN, "%s: too many levels of interpreters", p->path);
}

/* --- ELF --- */

/* What a file says of itself; only the first three for another class. */
struct image {
	const char *path;
	int fd;
	unsigned char class, order;
	uint16_t machine;
	bool is_elf, native, position_independent, go;
	char loader[NAME_ROOM]; /* PT_INTERP, or "" */
	char soname[NAME_ROOM];
	size_t header_count;
	ElfW(Phdr) * headers;
	size_t dynamic_count;
	ElfW(Dyn) * dynamic;
};

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
	return at <= INT64_MAX &&
	       pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* A string of at most NAME_ROOM - 1 characters; "" when it is not there. */
static void read_name(int fd, char name[NAME_ROOM], uint64_t at)
{
	ssize_t n = at <= INT64_MAX ? pread(fd, name, NAME_ROOM - 1, (off_t)at)
				    : -1;

	name[n > 0 ? n : 0] = '\0';
}

static void *read_block(int fd, uint64_t at, uint64_t size, uint64_t most)
{
	void *block;

	if (size == 0 || size > most)
		return NULL;
	block = xcalloc(1, size);
	if (read_at(fd, block, size, at))
		return block;
	free(block);
	return NULL;
}

static const ElfW(Phdr) * header_of(const struct image *image, unsigned type)
{
	for (size_t i = 0; i < image->header_count; i++)
		if (image->headers[i].p_type == type)
			return &image->headers[i];
	return NULL;
}

/* Where an address of the image lies in the file; UINT64_MAX: nowhere. */
static uint64_t file_offset(const struct image *image, uint64_t address)
{
	for (size_t i = 0; i < image->header_count; i++) {
		const ElfW(Phdr) *h = &image->headers[i];

		if (h->p_type == PT_LOAD && address >= h->p_vaddr &&
		    address - h->p_vaddr < h->p_filesz)
			return address - h->p_vaddr + h->p_offset;
	}
	return UINT64_MAX;
}

static uint64_t dynamic_value(const struct image *image, int64_t tag)
{
	for (size_t i = 0; i < image->dynamic_count; i++)
		if (image->dynamic[i].d_tag == tag)
			return image->dynamic[i].d_un.d_val;
	return 0;
}

static uint64_t find_strings(const struct image *image)
{
	return file_offset(image, dynamic_value(image, DT_STRTAB));
}

static void dynamic_name(const struct image *image, uint64_t strings,
			 uint64_t offset, char name[NAME_ROOM])
{
	*name = '\0';
	if (strings != UINT64_MAX && offset < INT32_MAX)
		read_name(image->fd, name, strings + offset);
}

/* Calls `each` with every DT_NEEDED. */
static void each_needed(const struct image *image,
			void (*each)(const char *name, void *context),
			void *context)
{
	/* Once: a file can hold very many. */
	uint64_t strings = find_strings(image);
	char name[NAME_ROOM];

	for (size_t i = 0; i < image->dynamic_count; i++) {
		if (image->dynamic[i].d_tag != DT_NEEDED)
			continue;
		dynamic_name(image, strings, image->dynamic[i].d_un.d_val,
			     name);
		each(name, context);
	}
}

/* Go's linker leaves a note whose owner is "Go". */
static bool is_go_note(const struct image *image, const ElfW(Phdr) * h)
{
	struct {
		uint32_t name_size, size, type;
		char name[4];
	} first;

	return h->p_type == PT_NOTE &&
	       read_at(image->fd, &first, sizeof(first), h->p_offset) &&
	       first.name_size == 4 && memcmp(first.name, "Go\0", 4) == 0;
}

static void read_dynamic(struct image *image)
{
	const ElfW(Phdr) *h = header_of(image, PT_DYNAMIC);

	if (h == NULL)
		return;
	image->dynamic =
		read_block(image->fd, h->p_offset, h->p_filesz, MOST_DYNAMIC);
	if (image->dynamic != NULL)
		image->dynamic_count = h->p_filesz / sizeof(ElfW(Dyn));
	if (dynamic_value(image, DT_SONAME) != 0)
		dynamic_name(image, find_strings(image),
			     dynamic_value(image, DT_SONAME), image->soname);
}

static void read_headers(struct image *image, const ElfW(Ehdr) * elf)
{
	const ElfW(Phdr) * h;

	image->position_independent = elf->e_type == ET_DYN;
	if (elf->e_phentsize != sizeof(*h) || elf->e_phnum > MOST_HEADERS)
		return;
	image->headers = read_block(image->fd, elf->e_phoff,
				    elf->e_phnum * sizeof(*h), SIZE_MAX);
	if (image->headers == NULL)
		return;
	image->header_count = elf->e_phnum;
	h = header_of(image, PT_INTERP);
	if (h != NULL)
		read_name(image->fd, image->loader, h->p_offset);
	for (size_t i = 0; i < image->header_count; i++)
		image->go |= is_go_note(image, &image->headers[i]);
	read_dynamic(image);
}

/* False when it cannot be read (it may be executable all the same). */
static bool image_open(struct image *image, const char *path)
{
	ElfW(Ehdr) elf;

	*image = (struct image){.path = path};
	image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (image->fd == -1)
		return false;
	if (!read_at(image->fd, &elf, sizeof(elf), 0) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return true;
	image->is_elf = true;
	image->class = elf.e_ident[EI_CLASS];
	image->order = elf.e_ident[EI_DATA];
	image->machine = elf.e_machine;
	image->native =
		image->class ==
			(sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
		image->order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
					 ? ELFDATA2LSB
					 : ELFDATA2MSB);
	if (image->native)
		read_headers(image, &elf);
	return true;
}

static void image_close(struct image *image)
{
	free(image->headers);
	free(image->dynamic);
	if (image->fd != -1)
		close(image->fd);
}

/* --- the checks, each of which may refuse or note --- */

struct subject {
	struct preflight *p;
	const struct image *image;   /* of the program */
	const struct image *library; /* or what stands for it */
	bool alone;                  /* it has no use for libc */
};

static void check_format(struct subject *s)
{
	if (!s->image->is_elf)
		refuse(s->p, EXIT_NOT_GATED,
		       "%s is neither an ELF program nor a script with a "
		       "first line that says its interpreter",
		       s->image->path);
}

static int bits(const struct image *image)
{
	return image->class == ELFCLASS32 ? 32 : 64;
}

static void check_machine(struct subject *s)
{
	const struct image *a = s->image, *b = s->library;

	if (a->class != b->class)
		refuse(s->p, EXIT_NOT_GATED,
		       "%s is a %d-bit program, and the library is built for "
		       "%d-bit ones",
		       a->path, bits(a), bits(b));
	else if (a->machine != b->machine || a->order != b->order)
		refuse(s->p, EXIT_NOT_GATED,
		       "%s is for another machine than the library (ELF "
		       "machine %u, not %u)",
		       a->path, a->machine, b->machine);
}

static bool is_loader(const struct image *image)
{
	return text_after(image->soname, "ld-") != NULL ||
	       text_after(image->soname, "ld64.so") != NULL ||
	       text_after(image->soname, "ld.so") != NULL ||
	       text_after(image->soname, "libc.musl-") != NULL;
}

static void check_static(struct subject *s)
{
	const struct image *image = s->image;

	if (image->loader[0] != '\0' || is_loader(image))
		return;
	refuse(s->p, EXIT_NOT_GATED,
	       "%s is %s%s: no loader runs in it that could preload the "
	       "library",
	       image->path,
	       image->position_independent ? "a static-pie program"
					   : "statically linked",
	       image->go ? " (Go)" : "");
}

static void check_loader(struct subject *s)
{
	const char *loader = s->image->loader;

	if (*loader != '\0' && access(loader, F_OK) != 0)
		refuse(s->p, EXIT_NOT_FOUND,
		       "%s: its loader %s cannot be used: %s", s->image->path,
		       loader, strerror(errno));
}

static void find_musl(const char *needed, void *found)
{
	if (strcmp(needed, "libc.so") == 0 ||
	    text_after(needed, "libc.musl-") != NULL)
		*(bool *)found = true;
}

static void check_libc(struct subject *s)
{
	const char *loader = s->image->loader;
	bool program = strstr(loader, "/ld-musl") != NULL, library = false;

	each_needed(s->library, find_musl, &library);
	if (*loader == '\0' || program == library)
		return;
	refuse(s->p, EXIT_NOT_GATED,
	       "%s is a %s program, and the library is built for %s",
	       s->image->path, program ? "musl" : "glibc",
	       library ? "musl" : "glibc");
}

static bool gains_identity(const struct stat *st)
{
	if (st->st_mode & S_ISUID && st->st_uid != getuid())
		return true;
	return (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	       st->st_gid != getgid();
}

static bool honours_setuid(int fd)
{
	struct statvfs fs;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	       !(fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOSUID);
}

/* The loader ignores LD_PRELOAD where the kernel says "secure" (AT_SECURE):
 * when the effective identity is not the real one, or capabilities are
 * gained. */
static void check_privilege(struct subject *s)
{
	const char *why = NULL;
	struct stat st;

	if (geteuid() != getuid() || getegid() != getgid())
		why = "this process runs under a changed identity";
	else if (fstat(s->image->fd, &st) != 0 || !honours_setuid(s->image->fd))
		return;
	else if (gains_identity(&st))
		why = "it is setuid or setgid";
	else if (getuid() != 0 &&
		 fgetxattr(s->image->fd, "security.capability", NULL, 0) > 0)
		why = "it has file capabilities";
	if (why != NULL)
		refuse(s->p, EXIT_NOT_GATED,
		       "%s cannot be preloaded, as %s; run mmgate with those "
		       "rights itself, or a plain copy of the program",
		       s->image->path, why);
}

/* Does any symbol that it has or wants begin so?  Reads the names only, which
 * lie behind each other. */
static bool mentions(const struct image *image, const char *name)
{
	uint64_t at = find_strings(image);
	uint64_t size = dynamic_value(image, DT_STRSZ);
	char *names = at == UINT64_MAX
			      ? NULL
			      : read_block(image->fd, at, size, MOST_NAMES);
	char *wanted = xasprintf("%c%s", '\0', name);
	bool found = names != NULL &&
		     memmem(names, size, wanted, strlen(name) + 1) != NULL;

	free(wanted);
	free(names);
	return found;
}

/* Without changed code there are symbols only. */
static void check_hardening(struct subject *s)
{
	if (rewrite_try() != REWRITE_REFUSED)
		return;
	note(s->p,
	     xasprintf("no program may change its code here (%s): calls that "
		       "libc and the loader make themselves (malloc, thread "
		       "stacks, dlopen)%s are not seen",
		       rewrite_obstacle(),
		       mentions(s->image, "dlopen")
			       ? ", and those of libraries that it loads with "
				 "RTLD_DEEPBIND,"
			       : ""));
}

static void is_needed(const char *name, void *context)
{
	(void)name;
	*(bool *)context = true;
}

/* The library is loaded, and libc with it, which nobody calls. */
static void check_needs(struct subject *s)
{
	bool any = false;

	each_needed(s->image, is_needed, &any);
	s->alone = !any && s->image->dynamic_count > 0 &&
		   s->image->loader[0] != '\0';
	if (s->alone)
		note(s->p, xasprintf("%s does not use libc, only system calls "
				     "of its own: none is seen, with "
				     "MMGATE_HOOKS=all neither",
				     s->image->path));
}

static void check_go(struct subject *s)
{
	if (s->image->go && !s->alone)
		note(s->p,
		     xasprintf("%s is a Go program: Go's own memory calls are "
			       "raw system calls, only those of C code in it "
			       "are seen, and with MMGATE_HOOKS=all those that "
			       "can be patched",
			       s->image->path));
}

static void add_runtime(const char *needed, void *context)
{
	struct preflight *p = context;
	size_t len = strlen(p->runtimes);

	if (!text_glob("lib*san.so*", 11, needed) &&
	    !text_glob("libclang_rt.*san*", 17, needed))
		return;
	snprintf(p->runtimes + len, sizeof(p->runtimes) - len, "%s%s",
		 len != 0 ? ":" : "", needed);
}

static bool has_runtime_inside(const struct image *image)
{
	return mentions(image, "__asan_") || mentions(image, "__lsan_") ||
	       mentions(image, "__tsan_") || mentions(image, "__msan_");
}

static void check_sanitizers(struct subject *s)
{
	const char *path = s->image->path;

	each_needed(s->image, add_runtime, s->p);
	if (s->p->runtimes[0] != '\0')
		note(s->p, xasprintf("%s needs %s, which is preloaded before "
				     "the library, also in what it starts; "
				     "ASAN_OPTIONS=detect_leaks=0 keeps leak "
				     "checks from failing there",
				     path, s->p->runtimes));
	if (s->p->runtimes[0] != '\0' || has_runtime_inside(s->image))
		note(s->p, xasprintf("%s has a sanitizer's malloc, whose own "
				     "memory calls are raw system calls: they "
				     "are not seen",
				     path));
}

/* Programs that change what the figures of their children mean. */
static void check_wrappers(struct subject *s)
{
	static const struct {
		const char *name, *text;
	} wrappers[] = {
		{"valgrind", "valgrind runs one thread at a time, slowly, on "
			     "a copy of the code: counts of calls by symbol "
			     "hold, libc's own are not seen, times mean "
			     "little"},
		{"rr", "rr runs one thread at a time: counts hold, times "
		       "mean little"},
		{"sudo", "sudo clears LD_PRELOAD: put mmgate behind it (sudo "
			 "mmgate run -- CMD)"},
		{"su", "su starts a program with another identity, which "
		       "cannot write this user's logs: put mmgate behind it"},
		{"systemd-run", "systemd starts the program, and does not "
				"inherit LD_PRELOAD: put mmgate behind it "
				"(systemd-run mmgate run -- CMD)"},
		{"docker", "containers do not inherit LD_PRELOAD: put mmgate "
			   "inside"},
		{"podman", "containers do not inherit LD_PRELOAD: put mmgate "
			   "inside"},
	};

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (named(s->p->path, wrappers[i].name))
			note(s->p, xstrdup(wrappers[i].text));
}

/* In this order: a check may rely on those before it. */
static void (*const checks[])(struct subject *) = {
	check_format, check_machine,    check_loader,    check_static,
	check_libc,   check_privilege,  check_hardening, check_needs,
	check_go,     check_sanitizers, check_wrappers,
};

static void check_image(struct preflight *p, const struct image *image,
			const struct image *library)
{
	struct subject s = {p, image, library, false};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!decided(p))
			checks[i](&s);
}

static void check_against(struct preflight *p, const struct image *image,
			  const char *library)
{
	struct image other;

	if (!image_open(&other, library))
		note(p, xasprintf("%s cannot be read: %s", library,
				  strerror(errno)));
	else if (!other.is_elf)
		note(p, xasprintf("%s is not an ELF file", library));
	else
		check_image(p, image, &other);
	image_close(&other);
}

void preflight_check(struct preflight *p, const char *command,
		     const char *library)
{
	struct image image;

	*p = (struct preflight){.status = EXIT_DONE};
	p->path = find(p, command);
	if (p->path != NULL)
		follow_interpreters(p);
	if (decided(p))
		return;
	if (!image_open(&image, p->program)) {
		note(p, xasprintf("%s cannot be read: %s; no telling whether "
				  "the library can be preloaded",
				  p->program, strerror(errno)));
		return;
	}
	check_against(p, &image, library != NULL ? library : "/proc/self/exe");
	image_close(&image);
}

/* The rest of what is known of `inner`, which p->path starts. */
static void adopt(struct preflight *p, struct preflight *inner)
{
	if (inner->status != EXIT_DONE)
		note(p, xasprintf("what %s starts is not covered: %s", p->path,
				  inner->reason));
	for (size_t i = 0; i < inner->note_count; i++)
		note(p, inner->notes[i]);
	inner->note_count = 0;
	if (p->runtimes[0] == '\0')
		memcpy(p->runtimes, inner->runtimes, sizeof(p->runtimes));
}

void preflight_arguments(struct preflight *p, char *const *argv,
			 const char *library)
{
	struct preflight inner;
	enum env_word meaning = ENV_OTHER;

	if (decided(p) || !named(p->path, "env"))
		return;
	for (argv++; *argv != NULL; argv++) {
		meaning = env_word(*argv);
		if (meaning == ENV_LOSING)
			note_loss(p, p->path);
		else if (meaning != ENV_PASSING)
			break;
	}
	if (*argv == NULL || meaning != ENV_PROGRAM || p->loses_library)
		return;
	preflight_check(&inner, *argv, library);
	adopt(p, &inner);
	preflight_free(&inner);
}

/* RLIMIT_MEMLOCK leaves more wherever it counts. */
_Static_assert(RECORD_LEAST_MEMLOCK / RECORD_PART_OF_MEMLOCK >=
		       RECORD_LEAST_BYTES,
	       "a log fits into its part");

bool preflight_limit(char line[PREFLIGHT_LINE])
{
	static const struct {
		int resource;
		unsigned part;
		const char *name;
	} limits[] = {
		{RLIMIT_FSIZE, 1, "RLIMIT_FSIZE (ulimit -f)"},
		{RLIMIT_AS, RECORD_PART_OF_AS, "RLIMIT_AS (ulimit -v)"},
	};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (getrlimit(limits[i].resource, &limit) != 0 ||
		    limit.rlim_cur / limits[i].part >= RECORD_LEAST_BYTES)
			continue;
		snprintf(line, PREFLIGHT_LINE,
			 "%s is %s, and the smallest log needs %s; raise it",
			 limits[i].name, units_bytes((double)limit.rlim_cur),
			 units_bytes((double)RECORD_LEAST_BYTES *
				     limits[i].part));
		return true;
	}
	return false;
}

void preflight_free(struct preflight *p)
{
	free(p->path);
	free(p->program);
	for (size_t i = 0; i < p->note_count; i++)
		free(p->notes[i]);
}
