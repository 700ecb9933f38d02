/* SPDX-License-Identifier: MIT */
/* What a run may take at most. */
#include "../../tools/measure.h"

#include "check.h"

int main(void)
{
	static const struct {
		double longest_s, timeout_s, slowest_s, limit_s;
	} rows[] = {
		{0, 0, 0, 0}, /* the first may take any time */
		{0, 0, 0.1, 60},  {0, 0, 7, 140}, {0, 5, 7, 5},
		{0, 900, 7, 900}, {10, 0, 7, 10}, {10, 5, 7, 5},
		{10, 20, 7, 10},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct measure m = {
			.longest_s = rows[i].longest_s,
			.timeout_s = rows[i].timeout_s,
			.slowest_s = rows[i].slowest_s,
		};

		check_between(rows[i].limit_s, rows[i].limit_s,
			      measure_limit_s(&m), "row %zu", i);
	}
	return check_done();
}
