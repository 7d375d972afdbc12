package step_test

import (
	"encoding/json"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

func TestDocument(t *testing.T) {
	bare := step.Document(step.Step{Number: 7})
	if want := `{"id":"step_007","number":7,"outcome":"succeeded","time":"0001-01-01T00:00:00Z"}`; string(bare) != want {
		t.Errorf("got  %s\nwant %s", bare, want)
	}
	s := fullStep()
	s.Args = json.RawMessage(`{"n": 12345678901234567890, "b":1}`)
	var got map[string]any
	if err := json.Unmarshal(step.Document(s), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"args", "call_id", "called_as", "error", "error_code", "evidence", "id", "inline", "metadata", "minimal_args", "number",
		"observation", "outcome", "outcome_path", "outcome_ref", "pinned", "session_id", "thought", "time", "tool_name", "turn_id",
	} {
		if got[key] == nil || got[key] == "" {
			t.Errorf("%s is missing", key)
		}
	}
	again, err := text.DecodeJSON(step.Document(s))
	if err != nil || string(text.CanonicalJSON(again)) != string(step.Document(s)) {
		t.Errorf("is not canonical: %s, %v", step.Document(s), err)
	}
}

func TestResultText(t *testing.T) {
	for want, s := range map[string]step.Step{
		"shown": {Inline: "shown", Error: "why"},
		"why":   {Outcome: step.Failed, Error: "why", Observation: "t failed: why"},
		"":      {Observation: "t completed"},
	} {
		if got := s.ResultText(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
