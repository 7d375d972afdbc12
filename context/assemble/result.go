package assemble

import (
	"bytes"
	"cmp"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

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
func fullText(s *step.Step, style step.ReferenceStyle) string {
	lines := []string{observation(s, style), s.Inline}
	if s.Outcome == step.Unknown && s.Observation == "" {
		lines = append(lines, unknownOutcome)
	}
	return cmp.Or(withError(s, joined(lines)), noOutput)
}

// observation is what stands above a step's result.
func observation(s *step.Step, style step.ReferenceStyle) string {
	known := repeats(s) || s.Output() != s.Inline
	switch whole := s.Inline != "" && s.Evidence == "" && s.Beginning() == len(s.Inline); {
	case whole && known, known && !s.NeedsOffload():
		return ""
	case whole:
		return s.Observation
	case known:
		bare := *s
		bare.Observation = ""
		return strings.TrimPrefix(bare.ToObservation(style), ". ")
	}
	return s.ToObservation(style)
}

// outputOf is what a step gave, without a frame: the result, or where none is
// kept what was observed of it.
func outputOf(s *step.Step) string {
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
		return joined([]string{body, "Error: " + s.Error})
	}
	return body
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

// beginsWith tells whether a text on one line, as text.OneLine writes it, begins
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

// reference is where the full text of a result can be read.
func reference(s *step.Step) string { return cmp.Or(s.OutcomePath, s.ID()) }

// quote writes text as encoding/json does that escapes no HTML, byte for byte,
// but reads eight characters at once where nothing is to be escaped: most of what
// a prompt costs a server is to read its texts.
func quote(out *bytes.Buffer, text string) {
	out.Grow(len(text) + len(text)/escapedPart + len(`""`))
	dst := append(out.AvailableBuffer(), '"')
	for text != "" {
		n := plainPrefix(text)
		dst, text = append(dst, text[:n]...), text[n:]
		if text != "" {
			dst, n = appendEscaped(dst, text)
			text = text[n:]
		}
	}
	out.Write(append(dst, '"'))
}

// plainPrefix is how many bytes of text, from its beginning, stand for themselves
// in a JSON string.
func plainPrefix(text string) int {
	n := 0
	for ; n+8 <= len(text); n += 8 {
		if marks := unplain(word(text[n:])); marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
	}
	for n < len(text) && plainByte(text[n]) {
		n++
	}
	return n
}

// word is the first eight bytes of text as a number, the first one lowest.
func word(text string) uint64 {
	_ = text[7] // so that the compiler makes one load of it
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// unplain marks the highest bit of the first byte of eight that does not stand
// for itself, and maybe of bytes behind it; it is 0 if all do. It tests all at
// once: a byte under a limit borrows its highest bit when the limit is taken from
// it, and one that is equal to another is zero when both are compared bit by bit.
// What is borrowed changes only the bytes behind.
func unplain(w uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	control := (w - each*' ') &^ w
	quotes := w ^ each*'"'
	slashes := w ^ each*'\\'
	return (w | control | (quotes-each)&^quotes | (slashes-each)&^slashes) & high
}

func plainByte(b byte) bool {
	return b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\'
}

// appendEscaped appends the first character of text, which is not a plain byte,
// and returns how many bytes it has there.
func appendEscaped(dst []byte, text string) ([]byte, int) {
	const hex = "0123456789abcdef"
	b := text[0]
	if b >= utf8.RuneSelf {
		return appendRune(dst, text)
	}
	short := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), b)
	if short >= 0 {
		return append(dst, '\\', `"\bfnrt`[short]), 1
	}
	return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xF]), 1
}

// appendRune appends a character beyond ASCII. JSON may hold all of them, but
// two end a line in JavaScript.
func appendRune(dst []byte, text string) ([]byte, int) {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case r == utf8.RuneError && n == 1:
		return append(dst, `\ufffd`...), 1
	case r == '\u2028':
		return append(dst, `\u2028`...), n
	case r == '\u2029':
		return append(dst, `\u2029`...), n
	}
	return append(dst, text[:n]...), n
}
