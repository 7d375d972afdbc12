package record_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

var scope = kv.AgentScope("default", "agent-1")

// A report that can't be of the prompt is not believed: a tokenizer's ratio has bounds.
func TestBelieved(t *testing.T) {
	for _, tt := range []struct {
		local, real int
		want        bool
	}{{1000, 1000, true}, {1000, 200, true}, {1000, 199, false}, {1000, 6024, true}, {1000, 6025, false}, {0, 1, true}, {10, 0, false}} {
		if got := record.Believed(tokens.Anchor{Local: tt.local, Real: tt.real}); got != tt.want {
			t.Errorf("%d counted as %d: %v", tt.local, tt.real, got)
		}
	}
}

func TestNothingIsKnown(t *testing.T) {
	r := record.New(nil, nil, nil, nil, nil, nil)
	if last := r.Known.Last(scope, "s"); last.Of(record.CacheKind{Model: "m"}).Pressure != 0 || r.Pressure(scope, "s") != 0 {
		t.Errorf("last prompt %+v", last)
	}
	if r.Known.Trail(scope, "s") != nil {
		t.Error("a trail")
	}
	meter := r.Known.Meter(scope)
	if meter == nil || r.Known.Meter(scope) != meter {
		t.Error("an agent has not one meter")
	}
	if r.Forget(func(s kv.Scope) bool { return s == scope }); r.Known.Meter(scope) == meter {
		t.Error("the meter of an erased agent stays")
	}
	if _, err := r.ReportUsage(t.Context(), record.UsageReport{Scope: scope, PromptID: "p", Usage: tokens.Usage{Prompt: 1}}); !errors.Is(err, record.ErrPromptUnknown) {
		t.Errorf("a report of an unknown prompt: %v", err)
	}
}

func TestReportsAreChecked(t *testing.T) {
	r := record.New(nil, nil, nil, nil, nil, nil)
	for field, change := range map[string]func(*record.UsageReport){
		"prompt_id":         func(u *record.UsageReport) { u.PromptID = "" },
		"prompt_tokens":     func(u *record.UsageReport) { u.Usage.Prompt = 0 },
		"completion_tokens": func(u *record.UsageReport) { u.Usage.Completion = -1 },
		"reasoning_tokens":  func(u *record.UsageReport) { u.Usage.Reasoning = -1 },
		"cached_tokens":     func(u *record.UsageReport) { u.Cached = -1 },
	} {
		bad := record.UsageReport{Scope: scope, PromptID: "p", Usage: tokens.Usage{Prompt: 1}}
		change(&bad)
		_, err := r.ReportUsage(t.Context(), bad)
		if e, ok := errors.AsType[*invalid.Error](err); !ok || e.Field != field || !errors.Is(err, record.ErrInvalid) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Without a store of prompts none can be made again.
func TestNoRecords(t *testing.T) {
	r := record.New(nil, nil, nil, nil, nil, nil)
	_, _, errPast := r.Past(t.Context(), scope, "s", record.PastRequest{PromptID: "p"})
	_, errDiff := r.Diff(t.Context(), scope, "s", "", "p")
	_, errFork := r.ForkPoint(t.Context(), scope, "s", "p")
	for _, err := range []error{errPast, errDiff, errFork} {
		if !errors.Is(err, past.ErrGone) {
			t.Errorf("got %v", err)
		}
	}
}
