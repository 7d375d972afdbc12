package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

// Sweep deletes records that are older than they are kept, of all tenants, and returns how
// many those were. Their digests stay. Of the servers on one store one does it for a tenant;
// the others leave it to that one.
func (l *Log) Sweep(ctx context.Context) (int, error) {
	if l.retention < 0 {
		return 0, nil
	}
	before, deleted := l.now().Add(-l.retention), 0
	tenants, err := Tenants(ctx, l.engine)
	if err != nil {
		return 0, err
	}
	for _, tenant := range tenants {
		n, err := l.sweep(ctx, tenant, before)
		if deleted += n; err != nil && !errors.Is(err, lease.ErrHeld) {
			return deleted, err
		}
	}
	l.deleted.Add(int64(deleted))
	return deleted, nil
}

// Swept is how many records Sweep has deleted since the log was opened.
func (l *Log) Swept() int64 { return l.deleted.Load() }

// sweep deletes the old records of a tenant, under its lease if there are any.
func (l *Log) sweep(ctx context.Context, tenant string, before time.Time) (deleted int, err error) {
	oldest := all(tenant, tagRecord)
	oldest.Limit = 1
	due := false
	for pair, err := range l.engine.Scan(ctx, kv.System, oldest) {
		if err != nil {
			return 0, err
		}
		r, err := decodeRecord(pair.Value)
		due = err != nil || r.Time.Before(before) // others may stand behind one that can't be read
	}
	if !due {
		return 0, nil
	}
	err = l.leases.Do(ctx, lease.Tenant(tenant, name).Every(min(sweepEvery, l.retention)), func(ctx context.Context) error {
		deleted, err = l.remove(ctx, tenant, ByAge, func(r Record) (old, more bool) {
			old = r.Time.Before(before)
			return old, old
		})
		return err
	})
	return deleted, err
}

// Erase deletes the records of an agent, or of one of its sessions, or of one of its steps, and
// returns how many those were. Their digests stay, so that what is left can still be verified.
func (l *Log) Erase(ctx context.Context, tenant, agent, session string, step uint64) (int, error) {
	c, err := l.chain(ctx, tenant)
	if err != nil {
		return 0, err
	}
	if err := l.seal(ctx, c); err != nil {
		return 0, err
	}
	return l.remove(ctx, tenant, ByErasure, func(r Record) (bool, bool) {
		return r.Agent == agent && (session == "" || r.Session == session) && (step == 0 || r.Step == step), true
	})
}

// remove deletes the sealed records that pick says, oldest first, until it says that there
// are no more.
func (l *Log) remove(ctx context.Context, tenant string, why RemovalReason, pick func(Record) (remove, more bool)) (deleted int, err error) {
	c, err := l.chain(ctx, tenant)
	if err != nil {
		return 0, err
	}
	c.sealing.Lock()
	defer c.sealing.Unlock()
	for start, more := (recordPlace{}), true; more; {
		var spans []recordSpan
		var keys [][]byte
		keysLeft := from(tenant, tagRecord, start)
		keysLeft.Limit = maxLinked
		read := 0
		for pair, err := range l.engine.Scan(ctx, kv.System, keysLeft) {
			if err != nil {
				return deleted, err
			}
			_, p := placeOf(pair.Key)
			if p.epoch == c.epoch && p.number > c.sealed {
				more = false
				break
			}
			read++
			start = recordPlace{p.epoch, p.number + 1}
			r, err := decodeRecord(pair.Value)
			if err != nil {
				continue // verify reports it
			}
			remove, goOn := pick(r)
			if remove {
				keys, spans = append(keys, pair.Key), extend(spans, p)
			}
			if more = goOn; !more {
				break
			}
		}
		more = more && read == maxLinked
		if len(keys) == 0 {
			continue
		}
		next := link{first: c.sealed + 1, last: c.sealed, removed: spans, reason: why}
		err := l.append(ctx, c, c.epoch, next, func(tx *kv.Tx) {
			for _, key := range keys {
				tx.Delete(kv.System, key)
			}
		})
		if err != nil {
			return deleted, fmt.Errorf("audit: delete records: %w", err)
		}
		if c.logged == 0 {
			c.since = l.now()
		}
		c.logged++
		deleted += len(keys)
	}
	return deleted, nil
}

// extend adds a place to spans, which are in order.
func extend(spans []recordSpan, p recordPlace) []recordSpan {
	if n := len(spans); n > 0 && spans[n-1].epoch == p.epoch && spans[n-1].last+1 == p.number {
		spans[n-1].last++
		return spans
	}
	return append(spans, recordSpan{p.epoch, p.number, p.number})
}
