/* SPDX-License-Identifier: MIT */
/*
 * unresolved: what stands for symbols, unwind and sites in a build without the
 * libraries that they need.
 */
#include <stdlib.h>

#include "chains.h"
#include "die.h"
#include "sites.h"
#include "symbols.h"
#include "unwind.h"

static const char missing[] =
	"built without " RESOLVE_MISSING ": stacks are not resolved";

const char *symbols_missing(void)
{
	return missing;
}

const char *unwind_missing(void)
{
	return missing;
}

struct images *images_new(void)
{
	return NULL;
}

void images_free(struct images *images,
		 void (*free_symbols)(struct symbols_file *symbols))
{
	(void)images;
	(void)free_symbols;
}

void symbols_free(struct symbols_file *file)
{
	(void)file;
}

struct sites *sites_open(struct log *log, struct images *images)
{
	struct sites *sites = xcalloc(1, sizeof(*sites));

	(void)images;
	sites->process = log_process(log);
	sites->missing = missing;
	return sites;
}

struct sites *sites_open_part(struct log *log, struct images *images,
			      uint64_t since_ns, uint64_t until_ns)
{
	(void)since_ns;
	(void)until_ns;
	return sites_open(log, images);
}

void sites_close(struct sites *sites)
{
	free(sites);
}

struct sites_stack *sites_stacks_of(const struct sites *sites, size_t site,
				    size_t most, size_t *count)
{
	(void)sites;
	(void)site;
	(void)most;
	*count = 0;
	return NULL;
}

struct sites_row *sites_group(const struct sites *sites, enum sites_by by,
			      size_t *count)
{
	(void)sites;
	(void)by;
	*count = 0;
	return NULL;
}

void sites_rows_free(struct sites_row *rows, size_t count)
{
	(void)rows;
	(void)count;
}

const struct sites_stack *sites_stack_of(const struct sites *sites,
					 const struct log_event *event)
{
	(void)sites;
	(void)event;
	return NULL;
}

size_t sites_frames_at(struct sites *sites, uint64_t pc, uint64_t time_ns,
		       bool is_return, const struct sites_frame *const **frames)
{
	(void)sites;
	(void)pc;
	(void)time_ns;
	(void)is_return;
	(void)frames;
	return 0;
}

int chains_write(struct log *log, int file, int directory,
		 struct images *images)
{
	(void)log;
	(void)file;
	(void)directory;
	(void)images;
	return 0;
}
