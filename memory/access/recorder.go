package access

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// MaxWaiting bounds the records whose accesses wait to be written; accesses of further records
	// are lost.
	MaxWaiting = 4096
	// WriteEvery is the time between two writes.
	WriteEvery = time.Second
	// maxWritten bounds the records of one commit.
	maxWritten = 256
	// closeTime bounds the last write.
	closeTime = time.Second
)

// Recorder notes accesses, and writes them in the background. A nil one notes nothing. All
// methods are safe for concurrent use.
type Recorder struct {
	writer  *kv.Writer
	now     func() time.Time
	logger  *slog.Logger
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	waiting map[kv.Scope]map[string]uint64
	records int // in waiting
}

// NewRecorder returns a recorder that writes through writer. Close it before that.
func NewRecorder(writer *kv.Writer, now func() time.Time, logger *slog.Logger) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{writer: writer, now: now, logger: logger, stop: stop, waiting: make(map[kv.Scope]map[string]uint64)}
	r.running.Go(func() { r.work(ctx) })
	return r
}

// Close writes what waits.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.stop()
	r.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	r.write(ctx)
}

// Add notes that a record was read. It does not wait.
func (r *Recorder) Add(scope kv.Scope, id string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.waiting[scope]
	if of[id] == 0 {
		if r.records == MaxWaiting {
			return
		}
		r.records++
	}
	if of == nil {
		of = make(map[string]uint64)
		r.waiting[scope] = of
	}
	of[id]++
}

// Forget drops the accesses of a scope that wait to be written.
func (r *Recorder) Forget(scope kv.Scope) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records -= len(r.waiting[scope])
	delete(r.waiting, scope)
}

func (r *Recorder) work(ctx context.Context) {
	tick := time.NewTicker(WriteEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.write(ctx)
		}
	}
}

// write writes what waits. What fails is lost.
func (r *Recorder) write(ctx context.Context) {
	r.mu.Lock()
	all := r.waiting
	if r.records > 0 {
		r.waiting, r.records = make(map[kv.Scope]map[string]uint64), 0
	} else {
		all = nil
	}
	r.mu.Unlock()
	for scope, of := range all {
		ids := make([]string, 0, len(of))
		for id := range of {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for some := range slices.Chunk(ids, maxWritten) {
			if err := r.commit(ctx, scope, some, of); err != nil && ctx.Err() == nil {
				r.logger.WarnContext(ctx, "memory: accesses are not counted", "scope", scope.String(), "records", len(some), "error", err)
			}
		}
	}
}

// commit adds to the counts of records that are there. It guards nothing that savers wait
// for.
func (r *Recorder) commit(ctx context.Context, scope kv.Scope, ids []string, counts map[string]uint64) error {
	now := record.StoredTime(r.now())
	return r.writer.Do(ctx, kv.Request{Blind: []kv.Ref{{Keyspace: kv.Records, Scope: scope}}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for _, id := range ids {
			there, err := tx.Watch(ctx, kv.Records, record.Key(scope, id))
			if err != nil {
				return err
			}
			if there == nil {
				continue
			}
			key := Key(scope, id)
			stored, err := tx.Watch(ctx, kv.Records, key)
			if err != nil {
				return err
			}
			tx.Put(kv.Records, key, decode(stored).with(counts[id], now).encode())
		}
		return nil
	}})
}
