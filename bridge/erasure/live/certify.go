package live

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// certify signs what an erasure did.
func (w *Worker) certify(ctx context.Context, j *job, i *intent, d done, reclaimed bool) (*erasure.Certificate, error) {
	c := &erasure.Certificate{
		Format: 1, Version: w.opts.Version, Engine: w.engine(), Subject: j.subject, Time: w.opts.Now().UTC().Truncate(time.Second),
		Found: i.found.Entries, Counts: i.found.Counts, Records: i.digests, AuditRecords: d.audit, Quoted: d.quoted,
		Erased: map[string]erasure.Tally{}, TimeTravel: erasure.TimeTravel,
	}
	c.Claimed, c.NotClaimed = erasure.ClaimedLive(c.Engine, reclaimed), erasure.NotClaimedLive(j.subject, c.Engine, reclaimed)
	if w.opts.Backups != nil {
		known, err := w.opts.Backups()
		if err != nil && len(known) == 0 {
			return nil, err
		}
		c.Backups = known
	}
	c.State()
	key, err := w.key(ctx)
	if err != nil {
		return nil, err
	}
	return c, c.Sign(key)
}

// engine is what the store is kept in.
func (w *Worker) engine() erasure.Engine {
	if _, ok := w.Engine.(kv.Far); ok {
		return erasure.PostgreSQL
	}
	if _, ok := w.Engine.(kv.Reclaimer); ok {
		return erasure.RocksDB
	}
	return erasure.Memory
}

// keyScope has the key that the store's certificates are signed with. No tenant has such a
// name.
var keyScope = erasure.Erasures.Whole("*")

// key is the store's own key, which is made when it is needed first.
func (w *Worker) key(ctx context.Context) (key ed25519.PrivateKey, err error) {
	at := keyScope.Key(erasure.KeyTag)
	err = w.Writer.Do(ctx, kv.Request{Refs: []kv.Ref{{Keyspace: kv.System, Scope: keyScope}}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, kv.System, at)
		if err != nil {
			return err
		}
		if len(values[0]) == ed25519.SeedSize {
			key = ed25519.NewKeyFromSeed(values[0])
			return nil
		}
		seed := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(seed) // it never fails
		key = ed25519.NewKeyFromSeed(seed)
		tx.Put(kv.System, at, seed)
		return nil
	}})
	return key, err
}
