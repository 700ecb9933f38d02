/* SPDX-License-Identifier: MIT */
/* Who used the CPUs, by lines as /proc/stat has them. */
#include "../../tools/machine.h"
#include "check.h"

static void test_parse(void)
{
	struct machine m;

	check_true(machine_parse("cpu  10 20 30 400 50 6 7 80 5 1\n", &m),
		   "a line of today");
	check_between(73, 73, m.busy, "user, nice, system, irq, softirq");
	check_between(80, 80, m.stolen, "steal");
	check_between(603, 603, m.all, "all of it, guests once");
	check_true(!machine_parse("cpu  10 20 30\n", &m), "an old line");
	check_true(!machine_parse("cpu0 10 20 30 400 50 6 7 80\n", &m),
		   "one CPU of several");
	check_true(!machine_parse("", &m), "nothing");
}

static void test_parts(void)
{
	const struct machine from = {100, 50, 10, 20};
	const struct machine to = {104, 53, 10.2, 22},
			     soon = {100.5, 50.5, 10, 20};
	struct machine sum = {0}, little = {0};

	machine_add(&sum, &from, &to);
	check_between(0.2499, 0.2501, machine_others(&sum), "others");
	check_between(0.0499, 0.0501, machine_stolen(&sum), "the hypervisor");
	machine_add(&little, &from, &soon);
	check_between(0, 0, machine_others(&little), "too little to tell");
	machine_add(&little, &to, &from);
	check_between(0, 0, machine_others(&little), "never below 0");
}

int main(void)
{
	test_parse();
	test_parts();
	return check_done();
}
