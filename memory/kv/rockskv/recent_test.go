//go:build cgo && !norocksdb

package rockskv_test

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// Keys that are read again and again while they are written are what the last commit made
// them: to a reader of the latest, to a snapshot that was opened before or later, and no
// reader sees half of a commit.
func TestKeysReadAgainWhileWritten(t *testing.T) {
	db := mustOpen(t, t.TempDir(), &rockskv.Options{Durability: rockskv.WAL})
	const writers, commits = 3, 400
	type pair struct {
		scope kv.Scope
		keys  [][]byte
		wide  [][]byte      // the keys, with others between
		done  atomic.Uint64 // the number that was acknowledged last
	}
	pairs := make([]*pair, writers)
	for i := range pairs {
		scope := kv.AgentScope("t", string(rune('a'+i)))
		p := &pair{scope: scope, keys: [][]byte{scope.Key('x'), scope.Key('y')}}
		p.wide = append(p.wide, p.keys[0])
		for k := range byte(100) {
			p.wide = append(p.wide, scope.Key('z', []byte{k}))
		}
		p.wide = append(p.wide, p.keys[1])
		pairs[i] = p
	}
	number := func(value []byte) uint64 {
		if value == nil {
			return 0
		}
		return binary.BigEndian.Uint64(value)
	}
	var all sync.WaitGroup
	var over atomic.Bool
	for _, p := range pairs {
		all.Go(func() {
			for n := uint64(1); n <= commits; n++ {
				batch := new(kv.Batch)
				for _, key := range p.keys {
					batch.Put(kv.Log, key, binary.BigEndian.AppendUint64(nil, n))
				}
				guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Log, Scope: p.scope}, Sequence: n - 1}
				if err := db.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}); err != nil {
					t.Error(err)
					return
				}
				p.done.Store(n)
			}
		})
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for last := uint64(0); !over.Load() && !t.Failed(); {
					acknowledged := p.done.Load()
					one, err := db.Get(t.Context(), kv.Log, p.keys[0])
					if err != nil {
						t.Error(err)
						return
					}
					n := number(one[0])
					if n < max(last, acknowledged) {
						t.Errorf("read %d after %d was read and %d acknowledged", n, last, acknowledged)
					}
					last = n
					both, err := db.Get(t.Context(), kv.Log, p.wide...)
					if err != nil {
						t.Error(err)
						return
					}
					if x, y := number(both[0]), number(both[len(both)-1]); x != y || x < last {
						t.Errorf("read %d and %d after %d", x, y, last)
					}
					view, err := db.Snapshot(t.Context(), kv.Ref{Keyspace: kv.Log, Scope: p.scope})
					if err != nil {
						t.Error(err)
						return
					}
					for range 3 {
						first, err1 := view.Get(t.Context(), kv.Log, p.keys[1])
						rest, err2 := view.Get(t.Context(), kv.Log, p.keys...)
						if err1 != nil || err2 != nil {
							t.Error(err1, err2)
							break
						}
						want := view.Sequences()[0]
						if want < last || number(first[0]) != want || number(rest[0]) != want || number(rest[1]) != want {
							t.Errorf("a snapshot of %d after %d has %x and %x", want, last, first, rest)
						}
					}
					if err := view.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		defer readers.Wait()
	}
	defer over.Store(true)
	all.Wait()
}

// What deletes many keys at once is seen by the next read of one, and a reader who changes
// what was read for him changes nothing else.
func TestKeyReadBeforeItsRangeIsDropped(t *testing.T) {
	db := mustOpen(t, t.TempDir(), nil)
	scope := kv.AgentScope("t", "a")
	key := scope.Key('x')
	batch := new(kv.Batch)
	batch.Put(kv.Log, key, []byte("old"))
	guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Log, Scope: scope}, Any: true}
	if err := db.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		values, err := db.Get(t.Context(), kv.Log, key)
		if err != nil || string(values[0]) != "old" {
			t.Fatalf("%q, %v", values, err)
		}
		values[0][0] = 'c'
	}
	before, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := db.DropRange(t.Context(), kv.Log, kv.Prefix(key)); err != nil {
		t.Fatal(err)
	}
	if values, err := db.Get(t.Context(), kv.Log, key); err != nil || values[0] != nil {
		t.Errorf("after the drop: %q, %v", values, err)
	}
	if values, err := before.Get(t.Context(), kv.Log, key); err != nil || string(values[0]) != "old" {
		t.Errorf("of before the drop: %q, %v", values, err)
	}
}
