package pairing

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// repeatSlack is how much of a result's white space is looked through, in
// bytes, for an observation that repeats its beginning.
const repeatSlack = 1 << 10

// Texts for steps that say nothing themselves.
const (
	noOutput       = "(no output)"
	unknownOutcome = "The outcome is unknown: the tool was interrupted and may or may not have taken effect."
)

// fullText is the result itself, and above it what it does not say: what was
// observed, unless that only repeats it, and where all of it lies, unless it is
// all there.
func fullText(s *step.Step, style step.ReferenceStyle, reader string) string {
	lines := []string{observation(s, style, reader), s.Inline}
	if s.Outcome == step.Unknown && s.Observation == "" {
		lines = append(lines, unknownOutcome)
	}
	return cmp.Or(withError(s, JoinLines(lines)), noOutput)
}

// observation is what stands above a step's result.
func observation(s *step.Step, style step.ReferenceStyle, reader string) string {
	known := repeats(s) || s.Output() != s.Inline
	switch whole := s.Inline != "" && s.Evidence == "" && s.Beginning() == len(s.Inline); {
	case whole && known, known && !s.NeedsOffload():
		return ""
	case whole:
		return s.Observation
	case known:
		bare := *s
		bare.Observation = ""
		return strings.TrimPrefix(bare.ToObservationBy(style, reader), ". ")
	}
	return s.ToObservationBy(style, reader)
}

// OutputOf returns the output of a step, without a frame: the result, or its observation if
// no result is kept.
func OutputOf(s *step.Step) string {
	output := s.Output()
	if mark, _ := s.CutMark(); mark != "" {
		// Its words are no part of the result, so they name nothing.
		output = strings.Replace(output, mark, "\n…\n", 1)
	}
	return text.Valid(withError(s, cmp.Or(output, s.Observation)))
}

// withError adds the failure's own text to a text that does not say it.
func withError(s *step.Step, body string) string {
	if s.Error != "" && !strings.Contains(text.OneLine(body), text.OneLine(s.Error)) {
		return JoinLines([]string{body, "Error: " + s.Error})
	}
	return body
}

// JoinLines puts each text that is not empty on its own line. It overwrites the
// slice that it is given.
func JoinLines(lines []string) string {
	kept := lines[:0]
	for _, line := range lines {
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// repeats reports whether the observation is the beginning of the result: the
// text itself, or "{tool} → {text}", cut with an ellipsis or not.
func repeats(s *step.Step) bool {
	shown := strings.TrimSuffix(strings.TrimSuffix(s.Observation, "…"), "...")
	if _, after, ok := strings.Cut(shown, " → "); ok {
		shown = after
	}
	// White space may take more room in the result than on one line. Where it
	// takes very much, both are shown.
	start := s.Inline[:min(len(s.Inline), 2*len(shown)+repeatSlack)]
	return s.Inline != "" && beginsWith(start, shown)
}

// beginsWith reports whether a text on one line, as text.OneLine writes it, begins
// with another. It reads no more of the text than it has to.
func beginsWith(text, shown string) bool {
	gap, begun := false, false
	for _, c := range text {
		if shown == "" {
			return true
		}
		if unicode.IsSpace(c) {
			gap = begun
			continue
		}
		if gap && shown[0] != ' ' {
			return false
		}
		if gap {
			shown = shown[1:]
		}
		rest, ok := strings.CutPrefix(shown, string(c))
		if !ok {
			return strings.HasPrefix(string(c), shown)
		}
		shown = rest
		gap, begun = false, true
	}
	return shown == ""
}

// Reference is where the full text of a result can be read.
func Reference(s *step.Step) string { return cmp.Or(s.OutcomePath, s.ID()) }
