package audit

import (
	"encoding/json"
	"time"
)

// Document is a record as a JSON object, for people and files. What is empty is left out.
func Document(r Record) map[string]any {
	d := map[string]any{
		"epoch": r.Epoch, "number": r.Number, "time": r.Time.UTC().Format(time.RFC3339Nano), "agent": r.Agent,
		"outcome": r.Outcome.String(), "duration": r.Duration.String(), "bytes_in": r.BytesIn, "bytes_out": r.BytesOut,
	}
	for name, text := range map[string]string{
		"session": r.Session, "call_id": r.CallID, "turn_id": r.TurnID, "request_id": r.RequestID, "tool": r.Tool,
		"called_as": r.CalledAs, "profile": r.Profile, "approval": r.Approval, "code": r.Code, "tier": r.Tier, "capability": r.Capability,
	} {
		if text != "" {
			d[name] = text
		}
	}
	if json.Valid(r.Args) {
		d["arguments"] = r.Args
	}
	if r.Step > 0 {
		d["step"] = r.Step
	}
	return d
}
