package memory_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// mustFind returns what a query finds, with expansion or without.
func mustFind(t *testing.T, s *memory.Store, scope kv.Scope, q question.Question, expand bool) []string {
	t.Helper()
	q.Expand = expand
	found, err := s.Query(t.Context(), scope, q)
	if err != nil {
		t.Fatal(err)
	}
	return ids(found)
}

// Where all hits that have new words score nothing, their words weigh nothing.
func TestExpandWithHitsThatScoreNothing(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{Text: "deploy failed: disk full on the build machine"})
	r.MustSave(t, record.Record{Text: "deploy failed: disk full again"})
	r.MustSave(t, record.Record{Text: "deploy failed", Importance: 1})
	q := question.Question{Text: "deploy failed", Limit: 5, ImportanceWeight: 1}
	if plain, more := mustFind(t, r.Store, agent, q, false), mustFind(t, r.Store, agent, q, true); len(plain) != 3 || len(more) != 3 {
		t.Errorf("%q without expansion, %q with it", plain, more)
	}
}

// Expansion finds more, never less, whatever the scores of further hits do to those
// of the first, and what comes first without it comes first with it.
func TestExpandFindsNoLess(t *testing.T) {
	seed := chance.Seed(t)
	c := rand.New(rand.NewPCG(seed, 1))
	words := strings.Fields("deploy failed disk full build machine again network slow user login page error cache memory index test alpha beta gamma")
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	s := memory.New(engine, writer, &memory.Options{SweepEvery: -1})
	defer writer.Close()
	defer s.Close()
	more := 0
	for round := range 40 {
		scope := kv.AgentScope("default", fmt.Sprint("a", round))
		for range 2 + c.IntN(40) {
			var text []string
			for range 1 + c.IntN(12) {
				text = append(text, words[c.IntN(len(words))])
			}
			if _, err := s.Save(t.Context(), scope, record.Record{Text: strings.Join(text, " "), Importance: float64(c.IntN(3)) / 2}, ""); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			q := question.Question{
				Text: words[c.IntN(len(words))] + " " + words[c.IntN(len(words))], Limit: 1 + c.IntN(30), MinScore: max(0, 1.5*c.Float64()-0.5),
				ImportanceWeight: float64(c.IntN(3)) / 2, RecencyWeight: float64(c.IntN(2)) / 2,
			}
			plain, expanded := mustFind(t, s, scope, q, false), mustFind(t, s, scope, q, true)
			if len(expanded) < len(plain) || len(expanded) > q.Limit || len(plain) > 0 && plain[0] != expanded[0] {
				t.Fatalf("seed %d: %q without expansion, %q with it: %+v", seed, plain, expanded, q)
			}
			more += len(expanded) - len(plain)
		}
	}
	if more == 0 {
		t.Errorf("seed %d: expansion never found more", seed)
	}
}
