package assemble

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// repeatSlack is how much of a result's white space is looked through, in
// bytes, for an observation that repeats its beginning.
const repeatSlack = 1 << 10

// Texts for steps that say nothing themselves.
const (
	noOutput       = "(no output)"
	unknownOutcome = "The outcome is unknown: the tool was interrupted and may or may not have taken effect."
)

// resultText is what a prompt shows of a step, within the limit.
func (a *Assembler) resultText(model string, s step.Step) (string, error) {
	text := strings.ToValidUTF8(fullText(s, a.reference), "\uFFFD")
	return a.capped(model, text, reference(s), !s.Success())
}

// fullText is the observation and below it the result itself. An observation
// that only repeats the beginning of the result, and leads nowhere else, is
// left out.
func fullText(s step.Step, style step.ReferenceStyle) string {
	var lines []string
	if s.NeedsOffload() || !repeats(s) {
		lines = append(lines, s.ToObservation(style))
	}
	lines = append(lines, s.Inline)
	if s.Outcome == step.Unknown && s.Observation == "" {
		lines = append(lines, unknownOutcome)
	}
	text := joined(lines)
	if s.Error != "" && !strings.Contains(step.OneLine(text), step.OneLine(s.Error)) {
		text = joined([]string{text, "Error: " + s.Error})
	}
	if text == "" {
		return noOutput
	}
	return text
}

func joined(lines []string) string {
	kept := lines[:0]
	for _, line := range lines {
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// repeats tells whether the observation is the beginning of the result: the
// text itself, or "{tool} → {text}", cut with an ellipsis or not.
func repeats(s step.Step) bool {
	shown := strings.TrimSuffix(s.Observation, "…")
	if _, after, ok := strings.Cut(shown, " → "); ok {
		shown = after
	}
	// White space may take more room in the result than on one line. Where it
	// takes very much, both are shown.
	start := s.Inline[:min(len(s.Inline), 2*len(shown)+repeatSlack)]
	return s.Inline != "" && strings.HasPrefix(step.OneLine(start), shown)
}

// reference is where the full text of a result can be read.
func reference(s step.Step) string {
	if s.OutcomePath != "" {
		return s.OutcomePath
	}
	return s.ID()
}

// capped cuts the middle out of a text over the limit of tokens. Of a result
// two thirds of what is left are its beginning; of a failure one third,
// because failures say at the end what happened.
func (a *Assembler) capped(model, text, reference string, failed bool) (string, error) {
	if len(text) <= a.limit {
		return text, nil // a token has at least one byte
	}
	count, err := a.counter.Count(model, text)
	if err != nil || count.Tokens <= a.limit {
		return text, err
	}
	note, err := a.counter.Count(model, omitted(len(text), reference))
	if err != nil {
		return "", err
	}
	// The ends are cut once more by what they turn out to be over the limit:
	// a text counted by itself may differ by some tokens.
	for room := a.limit - note.Tokens; room > 0; room -= count.Tokens - a.limit {
		short, err := a.cut(model, text, reference, room, failed)
		if err != nil {
			return "", err
		}
		if count, err = a.counter.Count(model, short); err != nil || count.Tokens <= a.limit {
			return short, err
		}
	}
	return omitted(utf8.RuneCountInString(text), reference), nil
}

// cut keeps room tokens of both ends together.
func (a *Assembler) cut(model, text, reference string, room int, failed bool) (string, error) {
	head := room * 2 / 3
	if failed {
		head = room / 3
	}
	first, last, err := a.counter.Ends(model, text, head, room-head)
	if err != nil {
		return "", err
	}
	missing := text[len(first) : len(text)-len(last)]
	return first + omitted(utf8.RuneCountInString(missing), reference) + last, nil
}

func omitted(chars int, reference string) string {
	return fmt.Sprintf("\n[...%d chars omitted. Full data: %s]\n", chars, reference)
}
