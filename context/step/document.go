package step

import (
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Document is the step as one canonical JSON object: what the file step_001.json of
// a history holds, without the result as it was given. Fields without a value are
// left out. The same step gives the same bytes.
func Document(s Step) []byte {
	object := map[string]any{
		"id": s.ID(), "number": s.Number, "time": s.Time.UTC().Format(time.RFC3339Nano), "outcome": s.Outcome.String(),
	}
	for key, body := range map[string]string{
		"session_id": s.SessionID, "tool_name": s.ToolName, "called_as": s.CalledAs, "observation": s.Observation,
		"outcome_ref": s.OutcomeRef, "outcome_path": s.OutcomePath, "args_path": s.ArgsPath, "thought": s.Thought, "error": s.Error,
		"error_code": s.ErrorCode, "inline": s.Inline, "turn_id": s.TurnID, "call_id": s.CallID, "evidence": s.Evidence, "media_type": s.Given.MediaType, "result_path": s.Given.Path,
	} {
		if body != "" {
			object[key] = body
		}
	}
	for key, value := range map[string]json.RawMessage{
		"minimal_args": s.MinimalArgs, "args": s.Args, "metadata": s.Metadata,
	} {
		if len(value) > 0 {
			object[key] = value
		}
	}
	if s.Pinned {
		object["pinned"] = true
	}
	if s.Given.Form != FormUnknown {
		object["result_form"] = s.Given.Form.String()
	}
	return text.CanonicalJSON(object)
}

// ResultText is the whole result of a step whose result was not offloaded, as
// far as it is text: what the prompt shows of it, or why it failed.
func (s Step) ResultText() string {
	if s.Inline == "" {
		return s.Error
	}
	return s.Inline
}
