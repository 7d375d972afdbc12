package integrity

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

// Finding is something that is damaged.
type Finding struct {
	// Keyspace is where it was found; kv.WholeStore if it belongs to all.
	Keyspace kv.Keyspace
	// Owner is whose it is; zero if that is not known, as with a file.
	Owner kv.Scope
	// Problem says what is wrong.
	Problem error
}

func (f Finding) String() string {
	if f.Owner == (kv.Scope{}) {
		return fmt.Sprintf("%s: %v", f.Keyspace, f.Problem)
	}
	return fmt.Sprintf("%s: %s: %v", f.Keyspace, f.Owner, f.Problem)
}

// Options says how entries are read back.
type Options struct {
	// Found is called for each finding. Required.
	Found func(Finding)
	// Read, unless nil, is called with how many bytes of entries were read since its last call
	// last. It may wait; its error ends the reading.
	Read func(bytes int64) error
	// Memory, unless nil, compares the index of each owner with its records.
	Memory *memory.Store
}

// Count is what was read of one keyspace.
type Count struct {
	// Owners is the number of owners with entries there, Bad the number with damaged ones.
	Owners, Bad int
	// Entries is how many keys were read, and Bytes what they hold. A key that is
	// read for two reasons counts twice.
	Entries, Bytes int64
	// Outdated is how many indexes were not compared, because they are made anew
	// when they are used, or changed all the time.
	Outdated int
}

// Entries reads back the entries of all owners of a store and returns what it read of
// each keyspace. It returns nil when it has come through, however much it found;
// otherwise why it could not go on.
func Entries(ctx context.Context, engine kv.Engine, o Options) (map[kv.Keyspace]Count, error) {
	counts := make(map[kv.Keyspace]Count)
	for _, ks := range kv.Keyspaces() {
		if ks == kv.Index { // made from the records, and compared with them
			continue
		}
		r := &keyspaceReading{engine: engine, options: o, keyspace: ks}
		err := r.owners(ctx)
		counts[ks] = r.count
		if err != nil {
			return counts, fmt.Errorf("read %s back: %w", ks, err)
		}
	}
	return counts, nil
}

// keyspaceReading is the reading of one keyspace.
type keyspaceReading struct {
	engine   kv.Engine
	options  Options
	keyspace kv.Keyspace
	count    Count
}

func (r *keyspaceReading) owners(ctx context.Context) error {
	for scope, err := range kv.Scopes(ctx, r.engine, r.keyspace) {
		if err == nil {
			err = r.owner(ctx, scope)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, kv.ErrDamaged) || errors.Is(err, kv.ErrBadScope): // what follows is unknown
			r.options.Found(Finding{Keyspace: r.keyspace, Problem: err})
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// maxDoubtful bounds the findings of an owner that are kept until they are looked at
// again; those behind them wait for the next reading.
const maxDoubtful = 1000

// owner reads what one owner has. Where that takes longer than a snapshot lives, what
// changes meanwhile may look like damage; so what was found at a later moment than the
// first counts only if it is found once more.
func (r *keyspaceReading) owner(ctx context.Context, scope kv.Scope) error {
	bad := false
	report := func(err error) {
		bad = true
		r.options.Found(Finding{Keyspace: r.keyspace, Owner: scope, Problem: err})
	}
	doubtful := make(map[string]struct{})
	err := r.look(ctx, scope, func(err error, sure bool) {
		switch {
		case sure:
			report(err)
		case len(doubtful) < maxDoubtful:
			doubtful[err.Error()] = struct{}{}
		}
	})
	if err == nil && len(doubtful) > 0 {
		err = r.look(ctx, scope, func(err error, _ bool) {
			if _, again := doubtful[err.Error()]; again {
				delete(doubtful, err.Error())
				report(err)
			}
		})
	}
	if err != nil {
		return err
	}
	r.count.Owners++
	if bad {
		r.count.Bad++
	}
	return nil
}

// look runs the checks once. It says of each finding whether it is of one moment with
// all that was read before.
func (r *keyspaceReading) look(ctx context.Context, scope kv.Scope, found func(err error, sure bool)) error {
	view := kv.SweepLong(r.engine)
	defer view.Close()
	counted := &countedReader{Reader: view, reading: r}
	for _, check := range r.checks() {
		err := check(ctx, counted, scope, func(err error) {
			if counted.failed == nil { // otherwise it is not damage, but the end of the reading
				found(err, view.Moments() <= 1)
			}
		})
		if err := errors.Join(err, counted.failed); err != nil {
			return err
		}
	}
	return nil
}

// check is how packages read back what they have written.
type check func(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error

func (r *keyspaceReading) checks() []check {
	switch r.keyspace {
	case kv.Records:
		return []check{memory.CheckRecords, plans.Check, r.index}
	case kv.Log:
		return []check{session.Check, past.Check}
	case kv.Blobs:
		return []check{blob.Check}
	case kv.Events:
		return []check{store.Check}
	case kv.System:
		return []check{agents.Check, session.CheckIntents, memory.CheckDue, messages.Check, children.Check, grants.Check}
	}
	return nil
}

// index compares the index of an owner with its records.
func (r *keyspaceReading) index(ctx context.Context, _ kv.Reader, scope kv.Scope, found func(error)) error {
	if r.options.Memory == nil {
		return nil
	}
	err := r.options.Memory.Check(ctx, scope)
	switch {
	case errors.Is(err, memory.ErrOutdated) || errors.Is(err, memory.ErrChanging):
		r.count.Outdated++
	case ctx.Err() != nil || errors.Is(err, kv.ErrClosed) || errors.Is(err, memory.ErrClosed):
		return err
	case err != nil:
		found(err)
	}
	return nil
}

// countedReader counts what is read through it.
type countedReader struct {
	kv.Reader
	reading *keyspaceReading
	failed  error // why to stop
}

func (c *countedReader) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	values, err := c.Reader.Get(ctx, ks, keys...)
	for i, value := range values {
		if value != nil {
			c.add(len(keys[i]) + len(value))
		}
	}
	return values, errors.Join(err, c.failed)
}

func (c *countedReader) Scan(ctx context.Context, ks kv.Keyspace, of kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for pair, err := range c.Reader.Scan(ctx, ks, of) {
			if c.add(len(pair.Key) + len(pair.Value)); c.failed != nil {
				yield(kv.Pair{}, c.failed)
				return
			}
			if !yield(pair, err) {
				return
			}
		}
	}
}

func (c *countedReader) add(bytes int) {
	c.reading.count.Entries++
	c.reading.count.Bytes += int64(bytes)
	if read := c.reading.options.Read; read != nil && c.failed == nil {
		c.failed = read(int64(bytes))
	}
}
