package lexical_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// chatter makes the words of long conversations: as unevenly common as those of
// a language, two speakers, a date in the header.
type chatter struct {
	rng  *rand.Rand
	zipf *rand.Zipf
}

func newChatter(seed uint64) *chatter {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &chatter{rng, rand.NewZipf(rng, 1.1, 40, 30_000)}
}

func (c *chatter) words(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint("word", c.zipf.Uint64())
	}
	return words
}

func (c *chatter) document(i int) *segment.Document {
	const turnsPerSession = 20
	d := segment.NewDocument(fmt.Sprint("id", i))
	author := []string{"ann", "bob"}[i%2]
	session := fmt.Sprint("session", i/turnsPerSession)
	d.AddBody(slices.Values(c.words(5 + c.rng.IntN(20))))
	d.AddHeader(slices.Values([]string{author, fmt.Sprint("day", i/turnsPerSession%28), fmt.Sprint("month", i/turnsPerSession/28%12), "2023"}))
	f := segment.Facts{Session: session, Author: author, Tier: 4, Create: int64(i) + 1, Event: int64(i/turnsPerSession) * 1e9}
	if c.rng.IntN(4) == 0 {
		f.Flags = segment.FlagAsks
	}
	d.SetFacts(f)
	d.AddValue(segment.Session, session)
	return d
}

// MustConversation returns an index of n documents, most of them packed.
func MustConversation(tb testing.TB, n int) (*lexical.Index, kv.Engine) {
	tb.Helper()
	const batch = 1000
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	x, c := lexical.New(nil), newChatter(1)
	for from := 0; from < n; from += batch {
		var change lexical.Change
		for i := from; i < min(n, from+batch); i++ {
			change.Add = append(change.Add, lexical.Added{Encoded: c.document(i).Encode()})
		}
		err := writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := x.Apply(ctx, tx, scope, change)
			return err
		}})
		if err == nil {
			_, _, err = x.Pack(tb.Context(), engine, writer, scope)
		}
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := x.Merge(tb.Context(), engine, writer, scope); err != nil {
			tb.Fatal(err)
		}
	}
	return x, engine
}

// question is one of eight words, a name among them.
func (c *chatter) question() rank.Query {
	q := rank.Query{Names: []string{"what", "did", "ann", "say"}, Limit: 10, Answers: segment.FlagTellsTime}
	for _, word := range append(c.words(7), "ann") {
		if !slices.ContainsFunc(q.Words, func(w rank.QueryWord) bool { return w.Text == word }) {
			q.Words = append(q.Words, rank.QueryWord{Text: word, Count: 1})
		}
	}
	return q
}

// BenchmarkRank measures the search of a conversation without reading records.
func BenchmarkRank(b *testing.B) {
	for _, n := range []int{5_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, engine := MustConversation(b, n)
			c := newChatter(2)
			var times []time.Duration
			candidates := 0
			b.ReportAllocs()
			for b.Loop() {
				q := c.question()
				began := time.Now()
				a := mustRank(b, x, engine, q)
				times = append(times, time.Since(began))
				candidates += a.LexicalCandidates
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
			b.ReportMetric(float64(candidates)/float64(len(times)), "candidates")
		})
	}
}

func mustRank(tb testing.TB, x *lexical.Index, view kv.Reader, q rank.Query) rank.Answer {
	tb.Helper()
	r, err := x.Open(tb.Context(), view, scope)
	if err != nil {
		tb.Fatal(err)
	}
	selection, err := selection.Select(tb.Context(), r, selection.Filter{}, selection.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	a, err := rank.Rank(tb.Context(), []rank.Part{{Reader: r, Selection: selection}}, q)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}
