package lexical_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

var scope = kv.AgentScope("default", "a")

var errInjected = errors.New("injected")

// faulty fails the commits whose turn comes.
type faulty struct {
	kv.Engine
	failIn atomic.Int64 // fails that commit from now on, if positive
}

func (f *faulty) Commit(ctx context.Context, c kv.Commit) error {
	if f.failIn.Add(-1) == 0 {
		return errInjected
	}
	return f.Engine.Commit(ctx, c)
}

// library is an index and the documents in it.
type library struct {
	*lexical.Index
	engine    *faulty
	writer    *kv.Writer
	documents []*segment.Document
}

func MustLibrary(tb testing.TB) *library {
	tb.Helper()
	engine := &faulty{Engine: memkv.New(nil)}
	l := &library{Index: lexical.New(nil), engine: engine, writer: kv.NewWriter(engine, nil)}
	tb.Cleanup(func() { _ = l.writer.Close() })
	return l
}

// MustAdd adds documents of so many words each.
func (l *library) MustAdd(tb testing.TB, documents, words int) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(uint64(len(l.documents)), 3))
	for range documents {
		d := segment.NewDocument(fmt.Sprint("id", len(l.documents)))
		d.AddBody(randomWords(rng, words))
		d.AddHeader(slices.Values([]string{"ann"}))
		d.AddValue(segment.Tag, fmt.Sprint(rng.IntN(3)))
		d.SetFacts(segment.Facts{Session: fmt.Sprint(rng.IntN(4)), Author: "Ann", Create: int64(len(l.documents)), Tier: 4})
		if rng.IntN(5) == 0 {
			d.Expire(1 + rng.Int64N(100))
		}
		old := uint32(0)
		if n := len(l.documents); n > 0 && rng.IntN(5) == 0 {
			old = 1 + rng.Uint32N(uint32(n))
		}
		err := l.writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := l.Add(ctx, tx, scope, d.Encode(), old)
			return err
		}})
		if err != nil {
			tb.Fatal(err)
		}
		d.Supersede(old)
		l.documents = append(l.documents, d)
	}
}

func randomWords(rng *rand.Rand, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range n {
			word := fmt.Sprintf("common%d", rng.IntN(20))
			if rng.IntN(3) > 0 {
				word = fmt.Sprintf("rare%d", rng.IntN(1_000_000))
			}
			if !yield(word) {
				return
			}
		}
	}
}

func (l *library) MustPack(tb testing.TB) bool {
	tb.Helper()
	for {
		s, merge, err := l.Pack(tb.Context(), l.engine, l.writer, scope)
		if err != nil {
			tb.Fatal(err)
		}
		if s.Tail() == 0 {
			return merge
		}
	}
}

func (l *library) MustMerge(tb testing.TB) {
	tb.Helper()
	for more := true; more; {
		var err error
		if more, err = l.Merge(tb.Context(), l.engine, l.writer, scope); err != nil {
			tb.Fatal(err)
		}
	}
}

func (l *library) MustCheck(tb testing.TB) {
	tb.Helper()
	all := func(yield func(lexical.Numbered, error) bool) {
		for i, d := range l.documents {
			if !yield(lexical.Numbered{Ordinal: uint32(i + 1), Document: d}, nil) {
				return
			}
		}
	}
	found, err := l.Check(tb.Context(), l.engine, scope, all)
	if err != nil || found.Total > 0 {
		tb.Fatalf("check: %v, %d differences: %q", err, found.Total, found.First)
	}
}

// MustAnswer asks something that all documents have a part in.
func (l *library) MustAnswer(tb testing.TB) rank.Answer {
	tb.Helper()
	a, err := l.answer(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func (l *library) answer(ctx context.Context) (rank.Answer, error) {
	r, err := l.Open(ctx, l.engine, scope)
	if err != nil {
		return rank.Answer{}, err
	}
	s, err := selection.Select(ctx, r, selection.Has(segment.Tag, "1"), selection.Options{Now: 50})
	if err != nil {
		return rank.Answer{}, err
	}
	return rank.Rank(ctx, []rank.Part{{Reader: r, Selection: s}}, rank.Query{
		Words: []rank.QueryWord{{Text: "common1", Count: 1}, {Text: "common7", Count: 2}, {Text: "ann", Count: 1}, {Text: "nowhere", Count: 1}},
		Limit: 50, MinScore: 0.01,
	})
}

func (l *library) wantAnswer(tb testing.TB, when string, want rank.Answer) {
	tb.Helper()
	if diff := cmp.Diff(want, l.MustAnswer(tb)); diff != "" {
		tb.Fatalf("answer %s (-want +got):\n%s", when, diff)
	}
}

func (l *library) keys(tb testing.TB) (n int) {
	tb.Helper()
	for _, err := range l.engine.Scan(tb.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

func TestPackingAndMergingChangeNoAnswer(t *testing.T) {
	l := MustLibrary(t)
	for range 70 {
		l.MustAdd(t, 5, 12)
		want := l.MustAnswer(t)
		if len(want.Hits) == 0 && len(l.documents) > 50 {
			t.Fatal("nothing found")
		}
		merge := l.MustPack(t)
		l.wantAnswer(t, "when packed", want)
		if merge {
			l.MustMerge(t)
			l.wantAnswer(t, "when merged", want)
			l.MustCheck(t)
		}
	}
	l.MustCheck(t)
	stats, segments, err := l.Statistics(t.Context(), l.engine, scope)
	if err != nil || stats.Documents != 350 || segments > 14 {
		t.Errorf("%+v in %d segments, %v", stats, segments, err)
	}
	// Another index, which remembers nothing, gives the same answer.
	want := l.MustAnswer(t)
	l.Index = lexical.New(&lexical.Options{CacheBytes: 1})
	l.wantAnswer(t, "without a cache", want)
}

func TestMergeOfManyCommitsSurvivesFaults(t *testing.T) {
	build := func(l *library) {
		for range 8 {
			l.MustAdd(t, 8, 200)
			l.MustPack(t)
		}
		l.SetMergeCommitBytes(8 << 10)
	}
	calm := MustLibrary(t)
	build(calm)
	calm.MustMerge(t)
	calm.MustCheck(t)

	l := MustLibrary(t)
	build(l)
	want := l.MustAnswer(t)
	fails := 0
	for {
		l.engine.failIn.Store(int64(fails) + 1) // one commit later each time
		more, err := l.Merge(t.Context(), l.engine, l.writer, scope)
		if l.engine.failIn.Store(0); err == nil && !more {
			break
		}
		if err != nil {
			fails++
			if !errors.Is(err, errInjected) {
				t.Fatal(err)
			}
		}
		l.wantAnswer(t, fmt.Sprint("after fault ", fails), want)
	}
	if fails < 6 {
		t.Errorf("%d faults: the merge was too small for this test", fails)
	}
	l.MustCheck(t)
	if got, want := l.keys(t), calm.keys(t); got != want {
		t.Errorf("%d keys are left, want %d", got, want)
	}
}

// A merge that can never be finished must not leave more behind each time.
func TestAMergeThatAlwaysFailsLeavesNoHeap(t *testing.T) {
	l := MustLibrary(t)
	for range 8 {
		l.MustAdd(t, 8, 200)
		l.MustPack(t)
	}
	l.SetMergeCommitBytes(1 << 10)
	// The last chunk of the first merge's last input is gone.
	var last []byte
	segment := append(scope.Key('g'), 0, 2, 0, 0, 0, 4, 'c')
	for pair, err := range l.engine.Scan(t.Context(), kv.Index, kv.Prefix(segment)) {
		if err != nil {
			t.Fatal(err)
		}
		last = pair.Key
	}
	b := &kv.Batch{}
	b.Delete(kv.Index, last)
	guards := []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Index, Scope: scope}, Any: true}}
	if err := l.engine.Commit(t.Context(), kv.Commit{Guards: guards, Batch: b}); err != nil {
		t.Fatal(err)
	}
	before := l.keys(t)
	failed, most := 0, 0
	for range 40 {
		if _, err := l.Merge(t.Context(), l.engine, l.writer, scope); err != nil {
			failed++
		}
		most = max(most, l.keys(t))
	}
	if failed < 5 || most > 3*before {
		t.Errorf("%d merges failed and %d keys became %d", failed, before, most)
	}
}

func TestPackFails(t *testing.T) {
	l := MustLibrary(t)
	l.MustAdd(t, 10, 5)
	want := l.MustAnswer(t)
	l.engine.failIn.Store(1)
	if _, _, err := l.Pack(t.Context(), l.engine, l.writer, scope); !errors.Is(err, errInjected) {
		t.Fatalf("got %v", err)
	}
	l.wantAnswer(t, "after a fault", want)
	l.MustPack(t)
	l.wantAnswer(t, "when packed", want)
	l.MustCheck(t)
}

func TestTwoProcessesPack(t *testing.T) {
	l := MustLibrary(t)
	other := &library{Index: lexical.New(nil), engine: l.engine, writer: kv.NewWriter(l.engine, nil)}
	t.Cleanup(func() { _ = other.writer.Close() })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			s, merge, err := other.Pack(t.Context(), l.engine, other.writer, scope)
			if err == nil && merge {
				_, err = other.Merge(t.Context(), l.engine, other.writer, scope)
			}
			if err != nil || s.Documents == 300 {
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	}()
	for range 60 {
		l.MustAdd(t, 5, 5)
		if l.MustPack(t) {
			l.MustMerge(t)
		}
	}
	<-done
	l.MustCheck(t)
}

func TestCheckFindsDifferences(t *testing.T) {
	l := MustLibrary(t)
	l.MustAdd(t, 20, 8)
	l.MustPack(t)
	l.MustAdd(t, 2, 8)
	other := segment.NewDocument("id3")
	other.AddBody(slices.Values([]string{"another", "text"}))
	l.documents[3] = other
	found, err := l.Check(t.Context(), l.engine, scope, func(yield func(lexical.Numbered, error) bool) {
		for i, d := range l.documents[:21] {
			if !yield(lexical.Numbered{Ordinal: uint32(i + 1), Document: d}, nil) {
				return
			}
		}
	})
	if err != nil || found.Total < 12 || len(found.First) != 10 {
		t.Errorf("%d differences, first %q, %v", found.Total, found.First, err)
	}
}

func TestDamageIsAnError(t *testing.T) {
	l := MustLibrary(t)
	l.MustAdd(t, 30, 20)
	l.MustPack(t)
	l.MustAdd(t, 3, 20)
	for pair, err := range l.engine.Scan(t.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range [][]byte{{}, {0xff}, pair.Value[:len(pair.Value)/2], nil} {
			l.put(t, pair.Key, value)
			l.Index = lexical.New(nil)
			// What matters is that nothing panics and no wrong key is read.
			_, err := l.answer(t.Context())
			if err != nil && !errors.Is(err, segment.ErrDamaged) && !errors.Is(err, segment.ErrNewer) {
				t.Errorf("key %q with %q: %v", pair.Key, value, err)
			}
		}
		l.put(t, pair.Key, pair.Value)
	}
	l.MustCheck(t)
}

// put writes past the index; nil deletes.
func (l *library) put(tb testing.TB, key, value []byte) {
	tb.Helper()
	err := l.writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(_ context.Context, tx *kv.Tx) error {
		if value == nil {
			tx.Delete(kv.Index, key)
		} else {
			tx.Put(kv.Index, key, value)
		}
		return nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
}

func TestAnotherGenerationIsUsed(t *testing.T) {
	l := MustLibrary(t)
	l.put(t, scope.Key('m'), []byte{8, 2, 16, 3}) // format 2, generation 3
	l.MustAdd(t, 10, 5)
	l.MustPack(t)
	l.MustAdd(t, 2, 5)
	l.MustCheck(t)
	if len(l.MustAnswer(t).Hits) == 0 {
		t.Error("nothing found")
	}
	for pair, err := range l.engine.Scan(t.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		_, rest, err := kv.SplitKey(pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		if rest[0] != 'm' && (rest[1] != 0 || rest[2] != 3) {
			t.Errorf("key %q is not of generation 3", rest)
		}
	}
}

// What died is gone from the stored index once it is packed and merged: its
// words, values, id and author.
func TestNothingIsLeftOfTheDead(t *testing.T) {
	const marker = "plutonium"
	l := MustLibrary(t)
	for round := range 3 {
		l.MustAdd(t, 40, 8)
		if round > 0 {
			l.MustPack(t)
		}
	}
	change := func(c lexical.Change) (first uint32) {
		err := l.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
			first, _, err = l.Apply(ctx, tx, scope, c)
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	secret := func(i int) []byte {
		d := segment.NewDocument(fmt.Sprint(marker, i))
		d.AddBody(slices.Values([]string{marker, "common1"}))
		d.AddValue(segment.Tag, marker)
		d.SetFacts(segment.Facts{Author: marker, Session: marker})
		return d.Encode()
	}
	var killed []uint32
	for i := range 30 {
		killed = append(killed, change(lexical.Change{Add: []lexical.Added{{Encoded: secret(i)}}}))
		if i == 20 {
			l.MustPack(t)
		}
	}
	change(lexical.Change{Delete: killed[:25]})
	l.MustPack(t)
	change(lexical.Change{Delete: killed[20:]}) // some of them once more
	l.MustMerge(t)
	for pair, err := range l.engine.Scan(t.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(pair.Value, []byte(marker)) {
			t.Errorf("key %q still has it", pair.Key)
		}
	}
	s, _, err := l.Statistics(t.Context(), l.engine, scope)
	if err != nil || s.Deleted != 30 || s.Unpurged() != 0 || s.Documents != 120 {
		t.Errorf("%+v, %v", s, err)
	}
	l.MustCheck(t)
}

func TestBadChangesAreRefused(t *testing.T) {
	l := MustLibrary(t)
	l.MustAdd(t, 3, 5)
	before := l.keys(t)
	placed := segment.NewDocument("x")
	placed.SetFacts(segment.Facts{Place: 4})
	for name, c := range map[string]lexical.Change{
		"kill of none":          {Delete: []uint32{0}},
		"kill of the future":    {Delete: []uint32{4}},
		"no document":           {Add: []lexical.Added{{Encoded: []byte{0xff}}}},
		"supersedes the future": {Add: []lexical.Added{{Encoded: segment.NewDocument("x").Encode(), Supersedes: 4}}},
		"place of the future":   {Add: []lexical.Added{{Encoded: placed.Encode()}}},
	} {
		err := l.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := l.Apply(ctx, tx, scope, c)
			return err
		}})
		if !errors.Is(err, segment.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := l.keys(t); n != before {
		t.Errorf("%d keys instead of %d", n, before)
	}
	l.MustCheck(t)
}

// An older layout is refused by all, until it is rebuilt.
func TestOutdatedIndexIsRefused(t *testing.T) {
	l := MustLibrary(t)
	l.put(t, scope.Key('m'), []byte{8, 1, 24, 3}) // format 1, three documents
	ctx := t.Context()
	calls := map[string]func() error{
		"open":       func() error { _, err := l.Open(ctx, l.engine, scope); return err },
		"statistics": func() error { _, _, err := l.Statistics(ctx, l.engine, scope); return err },
		"pack":       func() error { _, _, err := l.Pack(ctx, l.engine, l.writer, scope); return err },
		"merge":      func() error { _, err := l.Merge(ctx, l.engine, l.writer, scope); return err },
		"check": func() error {
			_, err := l.Check(ctx, l.engine, scope, func(func(lexical.Numbered, error) bool) {})
			return err
		},
		"apply": func() error {
			return l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
				_, _, err := l.Apply(ctx, tx, scope, lexical.Change{})
				return err
			}})
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, lexical.ErrOutdated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Documents 2 and 5; those between died before.
	source := lexical.Feed{Documents: func(_ context.Context, _ kv.Reader, after uint32) iter.Seq2[lexical.Numbered, error] {
		return func(yield func(lexical.Numbered, error) bool) {
			for _, o := range []uint32{2, 5} {
				if o > after && !yield(lexical.Numbered{Ordinal: o, Document: segment.NewDocument(fmt.Sprint("id", o))}, nil) {
					return
				}
			}
		}
	}}
	for range 2 { // the second finds nothing to do
		if err := l.Rebuild(ctx, l.engine, l.writer, scope, source); err != nil {
			t.Fatal(err)
		}
	}
	s, _, err := l.Statistics(ctx, l.engine, scope)
	if err != nil || s.Documents != 2 || s.Deleted != 3 || s.Last != 5 {
		t.Errorf("%+v, %v", s, err)
	}
	l.MustMerge(t)
}
