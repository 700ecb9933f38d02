/* SPDX-License-Identifier: MIT */
/*
 * search: which settings are worth a try for a program, and which go on.
 *
 * Pure: it measures nothing.  Candidate 0 is always the program as it is,
 * without the library; it is what the others are held against.
 */
#ifndef MMGATE_SEARCH_H
#define MMGATE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "profile.h"
#include "ratio.h"

enum search_kind {
	SEARCH_BARE,
	SEARCH_CPUS, /* fewer of them, without the library */
	SEARCH_LOCK,
	SEARCH_PLACE,
	SEARCH_BOTH, /* a lock and a place */
};

struct search_candidate {
	char *text; /* see config.h */
	enum search_kind kind;
	unsigned effort; /* the less, the simpler a remedy */
};

struct search_list {
	struct search_candidate *items;
	size_t count;
};

enum { SEARCH_LINE = 256 };

/* Can any setting matter to a program that does this?  False: `why` has what
 * speaks against it. */
bool search_is_worth(const struct profile *profile, char why[SEARCH_LINE]);

/* Candidates, the likeliest first; what this version does not have is not among
 * them.  fewer: fewer CPUs may be a remedy; by CPU time they nearly always look
 * like one, whatever they do to the time that passes. */
struct search_list search_candidates(const struct profile *profile,
				     unsigned cpus, bool fewer);
void search_add(struct search_list *list, enum search_kind kind,
		unsigned effort, char *text);

/* Takes candidates out (in `out`) until `keep` are left besides the first, and
 * further ones whose interval lies below that of the best: the worst go first,
 * among equals what is less simple. */
void search_drop(const struct search_list *list, const struct ratio *ratios,
		 size_t keep, bool *out);

/* Of those that are in: is there none that could be 1 % better? */
bool search_is_hopeless(const struct search_list *list,
			const struct ratio *ratios, const bool *out);

/* The best of those that are in; 0: none is. */
size_t search_best(const struct search_list *list, const struct ratio *ratios,
		   const bool *out);

/* What does nearly what `best` does, is simpler and never failed; or `best`. */
size_t search_simpler(const struct search_list *list,
		      const struct ratio *ratios, const bool *failed,
		      size_t best);

#endif
