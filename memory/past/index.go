package past

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// perCommit bounds the versions that go into the index at once.
	perCommit = 256
	// commitBytes bounds about what those hold, since a commit has a limit.
	commitBytes = 1 << 20
)

// Index is an index of versions, in memory. Close it.
type Index struct {
	engine *memkv.DB
	scope  kv.Scope
	index  *lexical.Index
	// versions holds the version of each document, in the order of ordinals.
	versions []Version
}

// NewIndex makes one of what records of a scope were. describe writes what the index is to
// know of a record; analysis names what makes the terms.
func NewIndex(ctx context.Context, scope kv.Scope, analysis string, versions []Version, describe func(record.Record) ([]byte, error)) (*Index, error) {
	x := &Index{engine: memkv.New(nil), scope: scope, index: lexical.New(&lexical.Options{Analysis: analysis})}
	writer := kv.NewWriter(x.engine, nil)
	err := x.fill(ctx, writer, versions, describe)
	if closed := writer.Close(); err == nil {
		err = closed
	}
	if err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Index) fill(ctx context.Context, writer *kv.Writer, versions []Version, describe func(record.Record) ([]byte, error)) error {
	refs := []kv.Ref{{Keyspace: kv.Records, Scope: x.scope}, lexical.Ref(x.scope)}
	for len(versions) > 0 {
		n, size := 0, 0
		for n < len(versions) && n < perCommit && (n == 0 || size+versions[n].Bytes() <= commitBytes) {
			size += versions[n].Bytes()
			n++
		}
		part := versions[:n]
		versions = versions[n:]
		base := uint32(len(x.versions))
		var change lexical.Change
		records := make([]record.Record, n)
		for i, v := range part {
			records[i] = v.Record
			records[i].Document = record.Document{Ordinal: base + uint32(i) + 1, Marked: v.SupersededBy != ""}
			encoded, err := describe(records[i])
			if err != nil {
				return err
			}
			change.Add = append(change.Add, lexical.Added{Encoded: encoded})
			x.versions = append(x.versions, v)
		}
		err := writer.Do(ctx, kv.Request{Refs: refs, Stage: func(ctx context.Context, tx *kv.Tx) error {
			for _, r := range records {
				tx.Put(kv.Records, record.Key(x.scope, r.ID), record.Encode(r))
			}
			_, _, err := x.index.Apply(ctx, tx, x.scope, change)
			return err
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// View is where the versions are read, under the keys of their records.
func (x *Index) View() kv.Reader { return x.engine }

// Open opens the index.
func (x *Index) Open(ctx context.Context) (*lexical.Reader, error) {
	return x.index.Open(ctx, x.engine, x.scope)
}

// Version returns the version that a document stands for.
func (x *Index) Version(ordinal uint32) Version { return x.versions[ordinal-1] }

// Close lets go of the memory.
func (x *Index) Close() { _ = x.engine.Close() } // it has nothing to lose
