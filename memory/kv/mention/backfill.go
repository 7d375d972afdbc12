package mention

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

const (
	// rules is the number of the rules by which names are found (memory/FORMAT.md).
	rules = 1
	// stepValues and stepBytes bound what one step of a back-fill reads and commits.
	stepValues = 64
	stepBytes  = 1 << 20
	// retryAfter is how long a back-fill waits that has failed.
	retryAfter = time.Minute
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
	sources []Sort
	logger  *slog.Logger
	running sync.WaitGroup
	stop    context.CancelFunc

	mu       sync.Mutex      // guards the fields below
	listed   bool            // a tenant that is not in complete came up after NewBackfill
	complete map[string]bool // whether a tenant is; false: it is to be worked through
}

// NewBackfill returns a back-fill of the store as it is: call it before anybody
// writes. A nil logger is silent. Engine and writer stay the caller's to close, after the
// back-fill. A store that can't be read here is looked at again by Run.
func NewBackfill(ctx context.Context, engine kv.Reader, writer *kv.Writer, logger *slog.Logger, sources ...Sort) *Backfill {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	b := &Backfill{engine: engine, writer: writer, sources: sources, logger: logger, stop: func() {}, complete: make(map[string]bool)}
	if err := b.list(ctx); err != nil {
		logger.WarnContext(ctx, "mention: tenants of the store can't be listed; only those whose back-fill is known to be complete are collected", "error", err)
	}
	return b
}

// list looks at the tenants that are there, once.
func (b *Backfill) list(ctx context.Context) error {
	b.mu.Lock()
	listed := b.listed
	b.mu.Unlock()
	if listed {
		return nil
	}
	for _, source := range b.sources {
		for all, more := (kv.Range{}), true; more; {
			more = false
			for scope, err := range kv.ScopesIn(ctx, b.engine, source.Keyspace, all) {
				if err == nil {
					_, err = b.look(ctx, scope.Tenant)
				}
				if err != nil {
					return fmt.Errorf("mention: look for tenants: %w", err)
				}
				all.Start = kv.TenantRange(scope.Tenant).End
				more = all.Start != nil
				break
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed = true
	return nil
}

// look reads whether a tenant is complete.
func (b *Backfill) look(ctx context.Context, tenant string) (complete bool, err error) {
	b.mu.Lock()
	complete, known := b.complete[tenant]
	b.mu.Unlock()
	if known {
		return complete, nil
	}
	values, err := b.engine.Get(ctx, kv.System, backfillKey(tenant))
	if err != nil {
		return false, fmt.Errorf("mention: read whether tenant %q is complete: %w", tenant, err)
	}
	complete = isComplete(values[0])
	b.note(tenant, complete)
	return complete, nil
}

func (b *Backfill) note(tenant string, complete bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complete[tenant] = complete
}

func backfillKey(tenant string) []byte { return ListRef(tenant).Scope.Key(tagBackfill) }

// isComplete reads what is stored of a tenant: nothing, or that all keys by these rules are there.
func isComplete(stored []byte) bool {
	var m storev1.Backfill
	return wire.Unmarshal(stored, &m) == nil && m.Rules == rules && m.Complete
}

// Start works through the tenants that are not complete, in the background, until
// Close.
func (b *Backfill) Start() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() {
		for {
			err := b.Run(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			b.logger.ErrorContext(ctx, "mention: back-fill failed, it is tried again in a minute; until then no results are collected", "error", err)
			kv.Sleep(ctx, retryAfter)
		}
	})
}

// Close ends what Start began, at the next step, and waits for it. A tenant that is not
// complete by then is worked through from its beginning the next time.
func (b *Backfill) Close() error {
	b.stop()
	b.running.Wait()
	return nil
}

// Run works through the tenants that are not complete.
func (b *Backfill) Run(ctx context.Context) error {
	if err := b.list(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	old := maps.Clone(b.complete)
	b.mu.Unlock()
	maps.DeleteFunc(old, func(_ string, complete bool) bool { return complete })
	for _, tenant := range slices.Sorted(maps.Keys(old)) {
		b.logger.InfoContext(ctx, "mention: back-fill begins", "tenant", tenant)
		if err := b.tenant(ctx, tenant); err != nil {
			return fmt.Errorf("mention: back-fill tenant %q: %w", tenant, err)
		}
		b.logger.InfoContext(ctx, "mention: back-fill is complete", "tenant", tenant)
	}
	return nil
}

func (b *Backfill) tenant(ctx context.Context, tenant string) error {
	for _, source := range b.sources {
		for scope, err := range kv.ScopesIn(ctx, b.engine, source.Keyspace, kv.TenantRange(tenant)) {
			if err == nil {
				err = b.scope(ctx, source, scope)
			}
			if err != nil {
				return err
			}
		}
	}
	return b.finish(ctx, tenant)
}

// Complete reports whether all keys of a tenant are there. One that came up after
// NewBackfill is complete.
func (b *Backfill) Complete(ctx context.Context, tenant string) (bool, error) {
	b.mu.Lock()
	_, known := b.complete[tenant]
	known = known || !b.listed
	b.mu.Unlock()
	if known {
		return b.look(ctx, tenant)
	}
	// Nobody of this tenant has ever written without the keys.
	err := b.finish(ctx, tenant)
	return err == nil, err
}

// finish stores that a tenant is complete.
func (b *Backfill) finish(ctx context.Context, tenant string) error {
	err := b.writer.Do(ctx, kv.Request{Blind: []kv.Ref{ListRef(tenant)}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, backfillKey(tenant), wire.Marshal(&storev1.Backfill{Rules: rules, Complete: true}))
		return nil
	}})
	if err == nil {
		b.note(tenant, true)
	}
	return err
}

// scope writes the keys of the values of a scope, some in each commit. These are not synced:
// what is lost is done again.
func (b *Backfill) scope(ctx context.Context, source Sort, scope kv.Scope) error {
	rest := kv.Prefix(scope.Key(source.Tag))
	rest.Limit = stepValues
	for {
		var keys [][]byte
		size := 0
		for pair, err := range b.engine.Scan(ctx, source.Keyspace, rest) {
			if err != nil {
				return err
			}
			keys = append(keys, pair.Key)
			if size += len(pair.Value); size >= stepBytes {
				break
			}
		}
		if len(keys) == 0 {
			return nil
		}
		rest.Start = append(bytes.Clone(keys[len(keys)-1]), 0)
		refs := []kv.Ref{ListRef(scope.Tenant), {Keyspace: source.Keyspace, Scope: scope}}
		err := b.writer.Do(ctx, kv.Request{Blind: refs, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
			for _, key := range keys {
				value, err := tx.Watch(ctx, source.Keyspace, key)
				if err != nil {
					return err
				}
				if value == nil {
					continue // it went meanwhile
				}
				if err := source.Stage(tx, scope, bytes.TrimPrefix(key, scope.Key(source.Tag)), value); err != nil {
					b.logger.WarnContext(ctx, "mention: back-fill passes over a value that can't be read", "keyspace", source.Keyspace.String(), "scope", scope.String(), "error", err)
				}
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
}
