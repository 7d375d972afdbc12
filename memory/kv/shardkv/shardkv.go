package shardkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrTwoTenants: a commit names refs of two tenants, which may lie in two stores.
var ErrTwoTenants = errors.New("shardkv: a commit of two tenants")

var (
	_ kv.Shared       = (*DB)(nil)
	_ kv.Far          = (*DB)(nil)
	_ kv.Sizer        = (*DB)(nil)
	_ kv.RangeDropper = (*DB)(nil)
)

// DB is one engine over the stores of a map. All methods are safe for concurrent use.
type DB struct {
	m       *Map
	engines []kv.Shared // in the order of the map
	closed  atomic.Bool
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// New returns an engine over those of the stores of a map, in its order. It owns them.
func New(m *Map, engines []kv.Shared) *DB {
	db := &DB{m: m, engines: engines}
	ctx, stop := context.WithCancel(context.Background())
	db.stop = stop
	for i, engine := range engines {
		if i != m.system {
			condition, changed := engine.Health().Condition()
			db.Health().Part(m.members[i].Name, condition.Failed)
			db.done.Go(func() { db.followHealth(ctx, i, changed) })
		}
	}
	return db
}

// Health is kv.Monitored's: that of the system store, in which the others are parts.
func (db *DB) Health() *kv.Health { return db.engines[db.m.system].Health() }

func (db *DB) followHealth(ctx context.Context, i int, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		var condition kv.Condition
		condition, changed = db.engines[i].Health().Condition()
		db.Health().Part(db.m.members[i].Name, condition.Failed)
	}
}

// enter refuses calls behind Close, and those whose ctx has ended.
func (db *DB) enter(ctx context.Context) error {
	if db.closed.Load() {
		return kv.ErrClosed
	}
	return ctx.Err()
}

// of is the place of the store that has a key.
func (db *DB) of(key []byte) int {
	tenant, _, found := bytes.Cut(key, []byte{0})
	if !found {
		return db.m.system
	}
	return db.m.Of(string(tenant))
}

func (db *DB) ofRef(ref kv.Ref) int { return db.m.Of(ref.Scope.Tenant) }

// divide calls do for each store that has some of several things, with those; for one store
// with all of them, without a copy. place puts an answer where it was asked for.
func divide[T, A any](all []T, of func(T) int, do func(store int, some []T) ([]A, error)) ([]A, error) {
	if len(all) == 0 {
		return do(-1, all)
	}
	first, one := of(all[0]), true
	for _, t := range all[1:] {
		one = one && of(t) == first
	}
	if one {
		return do(first, all)
	}
	places := make(map[int][]int)
	var order []int // of the stores, so that errors are told alike
	for i, t := range all {
		store := of(t)
		if places[store] == nil {
			order = append(order, store)
		}
		places[store] = append(places[store], i)
	}
	answers := make([]A, len(all))
	for _, store := range order {
		some := make([]T, len(places[store]))
		for i, place := range places[store] {
			some[i] = all[place]
		}
		found, err := do(store, some)
		if err != nil {
			return nil, err
		}
		for i, place := range places[store] {
			answers[place] = found[i]
		}
	}
	return answers, nil
}

// engine is that of a store; for none the system's.
func (db *DB) engine(store int) kv.Shared {
	if store < 0 {
		store = db.m.system
	}
	return db.engines[store]
}

// Get is kv.Reader's. Keys of one tenant are read at one moment.
func (db *DB) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	return divide(keys, db.of, func(store int, some [][]byte) ([][]byte, error) {
		return db.engine(store).Get(ctx, ks, some...)
	})
}

// Sequence is kv.Reader's.
func (db *DB) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	return divide(refs, db.ofRef, func(store int, some []kv.Ref) ([]uint64, error) {
		return db.engine(store).Sequence(ctx, some...)
	})
}

// LastCommits is kv.Engine's.
func (db *DB) LastCommits(ctx context.Context, refs ...kv.Ref) ([]kv.LastCommit, error) {
	return divide(refs, db.ofRef, func(store int, some []kv.Ref) ([]kv.LastCommit, error) {
		return db.engine(store).LastCommits(ctx, some...)
	})
}

// Commit is kv.Engine's, of one tenant.
func (db *DB) Commit(ctx context.Context, c kv.Commit) error {
	if len(c.Guards) == 0 {
		return db.engine(-1).Commit(ctx, c) // which refuses it
	}
	tenant := c.Guards[0].Scope.Tenant
	for _, g := range c.Guards[1:] {
		if g.Scope.Tenant != tenant {
			if err := errors.Join(db.enter(ctx), c.Check()); err != nil {
				return err
			}
			return fmt.Errorf("%w: %q and %q", ErrTwoTenants, tenant, g.Scope.Tenant)
		}
	}
	return db.engines[db.m.Of(tenant)].Commit(ctx, c)
}

// Scan is kv.Reader's.
func (db *DB) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return db.scan(r, func(store int, rest kv.Range) iter.Seq2[kv.Pair, error] { return db.engines[store].Scan(ctx, ks, rest) })
}

// DropRange is kv.RangeDropper's. Of a range over several tenants each store drops all that
// it has.
func (db *DB) DropRange(ctx context.Context, ks kv.Keyspace, r kv.Range) error {
	return db.each(r, func(engine kv.Shared) error {
		dropper, ok := engine.(kv.RangeDropper)
		if !ok {
			return fmt.Errorf("shardkv: %w: a store drops no ranges", errors.ErrUnsupported)
		}
		return dropper.DropRange(ctx, ks, r)
	})
}

// Size is kv.Sizer's.
func (db *DB) Size(ctx context.Context, ks kv.Keyspace, r kv.Range) (size int64, err error) {
	err = db.each(r, func(engine kv.Shared) error {
		sizer, ok := engine.(kv.Sizer)
		if !ok {
			return fmt.Errorf("shardkv: %w: a store tells no sizes", errors.ErrUnsupported)
		}
		n, err := sizer.Size(ctx, ks, r)
		size += n
		return err
	})
	return size, err
}

// Free is kv.Sizer's: what room the stores have nobody knows.
func (db *DB) Free() (int64, bool) { return 0, false }

// each calls do for the stores that a range may have keys in.
func (db *DB) each(r kv.Range, do func(kv.Shared) error) error {
	if store, one := db.within(r); one {
		return do(db.engines[store])
	}
	for _, engine := range db.engines {
		if err := do(engine); err != nil {
			return err
		}
	}
	return nil
}

// Time is kv.Shared's: that of the system store.
func (db *DB) Time(ctx context.Context) (time.Time, error) { return db.engine(-1).Time(ctx) }

// Fence is kv.Shared's: each store must have the key.
func (db *DB) Fence(key, value []byte) {
	for _, engine := range db.engines {
		engine.Fence(key, value)
	}
}

// Moved is kv.Notifier's: what another process has moved in any of the stores.
func (db *DB) Moved(ctx context.Context) iter.Seq[kv.Move] {
	ctx, stop := context.WithCancel(ctx)
	all := make([]iter.Seq[kv.Move], len(db.engines))
	for i, engine := range db.engines {
		all[i] = engine.Moved(ctx) // listens from now on
	}
	return func(yield func(kv.Move) bool) {
		var done sync.WaitGroup
		defer done.Wait()
		defer stop()
		moves := make(chan kv.Move)
		for i, seq := range all {
			done.Go(func() {
				for move := range seq {
					if !move.Any && db.ofRef(move.Ref) != i {
						continue // of a tenant that the map gives to another store
					}
					select {
					case moves <- move:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for {
			select {
			case move := <-moves:
				if !yield(move) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// Close is kv.Engine's.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return kv.ErrClosed
	}
	db.stop()
	db.done.Wait()
	errs := make([]error, len(db.engines))
	for i, engine := range db.engines {
		errs[i] = engine.Close()
	}
	return errors.Join(errs...)
}
