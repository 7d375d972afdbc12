package step

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// The figures that are recognized in what programs print. They are keys of a
// step's metadata and never change.
const (
	figureTestsPassed  = "tests_passed"  // of test runners
	figureTestsFailed  = "tests_failed"  //
	figureTestsSkipped = "tests_skipped" //
	figureTestErrors   = "tests_errors"  // tests that could not be run
	figureMatches      = "matches"       // lines that a search found
	figureFilesMatched = "files_matched" // the files they stand in
	figureBranch       = "branch"        // of git: text
	figureStaged       = "staged"        // files of a git status
	figureModified     = "modified"      //
	figureUntracked    = "untracked"     //
	figureUnmerged     = "unmerged"      //
	figureCommits      = "commits"       // of a git log
	figureFilesChanged = "files_changed" // of a diff
	figureInsertions   = "insertions"    //
	figureDeletions    = "deletions"     //
	figureErrors       = "errors"        // of compilers and linters
	figureWarnings     = "warnings"      //
	figureException    = "exception"     // the last exception: text
	figureItems        = "json_items"    // elements of a JSON array
	figureKeys         = "json_keys"     // keys of a JSON object
	figureRows         = "rows"          // of a table
	figureFiles        = "files"         // of a long listing
	figureDirs         = "dirs"          //
	figureExit         = "exit_code"     // that a text has by itself
)

const (
	// maxTelling bounds the lines that a recognizer holds to be telling.
	maxTelling = 12
	// maxRecognizedLine bounds the lines that are looked at.
	maxRecognizedLine = 1000
	// maxCounted bounds the different files that are counted.
	maxCounted = 10000
)

// survey is the result of recognizing the form of a text.
type survey struct {
	found map[string]any
	// telling are lines worth keeping as they are, such as the summary of a test
	// run and the names of the tests that failed.
	telling []string
	// partial says that the text was incomplete, so counts of lines are unknown.
	partial bool
}

// set notes a figure; of numbers only those above zero.
func (s *survey) set(name string, value any) {
	if n, isNumber := value.(int64); isNumber && n <= 0 || value == "" {
		return
	}
	s.always(name, value)
}

// always notes a figure, zero or not.
func (s *survey) always(name string, value any) {
	if s.found == nil {
		s.found = make(map[string]any)
	}
	s.found[name] = value
}

// counted notes a figure that was counted by lines.
func (s *survey) counted(name string, n int64) {
	if !s.partial {
		s.set(name, n)
	}
}

// add keeps a line.
func (s *survey) add(line string) {
	if line = strings.TrimSpace(line); line != "" && len(s.telling) < maxTelling && !slices.Contains(s.telling, line) {
		s.telling = append(s.telling, line)
	}
}

// figures adds what was found to a reading's own figures, which come first.
func (s *survey) figures(rd *finding) {
	for name, value := range s.found {
		if _, known := rd.figures[name]; !known {
			rd.figure(name, value)
		}
	}
}

// recognizer looks at a text line by line.
type recognizer interface {
	line(s *survey, line string)
	// end is called behind the last line.
	end(s *survey)
}

// recognize finds out what a program printed: it looks at the held ends of the
// text, and at the command, which may be empty.
func recognize(command string, body shown) survey {
	parts := []string{body.text}
	s := survey{partial: !body.whole()}
	switch {
	case s.partial:
		parts = []string{text.Head(body.text, HeldBodyBytes), body.tail}
	case len(body.text) > 2*HeldBodyBytes:
		s.partial = true
		parts = []string{text.Head(body.text, HeldBodyBytes), text.Tail(body.text, HeldBodyBytes)}
	}
	all := []recognizer{
		&testRun{}, &search{hinted: searches(command)}, &gitStatus{short: strings.Contains(command, "git status")},
		&gitLog{hinted: strings.Contains(command, "git log")}, &diff{}, &build{}, &raised{}, &listed{}, &grid{},
	}
	for _, part := range parts {
		for line := range strings.Lines(part) {
			if len(line) <= maxRecognizedLine {
				line = strings.TrimRight(line, "\r\n")
				for _, r := range all {
					r.line(&s, line)
				}
			}
		}
	}
	for _, r := range all {
		r.end(&s)
	}
	if !s.partial {
		s.json(body.text)
	}
	s.exit(parts)
	return s
}

// json counts what is in JSON text.
func (s *survey) json(text string) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "{"):
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) == nil {
			s.always(figureKeys, int64(len(object)))
		}
	case strings.HasPrefix(text, "["):
		var array []json.RawMessage
		if json.Unmarshal([]byte(text), &array) == nil {
			s.always(figureItems, int64(len(array)))
		}
	}
}

// exit finds the exit code that harnesses write above or below an output.
func (s *survey) exit(parts []string) {
	first, _, _ := strings.Cut(parts[0], "\n")
	last := strings.TrimRight(parts[len(parts)-1], " \t\r\n")
	last = last[strings.LastIndexByte(last, '\n')+1:]
	for _, line := range []string{first, last} {
		if code, ok := exitIn(line); ok {
			s.always(figureExit, code)
			return
		}
	}
}

// exitIn reads an exit code out of a line that says one and little else.
func exitIn(line string) (int64, bool) {
	line = strings.ToLower(text.Head(strings.TrimLeft(line, " \t[("), 100))
	if code, ok := strings.CutPrefix(line, "<returncode>"); ok {
		return leadingInteger(code)
	}
	for _, lead := range exitLeads() {
		if rest, ok := strings.CutPrefix(line, lead); ok {
			return leadingInteger(strings.TrimLeft(rest, ": ="))
		}
	}
	return 0, false
}

// exitLeads are the words that harnesses put before an exit code.
func exitLeads() []string {
	return []string{
		"exit code", "return code", "exit status", "exited with code", "the command completed with exit code",
		"command finished with exit code", "command exited with code", "process exited with code",
		"command failed with exit code",
	}
}

// leadingInteger reads the whole number that a text begins with.
func leadingInteger(text string) (int64, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	n, rest := leadingNumber(digits)
	if len(rest) == len(digits) {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// maxLeading bounds numbers that are read: more is no count.
const maxLeading = 1 << 40

// leadingNumber reads the digits that a text begins with, and returns what
// follows them.
func leadingNumber(text string) (int64, string) {
	n, i := int64(0), 0
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		n = min(n*10+int64(text[i]-'0'), maxLeading)
		i++
	}
	return n, text[i:]
}

// countBefore reads "12 files": the number before a word, which may go on.
func countBefore(text, word string) int64 {
	at := strings.Index(text, word)
	if at <= 0 {
		return 0
	}
	fields := strings.Fields(text[:at])
	if len(fields) == 0 {
		return 0
	}
	n, rest := leadingNumber(strings.TrimLeft(fields[len(fields)-1], "("))
	if rest != "" {
		return 0
	}
	return n
}
