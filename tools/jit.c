/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "jit.h"
#include "source.h"
#include "utf8.h"

enum {
	MAP_MOST = 64 << 20, /* bytes that are read of a process's map */
	KEPT_MOST = 8 << 20, /* of what is kept */
	NAME_MOST = 500,
};

struct named {
	uint64_t address;
	char *name;
};

struct jit {
	size_t count;
	struct named *list; /* by address */
};

static struct jit *jit_new(size_t room)
{
	struct jit *jit = xcalloc(1, sizeof(*jit));

	jit->list = xcalloc(room + 1, sizeof(*jit->list));
	return jit;
}

/* NULL in place of one without a name. */
static struct jit *unless_empty(struct jit *jit)
{
	if (jit->count > 0)
		return jit;
	jit_free(jit);
	return NULL;
}

void jit_free(struct jit *jit)
{
	size_t i;

	for (i = 0; jit && i < jit->count; i++)
		free(jit->list[i].name);
	if (jit)
		free(jit->list);
	free(jit);
}

/* --- a map as text --- */

struct text {
	char *bytes;
	size_t length;
};

/* The last `most` bytes. */
static struct text read_end(struct source *s, size_t most)
{
	struct text text = {.length = s->size < most ? s->size : most};

	text.bytes = xcalloc(1, text.length + 1);
	if (source_read(s, text.bytes, text.length, s->size - text.length) < 0)
		text.length = 0;
	return text;
}

struct line {
	uint64_t start, size;
	const char *name;
	size_t length;
};

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Some write 0x before it, and zeros. */
static bool take_hex(const char **at, const char *end, uint64_t *value)
{
	const char *from;
	int digit;

	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 32) == 'x')
		*at += 2;
	from = *at;
	for (*value = 0; *at < end; ++*at) {
		digit = digit_of(**at);
		if (digit < 0)
			break;
		if (*value >> 60)
			return false;
		*value = *value << 4 | (unsigned)digit;
	}
	if (*at == from || *at == end || **at != ' ')
		return false;
	++*at;
	return true;
}

/* "3ef414c0 398 name" */
static bool parse(const char *at, const char *end, struct line *line)
{
	if (!take_hex(&at, end, &line->start) ||
	    !take_hex(&at, end, &line->size) || at == end || !*at)
		return false;
	line->name = at;
	line->length = (size_t)(end - at);
	return line->size > 0;
}

static char *name_of(const struct line *line)
{
	size_t most = line->length < NAME_MOST ? line->length : NAME_MOST;
	char *name = xcalloc(1, most + 1);

	utf8_clean(name, line->name, most, 0);
	return name;
}

/* --- the map of a process --- */

struct search {
	const uint64_t *addresses;
	size_t count, found;
	char **names;
	/* The first one from here on that has no name, as far as is known. */
	size_t *next;
};

static size_t first_at(const struct search *s, uint64_t address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->addresses[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t nameless(struct search *s, size_t at)
{
	size_t end = at, next;

	while (s->next[end] != end)
		end = s->next[end];
	for (; at != end; at = next) {
		next = s->next[at];
		s->next[at] = end;
	}
	return end;
}

static void take_line(struct search *s, const struct line *line)
{
	size_t at = nameless(s, first_at(s, line->start));

	for (; at < s->count && s->addresses[at] - line->start < line->size;
	     at = nameless(s, at)) {
		s->names[at] = name_of(line);
		s->next[at] = at + 1;
		s->found++;
	}
}

/* From its end: what is there first counts, and each address is named once,
 * however many lines there are. */
static void take_map(struct search *s, const struct text *text, bool whole)
{
	const char *end = text->bytes + text->length, *at;
	struct line line;

	while (end > text->bytes && s->found < s->count) {
		at = memrchr(text->bytes, '\n', (size_t)(end - text->bytes));
		if (!at && !whole)
			return;
		at = at ? at + 1 : text->bytes;
		if (parse(at, end, &line))
			take_line(s, &line);
		end = at > text->bytes ? at - 1 : at;
	}
}

static struct jit *search_map(const struct text *text, bool whole,
			      const uint64_t *addresses, size_t count)
{
	struct search s = {.addresses = addresses, .count = count};
	struct jit *jit = jit_new(count);
	size_t i;

	s.names = xcalloc(count + 1, sizeof(*s.names));
	s.next = xcalloc(count + 1, sizeof(*s.next));
	for (i = 0; i <= count; i++)
		s.next[i] = i;
	take_map(&s, text, whole);
	for (i = 0; i < count; i++)
		if (s.names[i])
			jit->list[jit->count++] =
				(struct named){addresses[i], s.names[i]};
	free(s.names);
	free(s.next);
	return unless_empty(jit);
}

static bool is_ours(const struct source *s, uint64_t since_unix_ns)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && st.st_uid == geteuid() &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000 +
			       (uint64_t)st.st_mtim.tv_nsec >=
		       since_unix_ns;
}

struct jit *jit_of_map(const char *path, uint64_t since_unix_ns,
		       const uint64_t *addresses, size_t count)
{
	struct jit *jit = NULL;
	struct source source;
	struct text text;

	if (count == 0 || source_open(&source, path))
		return NULL;
	if (is_ours(&source, since_unix_ns)) {
		text = read_end(&source, MAP_MOST);
		jit = search_map(&text, text.length == source.size, addresses,
				 count);
		free(text.bytes);
	}
	source_close(&source);
	return jit;
}

struct jit *jit_of_process(uint32_t pid, uint64_t since_unix_ns,
			   const uint64_t *addresses, size_t count)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", pid);
	return jit_of_map(path, since_unix_ns, addresses, count);
}

/* --- what is kept: a line for each address --- */

static bool fits(FILE *out, const struct named *named)
{
	const long most = KEPT_MOST - 32; /* beside the name */

	return ftell(out) + (long)strlen(named->name) <= most;
}

int jit_write(const struct jit *jit, int directory, const char *log_name)
{
	char *name = xasprintf("%s" JIT_SUFFIX, log_name);
	int fd = openat(directory, name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int error = out ? 0 : errno;
	bool failed;
	size_t i;

	for (i = 0; out && i < jit->count && fits(out, &jit->list[i]); i++)
		fprintf(out, "%" PRIx64 " 1 %s\n", jit->list[i].address,
			jit->list[i].name);
	failed = out && ferror(out) != 0;
	if (out && (fclose(out) != 0 || failed)) {
		error = errno ? errno : EIO;
		unlinkat(directory, name, 0);
	}
	free(name);
	return error;
}

static int by_address(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static size_t lines_of(const struct text *text)
{
	size_t lines = 1, i;

	for (i = 0; i < text->length; i++)
		lines += text->bytes[i] == '\n';
	return lines;
}

static struct jit *take_kept(const struct text *text)
{
	const char *at = text->bytes, *end = at + text->length, *stop;
	struct jit *jit = jit_new(lines_of(text));
	struct line line;

	for (; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		if (parse(at, stop, &line))
			jit->list[jit->count++] =
				(struct named){line.start, name_of(&line)};
	}
	qsort(jit->list, jit->count, sizeof(*jit->list), by_address);
	return unless_empty(jit);
}

struct jit *jit_of_log(const char *log_path)
{
	char *path = xasprintf("%s" JIT_SUFFIX, log_path);
	struct jit *jit = NULL;
	struct source source;
	struct text text;

	if (!source_open(&source, path)) {
		text = read_end(&source, KEPT_MOST);
		jit = take_kept(&text);
		free(text.bytes);
		source_close(&source);
	}
	free(path);
	return jit;
}

const char *jit_name(const struct jit *jit, uint64_t address)
{
	const struct named key = {.address = address};
	const struct named *found;

	if (!jit)
		return NULL;
	found = bsearch(&key, jit->list, jit->count, sizeof(*jit->list),
			by_address);
	return found ? found->name : NULL;
}
