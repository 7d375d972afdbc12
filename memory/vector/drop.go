package vector

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// sweepKeys bounds the keys that one commit of a drop deletes.
const sweepKeys = 4096

// Drop deletes a space of a scope: at once for readers, and then all that it
// holds, in commits of bounded size. One that was interrupted is finished by the
// next Pack of the scope. A space that does not exist is fine.
func (x *Index) Drop(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope, name string) error {
	return x.drop(ctx, engine, writer, scope, name, false)
}

// drop is Drop. One that only drops what is empty looks in the commit that drops,
// as a vector may come at any moment before.
func (x *Index) drop(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope, name string, onlyEmpty bool) error {
	var dropped entry
	err := writer.Do(ctx, kv.Request{Refs: Refs(scope), Stage: func(ctx context.Context, tx *kv.Tx) error {
		d, err := readDirectory(ctx, tx, scope)
		if err != nil {
			return err
		}
		dropped = entry{}
		for i, s := range d.spaces {
			if s.name == name && !s.dropped {
				h, err := readHead(ctx, tx, place{scope, s.number}, false)
				if err != nil || onlyEmpty && h.vectors > 0 {
					return err
				}
				d.spaces[i].dropped = true
				dropped = d.spaces[i]
				tx.Put(kv.Records, spacesKey(scope), d.encode())
			}
		}
		return nil
	}})
	if err == nil && dropped.number != 0 {
		err = x.sweep(ctx, engine, writer, scope, dropped)
	}
	if err != nil {
		return fmt.Errorf("vector: drop space of %s: %w", scope, err)
	}
	return nil
}

// sweep deletes what a dropped space holds, and then the space.
func (x *Index) sweep(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope, s entry) error {
	at := place{scope, s.number}
	for ks, prefix := range map[kv.Keyspace][]byte{kv.Records: at.vectors(), kv.Index: at.codes()} {
		if err := sweepPrefix(ctx, engine, writer, kv.Ref{Keyspace: ks, Scope: scope}, prefix); err != nil {
			return err
		}
	}
	return writer.Do(ctx, kv.Request{Refs: Refs(scope)[:1], Stage: func(ctx context.Context, tx *kv.Tx) error {
		d, err := readDirectory(ctx, tx, scope)
		if err != nil {
			return err
		}
		d.spaces = slices.DeleteFunc(d.spaces, func(other entry) bool { return other.number == s.number })
		tx.Put(kv.Records, spacesKey(scope), d.encode())
		return nil
	}})
}

func sweepPrefix(ctx context.Context, engine kv.Engine, writer *kv.Writer, ref kv.Ref, prefix []byte) error {
	for left := true; left; {
		var keys [][]byte
		all := kv.Prefix(prefix)
		all.Limit = sweepKeys
		for pair, err := range engine.Scan(ctx, ref.Keyspace, all) {
			if err != nil {
				return err
			}
			keys = append(keys, pair.Key)
		}
		left = len(keys) == sweepKeys
		if len(keys) == 0 {
			return nil
		}
		err := writer.Do(ctx, kv.Request{Blind: []kv.Ref{ref}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
			for _, key := range keys {
				tx.Delete(ref.Keyspace, key)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveReplaced deletes the vectors of a space whose documents have one in
// another space too, in commits of bounded size, and then the space if nothing
// is left in it.
func (x *Index) RemoveReplaced(ctx context.Context, engine kv.Engine, writer *kv.Writer, scope kv.Scope, old, by string) error {
	s, ok, err := findSpace(ctx, engine, scope, old)
	if err != nil || !ok {
		return err
	}
	at := place{scope, s.number}
	prefix := at.vectors()
	for start := prefix; start != nil; {
		var ordinals []uint32
		if ordinals, start, err = documentsFrom(ctx, engine, prefix, start); err != nil {
			return err
		}
		if err := x.removeReplaced(ctx, writer, at, by, ordinals); err != nil {
			return err
		}
	}
	h, err := readHead(ctx, engine, at, false)
	if err != nil || h.vectors > 0 {
		return err // most spaces need no commit
	}
	return x.drop(ctx, engine, writer, scope, old, true)
}

// documentsFrom returns some documents that have vectors, and where to go on;
// nil at the end.
func documentsFrom(ctx context.Context, engine kv.Engine, prefix, start []byte) (ordinals []uint32, next []byte, err error) {
	all := kv.Range{Start: start, End: kv.After(prefix), Limit: maxRead}
	for pair, err := range engine.Scan(ctx, kv.Records, all) {
		if err != nil {
			return nil, nil, err
		}
		if len(pair.Key) != len(prefix)+4 {
			return nil, nil, fmt.Errorf("%w: key %q of a vector", ErrDamaged, pair.Key)
		}
		ordinals = append(ordinals, binary.BigEndian.Uint32(pair.Key[len(prefix):]))
		next = append(pair.Key, 0)
	}
	if len(ordinals) < maxRead {
		next = nil
	}
	return ordinals, next, nil
}

func (x *Index) removeReplaced(ctx context.Context, writer *kv.Writer, at place, by string, ordinals []uint32) error {
	if len(ordinals) == 0 {
		return nil
	}
	return writer.Do(ctx, kv.Request{Refs: Refs(at.scope), Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		have, err := x.Vectors(ctx, tx, at.scope, by, ordinals)
		if err != nil {
			return err
		}
		for i, ordinal := range ordinals {
			if have[i] == nil {
				continue
			}
			if err := remove(ctx, tx, at, ordinal); err != nil {
				return err
			}
		}
		return nil
	}})
}
