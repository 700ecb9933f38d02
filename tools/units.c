/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>

#include "units.h"

enum { BUFFERS = 16, BUFFER_BYTES = 24 };

struct unit {
	double size;
	const char *name;
};

static const struct unit times[] = {
	{1, " ns"},  {1e3, " us"},   {1e6, " ms"},
	{1e9, " s"}, {60e9, " min"}, {3600e9, " h"},
};
static const struct unit counts[] = {
	{1, ""}, {1e3, " k"}, {1e6, " M"}, {1e9, " G"}, {1e12, " T"},
};
static const struct unit sizes[] = {
	{1, " B"},
	{1024., " KiB"},
	{1024. * 1024, " MiB"},
	{1024. * 1024 * 1024, " GiB"},
	{1024. * 1024 * 1024 * 1024, " TiB"},
};

static char *next_buffer(void)
{
	static char buffers[BUFFERS][BUFFER_BYTES];
	static unsigned turn;

	return buffers[turn++ % BUFFERS];
}

/* Three digits; the limits are where rounding would make a fourth. */
static int decimals(double value)
{
	if (value < 9.995)
		return 2;
	return value < 99.95 ? 1 : 0;
}

static const char *scaled(double value, const struct unit *units, size_t n)
{
	char *out = next_buffer();
	size_t i = 0;
	int places = 0;

	if (value < 0.5 || value != value)
		return "0";
	/* 999.6 us is 1.00 ms: two units never differ by rounding alone. */
	while (i + 1 < n && value >= units[i + 1].size * 0.9995)
		i++;
	if (i > 0)
		places = decimals(value / units[i].size);
	snprintf(out, BUFFER_BYTES, "%.*f%s", places, value / units[i].size,
		 units[i].name);
	return out;
}

#define SCALED(value, units)                                                   \
	scaled(value, units, sizeof(units) / sizeof(*units))

const char *units_time(double ns)
{
	return SCALED(ns, times);
}

const char *units_count(uint64_t count)
{
	return SCALED((double)count, counts);
}

const char *units_bytes(double bytes)
{
	return SCALED(bytes, sizes);
}

const char *units_percent(double share)
{
	char *out = next_buffer();
	double percent = share * 100;

	if (!(percent > 0))
		return "0 %";
	if (percent < 0.1)
		return "<0.1 %";
	snprintf(out, BUFFER_BYTES, "%.*f %%", percent < 99.95 ? 1 : 0,
		 percent);
	return out;
}
