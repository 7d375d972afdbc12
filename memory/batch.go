package memory

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// Limits of a batch.
const (
	// MaxBatchRecords bounds the records of one batch.
	MaxBatchRecords = 1000
	// MaxBatchTextBytes bounds the texts and metadata of one batch together, so
	// that it fits one commit with its part of the index.
	MaxBatchTextBytes = 4 << 20
	// MaxBatchVectorBytes bounds the vectors of one batch together, four bytes a
	// number, for the same reason.
	MaxBatchVectorBytes = 6 << 20
)

// newBatch checks records that are to be saved, and takes them over.
func (s *Store) newBatch(scope kv.Scope, rs []record.Record, requestID string) (*saving, error) {
	if err := s.beginRequest(scope, requestID); err != nil {
		return nil, err
	}
	if err := checkBatch(rs); err != nil {
		return nil, err
	}
	save := &saving{scope: scope, requestID: requestID, now: record.StoredTime(s.now()), drafts: make([]draft, len(rs)), batch: true}
	if err := save.checkAll(rs, s.redact); err != nil {
		return nil, err
	}
	return save, nil
}

// checkBatch refuses a batch that is too large.
func checkBatch(rs []record.Record) error {
	texts, vectors := 0, 0
	for i := range rs {
		r := &rs[i]
		texts += len(r.Text) + len(r.Metadata)
		vectors += 4 * len(r.Embedding)
	}
	switch {
	case len(rs) == 0:
		return invalid.Field(ErrInvalid, "records", "is empty")
	case len(rs) > MaxBatchRecords:
		return invalid.Field(ErrInvalid, "records", "has %d items, more than %d", len(rs), MaxBatchRecords)
	case texts > MaxBatchTextBytes:
		return invalid.Field(ErrInvalid, "records", "has %d bytes of text and metadata, more than %d", texts, MaxBatchTextBytes)
	case vectors > MaxBatchVectorBytes:
		return invalid.Field(ErrInvalid, "records", "has %d bytes of vectors, more than %d", vectors, MaxBatchVectorBytes)
	}
	return nil
}

// checkAll checks the records of a batch; the first at fault is named.
func (s *saving) checkAll(rs []record.Record, by *redact.Redactor) error {
	errs := make([]error, len(rs))
	inParallel(len(rs), func(i int) { errs[i] = s.drafts[i].check(&rs[i], by, s.now) })
	for i, err := range errs {
		if err != nil {
			return s.blame(i, err)
		}
	}
	if s.requestID != "" {
		s.digest = s.digestAll()
	}
	return nil
}

// digestAll stands for the content of a batch.
func (s *saving) digestAll() (sum [sha256.Size]byte) {
	all := sha256.New()
	var buffer []byte
	for i := range s.drafts {
		buffer = s.drafts[i].content(buffer[:0])
		one := sha256.Sum256(buffer)
		all.Write(one[:])
	}
	all.Sum(sum[:0])
	return sum
}

// inParallelFrom is how many items are worth more than one goroutine.
const inParallelFrom = 8

// inParallel calls do for 0 to n-1, on all processors where that is worth it.
func inParallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n/inParallelFrom)
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	running.Wait()
}
