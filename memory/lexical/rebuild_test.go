package lexical_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// sourceOf gives a rebuilding documents with those ordinals.
func sourceOf(ordinals ...uint32) lexical.Feed {
	return lexical.Feed{Documents: func(_ context.Context, _ kv.Reader, after uint32) iter.Seq2[lexical.Numbered, error] {
		return func(yield func(lexical.Numbered, error) bool) {
			for _, o := range ordinals {
				if o > after && !yield(lexical.Numbered{Ordinal: o, Document: segment.NewDocument(fmt.Sprint("id", o))}, nil) {
					return
				}
			}
		}
	}}
}

// speak puts an index of another analysis in the place of the library's.
func (l *library) speak(analysis string) {
	l.Index = lexical.New(&lexical.Options{Analysis: analysis})
}

// mustAgree checks that the index has those documents.
func (l *library) mustAgree(tb testing.TB, want lexical.Feed) {
	tb.Helper()
	found, err := l.Check(tb.Context(), l.engine, scope, want.Documents(tb.Context(), l.engine, 0))
	if err != nil || found.Total > 0 {
		tb.Errorf("check: %v, %q", err, found.First)
	}
}

// countKeys counts the keys of all indexes.
func (l *library) countKeys(tb testing.TB) (n int) {
	tb.Helper()
	for _, err := range l.engine.Scan(tb.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

// Long gaps between living documents take many commits, each of which may be
// the last one; ordinals that were given out once are not given out again.
func TestRebuildLongGaps(t *testing.T) {
	const last = 1_200_000 // more than one commit passes over
	l := MustLibrary(t)
	l.put(t, scope.Key('m'), []byte{8, 1}) // format 1
	for fail := int64(1); ; fail++ {
		l.engine.failIn.Store(fail)
		err := l.Rebuild(t.Context(), l.engine, l.writer, scope, sourceOf(2, last))
		if err != nil && !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		if err == nil {
			l.engine.failIn.Store(0)
			break
		}
	}
	l.mustAgree(t, sourceOf(2, last))
	l.speak("klingon/1")
	if err := l.Rebuild(t.Context(), l.engine, l.writer, scope, sourceOf(3)); err != nil {
		t.Fatal(err)
	}
	l.mustAgree(t, sourceOf(3))
	s, _, err := l.Statistics(t.Context(), l.engine, scope)
	if err != nil || s.Documents != 1 || s.Deleted != last-1 || s.Last != last {
		t.Errorf("%+v, %v", s, err)
	}
	if keys := l.countKeys(t); keys > 200 {
		t.Errorf("%d keys", keys)
	}
	l.MustMerge(t)
	l.mustAgree(t, sourceOf(3))
	if err := l.Rebuild(t.Context(), l.engine, l.writer, scope, sourceOf()); err != nil {
		t.Errorf("a finished index is rebuilt: %v", err)
	}
	l.speak("klingon/2")
	for _, ordinals := range [][]uint32{{3, 3}, {3, last + 1}} {
		if err := l.Rebuild(t.Context(), l.engine, l.writer, scope, sourceOf(ordinals...)); !errors.Is(err, segment.ErrDamaged) {
			t.Errorf("documents %d: %v", ordinals, err)
		}
	}
}

// An index answers only for the analysis that made its terms; one without a
// document is anybody's.
func TestAnalysisOfAnIndex(t *testing.T) {
	l := MustLibrary(t)
	l.speak("klingon/1")
	if _, _, err := l.Statistics(t.Context(), l.engine, scope); err != nil {
		t.Error(err)
	}
	l.speak("klingon/2")
	l.MustAdd(t, 3, 5)
	for analysis, want := range map[string]error{
		"klingon/2": nil, "klingon/1": lexical.ErrOutdated, "klingon/3": lexical.ErrOutdated, "": lexical.ErrOutdated,
	} {
		l.speak(analysis)
		if _, err := l.Open(t.Context(), l.engine, scope); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", analysis, err, want)
		}
	}
	l.MustPack(t) // needs no analysis
	l.speak("klingon/2")
	l.MustCheck(t)
}

// However often an index is made anew, its numbers do not run out.
func TestGenerationsComeRound(t *testing.T) {
	l := MustLibrary(t)
	l.MustAdd(t, 3, 5)
	for _, generation := range []uint64{65535, 2} {
		value, err := l.engine.Get(t.Context(), kv.Index, scope.Key('m'))
		if err != nil {
			t.Fatal(err)
		}
		if generation == 65535 { // a later field counts
			l.put(t, scope.Key('m'), append(value[0], 16, 0xfe, 0xff, 3))
		}
		l.speak(fmt.Sprint("klingon/", generation))
		if err := l.Rebuild(t.Context(), l.engine, l.writer, scope, sourceOf(1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		if s, _, err := l.Statistics(t.Context(), l.engine, scope); err != nil || s.Documents != 3 {
			t.Errorf("generation %d: %+v, %v", generation, s, err)
		}
	}
	l.MustMerge(t)
	if s, _, err := l.Statistics(t.Context(), l.engine, scope); err != nil || s.Documents != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}
