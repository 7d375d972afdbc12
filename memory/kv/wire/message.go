package wire

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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

// Pairs are the entries of a map in the order of the keys.
func Pairs(m map[string]string) []*storev1.Pair {
	var pairs []*storev1.Pair
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, &storev1.Pair{Key: key, Value: m[key]})
	}
	return pairs
}

// MapOf is the map that Pairs was made of; nil for none.
func MapOf(pairs []*storev1.Pair) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	m := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		m[pair.Key] = pair.Value
	}
	return m
}
