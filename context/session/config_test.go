package session_test

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func fullConfig() session.Config {
	literal := false
	return session.Config{
		Policy: session.PolicyPreset, Preset: "design", Literal: &literal,
		Prices:        history.Prices{Input: 3, CachedInput: 0.3, CacheWrite: 3.75},
		ExpectedTurns: 40, ResultTokens: 2000, Model: "gpt-4o", MaxTokens: 8192,
	}
}

// set is a change to these settings, whatever there was.
func set(c session.Config) func(session.Config) (session.Config, error) {
	return func(session.Config) (session.Config, error) { return c, nil }
}

func (f *fixture) mustConfig(tb testing.TB, scope kv.Scope, id string) session.Config {
	tb.Helper()
	c, err := f.Config(tb.Context(), scope, id)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestSettingsAreKept(t *testing.T) {
	f := newMemory(t)
	want := fullConfig()
	got, err := f.Configure(t.Context(), alice, "s", set(want), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []session.Config{got, f.mustConfig(t, alice, "s")} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for _, got := range []session.Config{f.mustConfig(t, alice, ""), f.mustConfig(t, bob, "s")} {
		if got != (session.Config{}) {
			t.Errorf("another session has %+v", got)
		}
	}
	// A change sees what there is.
	got, err = f.Configure(t.Context(), alice, "s", func(c session.Config) (session.Config, error) {
		return session.Config{Model: "o3"}.Over(c), nil
	}, "", nil)
	want.Model = "o3"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := f.Configure(t.Context(), alice, "s", set(session.Config{}), "", nil); err != nil {
		t.Fatal(err)
	}
	if got := f.mustConfig(t, alice, "s"); got != (session.Config{}) {
		t.Errorf("after a reset: %+v", got)
	}
}

func TestConfigureIsSafeToRepeat(t *testing.T) {
	f := newMemory(t)
	calls := 0
	more := func(c session.Config) (session.Config, error) {
		calls++
		c.MaxTokens += 100
		return c, nil
	}
	for range 3 {
		got, err := f.Configure(t.Context(), alice, "s", more, "r", []byte("more"))
		if err != nil || got.MaxTokens != 100 {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if got := f.mustConfig(t, alice, "s"); got.MaxTokens != 100 || calls != 1 {
		t.Errorf("%d calls made it %+v", calls, got)
	}
	for _, tt := range []struct{ id, content string }{{"s", "less"}, {"s2", "more"}} {
		if _, err := f.Configure(t.Context(), alice, tt.id, more, "r", []byte(tt.content)); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("%s in %s: %v, want ErrRequestReused", tt.content, tt.id, err)
		}
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	f := newMemory(t)
	wrong := errors.New("wrong")
	if _, err := f.Configure(t.Context(), alice, "s", func(c session.Config) (session.Config, error) { return c, wrong }, "r", nil); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	for name, c := range map[string]session.Config{
		"history.policy":             {Policy: "newest"},
		"history.preset":             {Preset: "none of these"},
		"history.preset, no":         {Policy: session.PolicyPreset},
		"history.preset, other":      {Policy: session.PolicyLedger, Preset: "chat"},
		"history.prices":             {Prices: history.Prices{CachedInput: 1}},
		"history.prices, NaN":        {Prices: history.Prices{Input: math.NaN()}},
		"history.prices, infinite":   {Prices: history.Prices{Input: math.Inf(1)}},
		"history.prices, negative":   {Prices: history.Prices{Input: 1, CacheWrite: -1}},
		"history.expected_steps":     {ExpectedTurns: -1},
		"history.max_result_tokens":  {ResultTokens: -1},
		"history.max_result_tokens2": {ResultTokens: 1 << 40},
		"model":                      {Model: strings.Repeat("x", session.MaxModelBytes+1)},
		"model, text":                {Model: "\xff"},
		"max_tokens":                 {MaxTokens: -1},
	} {
		_, err := f.Configure(t.Context(), alice, "s", set(c), "r", nil)
		bad, ok := errors.AsType[*invalid.Error](err)
		if !ok || !strings.HasPrefix(name, bad.Field) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := f.mustConfig(t, alice, "s"); got != (session.Config{}) {
		t.Errorf("a refused change left %+v", got)
	}
	for _, preset := range []string{"design", "reduction", "chat", "research", "code", "debug"} {
		if err := (session.Config{Preset: preset}).Check(); err != nil {
			t.Errorf("%s: %v", preset, err)
		}
	}
}

func TestSettingsOverOthers(t *testing.T) {
	yes, no := true, false
	base := fullConfig()
	for name, tt := range map[string]struct{ over, want session.Config }{
		"nothing":    {session.Config{}, base},
		"everything": {base, base},
		"a policy leaves the preset": {
			session.Config{Policy: session.PolicyLedger},
			func() session.Config { c := base; c.Policy, c.Preset = session.PolicyLedger, ""; return c }(),
		},
		"the same policy keeps it": {session.Config{Policy: session.PolicyPreset}, base},
		"a preset brings its policy": {
			session.Config{Preset: "chat"},
			func() session.Config { c := base; c.Preset = "chat"; return c }(),
		},
		"true over false": {
			session.Config{Literal: &yes},
			func() session.Config { c := base; c.Literal = &yes; return c }(),
		},
		"numbers": {
			session.Config{ExpectedTurns: 1, ResultTokens: 2, MaxTokens: 3, Prices: history.Prices{Input: 1}},
			func() session.Config {
				c := base
				c.ExpectedTurns, c.ResultTokens, c.MaxTokens, c.Prices = 1, 2, 3, history.Prices{Input: 1}
				return c
			}(),
		},
	} {
		if diff := cmp.Diff(tt.want, tt.over.Over(base)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := (session.Config{Literal: &no}).Over(session.Config{Literal: &yes}); *got.Literal {
		t.Error("false did not go over true")
	}
	if got := (session.Config{Preset: "chat"}).Over(session.Config{Policy: session.PolicyLedger}); got.Policy != session.PolicyPreset {
		t.Errorf("a preset over the ledger: %+v", got)
	}
}

func TestEndOfASession(t *testing.T) {
	f := newMemory(t)
	check := func(when string, wantLast uint64, wantEnded bool) {
		t.Helper()
		last, err := f.Last(t.Context(), alice, "s")
		ended, endErr := f.Ended(t.Context(), alice, "s")
		if err != nil || endErr != nil || last != wantLast || ended != wantEnded {
			t.Errorf("%s: last %d, %v, ended %v, %v", when, last, err, ended, endErr)
		}
	}
	end := func(want uint64) {
		t.Helper()
		for range 2 {
			if last, err := f.End(t.Context(), alice, "s"); err != nil || last != want {
				t.Errorf("End: %d, %v, want %d", last, err, want)
			}
		}
	}
	check("nothing", 0, false)
	end(0)
	check("an end without a beginning", 0, true)
	f.fill(t, alice, "s", 3)
	check("messages", 3, false)
	end(3)
	check("the end", 3, true)
	f.mustFold(t, alice, "s", fold(1, span(1, 2)))
	if _, err := f.Configure(t.Context(), alice, "s", set(fullConfig()), "", nil); err != nil {
		t.Fatal(err)
	}
	check("folds and settings are no entries", 3, true)
	if ended, err := f.Ended(t.Context(), alice, ""); ended || err != nil {
		t.Errorf("another session: %v, %v", ended, err)
	}
	f.mustRecord(t, alice, step.Step{SessionID: "s", ToolName: "x"})
	check("a step", 4, false)
	if got := mustCollect(t, f.Entries(t.Context(), alice, "s")); len(got) != 4 {
		t.Errorf("%d entries", len(got))
	}
	if _, err := f.End(t.Context(), alice, "\x00"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("bad session: %v", err)
	}
	if _, err := f.Ended(t.Context(), kv.Scope{}, "s"); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("bad scope: %v", err)
	}
}

func TestAnchorsAreKept(t *testing.T) {
	want := tokens.Anchor{Model: "gpt-4o", ID: "p1", Local: 900, Real: 1000, Answer: 80}
	dir := filepath.Join(t.TempDir(), "store")
	open(t, dir, func(f *fixture) {
		if got, err := f.Anchor(t.Context(), alice, "s"); err != nil || got != (tokens.Anchor{}) {
			t.Errorf("before: %+v, %v", got, err)
		}
		for _, a := range []tokens.Anchor{{Model: "o3", Real: 5}, want} {
			if err := f.SaveAnchor(t.Context(), alice, "s", a); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range []tokens.Anchor{
			{Model: strings.Repeat("x", session.MaxModelBytes+1)},
			{ID: strings.Repeat("x", session.MaxPromptIDBytes+1)},
			{Real: -1},
		} {
			if err := f.SaveAnchor(t.Context(), alice, "s", a); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%.20v: %v", a, err)
			}
		}
	})
	open(t, dir, func(f *fixture) {
		if got, err := f.Anchor(t.Context(), alice, "s"); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := f.Anchor(t.Context(), bob, "s"); err != nil || got != (tokens.Anchor{}) {
			t.Errorf("bob's: %+v, %v", got, err)
		}
	})
}
