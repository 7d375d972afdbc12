package agents

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// DefaultKeepTools is long enough for an agent to come back after a restart of the
// machine, and short enough that a name is not remembered for ever.
const DefaultKeepTools = 24 * time.Hour

const (
	// knownFlush is how late tools are stored: a killed process loses no more.
	knownFlush = 200 * time.Millisecond
	// knownBatch bounds the tools of one commit, and the tools read at once to delete old
	// ones.
	knownBatch = 1024
	// maxKnownWaiting bounds the tools that wait to be stored; more are not known
	// after a restart.
	maxKnownWaiting = 1 << 16
	// maxKnownTools bounds the stored tools of a tenant.
	maxKnownTools = 1 << 16
)

// Tag of a known tool in the scope of the gaps (memory/FORMAT.md).
const tagKnown = 'k' // SHA-256 of the tool's name: who provides it

// knownTools remember which agent provided a tool. After a restart they distinguish a tool whose
// agent has not reconnected yet from a tool that does not exist.
type knownTools struct {
	engine kv.Engine
	writer *kv.Writer
	leases *lease.Holder // of the deleting
	now    func() time.Time
	keep   time.Duration
	logger *slog.Logger
	dirty  chan struct{} // holds a token when something is to be stored
	done   chan struct{}

	mu      sync.Mutex // guards the fields below
	waiting map[knownKey]string
	counts  map[string]int // of the tools of each tenant that are stored, about
}

type knownKey struct {
	tenant string
	name   [sha256.Size]byte
}

func newKnownTools(engine kv.Engine, writer *kv.Writer, o Options) *knownTools {
	return &knownTools{
		engine: engine, writer: writer, leases: lease.NewHolder(engine, writer, nil), now: o.Now, keep: o.KeepTools, logger: o.Logger,
		dirty: make(chan struct{}, 1), done: make(chan struct{}),
		waiting: make(map[knownKey]string), counts: make(map[string]int),
	}
}

func (k knownKey) stored() []byte { return gapRef(k.tenant).Scope.Key(tagKnown, k.name[:]) }

// no agent: the tool is to be deleted.
const nobody = ""

// provides notes an agent's tools. They are stored a little later.
func (k *knownTools) provides(tenant, id string, tools []ProvidedTool) {
	if len(tools) == 0 || len(id) > kv.MaxOwnerBytes || gapRef(tenant).Scope.Validate() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range tools {
		if len(k.waiting) < maxKnownWaiting {
			k.waiting[knownKey{tenant, sha256.Sum256([]byte(t.Name))}] = id
		}
	}
	notify(k.dirty)
}

// provider returns the agent that provided a tool last.
func (k *knownTools) provider(tenant, name string) (id string, ok bool) {
	key := knownKey{tenant, sha256.Sum256([]byte(name))}
	k.mu.Lock()
	id, ok = k.waiting[key]
	k.mu.Unlock()
	if ok || gapRef(tenant).Scope.Validate() != nil {
		return id, id != nobody
	}
	values, err := k.engine.Get(context.Background(), kv.System, key.stored())
	if err != nil || values[0] == nil {
		return "", false
	}
	known, err := decodeKnown(values[0])
	if err != nil {
		k.logger.Error("a known tool can't be read", "tenant", tenant, "error", err)
		return "", false
	}
	return known.agent, k.now().Sub(known.at) < k.keep
}

// run stores noted tools and deletes old ones until the directory is closed.
func (k *knownTools) run() {
	upkeep := time.NewTicker(upkeepEvery)
	defer upkeep.Stop()
	for {
		select {
		case <-k.done:
			k.store()
			if err := k.leases.Close(); err != nil {
				k.logger.Warn("leases of tools of agents are not given back, they run out", "error", err)
			}
			return
		case <-upkeep.C:
			k.upkeep()
		case <-k.dirty:
			select {
			case <-time.After(knownFlush):
			case <-k.done:
			}
			k.store()
		}
	}
}

func (k *knownTools) close() { close(k.done) }

// store writes what waits, a tenant after the other.
func (k *knownTools) store() {
	for {
		tenant, batch := k.take()
		if len(batch) == 0 {
			return
		}
		if err := k.commit(tenant, batch); err != nil {
			k.logger.Warn("tools of agents are not stored", "tenant", tenant, "error", err)
		}
	}
}

func (k *knownTools) take() (tenant string, batch map[knownKey]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	batch = make(map[knownKey]string)
	for key, id := range k.waiting {
		if len(batch) > 0 && key.tenant != tenant {
			continue
		}
		tenant, batch[key] = key.tenant, id
		delete(k.waiting, key)
		if len(batch) == knownBatch {
			break
		}
	}
	return tenant, batch
}

// commit writes the tools whose stored provider is another one, or was noted long ago.
func (k *knownTools) commit(tenant string, batch map[knownKey]string) error {
	if !k.room(tenant, len(batch)) {
		return nil
	}
	ref := gapRef(tenant)
	return k.writer.Do(context.Background(), kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			for key, id := range batch {
				if id == nobody {
					tx.Delete(ref.Keyspace, key.stored())
					continue
				}
				values, err := tx.Get(ctx, ref.Keyspace, key.stored())
				if err != nil {
					return err
				}
				before, err := decodeKnown(values[0])
				if err == nil && before.agent == id && k.now().Sub(before.at) < k.keep/refreshes {
					continue
				}
				tx.Put(ref.Keyspace, key.stored(), encodeKnown(knownTool{id, k.now()}))
			}
			return nil
		},
		Lazy: true,
	})
}

// room reports whether a tenant may have so many more tools stored. It counts those
// that are written again, too: upkeep counts anew.
func (k *knownTools) room(tenant string, more int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts[tenant]+more > maxKnownTools {
		return false
	}
	k.counts[tenant] += more
	return true
}

// upkeep counts the tools that are stored, and deletes expired ones unless another process
// does.
func (k *knownTools) upkeep() {
	k.mu.Lock()
	tenants := make([]string, 0, len(k.counts))
	for tenant := range k.counts {
		tenants = append(tenants, tenant)
	}
	k.mu.Unlock()
	for _, tenant := range tenants {
		kept, err := k.sweep(tenant)
		if err != nil {
			k.logger.Warn("old tools of agents are not deleted", "tenant", tenant, "error", err)
			continue
		}
		k.mu.Lock()
		k.counts[tenant] = kept
		k.mu.Unlock()
	}
}

func (k *knownTools) sweep(tenant string) (kept int, err error) {
	ref := gapRef(tenant)
	var old [][]byte
	for pair, err := range k.engine.Scan(context.Background(), ref.Keyspace, kv.Prefix(ref.Scope.Key(tagKnown))) {
		if err != nil {
			return 0, err
		}
		if len(old) < knownBatch && k.expired(pair.Value) {
			old = append(old, pair.Key)
			continue
		}
		kept++
	}
	if kept+len(old) == 0 {
		return 0, nil
	}
	err = k.leases.Do(context.Background(), lease.Tenant(tenant, "tools").Every(upkeepEvery), func(ctx context.Context) error {
		if len(old) == 0 {
			return nil
		}
		return k.delete(ctx, ref, old)
	})
	if errors.Is(err, lease.ErrHeld) {
		err = nil
	}
	return kept, err
}

// delete deletes tools that are still old.
func (k *knownTools) delete(ctx context.Context, ref kv.Ref, old [][]byte) error {
	return k.writer.Do(ctx, lease.Fence(ctx, kv.Request{
		Refs: []kv.Ref{ref},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			values, err := tx.Get(ctx, ref.Keyspace, old...)
			if err != nil {
				return err
			}
			for i, key := range old {
				if k.expired(values[i]) {
					tx.Delete(ref.Keyspace, key)
				}
			}
			return nil
		},
		Lazy: true,
	}))
}

func (k *knownTools) expired(value []byte) bool {
	known, err := decodeKnown(value)
	return err != nil || k.now().Sub(known.at) >= k.keep
}

// knownTool is who provides a tool, and when that was noted.
type knownTool struct {
	agent string
	at    time.Time
}

func encodeKnown(t knownTool) []byte {
	return wire.Marshal(&storev1.KnownTool{Agent: t.agent, Time: wire.Micros(t.at)})
}

func decodeKnown(b []byte) (knownTool, error) {
	var m storev1.KnownTool
	if err := wire.Unmarshal(b, &m); err != nil {
		return knownTool{}, damaged(err)
	}
	return knownTool{m.Agent, wire.TimeOf(m.Time)}, nil
}
