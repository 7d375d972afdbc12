package audit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
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
	// BytesIn are those of the arguments, BytesOut those of the result.
	BytesIn, BytesOut int64
	// Tier is how the tool's process was confined; empty where it started none.
	Tier string
}

// Fields of a stored record (memory/FORMAT.md). Tenant, epoch and number stand in the key.
const (
	fieldAgent = iota + 1
	fieldSession
	fieldCall
	fieldTurn
	fieldRequest
	fieldTool
	fieldCalledAs
	fieldArgs
	fieldProfile
	fieldApproval
	fieldOutcome
	fieldCode
	fieldStep
	fieldTime
	fieldDuration
	fieldBytesIn
	fieldBytesOut
	fieldTier
	fieldCapability
)

func encodeRecord(r Record) []byte {
	dst := make([]byte, 0, 192+len(r.Args))
	for _, f := range r.texts() {
		dst = wire.AppendText(dst, f.number, text.Head(*f.to, maxTextBytes))
	}
	dst = wire.AppendText(dst, fieldArgs, r.Args)
	dst = wire.AppendUint(dst, fieldOutcome, uint64(r.Outcome))
	dst = wire.AppendUint(dst, fieldStep, r.Step)
	dst = wire.AppendTime(dst, fieldTime, r.Time)
	dst = wire.AppendInt(dst, fieldDuration, r.Duration.Microseconds())
	dst = wire.AppendInt(dst, fieldBytesIn, r.BytesIn)
	return wire.AppendInt(dst, fieldBytesOut, r.BytesOut)
}

// textField is a field of a record that is text.
type textField struct {
	number int
	to     *string
}

func (r *Record) texts() [12]textField {
	return [...]textField{
		{fieldAgent, &r.Agent},
		{fieldSession, &r.Session},
		{fieldCall, &r.CallID},
		{fieldTurn, &r.TurnID},
		{fieldRequest, &r.RequestID},
		{fieldTool, &r.Tool},
		{fieldCalledAs, &r.CalledAs},
		{fieldProfile, &r.Profile},
		{fieldApproval, &r.Approval},
		{fieldCode, &r.Code},
		{fieldTier, &r.Tier},
		{fieldCapability, &r.Capability},
	}
}

// decodeRecord reads what encodeRecord wrote.
func decodeRecord(value []byte) (Record, error) {
	var r Record
	texts := r.texts()
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Record{}, errors.Join(ErrDamaged, err)
		}
		switch f.Number {
		case fieldArgs:
			r.Args = append(json.RawMessage(nil), f.Bytes...)
		case fieldOutcome:
			r.Outcome = Outcome(f.Value)
		case fieldStep:
			r.Step = f.Value
		case fieldTime:
			r.Time = f.Time()
		case fieldDuration:
			r.Duration = time.Duration(f.Int()) * time.Microsecond
		case fieldBytesIn:
			r.BytesIn = f.Int()
		case fieldBytesOut:
			r.BytesOut = f.Int()
		default:
			for _, t := range texts {
				if t.number == f.Number {
					*t.to = string(f.Bytes)
				}
			}
		}
	}
	return r, nil
}
