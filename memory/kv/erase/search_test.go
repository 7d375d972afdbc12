package erase_test

import (
	"crypto/sha256"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// An id is found wherever it stands: a long one in any bytes, a short one as a word or a field.
func TestSearch(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256([]byte("any"))
	message := func(id string) []byte {
		inner := wire.AppendText(wire.AppendUint(nil, 1, 300), 2, id)
		return wire.AppendItem(wire.AppendItem(nil, 1, digest[:]), 4, inner)
	}
	for _, c := range []struct {
		name, id    string
		tail, value []byte
		want        bool
	}{
		{"nobody", "", nil, []byte("anything"), false},
		{"a value", "a", nil, []byte("a"), true},
		{"a key", "a", []byte("a"), nil, true},
		{"a word", "ann", nil, []byte("ask ann, please"), true},
		{"a part of a word", "ann", nil, []byte("planning an annex"), false},
		{"a part of a name", "ann", nil, []byte("ann-2 and dr.ann"), false},
		{"a field", "a", nil, message("a"), true},
		{"another field", "a", nil, message("b"), false},
		{"a word in a field", "ann", nil, message("for ann"), true},
		{"JSON", "ann", nil, []byte(`{"agent_id":"ann"}`), true},
		{"a byte of a hash", string(digest[:1]), nil, digest[:], false},
		{"a long one in bytes", "agent-0001", nil, append(digest[:], "xagent-0001x"...), true},
		{"a long one in a key", "agent-0001", append([]byte{0, 0, 1, 'a'}, "agent-0001"...), nil, true},
		{"another long one", "agent-0001", nil, []byte("agent-0002"), false},
	} {
		if got := erase.NewSearch(c.id).Names(c.tail, c.value); got != c.want {
			t.Errorf("%s: %q in %q, %q: %t", c.name, c.id, c.tail, c.value, got)
		}
	}
}

// Is is true of an id alone, and not of a name that contains it.
func TestSearchIs(t *testing.T) {
	t.Parallel()
	message := wire.AppendItem(nil, 3, wire.AppendText(wire.AppendUint(nil, 1, 300), 2, "agent-0001"))
	for id, want := range map[string]bool{"agent-0001": true, "agent-000": false, "": false} {
		if got := erase.NewSearch(id).Is([]byte("agent-0001x"), message); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
	if s := erase.NewSearch("a"); !s.Is([]byte("a"), nil) || !s.Is(nil, []byte("a")) || s.Is([]byte("aa"), []byte("a a")) {
		t.Error("a short id is looked for otherwise")
	}
}
