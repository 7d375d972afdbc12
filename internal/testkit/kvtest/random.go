package kvtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// randomSteps is enough for each kind of step to meet each other kind many
// times, and takes under a second on a synced engine.
const randomSteps = 1500

// maxSnapshots is how many snapshots the random walk holds at once.
const maxSnapshots = 4

// RunSeed applies random operations to an engine and to memkv and wants the
// same answers of both. The seed is in the test's log; calling RunSeed with it
// repeats the run.
func RunSeed(t *testing.T, factory Factory, seed uint64) {
	t.Helper()
	t.Logf("seed %d", seed)
	w := &walk{
		t:      t,
		random: rand.New(rand.NewPCG(seed, 0)),
		model:  memkv.New(nil),
		tested: open(t, factory),
	}
	for range randomSteps {
		w.step()
	}
	w.compare(w.model, w.tested)
}

// walk drives two engines through the same operations.
type walk struct {
	t             *testing.T
	random        *rand.Rand
	model, tested kv.Engine
	snapshots     []heldSnapshot
}

// heldSnapshot is one of the model and one of the tested engine, taken at a moment.
type heldSnapshot struct {
	model, tested kv.Snapshot
	taken         time.Time
}

func (w *walk) step() {
	w.t.Helper()
	switch n := w.random.IntN(100); {
	case n < 55:
		w.commit()
	case n < 62:
		w.takeSnapshot()
	case n < 68:
		w.dropSnapshot()
	case n < 71:
		w.dropRange()
	default:
		model, tested := w.readers()
		w.read(model, tested)
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// readers returns the engines, or a pair of snapshots. Where a busy machine took so long that
// one may become too old while it is read, the pair is taken anew.
func (w *walk) readers() (model, tested kv.Reader) {
	n := w.random.IntN(maxSnapshots * 2)
	if n >= len(w.snapshots) {
		return w.model, w.tested
	}
	held := &w.snapshots[n]
	if time.Since(held.taken) > kv.SnapshotLife/4 {
		w.same("close snapshot", held.model.Close(), held.tested.Close())
		*held = w.mustHold()
	}
	return held.model, held.tested
}

func (w *walk) mustHold() heldSnapshot {
	w.t.Helper()
	taken := time.Now()
	return heldSnapshot{mustSnapshot(w.t, w.model), mustSnapshot(w.t, w.tested), taken}
}

func (w *walk) ref() kv.Ref {
	scopes := []kv.Scope{alpha(), alph(), {Tenant: "acm", Kind: kv.OwnerUser, Owner: "ealpha"}}
	keyspaces := []kv.Keyspace{kv.Records, kv.Log, kv.Blobs}
	return ref(keyspaces[w.random.IntN(len(keyspaces))], scopes[w.random.IntN(len(scopes))])
}

// key draws from few enough keys that most steps meet an older one.
func (w *walk) key(s kv.Scope) []byte {
	name := []byte{'k', 0x00, 0xff}[:1+w.random.IntN(3)]
	return s.Key('k', name, []byte{byte(w.random.IntN(12))})
}

func (w *walk) commit() {
	w.t.Helper()
	c := kv.Commit{Batch: new(kv.Batch), Lazy: w.random.IntN(3) == 0}
	seen := map[kv.Ref]bool{}
	for range 1 + w.random.IntN(3) {
		r := w.ref()
		if seen[r] {
			continue
		}
		seen[r] = true
		c.Guards = append(c.Guards, w.guard(r))
		if w.random.IntN(5) == 0 {
			c.Watched = append(c.Watched, w.watch(r))
		}
		for range w.random.IntN(6) {
			w.change(c.Batch, r)
		}
	}
	w.same("commit", w.model.Commit(w.t.Context(), c), w.tested.Commit(w.t.Context(), c))
}

// guard mostly holds.
func (w *walk) guard(r kv.Ref) kv.Guard {
	sequences, err := w.model.Sequence(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	g := kv.Guard{Ref: r, Sequence: sequences[0], Any: w.random.IntN(4) == 0}
	if w.random.IntN(10) == 0 {
		g.Sequence += uint64(w.random.IntN(3))
	}
	return g
}

func (w *walk) change(b *kv.Batch, r kv.Ref) {
	if w.random.IntN(4) == 0 {
		b.Delete(r.Keyspace, w.key(r.Scope))
		return
	}
	// Now and then a value that an engine may store elsewhere for its size.
	size := w.random.IntN(20)
	if w.random.IntN(20) == 0 {
		size = w.random.IntN(10_000)
	}
	value := sized(size)
	for i := range min(size, 8) {
		value[i] = byte(w.random.Uint32())
	}
	b.Put(r.Keyspace, w.key(r.Scope), value)
}

// watch mostly holds.
func (w *walk) watch(r kv.Ref) kv.Watch {
	key := w.key(r.Scope)
	values, err := w.model.Get(w.t.Context(), r.Keyspace, key)
	if err != nil {
		w.t.Fatal(err)
	}
	watched := kv.Watch{Keyspace: r.Keyspace, Key: key, Value: values[0]}
	if w.random.IntN(5) == 0 {
		watched.Value = sized(w.random.IntN(2))
	}
	return watched
}

// same wants both errors to be nil, or conflicts that name the same guard or key.
func (w *walk) same(what string, model, tested error) {
	w.t.Helper()
	var a, b *kv.ConflictError
	if errors.As(model, &a) && errors.As(tested, &b) && *a == *b {
		return
	}
	if model != nil || tested != nil {
		w.t.Errorf("%s: model says %v, engine says %v", what, model, tested)
	}
}

func (w *walk) takeSnapshot() {
	w.t.Helper()
	if len(w.snapshots) < maxSnapshots {
		w.snapshots = append(w.snapshots, w.mustHold())
	}
}

func (w *walk) dropSnapshot() {
	w.t.Helper()
	if len(w.snapshots) == 0 {
		return
	}
	n := w.random.IntN(len(w.snapshots))
	w.same("close snapshot", w.snapshots[n].model.Close(), w.snapshots[n].tested.Close())
	w.snapshots = append(w.snapshots[:n], w.snapshots[n+1:]...)
}

func (w *walk) dropRange() {
	w.t.Helper()
	tested, ok := w.tested.(kv.RangeDropper)
	if !ok {
		return
	}
	ks, r := w.ref().Keyspace, w.rangeOf()
	model := w.model.(kv.RangeDropper)
	w.same("drop range", model.DropRange(w.t.Context(), ks, r), tested.DropRange(w.t.Context(), ks, r))
}

// rangeOf draws ranges whose ends are keys, prefixes, nil, or in disorder.
func (w *walk) rangeOf() kv.Range {
	r := kv.Range{Start: w.key(w.ref().Scope), End: w.key(w.ref().Scope), Reverse: w.random.IntN(2) == 0}
	switch w.random.IntN(5) {
	case 0:
		r.Start = nil
	case 1:
		r.End = nil
	case 2:
		whole := kv.Prefix(w.ref().Scope.AppendPrefix(nil))
		r.Start, r.End = whole.Start, whole.End
	}
	if w.random.IntN(2) == 0 {
		r.Limit = w.random.IntN(6)
	}
	return r
}

func (w *walk) read(model, tested kv.Reader) {
	w.t.Helper()
	r := w.ref()
	switch w.random.IntN(3) {
	case 0:
		keys := make([][]byte, w.random.IntN(5))
		for i := range keys {
			keys[i] = w.key(r.Scope)
		}
		a, errA := model.Get(w.t.Context(), r.Keyspace, keys...)
		b, errB := tested.Get(w.t.Context(), r.Keyspace, keys...)
		w.same("get", errA, errB)
		w.equal("get", a, b)
	case 1:
		refs := []kv.Ref{r, w.ref(), w.ref()}
		a, errA := model.Sequence(w.t.Context(), refs...)
		b, errB := tested.Sequence(w.t.Context(), refs...)
		w.same("sequence", errA, errB)
		w.equal("sequence", a, b)
	default:
		of := w.rangeOf()
		w.equal(fmt.Sprintf("scan %+v", of), w.scan(model, r.Keyspace, of), w.scan(tested, r.Keyspace, of))
	}
}

func (w *walk) scan(r kv.Reader, ks kv.Keyspace, of kv.Range) []kv.Pair {
	w.t.Helper()
	var pairs []kv.Pair
	for pair, err := range r.Scan(w.t.Context(), ks, of) {
		if err != nil {
			w.t.Fatalf("scan: %v", err)
		}
		pairs = append(pairs, pair)
	}
	return pairs
}

func (w *walk) equal(what string, model, tested any) {
	w.t.Helper()
	if reflect.DeepEqual(model, tested) {
		return // cmp is slow on long values
	}
	if diff := cmp.Diff(model, tested); diff != "" {
		w.t.Errorf("%s (-model +engine):\n%s", what, diff)
	}
}

// compare wants two readers to hold the same.
func (w *walk) compare(model, tested kv.Reader) {
	w.t.Helper()
	for _, ks := range kv.Keyspaces() {
		w.equal("everything in "+ks.String(), w.scan(model, ks, kv.Range{}), w.scan(tested, ks, kv.Range{}))
	}
}
