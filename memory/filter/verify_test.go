package filter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// stored gives every key the same value.
type stored struct {
	kv.Getter // nil: nothing is scanned
	value     []byte
}

func (s stored) Get(_ context.Context, _ kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i := range values {
		values[i] = s.value
	}
	return values, nil
}

// A filter that would have to read a great part of a large scope, again for each
// of its conditions, is refused instead of keeping a processor for minutes.
func TestFilterReadsNotForEver(t *testing.T) {
	kept := stored{value: record.Encode(record.Record{ID: "a", Text: "t", Metadata: []byte(`{"a":"` + strings.Repeat("x", record.MaxMetadataBytes-10) + `"}`)})}
	left := 2*len(kept.value) + 1
	verify := binding{kept, kv.AgentScope("default", "a"), &left}.verifier(func(r record.Record) bool { return len(r.Metadata) > 0 })
	if accepted, err := verify(t.Context(), []string{"a", "a"}); err != nil || !accepted[0] || !accepted[1] {
		t.Fatalf("%v, %v", accepted, err)
	}
	var wrong *Error
	if _, err := verify(t.Context(), []string{"a"}); !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, "64 MiB") {
		t.Errorf("error is %v, want a *Error", err)
	}
}
