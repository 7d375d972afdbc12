package hand_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// mistakes are calls that a model got wrong, whatever it was.
func mistakes() map[string]struct {
	req  hand.Request
	err  error // without a call id
	code tools.Code
	says string
} {
	type mistake = struct {
		req  hand.Request
		err  error
		code tools.Code
		says string
	}
	raw := func(name, args string) hand.Request {
		return hand.Request{Scope: agent, Name: name, Args: []byte(args)}
	}
	return map[string]mistake{
		"unknown tool":            {raw("fs:read_fil", `{"path":"a"}`), tools.ErrToolNotFound, tools.NotFound, "did you mean fs:read_file?"},
		"no name":                 {raw("", `{}`), tools.ErrToolNotFound, tools.NotFound, "Tool not found"},
		"a name no tool can have": {raw("functions.read file!\x1b[0m", `{}`), tools.ErrToolNotFound, tools.NotFound, "Tool not found: functions.read_file_"},
		"a long name":             {raw(strings.Repeat("é", 5000), `{}`), tools.ErrToolNotFound, tools.NotFound, "Tool not found"},
		"missing argument":        {raw("fs:read_file", `{}`), tools.ErrInvalidArguments, tools.InvalidArguments, "path: is required"},
		"wrong type":              {raw("fs:read_file", `{"path":["a"]}`), tools.ErrInvalidArguments, tools.InvalidArguments, "path: must be string, not array"},
		"unknown argument":        {raw("fs:read_file", `{"path":"a","timeout_ms":1}`), tools.ErrInvalidArguments, tools.InvalidArguments, "timeout_ms: is not known"},
		"cut off":                 {raw("fs:read_file", `{"path":"a`), tools.ErrInvalidArguments, tools.InvalidArguments, "the text ends before"},
		"no JSON":                 {raw("fs:read_file", `path=a`), tools.ErrInvalidArguments, tools.InvalidArguments, "are not JSON"},
		"no object":               {raw("fs:read_file", `[1]`), tools.ErrInvalidArguments, tools.InvalidArguments, "must be a JSON object"},
		"not UTF-8":               {raw("fs:read_file", "{\"path\":\"\xff\"}"), tools.ErrInvalidArguments, tools.InvalidArguments, "not UTF-8"},
		"too deep":                {raw("x", `{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`), tools.ErrInvalidArguments, tools.InvalidArguments, "nested deeper"},
		"too large":               {raw("fs:read_file", `{"path":"`+strings.Repeat("x", tools.MaxArgumentsBytes)+`"}`), tools.ErrInvalidArguments, tools.InvalidArguments, "exceed the limit"},
		"refused by the tool":     {raw("fs:search", `{"query":"(","regex":true}`), tools.ErrInvalidArguments, tools.InvalidArguments, "query"},
	}
}

func TestMistakesOfAModelAreFailedSteps(t *testing.T) {
	for name, tt := range mistakes() {
		t.Run(name, func(t *testing.T) {
			w := MustWorld(t, map[string]string{"a": "x"}, nil)
			if a, err := w.Call(t.Context(), tt.req); !errors.Is(err, tt.err) {
				t.Fatalf("without a call id: %+v, %v; want %v", a, err, tt.err)
			}
			req := tt.req
			req.CallID, req.TurnID, req.Thought = "call-1", "turn-1", "hm"
			a := w.must(req)
			if a.Success || a.ErrorCode != tt.code || !strings.Contains(a.ErrorMessage, tt.says) {
				t.Errorf("answer %v %s %q; want %s %q", a.Success, a.ErrorCode, a.ErrorMessage, tt.code, tt.says)
			}
			s := a.Step
			if s.Outcome != step.Failed || s.CallID != "call-1" || s.Thought != "hm" || s.Error != a.ErrorMessage || !strings.Contains(a.Observation, s.Error) {
				t.Errorf("step %+v", s)
			}
			if again := w.must(req); !again.Replayed || again.Step.Number != s.Number || again.ErrorMessage != a.ErrorMessage {
				t.Errorf("again: %+v", again)
			}
			if steps := w.steps("default"); len(steps) != 1 || len(w.intents()) != 0 {
				t.Errorf("%d steps, intents %v", len(steps), w.intents())
			}
		})
	}
}

// TestMistakesOfTheProgramAreErrors makes calls with a call id that a model can't mend.
func TestMistakesOfTheProgramAreErrors(t *testing.T) {
	w := MustWorld(t, map[string]string{"a": "x"}, nil)
	for name, tt := range map[string]struct {
		change func(*hand.Request)
		want   error
	}{
		"no agent":          {func(r *hand.Request) { r.Scope.Owner = "" }, kv.ErrBadScope},
		"a long session":    {func(r *hand.Request) { r.SessionID = strings.Repeat("x", 300) }, hand.ErrInvalid},
		"a long call id":    {func(r *hand.Request) { r.CallID = strings.Repeat("x", session.MaxCallIDBytes+1) }, hand.ErrInvalid},
		"a long request id": {func(r *hand.Request) { r.RequestID = strings.Repeat("x", 300) }, hand.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tool := range []string{"fs:read_file", "no:such"} {
				req := request(tool, nil)
				req.CallID = "c"
				tt.change(&req)
				if a, err := w.Call(t.Context(), req); err == nil || !errors.Is(err, tt.want) && tool == "fs:read_file" {
					t.Errorf("%s: got %+v, %v; want %v", tool, a, err, tt.want)
				}
			}
		})
	}
	req := request("fs:read_file", map[string]any{"path": "a"})
	req.CallID, req.RequestID = "c", "r"
	w.must(req)
	if req.Args = []byte(`{"path":"b"}`); true {
		if _, err := w.Call(t.Context(), req); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("a reused request id: %v", err)
		}
	}
	if len(w.steps("default")) != 1 {
		t.Errorf("steps: %+v", w.steps("default"))
	}
}

// A call over a limit of the tool is the program's to make again, with the same ids.
func TestCallsOverALimitOfTheToolAreErrors(t *testing.T) {
	rule, err := throttle.ParseRule("fs:read_file 1/m")
	if err != nil {
		t.Fatal(err)
	}
	w := MustWorld(t, map[string]string{"a": "x"}, &hand.Options{Limits: throttle.New([]throttle.Rule{rule}, nil)})
	req := request("fs:read_file", map[string]any{"path": "a"})
	w.must(req)
	for _, id := range []string{"", "call-1", "call-1", "call-2"} {
		req.CallID, req.TurnID = id, "turn"
		_, err := w.Call(t.Context(), req)
		if limited, ok := errors.AsType[*throttle.LimitedError](err); !ok || limited.Retry <= 0 {
			t.Errorf("call id %q: %v", id, err)
		}
	}
	if steps := w.steps("default"); len(steps) != 1 {
		t.Errorf("%d steps, want that of the call that ran", len(steps))
	}
}
