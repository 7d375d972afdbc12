package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrDamaged: stored bytes are no step.
var ErrDamaged = errors.New("step: stored step is damaged")

// Field numbers of a stored step (memory/FORMAT.md). They are final: a field
// that goes leaves its number unused.
const (
	fieldNumber protowire.Number = iota + 1
	fieldSessionID
	fieldToolName
	fieldCalledAs
	fieldMinimalArgs
	fieldArgs
	fieldObservation
	fieldOutcomeRef
	fieldOutcomePath
	fieldTime
	fieldOutcome
	fieldThought
	fieldError
	fieldErrorCode
	fieldInline
	fieldMetadata
	fieldTurnID
	fieldCallID
)

// Append appends the stored form of s to dst: one protobuf field for each field
// that is not empty. Times keep whole microseconds.
func Append(dst []byte, s Step) []byte {
	dst = appendVarint(dst, fieldNumber, s.Number)
	for _, field := range s.texts() {
		if *field.text == "" {
			continue
		}
		dst = protowire.AppendTag(dst, field.number, protowire.BytesType)
		dst = protowire.AppendString(dst, *field.text)
	}
	for _, field := range s.documents() {
		if len(*field.json) == 0 {
			continue
		}
		dst = protowire.AppendTag(dst, field.number, protowire.BytesType)
		dst = protowire.AppendBytes(dst, *field.json)
	}
	if !s.Time.IsZero() {
		dst = protowire.AppendTag(dst, fieldTime, protowire.VarintType)
		dst = protowire.AppendVarint(dst, protowire.EncodeZigZag(s.Time.UnixMicro()))
	}
	return appendVarint(dst, fieldOutcome, uint64(s.Outcome))
}

func appendVarint(dst []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), v)
}

type textField struct {
	number protowire.Number
	text   *string
}

type jsonField struct {
	number protowire.Number
	json   *json.RawMessage
}

func (s *Step) texts() [12]textField {
	return [...]textField{
		{fieldSessionID, &s.SessionID},
		{fieldToolName, &s.ToolName},
		{fieldCalledAs, &s.CalledAs},
		{fieldObservation, &s.Observation},
		{fieldOutcomeRef, &s.OutcomeRef},
		{fieldOutcomePath, &s.OutcomePath},
		{fieldThought, &s.Thought},
		{fieldError, &s.Error},
		{fieldErrorCode, &s.ErrorCode},
		{fieldInline, &s.Inline},
		{fieldTurnID, &s.TurnID},
		{fieldCallID, &s.CallID},
	}
}

func (s *Step) documents() [3]jsonField {
	return [...]jsonField{
		{fieldMinimalArgs, &s.MinimalArgs},
		{fieldArgs, &s.Args},
		{fieldMetadata, &s.Metadata},
	}
}

// Decode reads what Append wrote. Fields of later versions are skipped; bytes
// that are no step are ErrDamaged. The step shares no memory with stored.
func Decode(stored []byte) (Step, error) {
	var s Step
	for len(stored) > 0 {
		number, kind, n := protowire.ConsumeTag(stored)
		if n < 0 {
			return Step{}, damaged(protowire.ParseError(n))
		}
		stored = stored[n:]
		if n = s.consume(number, kind, stored); n < 0 {
			return Step{}, damaged(protowire.ParseError(n))
		}
		stored = stored[n:]
	}
	if s.Number == 0 || s.Outcome > Unknown {
		return Step{}, damaged(errors.New("no number or an unknown outcome"))
	}
	return s, nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// consume reads one field and returns its length, negative when it is cut off.
func (s *Step) consume(number protowire.Number, kind protowire.Type, b []byte) int {
	switch kind {
	case protowire.VarintType:
		v, n := protowire.ConsumeVarint(b)
		switch number {
		case fieldNumber:
			s.Number = v
		case fieldOutcome:
			s.Outcome = Outcome(min(v, uint64(Unknown)+1))
		case fieldTime:
			s.Time = time.UnixMicro(protowire.DecodeZigZag(v)).UTC()
		}
		return n
	case protowire.BytesType:
		v, n := protowire.ConsumeBytes(b)
		s.setText(number, v)
		return n
	}
	return protowire.ConsumeFieldValue(number, kind, b)
}

func (s *Step) setText(number protowire.Number, v []byte) {
	for _, field := range s.texts() {
		if field.number == number {
			*field.text = string(v)
			return
		}
	}
	for _, field := range s.documents() {
		if field.number == number {
			*field.json = json.RawMessage(append([]byte(nil), v...))
			return
		}
	}
}
