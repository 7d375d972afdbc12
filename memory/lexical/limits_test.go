package lexical_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// A ranking answers one limit after the other as if each were asked anew.
func TestLimitsDoNotChangeAnswers(t *testing.T) {
	t.Parallel()
	x, engine := MustConversation(t, 2000)
	r, err := x.Open(t.Context(), engine, scope)
	if err != nil {
		t.Fatal(err)
	}
	selection, err := selection.Select(t.Context(), r, selection.Filter{}, selection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	parts := []rank.Part{{Reader: r, Selection: selection}}
	c, hits := newChatter(3), 0
	for i := range 60 {
		q := c.question()
		q.Current, q.One, q.Owned, q.Explain = i%2 == 0, i%3 == 0, i%6 == 0, i%4 == 0
		if i%5 == 0 {
			q.Names, q.Answers, q.Words = nil, segment.Flags(0), q.Words[:3]
		}
		if i%7 == 0 {
			q.MinScore = 0.2
		}
		ranking, err := rank.Open(t.Context(), parts, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{10, 20, 40, 3, 100} {
			q.Limit = limit
			got, err := ranking.Answer(t.Context(), limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(mustRank(t, x, engine, q), got); diff != "" {
				t.Fatalf("question %d, limit %d (-anew +after others):\n%s", i, limit, diff)
			}
			hits += len(got.Hits)
		}
		ranking.Close()
	}
	if hits < 1000 {
		t.Errorf("%d hits of 60 questions", hits)
	}
}
