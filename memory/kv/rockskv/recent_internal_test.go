//go:build cgo && !norocksdb

package rockskv

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What was read before a write ended is not remembered behind it, and of two writes at once
// neither is.
func TestRememberedOfWrites(t *testing.T) {
	r, key := newRecent(), []byte("k")
	begin := func(value string) []recentWrite { return r.begin(nil, kv.Log, key, []byte(value), false) }
	is := func(when, want string) {
		t.Helper()
		value, known, _ := r.get(kv.Log, key, latestMoment)
		if got := string(value); known != (want != "") || got != want {
			t.Errorf("%s: %q, known %v", when, got, known)
		}
	}
	read := func() uint64 {
		_, _, since := r.get(kv.Log, key, latestMoment)
		return since
	}
	since := read()
	r.end(begin("1"), true)
	r.remember(kv.Log, key, []byte("0"), since)
	is("read before a write", "")

	first := begin("2")
	since = read()
	r.remember(kv.Log, key, []byte("1"), since)
	is("read during a write", "")
	r.end(first, true)
	r.remember(kv.Log, key, []byte("1"), since)
	is("read during a write that has ended", "")

	r.remember(kv.Log, key, []byte("2"), read())
	is("read", "2")
	first = begin("3")
	is("while it is written", "")
	r.end(first, true)
	is("written", "3")

	first = begin("4")
	second := begin("5")
	r.end(second, true)
	r.end(first, true)
	is("written twice at once", "")

	r.remember(kv.Log, key, []byte("5"), read())
	r.end(begin("6"), false)
	is("a write that failed", "")
}
