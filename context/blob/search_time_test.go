package blob_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/turn"
)

// inPieces searches again and again from where the time was over.
func (f *fixture) inPieces(tb testing.TB, e blob.Entry, p *blob.LinePattern) (found []blob.Match, pieces int) {
	tb.Helper()
	var from blob.From
	for {
		var unfinished *blob.UnfinishedError
		for m, err := range f.Search(tb.Context(), alice, e, p, from) {
			if err != nil && !errors.As(err, &unfinished) {
				tb.Fatal(err)
			}
			if err == nil {
				found = append(found, m)
			}
		}
		pieces++
		if unfinished == nil {
			return found, pieces
		}
		if unfinished.From.Offset <= from.Offset {
			tb.Fatalf("the search does not get on: from %+v to %+v", from, unfinished.From)
		}
		from = unfinished.From
	}
}

// A search whose time is over at once still gets on, and all of them together find
// what one finds that has the time.
func TestSearchInPieces(t *testing.T) {
	hurried := newFixtureWith(t, blob.Options{SearchTime: time.Nanosecond})
	patient := newFixtureWith(t, blob.Options{SearchTime: -1})
	most := 0
	bodies := searched()
	maps.Copy(bodies, moreLines())
	for name, body := range bodies {
		e := hurried.mustStage(t, alice, body, blob.Entry{Path: "b/" + name})
		patient.mustStage(t, alice, body, blob.Entry{Path: "b/" + name})
		for _, text := range []string{`needle`, `n[aeiou]+dle\b`, `^.`, `^$`, `[a-z]$`} {
			p, err := blob.Regexp(text, false)
			if err != nil {
				t.Fatal(err)
			}
			if len(body) > 100<<10 && text != "needle" {
				continue // each line would be a piece, or one that a busy machine has no time for
			}
			found, pieces := hurried.inPieces(t, e, p)
			if diff := differ(patient.mustSearch(t, e, p, blob.From{}), found); diff != "" {
				t.Errorf("%s, %s in %d pieces: %s", name, text, pieces, diff)
			}
			most = max(most, pieces)
		}
	}
	if most < 5 {
		t.Errorf("at most %d pieces: nothing was stopped", most)
	}
}

// A search that is cancelled ends within a line too.
func TestSearchEndsWithinALine(t *testing.T) {
	f := newMemory(t)
	e := f.mustStage(t, alice, []byte(strings.Repeat("x", 2500<<10)+"!"), blob.Entry{Path: "a"})
	p, err := blob.Regexp(`([a-z]{1,9}[0-9]?){1,40}[!?]`, false)
	if err != nil {
		t.Fatal(err)
	}
	const patience = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	for _, err := range f.Search(ctx, alice, e, p, blob.From{}) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the line took %v, too short a time to show anything: %v", time.Since(began), err)
		}
	}
	// All of the line takes minutes.
	if took := time.Since(began); took > time.Minute/2 {
		t.Errorf("the search ended %v after it was cancelled", took-patience)
	}
}

// Too many searches at once are refused, of blobs and of the archive.
func TestSearchesAreBounded(t *testing.T) {
	f := newFixtureWith(t, blob.Options{Searches: turn.Options{Max: 1}})
	e := f.mustStage(t, alice, []byte("needle\n"), blob.Entry{Path: "a"})
	p, err := blob.Literal("needle", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range f.Search(t.Context(), alice, e, p, blob.From{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Find(t.Context(), bob, blob.Query{Words: "needle"}); !errors.Is(err, turn.ErrBusy) {
			t.Errorf("a second search: %v", err)
		}
	}
	if _, err := f.Find(t.Context(), bob, blob.Query{Words: "needle"}); err != nil {
		t.Errorf("after the first search: %v", err)
	}
}

// moreLines are bodies of few bytes in which every line is a piece.
func moreLines() map[string][]byte {
	return map[string][]byte{
		"feeds":      []byte(strings.Repeat("\n", 40)),
		"short":      []byte(strings.Repeat("a\n\nneedle b\n", 20)),
		"no feed":    []byte(strings.Repeat("a\n", 20) + "z"),
		"long parts": []byte(strings.Repeat("needle ", 200<<10) + "\nneedle\n" + strings.Repeat("y", 300<<10) + "\na\n"),
	}
}

// The time of a search ends it within a line, too, whatever the pattern: with a place to go
// on from, and for a line that alone takes too long with an error.
func TestSearchTimeWithinALine(t *testing.T) {
	f := newFixtureWith(t, blob.Options{SearchTime: 200 * time.Millisecond})
	p, err := blob.Regexp(`^(.*a){160}b`, false)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 1<<20) + "b"
	for name, body := range map[string]string{"one line": long, "behind another": strings.Repeat("aab\n", 100) + long} {
		e := f.mustStage(t, alice, []byte(body), blob.Entry{Path: "b/" + name})
		began := time.Now()
		var last error
		for _, err := range f.Search(t.Context(), alice, e, p, blob.From{}) {
			last = err
		}
		var unfinished *blob.UnfinishedError
		if !errors.As(last, &unfinished) && !errors.Is(last, blob.ErrInvalid) {
			t.Errorf("%s: ended with %v", name, last)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: took %v, the limit is 200ms", name, took)
		}
	}
}
