package blob

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Collected is what a collection did, or would have done.
type Collected struct {
	// Entries is how many paths were deleted.
	Entries int64
	// Refs are the blobs that were deleted with their last path, and Bytes their
	// size.
	Refs  []string
	Bytes int64
	// Kept counts the blobs that were not deleted.
	Kept Kept
	// Orphans is the number of deleted chunks that no blob had, OrphanBytes their bytes
	// in the store.
	Orphans, OrphanBytes int64
	// More says that there may be more to delete: MaxCollected were.
	More bool
}

// Kept counts the entries that stay, each by the first reason that holds.
type Kept struct {
	// Archived, LongTerm and Important entries are never deleted; NotExpired ones may be
	// later.
	Archived, LongTerm, Important, NotExpired int64
	// InUse are held by a lease of a call that is running or has just ended.
	InUse int64
	// Referenced are named by a session that has not ended, or by a memory
	// record.
	Referenced int64
}

func (d *Collected) add(p plan) {
	d.Entries += int64(len(p.entries))
	d.Refs = append(d.Refs, p.refs...)
	d.Bytes += p.bytes
}

func (k *Kept) add(more Kept) {
	k.Archived += more.Archived
	k.LongTerm += more.LongTerm
	k.Important += more.Important
	k.NotExpired += more.NotExpired
	k.InUse += more.InUse
	k.Referenced += more.Referenced
}

// fieldCollectedTime is the only field of the note about a collected name.
const fieldCollectedTime = 1

func encodeCollected(at time.Time) []byte { return wire.AppendTime([]byte{}, fieldCollectedTime, at) }

func decodeCollected(value []byte) (time.Time, error) {
	var at time.Time
	for f, err := range wire.Fields(value) {
		if err != nil {
			return time.Time{}, err
		}
		if f.Number == fieldCollectedTime {
			at = f.Time()
		}
	}
	return at, nil
}

// Fields of the answer that is kept for a request id.
const (
	fieldAnswerEntries = iota + 1
	fieldAnswerBytes
	fieldAnswerRef
	fieldAnswerArchived
	fieldAnswerLongTerm
	fieldAnswerImportant
	fieldAnswerNotExpired
	fieldAnswerInUse
	fieldAnswerReferenced
	fieldAnswerOrphans
	fieldAnswerOrphanBytes
	fieldAnswerMore
)

// counts are the numbers of an answer by their fields.
func (d *Collected) counts() map[int]*int64 {
	return map[int]*int64{
		fieldAnswerEntries: &d.Entries, fieldAnswerBytes: &d.Bytes,
		fieldAnswerArchived: &d.Kept.Archived, fieldAnswerLongTerm: &d.Kept.LongTerm,
		fieldAnswerImportant: &d.Kept.Important, fieldAnswerNotExpired: &d.Kept.NotExpired,
		fieldAnswerInUse: &d.Kept.InUse, fieldAnswerReferenced: &d.Kept.Referenced,
		fieldAnswerOrphans: &d.Orphans, fieldAnswerOrphanBytes: &d.OrphanBytes,
	}
}

func encodeAnswer(d Collected) []byte {
	var dst []byte
	counts := d.counts()
	for field := fieldAnswerEntries; field <= fieldAnswerMore; field++ {
		if n := counts[field]; n != nil {
			dst = wire.AppendUint(dst, field, uint64(*n))
		}
	}
	for _, ref := range d.Refs {
		dst = wire.AppendItem(dst, fieldAnswerRef, refHash(ref))
	}
	if d.More {
		dst = wire.AppendUint(dst, fieldAnswerMore, 1)
	}
	return dst
}

// decodeAnswer reads what encodeAnswer wrote, as far as it can be read.
func decodeAnswer(answer []byte) Collected {
	var d Collected
	counts := d.counts()
	for f, err := range wire.Fields(answer) {
		n := counts[f.Number]
		switch {
		case err != nil:
			return d
		case n != nil:
			*n = int64(f.Value)
		case f.Number == fieldAnswerRef:
			d.Refs = append(d.Refs, hex.EncodeToString(f.Bytes))
		case f.Number == fieldAnswerMore:
			d.More = f.Value != 0
		}
	}
	return d
}

// keepAnswer stores what was done, for the request's repetition.
func (c *collection) keepAnswer(ctx context.Context, digest [32]byte) error {
	if c.opts.RequestID == "" {
		return nil
	}
	ref := c.store.Ref(c.scope)
	return c.store.writer.Do(ctx, kv.Request{Blind: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
		kv.StageOnce(tx, ref, c.opts.RequestID, digest, encodeAnswer(c.done), c.store.now())
		return nil
	}})
}
