package compose

import (
	"context"
	"log/slog"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultDiskEvery is the time between two measurements of what tenants store. Until
// the next one a tenant may go beyond its share, by less than is kept for others.
const DefaultDiskEvery = 10 * time.Second

// disk measures what tenants store.
type disk struct {
	engine  kv.Engine
	sizer   kv.Sizer
	blobs   *blob.Store
	tenants func() []string
	max     int64 // 0: as much as there is room for
	quota   *share.Quota
	logger  *slog.Logger

	stop  context.CancelFunc
	ended chan struct{}
}

// watchDisk begins to measure, and returns what ends that. It does nothing where no
// quota is asked for, or the engine can't tell sizes.
func (d *Domain) watchDisk(engine kv.Engine, o Options) (stop func() error) {
	sizer, ok := engine.(kv.Sizer)
	if !ok || o.Shares.Disk == nil || o.Tenants == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &disk{
		engine: engine, sizer: sizer, blobs: d.Blobs, tenants: o.Tenants, max: o.MaxStoreBytes,
		quota: o.Shares.Disk, logger: o.Logger, stop: cancel, ended: make(chan struct{}),
	}
	go w.run(ctx, o.DiskEvery)
	return w.close
}

func (w *disk) close() error {
	w.stop()
	<-w.ended
	return nil
}

func (w *disk) run(ctx context.Context, every time.Duration) {
	defer close(w.ended)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := w.measure(ctx); err != nil && ctx.Err() == nil {
			w.logger.Warn("what tenants store can't be measured", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *disk) measure(ctx context.Context) error {
	tenants := w.tenants()
	sizes := make(map[string]int64, len(tenants))
	sum := int64(0)
	for _, tenant := range tenants {
		size, err := w.sizeOf(ctx, tenant)
		if err != nil {
			return err
		}
		sizes[tenant] = size
		sum += size
	}
	total, known := w.sizer.Free()
	if total += sum; !known || w.max > 0 && w.max < total {
		total = w.max
	}
	if total > 0 {
		w.quota.Measured(sizes, total, len(tenants) == 1)
	}
	return nil
}

// sizeOf is about what a tenant stores.
func (w *disk) sizeOf(ctx context.Context, tenant string) (size int64, err error) {
	all := kv.TenantRange(tenant)
	for _, ks := range kv.Keyspaces() {
		n, err := w.sizer.Size(ctx, ks, all)
		if err != nil {
			return 0, err
		}
		size += n
	}
	for {
		scope, found, err := firstScope(ctx, w.engine, all)
		if err != nil || !found {
			return size, err
		}
		used, err := w.blobs.Usage(ctx, scope)
		if err != nil {
			return 0, err
		}
		size += used.Bytes
		if all.Start = kv.After(scope.AppendPrefix(nil)); all.Start == nil {
			return size, nil
		}
	}
}

// firstScope returns the first scope with blobs in a range.
func firstScope(ctx context.Context, engine kv.Engine, r kv.Range) (kv.Scope, bool, error) {
	r.Limit = 1
	for pair, err := range engine.Scan(ctx, kv.Blobs, r) {
		if err != nil {
			return kv.Scope{}, false, err
		}
		scope, _, err := kv.SplitKey(pair.Key)
		return scope, err == nil, err
	}
	return kv.Scope{}, false, nil
}
