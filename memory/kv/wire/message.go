package wire

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
)

// Marshal is the stored form of a message of proto/store/v1, its fields in the order of their
// numbers. Where a value was always written in another order, it is several messages of the
// same type, one behind the other.
func Marshal(messages ...proto.Message) (stored []byte) {
	for _, m := range messages {
		// The schema has nothing that a value could break: no required field, no check of texts.
		stored, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(stored, m)
	}
	return stored
}

// Unmarshal reads what Marshal wrote into an empty message. Fields that this version does not
// know are passed over. The message shares no memory with stored. What is no message is
// ErrMalformed.
func Unmarshal(stored []byte, m proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(stored, m); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// Micros is a time as a message has it, whole microseconds since 1970; nil for an unset one.
func Micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	micros := t.UnixMicro()
	return &micros
}

// TimeOf is the time that Micros made, in UTC.
func TimeOf(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	return time.UnixMicro(*micros).UTC()
}
