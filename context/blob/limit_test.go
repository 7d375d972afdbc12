package blob

import (
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The largest blob is too large for a test, so this one begins near its end.
func TestABodyBeyondTheLimit(t *testing.T) {
	scope := kv.AgentScope("t", "a")
	begin := func() *Upload {
		u := New(nil, nil, nil).Create(t.Context(), scope)
		u.size = MaxBytes - 3
		return u
	}
	u := begin()
	if n, err := u.Write([]byte("abc")); n != 3 || err != nil {
		t.Fatalf("up to the limit: %d, %v", n, err)
	}
	if _, err := u.Write([]byte("d")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Write: %v, want ErrTooLarge", err)
	}
	if _, err := u.Finish(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Finish: %v, want ErrTooLarge", err)
	}
	if _, err := begin().ReadFrom(strings.NewReader(strings.Repeat("x", minRead+1))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("ReadFrom: %v, want ErrTooLarge", err)
	}
}
