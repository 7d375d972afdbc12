package invalid_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func TestField(t *testing.T) {
	sentinel := errors.New("memory: invalid input")
	err := invalid.Field(sentinel, "tags[2]", "has %d bytes, more than %d", 300, 200)
	if got, want := err.Error(), "memory: tags[2] has 300 bytes, more than 200"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if bad, ok := errors.AsType[*invalid.Error](err); !ok || bad.Field != "tags[2]" || !errors.Is(err, sentinel) {
		t.Errorf("got %#v, want an error of the field and of the sentinel", err)
	}
}
