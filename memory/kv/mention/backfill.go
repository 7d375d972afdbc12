package mention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

const (
	// stepValues and stepBytes bound what one step of a back-fill reads and commits.
	stepValues = 64
	stepBytes  = 1 << 20
	// tellEvery is how often the log says how far a back-fill is.
	tellEvery = 30 * time.Second
	// retryAfter is how long a back-fill waits that has failed.
	retryAfter = time.Minute
	// heldPause is the time between two looks at a tenant that another process works
	// through.
	heldPause = 2 * time.Second
)

// Sort is a sort of stored values from which keys follow.
type Sort struct {
	Keyspace kv.Keyspace
	Tag      byte
	// Stage writes the keys of one value; rest is what its key has behind the tag. It
	// may write to the scope in its keyspace, and to ListRef of the tenant. Writing
	// them again is harmless. An error says that the value can't be read: it is passed
	// over.
	Stage func(tx *kv.Tx, scope kv.Scope, rest, value []byte) error
}

// Texts is the source of the values that are messages with names. By says who it is
// that has the names of a value.
func Texts(ks kv.Keyspace, tag byte, in func(value []byte) []Name, by func(rest []byte) (string, error)) Sort {
	return Sort{ks, tag, func(tx *kv.Tx, scope kv.Scope, rest, value []byte) error {
		who, err := by(rest)
		if err == nil {
			Stage(tx, kv.Ref{Keyspace: ks, Scope: scope}, who, in(value))
		}
		return err
	}}
}

// Backfill writes the keys of values that were stored before there were such keys.
// All methods are safe for concurrent use.
type Backfill struct {
	engine  kv.Reader
	writer  *kv.Writer
	leases  *lease.Holder
	sources []Sort
	logger  *slog.Logger
	running sync.WaitGroup
	stop    context.CancelFunc

	mu       sync.Mutex      // guards the fields below
	listed   bool            // what is neither complete nor old came up after NewBackfill
	complete map[string]bool // tenants that are known to be
	old      map[string]bool // tenants that are not complete
}

// NewBackfill returns a back-fill of the store as it is: call it before anybody
// writes. The order of sources does not matter. A nil logger is silent. Engine and
// writer stay the caller's to close, after the back-fill. A store that can't be read
// here is looked at again by Run.
func NewBackfill(ctx context.Context, engine kv.Reader, writer *kv.Writer, logger *slog.Logger, sources ...Sort) *Backfill {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Sort) int { return bytes.Compare(a.id(), b.id()) })
	b := &Backfill{
		engine: engine, writer: writer, leases: lease.NewHolder(engine, writer, nil), sources: sources, logger: logger, stop: func() {},
		complete: make(map[string]bool), old: make(map[string]bool),
	}
	if err := b.list(ctx); err != nil {
		logger.WarnContext(ctx, "mention: tenants of the store can't be listed; only those whose back-fill is known to be complete are collected", "error", err)
	}
	return b
}

// list sorts the tenants that are there into complete ones and old ones.
func (b *Backfill) list(ctx context.Context) error {
	for _, source := range b.sources {
		for tenant, err := range b.tenants(ctx, source.Keyspace) {
			if err == nil {
				_, err = b.look(ctx, tenant)
			}
			if err != nil {
				return fmt.Errorf("mention: look for tenants: %w", err)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed = true
	return nil
}

// look reads whether a tenant is complete; if not, it is old.
func (b *Backfill) look(ctx context.Context, tenant string) (complete bool, err error) {
	b.mu.Lock()
	complete, old := b.complete[tenant], b.old[tenant]
	b.mu.Unlock()
	if complete || old {
		return complete, nil
	}
	at, err := b.progress(ctx, tenant)
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.complete {
		b.complete[tenant] = true
	} else {
		b.old[tenant] = true
	}
	return at.complete, nil
}

// id is what a progress calls a source.
func (s Sort) id() []byte { return []byte{byte(s.Keyspace), s.Tag} }

// tenants yields the tenants of a keyspace.
func (b *Backfill) tenants(ctx context.Context, ks kv.Keyspace) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for start := []byte(nil); ; {
			scope, found, err := b.firstScope(ctx, ks, kv.Range{Start: start})
			if err != nil || !found {
				if err != nil {
					yield("", err)
				}
				return
			}
			if !yield(scope.Tenant, nil) {
				return
			}
			if start = tenantRange(scope.Tenant).End; start == nil {
				return
			}
		}
	}
}

func tenantRange(tenant string) kv.Range { return kv.Prefix(append([]byte(tenant), 0)) }

// firstScope returns the scope of the first key of a range.
func (b *Backfill) firstScope(ctx context.Context, ks kv.Keyspace, r kv.Range) (scope kv.Scope, found bool, err error) {
	r.Limit = 1
	for pair, err := range b.engine.Scan(ctx, ks, r) {
		if err != nil {
			return kv.Scope{}, false, err
		}
		scope, _, err := kv.SplitKey(pair.Key)
		return scope, err == nil, err
	}
	return kv.Scope{}, false, nil
}

// Start works through the tenants that are not complete, in the background, until
// Close.
func (b *Backfill) Start() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() {
		for ctx.Err() == nil {
			err := b.Run(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			b.logger.ErrorContext(ctx, "mention: back-fill failed, it goes on in a minute; until then no results are collected", "error", err)
			kv.Sleep(ctx, retryAfter)
		}
	})
}

// Close ends what Start began, at the next step, and waits for it.
func (b *Backfill) Close() error {
	b.stop()
	b.running.Wait()
	if err := b.leases.Close(); err != nil {
		b.logger.Warn("mention: leases not given back, they run out", "error", err)
	}
	return nil
}

// Run works through the tenants that are not complete.
func (b *Backfill) Run(ctx context.Context) error {
	b.mu.Lock()
	listed := b.listed
	b.mu.Unlock()
	if !listed {
		if err := b.list(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	tenants := make([]string, 0, len(b.old))
	for tenant := range b.old {
		tenants = append(tenants, tenant)
	}
	b.mu.Unlock()
	slices.Sort(tenants)
	for _, tenant := range tenants {
		if err := b.tenant(ctx, tenant); err != nil {
			return fmt.Errorf("mention: back-fill tenant %q: %w", tenant, err)
		}
	}
	return nil
}

func (b *Backfill) tenant(ctx context.Context, tenant string) error {
	began, told, values := time.Now(), time.Now(), 0
	b.logger.InfoContext(ctx, "mention: back-fill begins", "tenant", tenant)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, complete, err := b.stepLeased(ctx, tenant)
		if errors.Is(err, lease.ErrHeld) || errors.Is(err, lease.ErrLost) {
			kv.Sleep(ctx, heldPause)
			continue
		}
		if err != nil {
			return err
		}
		values += n
		if complete {
			b.logger.InfoContext(ctx, "mention: back-fill is complete", "tenant", tenant, "values", values, "duration", time.Since(began))
			return nil
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			b.logger.InfoContext(ctx, "mention: back-fill goes on", "tenant", tenant, "values", values)
		}
	}
}

// Complete reports whether all keys of a tenant are there. One that came up after
// NewBackfill is complete.
func (b *Backfill) Complete(ctx context.Context, tenant string) (bool, error) {
	b.mu.Lock()
	complete, old, listed := b.complete[tenant], b.old[tenant], b.listed
	b.mu.Unlock()
	if complete || old {
		return complete, nil
	}
	if !listed {
		return b.look(ctx, tenant)
	}
	// Nobody of this tenant has ever written without the keys.
	err := b.commit(ctx, tenant, progress{complete: true}, kv.Ref{}, nil, nil)
	return err == nil, err
}

// stepLeased does what step says, unless another process does it.
func (b *Backfill) stepLeased(ctx context.Context, tenant string) (values int, complete bool, err error) {
	err = b.leases.Do(ctx, lease.Tenant(tenant, "mentions"), func(ctx context.Context) error {
		values, complete, err = b.step(ctx, tenant)
		return err
	})
	if errors.Is(err, lease.ErrHeld) {
		if at, failed := b.progress(ctx, tenant); failed != nil || at.complete {
			return 0, at.complete, errors.Join(failed, b.note(tenant, at))
		}
	}
	return values, complete, err
}

// step works through the next values of a tenant, and says how many it has read and
// whether the tenant is complete.
func (b *Backfill) step(ctx context.Context, tenant string) (values int, complete bool, err error) {
	at, err := b.progress(ctx, tenant)
	if err != nil || at.complete {
		return 0, at.complete, errors.Join(err, b.note(tenant, at))
	}
	for _, source := range b.sources {
		if bytes.Compare(source.id(), at.source) < 0 {
			continue
		}
		if !bytes.Equal(source.id(), at.source) {
			at.key = tenantRange(tenant).Start
		}
		ref, pairs, err := b.next(ctx, source, tenant, at.key)
		if err != nil {
			return 0, false, err
		}
		if len(pairs) == 0 {
			continue
		}
		at.source, at.key = source.id(), append(pairs[len(pairs)-1].Key, 0)
		return len(pairs), false, b.commit(ctx, tenant, at, ref, pairs, source.Stage)
	}
	return 0, true, b.commit(ctx, tenant, progress{complete: true}, kv.Ref{}, nil, nil)
}

// next returns the first values of a source from a key on, all of one scope.
func (b *Backfill) next(ctx context.Context, source Sort, tenant string, from []byte) (kv.Ref, []kv.Pair, error) {
	rest := kv.Range{Start: from, End: tenantRange(tenant).End}
	for {
		scope, found, err := b.firstScope(ctx, source.Keyspace, rest)
		if err != nil || !found {
			return kv.Ref{}, nil, err
		}
		values := kv.Prefix(scope.Key(source.Tag))
		if bytes.Compare(values.Start, rest.Start) < 0 {
			values.Start = rest.Start
		}
		values.Limit = stepValues
		var pairs []kv.Pair
		size := 0
		for pair, err := range b.engine.Scan(ctx, source.Keyspace, values) {
			if err != nil {
				return kv.Ref{}, nil, err
			}
			pairs = append(pairs, pair)
			if size += len(pair.Value); size >= stepBytes {
				break
			}
		}
		if len(pairs) > 0 {
			return kv.Ref{Keyspace: source.Keyspace, Scope: scope}, pairs, nil
		}
		if rest.Start = kv.After(scope.AppendPrefix(nil)); rest.Start == nil {
			return kv.Ref{}, nil, nil
		}
	}
}

// commit writes the keys of some values, as far as they are there, and the progress. It
// is not synced: what is lost is done again.
func (b *Backfill) commit(ctx context.Context, tenant string, at progress, ref kv.Ref, pairs []kv.Pair, stage func(*kv.Tx, kv.Scope, []byte, []byte) error) error {
	blind := []kv.Ref{ListRef(tenant)}
	if len(pairs) > 0 {
		blind = append(blind, ref)
	}
	err := b.writer.Do(ctx, lease.Fence(ctx, kv.Request{Blind: blind, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for _, pair := range pairs {
			value, err := tx.Watch(ctx, ref.Keyspace, pair.Key)
			if err != nil {
				return err
			}
			if value == nil {
				continue
			}
			_, rest, err := kv.SplitKey(pair.Key)
			if err == nil {
				err = stage(tx, ref.Scope, rest[1:], value)
			}
			if err != nil {
				b.logger.WarnContext(ctx, "mention: back-fill passes over a value that can't be read", "keyspace", ref.Keyspace.String(), "scope", ref.Scope.String(), "error", err)
			}
		}
		tx.Put(kv.System, progressKey(tenant), at.encode())
		return nil
	}}))
	if err != nil {
		return err
	}
	return b.note(tenant, at)
}

// note remembers that a tenant is complete. It returns nil.
func (b *Backfill) note(tenant string, at progress) error {
	if at.complete {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complete[tenant] = true
		delete(b.old, tenant)
	}
	return nil
}
