/* SPDX-License-Identifier: MIT */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "demangle.h"
#include "die.h"
#include "symbols.h"
#include "text.h"
#include "utf8.h"

enum {
	MOST_NAMES = 64, /* inlined into one another */
	OVERLAP = 16,    /* symbols that may lie in another one */
};

struct symbol {
	uint64_t start, end;
	const char *name; /* libdwfl's */
};

/* The names at one address. */
struct known {
	uint64_t offset;
	size_t count;
	UT_hash_handle hh;
	struct symbols_name names[];
};

struct symbols_file {
	const struct images_entry *entry;
	const char *trouble;
	bool opened;
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct symbol *symbols; /* by address */
	size_t symbol_count;
	struct known *known;
};

const char *symbols_missing(void)
{
	return NULL;
}

struct symbols_file *symbols_file(struct images_entry *entry)
{
	if (!entry->symbols) {
		entry->symbols = xcalloc(1, sizeof(*entry->symbols));
		entry->symbols->entry = entry;
		entry->symbols->trouble = entry->why;
	}
	return entry->symbols;
}

/* --- the symbol table --- */

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* Of several names for one function the one that people call it by. */
static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	size_t of_x, of_y;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	of_x = underscores(x->name);
	of_y = underscores(y->name);
	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	of_x = strlen(x->name);
	of_y = strlen(y->name);
	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return strcmp(y->name, x->name);
}

static bool is_function(const GElf_Sym *symbol, GElf_Word section)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	if (section == SHN_UNDEF || section == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && symbol->st_size > 0);
}

static void take_symbols(struct symbols_file *f)
{
	int count = dwfl_module_getsymtab(f->module), i;
	GElf_Addr address;
	GElf_Word section;
	GElf_Sym symbol;
	const char *name;

	if (count <= 0)
		return;
	f->symbols = xcalloc((size_t)count, sizeof(*f->symbols));
	for (i = 1; i < count; i++) {
		name = dwfl_module_getsym_info(f->module, i, &symbol, &address,
					       &section, NULL, NULL);
		if (!name || !*name || !is_function(&symbol, section))
			continue;
		f->symbols[f->symbol_count++] = (struct symbol){
			address, address + symbol.st_size, name};
	}
	qsort(f->symbols, f->symbol_count, sizeof(*f->symbols), by_address);
}

/* The last one that begins at or before the address is its best name. */
static const char *symbol_at(const struct symbols_file *f, uint64_t address)
{
	size_t low = 0, high = f->symbol_count, i;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = low; i > 0 && low - i < OVERLAP; i--) {
		const struct symbol *s = &f->symbols[i - 1];

		if (address < s->end)
			return s->name;
	}
	return NULL;
}

/* --- the file --- */

static char *no_debug_path;

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &no_debug_path, /* the usual places */
};

/* At the addresses that it is linked to. */
static void open_file(struct symbols_file *f)
{
	f->opened = true;
	if (f->trouble)
		return;
	/* A report waits for no server. */
	unsetenv("DEBUGINFOD_URLS");
	f->dwfl = dwfl_begin(&callbacks);
	if (!f->dwfl)
		die(EXIT_FAILED, "libdw: %s", dwfl_errmsg(-1));
	dwfl_report_begin(f->dwfl);
	f->module = dwfl_report_elf(f->dwfl, f->entry->module, f->entry->path,
				    -1, 0, true);
	dwfl_report_end(f->dwfl, NULL, NULL);
	if (f->module)
		take_symbols(f);
	if (!f->module)
		f->trouble = "cannot be read by libdw";
	else if (f->symbol_count == 0)
		f->trouble = "has no symbols";
}

const char *symbols_trouble(struct symbols_file *f)
{
	if (!f->opened)
		open_file(f);
	return f->trouble;
}

/* --- debug information --- */

struct place {
	struct symbols_file *file;
	uint64_t address;
	Dwarf_Die *unit; /* NULL: nothing is known of it */
	Dwarf_Addr bias;
	struct symbols_name *names;
	size_t count;
};

/* Some compilers leave the index out that addrdie needs. */
static void find_unit(struct place *p)
{
	Dwfl_Module *module = p->file->module;
	Dwarf_Die *unit = NULL;

	p->unit = dwfl_module_addrdie(module, p->address, &p->bias);
	while (!p->unit) {
		unit = dwfl_module_nextcu(module, unit, &p->bias);
		if (!unit)
			return;
		if (dwarf_haspc(unit, p->address - p->bias) > 0)
			p->unit = unit;
	}
}

static char *clean_name(const char *path)
{
	const char *name = text_base_name(path);
	size_t length = strlen(name);
	char *clean = xcalloc(length + 1, 1);

	utf8_clean(clean, name, length, 0);
	return clean;
}

static void set_line(struct symbols_name *name, const char *source, int line)
{
	if (!source || line <= 0)
		return;
	name->source = clean_name(source);
	name->line = (unsigned)line;
}

/* Where the instruction itself is from. */
static void find_line(struct place *p)
{
	Dwarf_Line *line = dwarf_getsrc_die(p->unit, p->address - p->bias);
	int number = 0;

	if (line && !dwarf_lineno(line, &number))
		set_line(&p->names[0], dwarf_linesrc(line, NULL, NULL), number);
}

/* Where the inlined function was called. */
static void find_call(struct place *p, Dwarf_Die *inlined,
		      struct symbols_name *outer)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute),
			    &file) ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute),
			    &line) ||
	    dwarf_getsrcfiles(p->unit, &files, &count) || file >= count)
		return;
	set_line(outer, dwarf_filesrc(files, file, NULL, NULL), (int)line);
}

/* With the classes that it is in, where the file says them. */
static char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(
		dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));

	if (!name)
		name = dwarf_formstring(dwarf_attr_integrate(
			die, DW_AT_MIPS_linkage_name, &attribute));
	if (!name)
		name = dwarf_diename(die);
	return name ? demangle(name) : NULL;
}

/* From the innermost scope to the function that really is there. */
static void take_scopes(struct place *p, Dwarf_Die *scopes, int count)
{
	struct symbols_name *at = p->names;
	int i;

	for (i = 0; i < count && p->count < MOST_NAMES; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine &&
		    tag != DW_TAG_subprogram)
			continue;
		at->function = die_name(&scopes[i]);
		if (tag == DW_TAG_subprogram)
			return;
		at->inlined = true;
		find_call(p, &scopes[i], ++at);
		p->count++;
	}
}

static void find_scopes(struct place *p)
{
	Dwarf_Die *inner = NULL, *scopes = NULL;
	int count = dwarf_getscopes(p->unit, p->address - p->bias, &inner);

	if (count > 0)
		count = dwarf_getscopes_die(&inner[0], &scopes);
	if (count > 0)
		take_scopes(p, scopes, count);
	free(scopes);
	free(inner);
}

static struct known *look_up(struct symbols_file *f, uint64_t offset)
{
	struct symbols_name names[MOST_NAMES + 1] = {0};
	struct place p = {.file = f, .names = names, .count = 1};
	struct known *k;
	const char *symbol = NULL;

	if (!symbols_trouble(f) &&
	    image_address(f->entry->image, offset, &p.address)) {
		symbol = symbol_at(f, p.address);
		find_unit(&p);
	}
	if (p.unit) {
		find_line(&p);
		find_scopes(&p);
	}
	if (symbol) {
		free((void *)(uintptr_t)names[p.count - 1].function);
		names[p.count - 1].function = demangle(symbol);
	}
	k = xcalloc(1, sizeof(*k) + p.count * sizeof(*names));
	k->offset = offset;
	k->count = p.count;
	memcpy(k->names, names, p.count * sizeof(*names));
	return k;
}

size_t symbols_at(struct symbols_file *f, uint64_t offset,
		  const struct symbols_name **names)
{
	struct known *k;

	HASH_FIND(hh, f->known, &offset, sizeof(offset), k);
	if (!k) {
		k = look_up(f, offset);
		HASH_ADD(hh, f->known, offset, sizeof(k->offset), k);
	}
	*names = k->names;
	return k->count;
}

void symbols_free(struct symbols_file *f)
{
	struct known *k, *next;
	size_t i;

	HASH_ITER(hh, f->known, k, next)
	{
		HASH_DEL(f->known, k);
		for (i = 0; i < k->count; i++) {
			free((void *)(uintptr_t)k->names[i].function);
			free((void *)(uintptr_t)k->names[i].source);
		}
		free(k);
	}
	free(f->symbols);
	if (f->dwfl)
		dwfl_end(f->dwfl);
	free(f);
}
