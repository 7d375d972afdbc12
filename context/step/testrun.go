package step

import "strings"

// testRun recognizes the output of test runners of Go, Python, JavaScript, Rust, Java, Ruby
// and CMake.
type testRun struct {
	counts map[string]int64
	// seen counts results on separate lines, for runners that print no sum.
	passed, failed, skipped int64
	// ran is how many there were where the sum has only the failures.
	ran int64
}

// outcomeFigure is the figure that a runner's word counts for.
func outcomeFigure(word string) string {
	switch strings.ToLower(strings.Trim(word, ".;)")) {
	case "passed", "passing", "pass":
		return figureTestsPassed
	case "failed", "failing", "failures", "failure", "fail":
		return figureTestsFailed
	case "skipped", "pending", "ignored", "todo", "xfailed":
		return figureTestsSkipped
	case "error", "errors":
		return figureTestErrors
	}
	return ""
}

// testLineStarts are the first bytes of the lines that test runners are known
// by. Most lines of other programs begin with none of them.
const testLineStarts = "-FEtTRO0123456789\xe2"

func (t *testRun) line(s *survey, line string) {
	from := 0
	for from < len(line) && (line[from] == ' ' || line[from] == '=' || line[from] == '\t') {
		from++
	}
	if from == len(line) || strings.IndexByte(testLineStarts, line[from]) < 0 {
		return
	}
	switch text := strings.TrimRight(line[from:], " \t="); {
	case t.result(s, text):
	case t.summary(text):
		s.add(text)
	}
}

// result takes the result of one test, and names it if it failed.
func (t *testRun) result(s *survey, text string) bool {
	switch {
	case strings.HasPrefix(text, "--- PASS: "):
		t.passed++
	case strings.HasPrefix(text, "--- SKIP: "):
		t.skipped++
	case strings.HasPrefix(text, "--- FAIL: "):
		t.failed++
		s.add(text)
	case strings.HasPrefix(text, "FAILED ") && strings.Contains(text, "::"),
		strings.HasPrefix(text, "ERROR ") && strings.Contains(text, "::"),
		strings.HasPrefix(text, "test ") && strings.HasSuffix(text, "... FAILED"),
		strings.HasPrefix(text, "FAIL\t"), strings.HasPrefix(text, "FAIL: "), strings.HasPrefix(text, "● "):
		s.add(text)
	default:
		return false
	}
	return true
}

// summary takes a runner's sum.
func (t *testRun) summary(text string) bool {
	switch before, _, timed := strings.Cut(text, " in "); {
	case strings.HasPrefix(text, "test result:"): // cargo, once for each binary
		_, list, _ := strings.Cut(text, ". ")
		return t.take(list, true)
	case strings.HasPrefix(text, "Tests:"), strings.HasPrefix(text, "Tests  "): // jest, vitest
		return t.take(strings.TrimLeft(text[len("Tests:"):], " "), false)
	case strings.HasPrefix(text, "Tests run:"): // JUnit; the last is the sum
		return t.takeNamed(text)
	case strings.HasPrefix(text, "FAILED ("): // unittest
		return t.takeNamed(strings.Trim(text[len("FAILED "):], "()"))
	case timed && strings.HasPrefix(text, "Ran "):
		t.ran, _ = leadingNumber(text[len("Ran "):])
		return t.ran > 0
	case text == "OK" && t.ran > 0:
		return true
	case timed && startsWithDigit(text): // pytest
		return t.take(before, false)
	case strings.Contains(text, " passing"), strings.Contains(text, " failing"): // mocha, a line each
		return startsWithDigit(text) && t.more(text)
	case strings.Contains(text, " examples, "): // rspec
		t.ran, _ = leadingNumber(text)
		return t.take(text, false)
	case strings.Contains(text, "% tests passed, "): // ctest
		t.ran = max(countBefore(text+"\n", "\n"), 0)
		return t.take(text, false)
	}
	return false
}

func startsWithDigit(text string) bool { return text != "" && '0' <= text[0] && text[0] <= '9' }

// take reads "3 failed, 12 passed", in place of what was read before or added to
// it.
func (t *testRun) take(list string, add bool) bool {
	found := make(map[string]int64)
	for _, item := range strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ';' || c == '|' }) {
		words := strings.Fields(item)
		if len(words) < 2 {
			continue
		}
		n, rest := leadingNumber(words[0])
		figure := outcomeFigure(words[1])
		if figure == "" && len(words) > 2 {
			figure = outcomeFigure(words[2]) // "1 tests failed"
		}
		if figure != "" && rest == "" {
			found[figure] += n
		}
	}
	return t.keep(found, add)
}

// more reads one line of a sum that has several.
func (t *testRun) more(text string) bool {
	before := t.counts
	if !t.take(text, false) {
		return false
	}
	for figure, n := range before {
		if _, again := t.counts[figure]; !again {
			t.counts[figure] = n
		}
	}
	return true
}

// takeNamed reads "Tests run: 12, Failures: 1" and "failures=1, errors=2".
func (t *testRun) takeNamed(list string) bool {
	found := make(map[string]int64)
	for item := range strings.SplitSeq(list, ",") {
		name, count, ok := strings.Cut(strings.Replace(item, "=", ":", 1), ":")
		n, digits := leadingNumber(strings.TrimSpace(count))
		if !ok || digits == strings.TrimSpace(count) {
			continue
		}
		if name = strings.TrimSpace(name); name == "Tests run" {
			t.ran = n
		} else if figure := outcomeFigure(name); figure != "" {
			found[figure] = n
		}
	}
	return t.keep(found, false)
}

func (t *testRun) keep(found map[string]int64, add bool) bool {
	if len(found) == 0 {
		return false
	}
	if add {
		for figure, n := range t.counts {
			found[figure] += n
		}
	}
	t.counts = found
	return true
}

func (t *testRun) end(s *survey) {
	counts := t.counts
	if counts == nil && t.ran > 0 {
		counts = map[string]int64{}
	}
	if counts == nil {
		if !s.partial && t.passed+t.failed+t.skipped > 0 {
			s.always(figureTestsPassed, t.passed)
			s.always(figureTestsFailed, t.failed)
			s.set(figureTestsSkipped, t.skipped)
		}
		return
	}
	if _, known := counts[figureTestsPassed]; !known && t.ran > 0 {
		counts[figureTestsPassed] = max(t.ran-counts[figureTestsFailed]-counts[figureTestErrors]-counts[figureTestsSkipped], 0)
	}
	s.always(figureTestsPassed, counts[figureTestsPassed])
	s.always(figureTestsFailed, counts[figureTestsFailed])
	s.set(figureTestsSkipped, counts[figureTestsSkipped])
	s.set(figureTestErrors, counts[figureTestErrors])
}
