#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The page of the report in a browser.

load helpers

setup() {
	new_logs
	PAGE=$BATS_TEST_TMPDIR/page.html
	BROWSER=$(command -v chromium || command -v chromium-browser ||
		command -v google-chrome) || skip 'no chromium here'
}

# dom FILE [WORDS]: the document after its scripts; what they say goes to
# $BATS_TEST_TMPDIR/console.
dom() {
	timeout 100 "$BROWSER" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$BATS_TEST_TMPDIR/browser" \
		--host-resolver-rules='MAP * ~NOTFOUND' \
		--enable-logging=stderr --dump-dom "${@:2}" "file://$1" \
		2>"$BATS_TEST_TMPDIR/console"
}

# make_page [CMD...]
make_page() {
	[ $# -gt 0 ] || set -- "$EXAMPLES/malloc_churn" -t 4 -n 100
	mmgate run --quiet --lock mutex --long gate --stacks every:1 \
		-o "$LOGS" -- "$@" >/dev/null
	mmgate report --format html -o "$PAGE" "$LOGS"
}

# act SCRIPT [WORDS]: a page with a script behind its own.
act() {
	sed 's|</body></html>$||' "$PAGE" >"$PAGE.act.html"
	printf '<script>%s</script></body></html>' "$1" >>"$PAGE.act.html"
	dom "$PAGE.act.html" "${@:2}"
}

@test "its scripts run without a complaint" {
	make_page
	dom "$PAGE" >"$BATS_TEST_TMPDIR/dom"
	equal "$(grep -c CONSOLE "$BATS_TEST_TMPDIR/console")" 0 \
		"$(grep CONSOLE "$BATS_TEST_TMPDIR/console")"
	contains "$(cat "$BATS_TEST_TMPDIR/dom")" '<button type="button">calls'
}

@test "every column of every table sorts by what is clicked, both ways" {
	# Of two programs, so that processes are told apart; of one, threads
	# wait for each other.
	make_page sh -c '"$0/alike" populate; "$0/mapper"' "$SUBJECTS"
	# shellcheck disable=SC2016 # JavaScript
	run -0 act '
		const key = (row, column) => {
			const cell = row.cells[column];

			return cell.matches(".name") ? cell.textContent :
				Number(cell.dataset.value);
		};
		const sorted = (table, column, direction) => {
			const keys = Array.from(table.tBodies[0].rows).map(
				row => key(row, column));

			return keys.every((k, i) => k === k && (i === 0 ||
				(direction > 0 ? keys[i - 1] <= k :
				keys[i - 1] >= k)));
		};
		const wrong = [];
		let columns = 0;

		document.querySelectorAll("table.sorts").forEach(table => {
			const heads = Array.from(table.tHead.rows[0].cells);

			heads.forEach((head, column) => {
				for (const way of ["descending", "ascending"]) {
					head.firstChild.click();
					if (head.getAttribute("aria-sort") !== way ||
					    heads.filter(h => h.hasAttribute(
						"aria-sort")).length !== 1 ||
					    !sorted(table, column,
						way === "ascending" ? 1 : -1))
						wrong.push(head.textContent +
							" " + way);
				}
				columns++;
			});
		});
		document.body.dataset.says = columns + " columns, wrong:" +
			wrong.join();
	'
	[[ $output =~ data-says=\"([0-9]+)\ columns,\ wrong:([^\"]*) ]]
	equal "${BASH_REMATCH[2]}" ''
	# Of calls, threads and processes; of sites where stacks are resolved.
	holds "${BASH_REMATCH[1]}" -ge 20 'columns that sort'
}

@test "the flame graph is drawn, can be weighed and zoomed" {
	make_page
	[ "$(report 'len(p[0]["sites"])')" -gt 0 ] ||
		skip 'no stacks are resolved in this build'
	# shellcheck disable=SC2016 # JavaScript
	run -0 act '
		const boxes = () => document.querySelectorAll("#flame g");
		const all = boxes().length;
		document.querySelector("[name=weight][value=kernel]").click();
		const kernel = boxes().length;
		const box = boxes()[2];
		const name = box.getAttribute("aria-label").split(",")[0];
		box.dispatchEvent(new Event("click"));
		const first = boxes()[0].getAttribute("aria-label");
		const back = document.getElementById("flame-whole");
		const enabled = !back.disabled;
		back.click();
		document.body.dataset.says = [all > 3, kernel > 3,
			first.startsWith(name), enabled, back.disabled,
			boxes().length === kernel].join(" ");
	'
	contains "$output" 'data-says="true true true true true true"'
}

@test "nothing is wider than a narrow window, but what scrolls" {
	make_page
	# shellcheck disable=SC2016 # JavaScript
	run -0 act 'document.body.dataset.says =
		document.documentElement.scrollWidth <=
		document.documentElement.clientWidth' --window-size=320,800
	contains "$output" 'data-says="true"'
}

@test "it is dark where that is wanted" {
	make_page
	# shellcheck disable=SC2016 # JavaScript
	script='document.body.dataset.says =
		getComputedStyle(document.body).backgroundColor'
	run -0 act "$script"
	contains "$output" 'data-says="rgb(255, 255, 255)"'
	run -0 act "$script" --blink-settings=preferredColorScheme=0
	contains "$output" 'data-says="rgb(20, 23, 27)"'
}
