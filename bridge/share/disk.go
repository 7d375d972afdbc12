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
// nothing without a quota, without tenants, or if the engine can't tell sizes.
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
			if err := q.measure(ctx, d, sizer); err != nil && ctx.Err() == nil {
				d.Logger.Warn("what tenants store can't be measured", "error", err)
			}
			select {
			case <-ticker.C:
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

func (q *Quota) measure(ctx context.Context, d Disk, sizer kv.Sizer) error {
	tenants := d.Tenants()
	sizes := make(map[string]int64, len(tenants))
	sum := int64(0)
	for _, tenant := range tenants {
		size, err := d.sizeOf(ctx, sizer, tenant)
		if err != nil {
			return err
		}
		sizes[tenant] = size
		sum += size
	}
	total, known := sizer.Free()
	if total += sum; !known || d.MaxBytes > 0 && d.MaxBytes < total {
		total = d.MaxBytes
	}
	if total > 0 {
		q.Measured(sizes, total, len(tenants) == 1)
	}
	return nil
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
