package excerpt

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Words that say that something went wrong are found just where each byte alone says so.
func TestNextErrorWord(t *testing.T) {
	slow := func(text string, from int) int {
		inWord := from > 0 && is(text[from-1], isWord)
		for i := from; i < len(text); i++ {
			isWord := is(text[i], isWord)
			if isWord && !inWord && isErrorWord(text[i:]) {
				return i
			}
			inWord = isWord
		}
		return -1
	}
	pieces := []string{
		"error", "Error", "ERROR", "exception", "failed", "FATAL", "panic", "traceback", "cannot", "denied", "not found", "Not Found", "e", "er", "errors", "no",
		"not", "fa", "fail", "FAILURE", "panicked", "critical", "no such", "no s", "x", "_", "9", " ", "\n", ":", "é", "\xff", ".", "terror",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		text := b.String()
		for from := range len(text) + 1 {
			if got, want := nextErrorWord(text, from), slow(text, from); got != want {
				t.Fatalf("%q from %d: %d, not %d", text, from, got, want)
			}
		}
	}
}

// BenchmarkErrorLines looks for errors in text that has none.
func BenchmarkErrorLines(b *testing.B) {
	text := strings.Repeat("src/reader.py:12: the parser takes fields of every nested table\n", 1<<14)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ErrorLines(text)
	}
}

// A line is looked at once, however many words it has that say what went wrong.
func TestErrorLinesOfOneLongLine(t *testing.T) {
	for _, piece := range []string{"aError: ", "Error: ", "error ", "x Exception: ", "FAIL "} {
		text := strings.Repeat(piece, 1<<23/len(piece)) // at n² bytes it would take hours
		for _, find := range []func(string) []Range{ErrorLines, Complaints} {
			if found := find(text); len(found) > 0 {
				t.Errorf("%q: %d lines", piece, len(found))
			}
		}
	}
	text := "aError: first\nKeyError: 'x'\n" + strings.Repeat("aError: ", 1000)
	if line, ok := raisedLine(text); !ok || line.Of(text) != "KeyError: 'x'" {
		t.Errorf("raised is %q, %v", line.Of(text), ok)
	}
}
