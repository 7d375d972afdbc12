package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

// work seals and sweeps until ctx ends.
func (l *Log) work(ctx context.Context) {
	tick := time.NewTicker(SealEvery)
	defer tick.Stop()
	for swept := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-tick.C:
		}
		if err := l.Seal(ctx); err != nil && ctx.Err() == nil {
			l.logger.WarnContext(ctx, "audit: records are not sealed yet", "error", err)
		}
		if l.retention > 0 && time.Since(swept) >= min(sweepEvery, l.retention) {
			swept = time.Now()
			if _, err := l.Sweep(ctx); err != nil && ctx.Err() == nil {
				l.logger.WarnContext(ctx, "audit: old records are not deleted", "error", err)
			}
		}
	}
}

// Seal writes links for all records whose commits have ended.
func (l *Log) Seal(ctx context.Context) error {
	var errs []error
	for _, c := range l.open() {
		errs = append(errs, l.seal(ctx, c))
	}
	return errors.Join(errs...)
}

// horizon is the first number that can't be sealed yet, and whether a commit has ended
// since the last look.
func (c *chain) horizon() (number uint64, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number, changed = c.next, c.ended > 0
	for p := range c.pending {
		number = min(number, p)
	}
	c.ended = 0
	return number, changed
}

func (l *Log) seal(ctx context.Context, c *chain) error {
	c.sealing.Lock()
	defer c.sealing.Unlock()
	end, changed := c.horizon()
	if !changed && c.sealed+1 >= end {
		return nil
	}
	c.opening.Lock()
	epoch := c.epoch
	c.opening.Unlock()
	for c.sealed+1 < end {
		last, n, err := l.sealSome(ctx, c, recordPlace{epoch, c.sealed + 1}, end-1)
		if err != nil {
			return fmt.Errorf("audit: seal: %w", err)
		}
		c.sealed = last
		if c.logged == 0 {
			c.since = l.now()
		}
		c.logged += n
	}
	if c.logged >= RotateRecords || c.logged > 0 && l.now().Sub(c.since) >= RotateEvery {
		l.logHead(ctx, c, "rotated")
	}
	return nil
}

// sealSome writes one link for records from a place to a number, as many as it may hold.
// It returns the number that it reaches to and how many records it holds.
func (l *Log) sealSome(ctx context.Context, c *chain, first recordPlace, end uint64) (last uint64, n int, err error) {
	next := link{first: first.number, last: end}
	keys := from(c.tenant, tagRecord, first)
	keys.Limit = maxLinked
	for pair, err := range l.engine.Scan(ctx, kv.System, keys) {
		if err != nil {
			return 0, 0, err
		}
		_, p := placeOf(pair.Key)
		if p.epoch != first.epoch || p.number > end {
			break
		}
		if next.records = append(next.records, sealed{p.number, digestOf(pair.Key, pair.Value)}); len(next.records) == maxLinked {
			next.last = p.number
		}
	}
	return next.last, len(next.records), l.append(ctx, c, first.epoch, next, nil)
}

// append writes the next link of an epoch, and in the same commit what else stage does. The
// caller holds sealing, or the chain is being opened.
func (l *Log) append(ctx context.Context, c *chain, epoch uint64, next link, stage func(*kv.Tx)) error {
	next.recordPlace = recordPlace{epoch, 1}
	if c.last.epoch == epoch {
		next.number = c.last.number + 1
	}
	next.time, next.before, next.prev, next.beside = l.now(), c.last.recordPlace, c.last.head, l.others != nil
	key := keyOf(c.tenant, tagLink, next.recordPlace)
	value := next.encode(key)
	err := l.writer.Do(ctx, lease.Fence(ctx, kv.Request{Blind: []kv.Ref{refOf(c.tenant)}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, key, value)
		if stage != nil {
			stage(tx)
		}
		return nil
	}}))
	if err == nil {
		next.records = nil // what comes behind needs the head alone
		c.last = next
	}
	return err
}

// sealLeft reads where a tenant's chain ends, and, unless other servers share the store,
// seals the records behind it that an earlier server left. It returns their number.
func (l *Log) sealLeft(ctx context.Context, c *chain) (left int, err error) {
	newest := all(c.tenant, tagLink)
	newest.Reverse, newest.Limit = true, 1
	for pair, err := range l.engine.Scan(ctx, kv.System, newest) {
		if err != nil {
			return 0, err
		}
		if c.last, err = decodeLink(pair.Key, pair.Value); err != nil {
			// Calls go on; verify finds the damage.
			l.logger.ErrorContext(ctx, "audit: the last link is damaged; run audit verify", "tenant", c.tenant, "error", err)
		}
	}
	c.last.records = nil
	if l.others != nil && l.others() {
		return 0, nil // what is behind it may be theirs, who seal it
	}
	for start := (recordPlace{c.last.epoch, c.last.last + 1}); ; {
		first, last, err := l.unsealed(ctx, c.tenant, start)
		if err != nil || first == (recordPlace{}) {
			return left, err
		}
		if first.epoch == start.epoch {
			first = start
		} else {
			first.number = 1
		}
		reached, n, err := l.sealSome(ctx, c, first, last)
		if err != nil {
			return left, err
		}
		left += n
		start = recordPlace{first.epoch, reached + 1}
	}
}

// unsealed is the first record from a place on, and the last number of its epoch.
func (l *Log) unsealed(ctx context.Context, tenant string, start recordPlace) (first recordPlace, last uint64, err error) {
	keys := from(tenant, tagRecord, start)
	keys.Limit = 1
	for pair, err := range l.engine.Scan(ctx, kv.System, keys) {
		if err != nil {
			return recordPlace{}, 0, err
		}
		_, first = placeOf(pair.Key)
	}
	if first == (recordPlace{}) {
		return first, 0, nil
	}
	keys = kv.Range{
		Start: keyOf(tenant, tagRecord, first), End: keyOf(tenant, tagRecord, recordPlace{first.epoch + 1, 0}), Reverse: true, Limit: 1,
	}
	for pair, err := range l.engine.Scan(ctx, kv.System, keys) {
		if err != nil {
			return recordPlace{}, 0, err
		}
		_, p := placeOf(pair.Key)
		last = p.number
	}
	return first, last, nil
}

// headMessage is the message of the lines with heads, which FindHeads looks for.
const headMessage = "audit head"

// logHead logs the head. The caller holds sealing, or the chain is being opened.
func (l *Log) logHead(ctx context.Context, c *chain, why string) {
	if c.last.recordPlace == (recordPlace{}) {
		return
	}
	l.logger.InfoContext(ctx, headMessage, "tenant", c.tenant, "epoch", c.last.epoch, "link", c.last.number,
		"digest", hex.EncodeToString(c.last.head[:]), "why", why)
	c.logged = 0
}

// Recover seals what a killed server left, of all tenants. Call it once at the start.
func (l *Log) Recover(ctx context.Context) error {
	tenants, err := Tenants(ctx, l.engine)
	for _, tenant := range tenants {
		if _, openErr := l.chain(ctx, tenant); openErr != nil {
			err = errors.Join(err, openErr)
		}
	}
	return err
}

// Tenants yields the tenants that have an audit, in order.
func Tenants(ctx context.Context, from kv.Reader) ([]string, error) {
	var tenants []string
	for scope, err := range kv.List(name).Scopes(ctx, from) {
		if err != nil {
			return tenants, fmt.Errorf("audit: %w", err)
		}
		if scope == scopeOf(scope.Tenant) {
			tenants = append(tenants, scope.Tenant)
		}
	}
	return tenants, nil
}
