package fold

import (
	"context"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// mustEnter enters a step with an output of so many bytes for a session of an agent, and keeps
// it.
func mustEnter(t *testing.T, s *Stage, scope kv.Scope, bytes int) {
	t.Helper()
	counter, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &read.Moment{Scope: scope, SessionID: "s"}
	c, err := s.Folding(m, Rules{Policy: session.PolicyLedger}, render.NewTally(context.Background(), counter, "gpt-4o", 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	gave := session.Entry{Position: 1, Step: &step.Step{Number: 1, ToolName: "n", Inline: strings.Repeat("word\n", bytes/5)}}
	g := &pairing.Group{Members: []pairing.Member{{Entry: gave, Use: pairing.Alone}}}
	c.keep([]entered{{g, make([]history.Entry, 1)}})
}

// What is kept of histories has its limits, in all and for a session; another tenant keeps its
// share, and what is forgotten is gone.
func TestEnteredIsBounded(t *testing.T) {
	s := New(nil, step.ReferenceHint, step.NewReducer(nil), step.Templates{})
	other := kv.AgentScope("other", "a")
	mustEnter(t, s, other, maxSessionEnteredBytes/2)
	had := s.entered.Weight()
	if had < maxSessionEnteredBytes/2 {
		t.Fatalf("a step of %d bytes weighs %d", maxSessionEnteredBytes/2, had)
	}
	if mustEnter(t, s, kv.AgentScope("flood", "long"), maxSessionEnteredBytes); s.entered.Weight() != had {
		t.Errorf("%d bytes of one session are kept", s.entered.Weight()-had)
	}
	for i := range 4 * maxEnteredBytes / maxSessionEnteredBytes {
		mustEnter(t, s, kv.AgentScope("flood", strings.Repeat("a", i+1)), maxSessionEnteredBytes/2)
	}
	if got := s.entered.Weight(); got > maxEnteredBytes || got < maxEnteredBytes/2 {
		t.Errorf("%d bytes are kept, of at most %d", got, maxEnteredBytes)
	}
	key := enteredKey{other, "s", "gpt-4o", 0}
	if _, kept := s.entered.Get("other", key); !kept {
		t.Error("a tenant drove out what another one has")
	}
	s.Forget(func(scope kv.Scope) bool { return scope == other })
	if _, kept := s.entered.Get("other", key); kept {
		t.Error("what was forgotten is kept")
	}
	if s.entered.Weight() == 0 {
		t.Error("what somebody else has was forgotten, too")
	}
}
