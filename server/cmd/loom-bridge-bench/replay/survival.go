package replay

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// The classes of what may survive folding.
const (
	classPaths    = "paths"
	classCommands = "commands"
	classNumbers  = "numbers"
	classErrors   = "error_lines"
)

var classes = []string{classPaths, classCommands, classNumbers, classErrors}

var (
	path   = regexp.MustCompile(`(?:[\w.-]+/)+[\w.-]+`)
	figure = regexp.MustCompile(`\b\d+(?:\.\d+)?\s?(?:ms|s|MB|KB|GB)\b|\b\d+(?:\.\d+)?%|\b\d+ (?:passed|failed|errors?)\b`)
	failed = regexp.MustCompile(`(?i)\b(error|exception|fatal|panic|failed|traceback|cannot|denied|not found)\b`)
)

// errorLines of one result that have to survive: so many of the first and of
// the last.
const errorLines = 3

// survival looks, at the run's last step, for what the folded messages held.
func (r *replayed) survival() {
	var all strings.Builder
	for _, p := range r.last.Pieces {
		all.WriteString(p.Text + "\n" + p.Args + "\n")
	}
	text := all.String()
	paths := make(map[string]bool)
	for _, p := range path.FindAllString(text, -1) {
		paths[strings.Trim(p, ".:-/")] = true
	}
	held := map[string]map[string]bool{classPaths: {}, classNumbers: {}, classErrors: {}}
	for i := range min(r.lastAt, len(r.last.Folded)) {
		if !r.last.Folded[i] {
			continue
		}
		e := &r.run.Entries[i]
		for _, command := range r.run.commands(i) {
			r.m.tally(classCommands, strings.Contains(text, command))
		}
		if e.Kind == history.Result {
			collect(e, held)
		}
	}
	for class, values := range held {
		for v := range values {
			r.m.tally(class, class == classPaths && paths[v] || class != classPaths && strings.Contains(text, v))
		}
	}
}

func (m *measurement) tally(class string, survived bool) {
	m.held[class]++
	if survived {
		m.survived[class]++
	}
}

// collect adds what a result holds, each once for a run.
func collect(e *history.Entry, held map[string]map[string]bool) {
	for _, p := range path.FindAllString(e.Output, -1) {
		held[classPaths][strings.Trim(p, ".:-/")] = true
	}
	for _, n := range figure.FindAllString(e.Output, -1) {
		held[classNumbers][n] = true
	}
	if !e.Failed && (e.Exit == nil || *e.Exit == 0) {
		return
	}
	var lines []string
	for line := range strings.SplitSeq(e.Output, "\n") {
		if failed.MatchString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) > 2*errorLines {
		lines = slices.Concat(lines[:errorLines], lines[len(lines)-errorLines:])
	}
	for _, line := range lines {
		held[classErrors][line] = true
	}
}
