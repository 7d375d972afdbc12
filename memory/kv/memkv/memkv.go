package memkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
)

var (
	_ kv.Engine       = (*DB)(nil)
	_ kv.RangeDropper = (*DB)(nil)
	_ kv.Snapshot     = (*snapshot)(nil)
)

// Options configure New. Nil and zero fields mean the defaults.
type Options struct {
	// SnapshotLife is how long a snapshot lives. Default kv.SnapshotLife.
	SnapshotLife time.Duration
}

// DB is an engine in memory. All methods are safe for concurrent use.
type DB struct {
	life time.Duration
	open lifetime.Holdings // of the views of snapshots and scans
	*store
	closed bool // guarded by mu
}

// store is what the engines over it have in common.
type store struct {
	mu  sync.RWMutex
	now version // guarded by mu; what it points to never changes
}

// version is the state of all keyspaces at one moment, a tree for each.
type version []*node

// New returns an empty engine.
func New(opts *Options) *DB {
	db := &DB{life: kv.SnapshotLife, store: &store{now: make(version, len(kv.Keyspaces()))}}
	if opts != nil && opts.SnapshotLife > 0 {
		db.life = opts.SnapshotLife
	}
	return db
}

// Share returns one more engine over the same store, closed by itself.
func (db *DB) Share() *DB { return &DB{life: db.life, store: db.store} }

// current returns the newest version, or ErrClosed, or why ctx ended.
func (db *DB) current(ctx context.Context) (version, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return nil, kv.ErrClosed
	}
	return db.now, ctx.Err()
}

// Get is kv.Reader's.
func (db *DB) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	v, err := db.current(ctx)
	if err != nil {
		return nil, err
	}
	return v.get(ks, keys)
}

// Scan is kv.Reader's. A scan sees the moment at which its loop began for as long as
// a snapshot lives.
func (db *DB) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return kv.ResumeScan(r, func(rest kv.Range) iter.Seq2[kv.Pair, error] {
		return func(yield func(kv.Pair, error) bool) {
			view, err := db.view(ctx)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			defer view.close()
			view.scan(ctx, ks, rest, yield)
		}
	})
}

// Sequence is kv.Reader's.
func (db *DB) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	v, err := db.current(ctx)
	if err != nil {
		return nil, err
	}
	return v.sequences(refs)
}

// LastCommits is kv.Engine's.
func (db *DB) LastCommits(ctx context.Context, refs ...kv.Ref) ([]kv.LastCommit, error) {
	v, err := db.current(ctx)
	if err != nil {
		return nil, err
	}
	return v.lastCommits(refs)
}

// Snapshot is kv.Engine's. It costs nothing but the memory of what is
// overwritten while it is held.
func (db *DB) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	view, err := db.view(ctx)
	if err != nil {
		return nil, err
	}
	s := new(snapshot)
	now, err := view.version(ctx) // none is left if the engine was closed meanwhile
	if err == nil {
		s.sequences, err = now.sequences(refs)
	}
	if err != nil {
		view.close()
		return nil, err
	}
	s.view.Store(view)
	return s, nil
}

// Commit is kv.Engine's. Lazy makes no difference.
func (db *DB) Commit(ctx context.Context, c kv.Commit) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	after, err := db.now.raise(c.Guards, c.Token)
	if err != nil {
		return err
	}
	if err := db.now.compare(c.Watched); err != nil {
		return err
	}
	if c.Batch != nil {
		after.apply(c.Batch.Ops())
	}
	db.now = after
	return nil
}

// DropRange is kv.RangeDropper's.
func (db *DB) DropRange(ctx context.Context, ks kv.Keyspace, r kv.Range) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := db.now.tree(ks)
	if err != nil {
		return err
	}
	after := slices.Clone(db.now)
	root.ascend(r.Start, r.End, func(n *node) bool {
		if !kv.IsReserved(n.key) {
			after[ks] = after[ks].remove(n.key)
		}
		return true
	})
	db.now = after
	return nil
}

// Close is kv.Engine's. What the store holds goes with its last engine.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return kv.ErrClosed
	}
	db.closed = true
	db.open.Close()
	return nil
}

func (v version) tree(ks kv.Keyspace) (*node, error) {
	if int(ks) >= len(v) {
		return nil, fmt.Errorf("%w: keyspace %d", kv.ErrBadScope, ks)
	}
	return v[ks], nil
}

func (v version) get(ks kv.Keyspace, keys [][]byte) ([][]byte, error) {
	root, err := v.tree(ks)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if n := root.find(key); n != nil && !kv.IsReserved(key) {
			values[i] = own(n.value)
		}
	}
	return values, nil
}

func (v version) sequences(refs []kv.Ref) ([]uint64, error) {
	last, err := v.lastCommits(refs)
	sequences := make([]uint64, len(last))
	for i := range last {
		sequences[i] = last[i].Sequence
	}
	return sequences, err
}

func (v version) lastCommits(refs []kv.Ref) ([]kv.LastCommit, error) {
	found := make([]kv.LastCommit, len(refs))
	for i, ref := range refs {
		root, err := v.tree(ref.Keyspace)
		if err != nil {
			return nil, err
		}
		if err := ref.Scope.Validate(); err != nil {
			return nil, err
		}
		if n := root.find(kv.SequenceKey(ref.Scope)); n != nil {
			found[i] = kv.LastCommit{Sequence: binary.BigEndian.Uint64(n.value), Token: binary.BigEndian.Uint64(n.value[8:])}
		}
	}
	return found, nil
}

// compare returns a *kv.ConflictError for the first watched key that has another
// value.
func (v version) compare(watched []kv.Watch) error {
	for _, w := range watched {
		values, err := v.get(w.Keyspace, [][]byte{w.Key})
		if err != nil {
			return err
		}
		if (values[0] == nil) != (w.Value == nil) || !bytes.Equal(values[0], w.Value) {
			return &kv.ConflictError{Key: string(w.Key), Keyspace: w.Keyspace}
		}
	}
	return nil
}

// raise returns a version in which every exact guard's sequence is one higher,
// or a *kv.ConflictError.
func (v version) raise(guards []kv.Guard, token uint64) (version, error) {
	after := slices.Clone(v)
	for _, g := range guards {
		if g.Any {
			continue
		}
		found, err := v.sequences([]kv.Ref{g.Ref})
		if err != nil {
			return nil, err
		}
		if found[0] != g.Sequence {
			return nil, &kv.ConflictError{Guard: g, Found: found[0]}
		}
		value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, found[0]+1), token)
		after[g.Keyspace] = after[g.Keyspace].put(kv.SequenceKey(g.Scope), value)
	}
	return after, nil
}

// apply changes the version, which no other goroutine may have seen yet.
func (v version) apply(ops []kv.Op) {
	for _, op := range ops {
		if op.Delete {
			v[op.Keyspace] = v[op.Keyspace].remove(op.Key)
		} else {
			v[op.Keyspace] = v[op.Keyspace].put(own(op.Key), own(op.Value))
		}
	}
}

// own returns a copy that is never nil.
func own(b []byte) []byte {
	return append(make([]byte, 0, len(b)), b...)
}
