package blob

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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

func encodeCollected(at time.Time) []byte {
	return wire.Marshal(&storev1.Collected{Time: wire.Micros(at)})
}

func decodeCollected(value []byte) (time.Time, error) {
	var m storev1.Collected
	err := wire.Unmarshal(value, &m)
	return wire.TimeOf(m.Time), err
}

func encodeAnswer(d Collected) []byte {
	gone := make([][]byte, len(d.Refs))
	for i, ref := range d.Refs {
		gone[i] = refHash(ref)
	}
	// The refs always stood behind the numbers.
	return wire.Marshal(&storev1.CollectionAnswer{
		Deleted: uint64(d.Entries), Freed: uint64(d.Bytes),
		Archived: uint64(d.Kept.Archived), LongTerm: uint64(d.Kept.LongTerm), Important: uint64(d.Kept.Important),
		NotExpired: uint64(d.Kept.NotExpired), InUse: uint64(d.Kept.InUse), Referenced: uint64(d.Kept.Referenced),
		Chunks: uint64(d.Orphans), ChunkBytes: uint64(d.OrphanBytes),
	}, &storev1.CollectionAnswer{Gone: gone}, &storev1.CollectionAnswer{More: d.More})
}

// decodeAnswer reads what encodeAnswer wrote; nothing of what can't be read.
func decodeAnswer(answer []byte) Collected {
	var m storev1.CollectionAnswer
	if wire.Unmarshal(answer, &m) != nil {
		return Collected{}
	}
	d := Collected{
		Entries: int64(m.Deleted), Bytes: int64(m.Freed), Orphans: int64(m.Chunks), OrphanBytes: int64(m.ChunkBytes), More: m.More,
		Kept: Kept{
			Archived: int64(m.Archived), LongTerm: int64(m.LongTerm), Important: int64(m.Important),
			NotExpired: int64(m.NotExpired), InUse: int64(m.InUse), Referenced: int64(m.Referenced),
		},
	}
	for _, hash := range m.Gone {
		d.Refs = append(d.Refs, hex.EncodeToString(hash))
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
