package audit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// ErrDamaged: a record or a link can't be read.
var ErrDamaged = errors.New("audit: damaged")

// Outcome says what came of a call. The numbers are part of the on-disk format.
type Outcome uint8

// The outcomes.
const (
	OutcomeUnknown  Outcome = 1 // the server, or the tool, stopped while it ran
	OutcomeOK       Outcome = 2
	OutcomeFailed   Outcome = 3 // the tool ran and failed
	OutcomeDenied   Outcome = 4 // it was not allowed to run, or to do what it tried
	OutcomeRefused  Outcome = 5 // bad arguments, no such tool, no room: nothing ran
	OutcomeReplayed Outcome = 6 // the same request had been answered before: nothing ran
)

// outcomeNames are the names of outcomes.
var outcomeNames = [...]string{"", "unknown", "ok", "failed", "denied", "refused", "replayed"}

// String is the outcome's name.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "other"
}

// Limits of a record, in bytes. What is longer is cut: a call is never refused because of
// its record.
const (
	// MaxArgsBytes bounds the reduced arguments. Longer ones are left out, and their keys
	// are kept as far as they fit.
	MaxArgsBytes = 2 << 10
	// maxTextBytes bounds each other text.
	maxTextBytes = 512
)

// Record is one call of a tool.
type Record struct {
	// Tenant, Epoch and Number name the record. The Log sets the last two.
	Tenant        string
	Epoch, Number uint64
	// Agent called, in Session. CallID, TurnID and RequestID are the caller's own.
	Agent, Session            string
	CallID, TurnID, RequestID string
	// Tool is the registered name, CalledAs the one that was called, where it differs.
	Tool, CalledAs string
	// Args are the reduced arguments as JSON, made by Safe.
	Args json.RawMessage
	// Profile is what the call could do, Approval how it came to be approved; empty where
	// no person was asked.
	Profile, Approval string
	// Capability is what the approval was about, such as `host api.github.com:443`, where
	// that is not the use of the tool; of several the last, or the one that was denied.
	Capability string
	Outcome    Outcome
	// Code says why a call did not succeed: a code of package tools, or a word for why it
	// was refused.
	Code string
	// Step is the number of the call's step; zero where it has none.
	Step uint64
	// Time is when the call came in, Duration how long it took.
	Time     time.Time
	Duration time.Duration
	// BytesIn is the size of the arguments, BytesOut of the result.
	BytesIn, BytesOut int64
	// Tier is how the tool's process was confined; empty where it started none.
	Tier string
	// Note is what the person said who approved or denied the call, made by SafeText.
	Note string
}

// encodeRecord is the stored form; tenant, epoch and number stand in the key. Texts always
// stood before all else.
func encodeRecord(r Record) []byte {
	cut := func(t string) string { return text.Head(t, maxTextBytes) }
	return wire.Marshal(&storev1.AuditRecord{
		Agent: cut(r.Agent), Session: cut(r.Session), CallId: cut(r.CallID), TurnId: cut(r.TurnID), RequestId: cut(r.RequestID),
		Tool: cut(r.Tool), Called: cut(r.CalledAs), Profile: cut(r.Profile), Approval: cut(r.Approval), Code: cut(r.Code),
		Tier: cut(r.Tier), About: cut(r.Capability), Note: text.Head(r.Note, maxScanned),
	}, &storev1.AuditRecord{
		Arguments: r.Args, Outcome: uint64(r.Outcome), Step: r.Step, Time: wire.Micros(r.Time),
		Duration: r.Duration.Microseconds(), ArgumentBytes: r.BytesIn, ResultBytes: r.BytesOut,
	})
}

// decodeRecord reads what encodeRecord wrote.
func decodeRecord(value []byte) (Record, error) {
	var m storev1.AuditRecord
	if err := wire.Unmarshal(value, &m); err != nil {
		return Record{}, errors.Join(ErrDamaged, err)
	}
	return Record{
		Agent: m.Agent, Session: m.Session, CallID: m.CallId, TurnID: m.TurnId, RequestID: m.RequestId, Tool: m.Tool,
		CalledAs: m.Called, Args: m.Arguments, Profile: m.Profile, Approval: m.Approval, Capability: m.About, Note: m.Note,
		Outcome: Outcome(m.Outcome), Code: m.Code, Step: m.Step, Time: wire.TimeOf(m.Time),
		Duration: time.Duration(m.Duration) * time.Microsecond, BytesIn: m.ArgumentBytes, BytesOut: m.ResultBytes, Tier: m.Tier,
	}, nil
}
