// Package left knows which imported records left a memory because it was full, so that the
// same import made again does not bring them back, and push out others for them.
//
// A record is known by digests of its id and of what it said. Notes are staged in the commits
// that delete the records. A memory keeps MaxKept of them; of more, any others go.
package left

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MaxKept bounds the notes of a memory.
const MaxKept = 100_000

// Tag begins the keys of notes, and alone is the key of how many there are, in the keyspace of
// records.
const Tag = 'X'

// idBytes and digestBytes are what is kept of the digests: enough that no two meet by chance.
const idBytes, digestBytes = 16, 16

func key(scope kv.Scope, id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return append(scope.Key(Tag), sum[:idBytes]...)
}

// digest is of what an import brought and a full memory may let go of: not of what the memory
// itself did to the record, nor of the records next to it, which may have gone first.
func digest(r record.Record) ([]byte, error) {
	r.Embedding, r.EmbeddingSpace, r.SavedBy, r.Review, r.Archived = nil, "", "", 0, false
	r.ArchiveTime, r.Supersedes, r.SupersededBy = record.Record{}.ArchiveTime, "", ""
	r.SupersededTime = record.Record{}.SupersededTime
	text, err := record.Line{Record: r}.Encode()
	sum := sha256.Sum256(text)
	return sum[:digestBytes], err
}

// Note notes that an imported record left.
func Note(ctx context.Context, tx *kv.Tx, scope kv.Scope, r record.Record) error {
	sum, err := digest(r)
	if err != nil {
		return err
	}
	count, at := scope.Key(Tag), key(scope, r.ID)
	values, err := tx.Get(ctx, kv.Records, count, at)
	if err != nil {
		return err
	}
	kept := uint64(0)
	if values[0] != nil {
		var read int
		if kept, read = binary.Uvarint(values[0]); read <= 0 {
			return fmt.Errorf("%w: count of records removed from %s", record.ErrDamaged, scope)
		}
	}
	tx.Put(kv.Records, at, sum)
	if values[1] != nil {
		return nil
	}
	if kept++; kept > MaxKept {
		others := kv.Prefix(count)
		others.Start, others.Limit = append(count, 0), 1
		for pair, err := range tx.Scan(ctx, kv.Records, others) {
			if err != nil {
				return err
			}
			tx.Delete(kv.Records, pair.Key)
			kept--
		}
	}
	tx.Put(kv.Records, count, binary.AppendUvarint(nil, kept))
	return nil
}

// Has reports whether the same record left.
func Has(ctx context.Context, from kv.Getter, scope kv.Scope, r record.Record) (bool, error) {
	values, err := from.Get(ctx, kv.Records, key(scope, r.ID))
	if err != nil || values[0] == nil {
		return false, err
	}
	sum, err := digest(r)
	return err == nil && string(values[0]) == string(sum), err
}
