#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The report as a page: whole, by itself, and legible without a picture.

load helpers

setup() {
	new_logs
	PAGE=$BATS_TEST_TMPDIR/page.html
}

# check_page FILE: what holds for every page.
check_page() {
	"$PYTHON" - "$1" <<-'EOP'
		import html.parser, json, re, sys

		VOID = {"meta", "link", "input", "br", "img", "hr"}
		class Page(html.parser.HTMLParser):
		    def __init__(self):
		        super().__init__()
		        self.open, self.ids, self.links, self.count = [], [], [], {}
		        self.text, self.json, self.labels = [], None, []
		        self.rows = []
		    def handle_starttag(self, tag, attributes):
		        a = dict(attributes)
		        self.count[tag] = self.count.get(tag, 0) + 1
		        if tag not in VOID:
		            self.open.append((tag, a))
		        if "id" in a:
		            self.ids.append(a["id"])
		        for name in "href", "src":
		            if a.get(name):
		                self.links.append(a[name])
		        for name in "aria-labelledby",:
		            if name in a:
		                self.labels += a[name].split()
		        assert not any(k.startswith("on") for k in a), (tag, a)
		        if tag == "th":
		            assert a.get("scope") == "col", a
		        if tag == "tr":
		            self.rows.append([self.count["table"], 0])
		        if tag in ("th", "td"):
		            self.rows[-1][1] += 1
		        if tag == "svg" and a.get("role") == "img":
		            assert "aria-labelledby" in a
		    def handle_startendtag(self, tag, attributes):
		        self.handle_starttag(tag, attributes)
		        self.handle_endtag(tag)
		    def handle_endtag(self, tag):
		        # The end tag of an option may be left out; none here is.
		        assert self.open and self.open[-1][0] == tag, \
		            (tag, [t for t, _ in self.open])
		        self.open.pop()
		    def handle_data(self, data):
		        if self.open and self.open[-1][1].get("type") == \
		                "application/json":
		            self.json = json.loads(data)
		        elif not (self.open and self.open[-1][0] in
		                  ("script", "style")):
		            self.text.append(data)

		text = open(sys.argv[1], encoding="utf-8").read()
		page = Page()
		page.feed(text)
		page.close()
		assert not page.open, page.open
		assert text.startswith("<!DOCTYPE html>")
		assert '<html lang=en>' in text and '<meta charset=utf-8>' in text
		assert len(set(page.ids)) == len(page.ids), page.ids
		assert set(page.labels) <= set(page.ids), page.labels
		for link in page.links:
		    assert link.startswith("#"), link
		    assert link[1:] in page.ids, link
		for tag in "title", "main", "h1", "nav", "header", "footer":
		    assert page.count.get(tag, 0) >= 1, tag
		assert page.count["h1"] == 1
		tables = page.count.get("table", 0)
		assert tables == page.count.get("caption", 0)
		# Each cell has a heading above it.
		assert len(set(map(tuple, page.rows))) == tables, page.rows
		# Nothing is fetched from anywhere.
		assert not re.search(r"url\(|@import|fetch\(|XMLHttp|import\(", text)
		for word in re.findall(r"https?://[^\s\"'<]*", text):
		    assert word.startswith("http://www.w3.org/"), word
		sys.stdout.write("".join(page.text))
	EOP
}

@test "the page is whole, and says what the text report says" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 200 >/dev/null
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	contains "$output" 'Verdict: '
	contains "$output" 'What to try, the most promising first'
	for part in 'How long calls took' 'Over time' 'Worst calls' Sites \
		'Flame graph' Threads 'Settings and coverage' munmap \
		'lock=mutex' 'waiting at the gate'; do
		contains "$output" "$part"
	done
	verdict=$(report 'd["verdict"]["headline"]')
	contains "$output" "$verdict"
}

@test "charts are told in words too" {
	gate none "$SUBJECTS/mapper" -t 2 >/dev/null
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	contains "$output" 'munmap: half within '
	contains "$output" 'calls/s: at most '
}

@test "names with markup are text" {
	strange="$BATS_TEST_TMPDIR/a<b>&\"'</script><img src=x onerror=x>"
	mkdir -p "$(dirname "$strange")"
	cp "$SUBJECTS/mapper" "$strange"
	mmgate run --quiet --hooks symbols -o "$LOGS" -- "$strange" >/dev/null
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	equal "$(grep -c '<img' "$PAGE")" 0
	contains "$output" 'onerror=x>'
	lacks "$(LC_ALL=C tr -d '\n\t\40-\377' <"$PAGE")" '?'
}

@test "pages of little, and of many processes, are whole" {
	mmgate run --quiet --events off --stacks off -o "$LOGS" -- \
		"$SUBJECTS/mapper" -n 0
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	contains "$output" 'No single calls are in the logs'
	mmgate run --quiet -o "$LOGS" -- bash -c "for i in {1..12}; do
		'$SUBJECTS/mapper' -n 10 >/dev/null; done"
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	contains "$output" Processes
	contains "$output" ' on '
	# Without `run` there is nothing over time.
	rm "$LOGS/run.rows"
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	contains "$output" 'There are no figures over time'
}

@test "the page of a program with 500 threads is small" {
	gate mutex "$SUBJECTS/mapper" -t 500 -n 4 >/dev/null
	mmgate report --format html -o "$PAGE" "$LOGS"
	run -0 check_page "$PAGE"
	holds "$(stat -c %s "$PAGE")" -le 1000000 bytes
}

@test "a page of two runs is refused" {
	gate none "$SUBJECTS/mapper" >/dev/null
	run -2 --separate-stderr mmgate report --format html --diff "$LOGS" \
		"$LOGS"
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" 'it has text and json'
}
