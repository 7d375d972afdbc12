package rehydrate

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// What comes back of one result.
const (
	// LinesPerName of a result that have a name come back, the first ones.
	LinesPerName = 1
	// MaxLineChars bounds a line, around the name.
	MaxLineChars = 160
	// minMoreChars is the number of letters and digits that a line must have without the
	// name.
	minMoreChars = 10
	// beforeName is how much of a cut line stands before the name.
	beforeName = 60
)

// head begins the section.
const head = "Earlier output, by step:"

// priority is the section's priority in the runtime phase: behind the plan and past errors.
const priority = 40

// Line is a line of a folded result.
type Line struct {
	// Ref is how the result is read in full, such as "step_012".
	Ref string
	// Text is the line, cut if it is long.
	Text string
}

// Lines returns the lines of a folded result that hold names, in order and each once,
// except lines that are in one of the shown texts.
func Lines(ref, result string, names, shown []string) []Line {
	left := make(map[string]int, len(names))
	for _, name := range names {
		left[name] = LinesPerName
	}
	var lines []Line
	known := make(map[string]bool)
	for line := range strings.Lines(result) {
		line = strings.TrimSpace(line)
		name := take(left, names, line)
		if name == "" || known[line] || !saysMore(line, name) || has(shown, line) {
			continue
		}
		known[line] = true
		lines = append(lines, Line{ref, short(line, name)})
	}
	return lines
}

// take returns the first name that a line holds and that still wants lines; it wants one
// less then.
func take(left map[string]int, names []string, line string) string {
	for _, name := range names {
		if left[name] > 0 && excerpt.HasIdentifier(line, name) {
			left[name]--
			return name
		}
	}
	return ""
}

// saysMore reports whether a line says more than a name: a list of files does not.
func saysMore(line, name string) bool {
	more := 0
	for _, r := range strings.ReplaceAll(line, name, "") {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			more++
		}
	}
	return more >= minMoreChars
}

// has reports whether one of the texts has a line.
func has(texts []string, line string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, line) })
}

// short is a line of at most MaxLineChars characters with the name in it.
func short(line, name string) string {
	line = text.OneLine(line)
	cutHead := ""
	if at := strings.Index(line, name); at > beforeName && len(line) > MaxLineChars {
		kept := text.Tail(line[:at], beforeName)
		line, cutHead = kept+line[at:], text.Ellipsis
	}
	if kept, cut := text.HeadChars(line, MaxLineChars); cut {
		return cutHead + kept + text.Ellipsis
	}
	return cutHead + line
}

// Section is the injection of what comes back: as many of the lines, each once, as fit
// limit tokens; none without lines.
func Section(lines []Line, limit int, count func(string) int) inject.Injection {
	in := inject.Injection{
		Name: settings.Rehydrated, Phase: inject.Runtime, Cache: inject.Dynamic, Priority: priority, MaxTokens: limit,
		Framed: true, Source: "folded results",
	}
	known := make(map[Line]bool)
	for _, l := range lines {
		if known[l] {
			continue
		}
		known[l] = true
		written := in.Text
		written = cmp.Or(written, head)
		written += "\n" + l.Ref + ": " + guard.Inline(l.Text)
		if limit > 0 && count(written) > limit {
			break
		}
		in.Text = written
	}
	return in
}
