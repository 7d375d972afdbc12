package recent

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What was read before a write ended is not remembered behind it, and of two writes at once
// neither is.
func TestRememberedOfWrites(t *testing.T) {
	r, key := New(), []byte("k")
	begin := func(value string) []Write { return r.Begin(nil, kv.Log, key, []byte(value), false) }
	is := func(when, want string) {
		t.Helper()
		value, known, _ := r.Get(kv.Log, key, Latest)
		if got := string(value); known != (want != "") || got != want {
			t.Errorf("%s: %q, known %v", when, got, known)
		}
	}
	read := func() uint64 {
		_, _, since := r.Get(kv.Log, key, Latest)
		return since
	}
	since := read()
	r.End(begin("1"), true)
	r.Remember(kv.Log, key, []byte("0"), since)
	is("read before a write", "")

	first := begin("2")
	since = read()
	r.Remember(kv.Log, key, []byte("1"), since)
	is("read during a write", "")
	r.End(first, true)
	r.Remember(kv.Log, key, []byte("1"), since)
	is("read during a write that has ended", "")

	r.Remember(kv.Log, key, []byte("2"), read())
	is("read", "2")
	first = begin("3")
	is("while it is written", "")
	r.End(first, true)
	is("written", "3")

	first = begin("4")
	second := begin("5")
	r.End(second, true)
	r.End(first, true)
	is("written twice at once", "")

	r.Remember(kv.Log, key, []byte("5"), read())
	r.End(begin("6"), false)
	is("a write that failed", "")
}

// A value without bytes is a value, and a removed key has none.
func TestRememberedEmptyValues(t *testing.T) {
	r, key := New(), []byte("k")
	for _, remove := range []bool{false, true, false} {
		_, _, since := r.Get(kv.Log, key, Latest)
		r.Remember(kv.Log, key, []byte("before"), since)
		r.End(r.Begin(nil, kv.Log, key, nil, remove), true)
		if value, known, _ := r.Get(kv.Log, key, Latest); !known || (value == nil) != remove || len(value) > 0 {
			t.Errorf("removed %v: %q, nil %v, known %v", remove, value, value == nil, known)
		}
	}
}
