package share

import (
	"context"
	"log/slog"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultDiskEvery is the time between two measurements of what tenants store. In
// between a tenant can exceed its share, by less than is reserved for others.
const DefaultDiskEvery = 10 * time.Second

// restFactor is for how many times as long as it took nothing is measured again before its
// time, and no files are rewritten again.
const restFactor = 10

// Disk is a store whose tenants share its disk.
type Disk struct {
	Engine kv.Engine
	// Tenants returns the tenants that share the disk.
	Tenants func() []string
	// BlobBytes returns the bytes of an owner's blobs, which the engine does not know.
	BlobBytes func(ctx context.Context, scope kv.Scope) (int64, error)
	// MaxBytes is what all tenants together may store; 0: as much as the disk has room for.
	MaxBytes int64
	// Every is the time between two measurements. Default DefaultDiskEvery.
	Every time.Duration
	// Logger receives measurements that fail.
	Logger *slog.Logger
}

// Watch measures from time to time what tenants store, until stop is called. It does
// nothing without a quota, without tenants, or if the engine has no sizes.
func (q *Quota) Watch(d Disk) (stop func() error) {
	sizer, ok := d.Engine.(kv.Sizer)
	if !ok || q == nil || d.Tenants == nil {
		return func() error { return nil }
	}
	if d.Every <= 0 {
		d.Every = DefaultDiskEvery
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(d.Every)
		defer ticker.Stop()
		for ctx.Err() == nil {
			began := time.Now()
			if err := q.measure(ctx, d, sizer); err != nil && ctx.Err() == nil {
				d.Logger.Warn("could not measure the tenants' storage", "error", err)
			}
			now := time.Now()
			pause := time.NewTimer(min(d.Every, restFactor*now.Sub(began)))
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
			pause.Stop()
			select {
			case <-ticker.C:
			case <-q.due:
			case <-ctx.Done():
			}
		}
	}()
	return func() error {
		cancel()
		<-ended
		return nil
	}
}

// measure measures all tenants. If sizes leave out recent writes, these stay counted as
// long as they could decide whether a tenant may store more. If sizes include deleted data,
// the files of tenants that are over their share and have deleted some are rewritten.
func (q *Quota) measure(ctx context.Context, d Disk, sizer kv.Sizer) error {
	counted := q.counted()
	sizes, total, err := d.sizes(ctx, sizer)
	if err != nil || total <= 0 {
		return err
	}
	alone := len(sizes) == 1
	settler, late := d.Engine.(kv.Settler)
	if late && !q.matters(counted) && d.full() == 0 {
		clear(counted)
	} else if late {
		if err := settler.Settle(ctx); err != nil {
			return err
		}
		if sizes, total, err = d.sizes(ctx, sizer); err != nil {
			return err
		}
	}
	q.Measured(sizes, total, alone, counted)
	began := time.Now()
	if began.Before(q.rest) {
		return nil
	}
	over := q.freeing(d.full())
	if len(over) == 0 {
		return nil
	}
	if err := d.reclaim(ctx, over); err != nil {
		return err
	}
	now := time.Now()
	q.rest = now.Add(restFactor * now.Sub(began))
	if sizes, total, err = d.sizes(ctx, sizer); err != nil {
		return err
	}
	q.Measured(sizes, total, alone, nil)
	return nil
}

// counted is what each tenant has stored since it was measured.
func (q *Quota) counted() map[string]int64 {
	counted := make(map[string]int64)
	for tenant, r := range q.all() {
		counted[tenant] = r.since.grown.Load()
	}
	return counted
}

// matters reports whether the counted bytes are a large part of a tenant's remaining room,
// or of its excess over its share.
func (q *Quota) matters(counted map[string]int64) bool {
	rooms := q.all()
	for tenant, n := range counted {
		if r := rooms[tenant]; n > 0 && n >= r.half() {
			return true
		}
	}
	return false
}

// full reports whether what is left of the disk is kept for what frees room, and how much
// that is.
func (d Disk) full() (room int64) {
	reserver, ok := d.Engine.(kv.Reserver)
	sizer, sized := d.Engine.(kv.Sizer)
	if !ok || !sized || reserver.Reserved() == nil {
		return 0
	}
	room, _ = sizer.Free()
	return room
}

// freeing are the tenants that have deleted some since they were last asked for, and are
// over their share, or fit what room is left on a full disk.
func (q *Quota) freeing(room int64) (tenants []string) {
	for tenant, r := range q.all() {
		over := r.size+r.since.grown.Load() > r.limit
		if (over || r.size < room) && r.since.deletes.Swap(false) {
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

// reclaim rewrites the files of tenants, whose blobs are counted without that.
func (d Disk) reclaim(ctx context.Context, tenants []string) error {
	reclaimer, ok := d.Engine.(kv.Reclaimer)
	if !ok {
		return nil
	}
	var ranges []kv.KeyRange
	for _, tenant := range tenants {
		for _, ks := range kv.Keyspaces() {
			if ks != kv.Blobs {
				ranges = append(ranges, kv.KeyRange{Keyspace: ks, Range: kv.TenantRange(tenant)})
			}
		}
	}
	return reclaimer.Reclaim(ctx, ranges)
}

// sizes are what tenants store, and what they may store together; zero if unknown.
func (d Disk) sizes(ctx context.Context, sizer kv.Sizer) (sizes map[string]int64, total int64, err error) {
	sizes = make(map[string]int64)
	sum := int64(0)
	for _, tenant := range d.Tenants() {
		size, err := d.sizeOf(ctx, sizer, tenant)
		if err != nil {
			return nil, 0, err
		}
		sizes[tenant] = size
		sum += size
	}
	total, known := sizer.Free()
	if total += sum; !known || d.MaxBytes > 0 && d.MaxBytes < total {
		total = d.MaxBytes
	}
	return sizes, total, nil
}

// sizeOf is about what a tenant stores.
func (d Disk) sizeOf(ctx context.Context, sizer kv.Sizer, tenant string) (size int64, err error) {
	all := kv.TenantRange(tenant)
	for _, ks := range kv.Keyspaces() {
		n, err := sizer.Size(ctx, ks, all)
		if err != nil {
			return 0, err
		}
		size += n
	}
	for scope, err := range kv.ScopesIn(ctx, d.Engine, kv.Blobs, all) {
		if err != nil {
			return 0, err
		}
		n, err := d.BlobBytes(ctx, scope)
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}
