package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
)

const (
	// orphanAge is from when on a chunk of no blob belongs to no upload either
	// (memory/FORMAT.md).
	orphanAge = 24 * time.Hour
	// maxOrphans bounds the chunks that one commit looks at, each up to a
	// megabyte.
	maxOrphans = 4
)

// sweepOrphans deletes the chunks that no manifest names and that are too old
// to belong to an upload.
func (c *collection) sweepOrphans(ctx context.Context) error {
	used, err := c.usedChunks(ctx)
	if err != nil {
		return err
	}
	var batch []orphan
	for o, err := range c.unusedChunks(ctx, used) {
		if err != nil {
			return err
		}
		if o.age < orphanAge {
			continue
		}
		if batch = append(batch, o); len(batch) < maxOrphans {
			continue
		}
		if err := c.deleteOrphans(ctx, batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return c.deleteOrphans(ctx, batch)
}

// orphan is a stored chunk that no manifest names.
type orphan struct {
	key []byte
	age time.Duration
}

// usedChunks returns the hashes of all chunks that manifests name, sorted. Only
// blobs longer than a chunk have any.
func (c *collection) usedChunks(ctx context.Context) ([][sha256.Size]byte, error) {
	large := make(map[string]bool)
	for e, err := range entries(ctx, c.store.engine, c.scope, "", 0) {
		if err != nil {
			return nil, err
		}
		if e.Size > ChunkBytes {
			large[e.Ref] = true
		}
	}
	var used [][sha256.Size]byte
	for ref := range large {
		b, err := c.store.open(ctx, c.scope, ref)
		if err != nil {
			return nil, err
		}
		used = append(used, b.chunks...)
	}
	slices.SortFunc(used, compareHashes)
	return slices.Compact(used), nil
}

func compareHashes(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) }

// unusedChunks yields the chunks between the used ones, so that no used one is
// read.
func (c *collection) unusedChunks(ctx context.Context, used [][sha256.Size]byte) iter.Seq2[orphan, error] {
	return func(yield func(orphan, error) bool) {
		all := kv.Prefix(c.scope.Key(tagChunk))
		start := all.Start
		for i := range len(used) + 1 {
			end := all.End
			if i < len(used) {
				end = chunkKey(c.scope, used[i])
			}
			for pair, err := range c.store.engine.Scan(ctx, kv.Blobs, kv.Range{Start: start, End: end}) {
				if err != nil {
					yield(orphan{}, err)
					return
				}
				if !yield(c.orphan(pair.Key, pair.Value), nil) {
					return
				}
			}
			start = append(end, 0)
		}
	}
}

func (c *collection) orphan(key, frame []byte) orphan {
	o := orphan{key: key, age: orphanAge}
	if len(frame) >= frameHeader { // else it is unreadable
		o.age = frameAge(frame, c.store.now())
	}
	return o
}

// deleteOrphans deletes chunks unless an upload has written them again. An
// upload that meets an old chunk always does, so that age alone decides here.
func (c *collection) deleteOrphans(ctx context.Context, batch []orphan) error {
	if len(batch) == 0 {
		return nil
	}
	var deleted, size int64
	stage := func(ctx context.Context, tx *kv.Tx) error {
		deleted, size = 0, 0
		for _, o := range batch {
			frame, err := tx.Watch(ctx, kv.Blobs, o.key)
			if err != nil {
				return err
			}
			if frame == nil || c.orphan(o.key, frame).age < orphanAge {
				continue
			}
			deleted, size = deleted+1, size+int64(len(frame))
			if !c.opts.DryRun {
				tx.Delete(kv.Blobs, o.key)
			}
		}
		return nil
	}
	err := c.store.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: []kv.Ref{c.store.Ref(c.scope)}, Stage: stage, Lazy: true}))
	if err == nil {
		c.done.Orphans, c.done.OrphanBytes = c.done.Orphans+deleted, c.done.OrphanBytes+size
	}
	return err
}

// refHash is the hash that a ref spells; nil for no ref.
func refHash(ref string) []byte {
	hash, err := hex.DecodeString(ref)
	if err != nil || len(hash) != sha256.Size {
		return nil
	}
	return hash
}

// unstaged counts, for each owner, the bytes that uploads have written ahead and that no
// blob has yet. They belong to running uploads, and to abandoned ones, which stay on disk
// until they are a day old. It knows only uploads of this process. The zero value is ready.
type unstaged struct {
	mu     sync.Mutex
	owners map[kv.Scope]unstagedBytes // guarded by mu
}

// unstagedBytes are an owner's, counted from a time on.
type unstagedBytes struct {
	bytes int64
	since time.Time
}

// of returns how many bytes an owner has. What is older than orphanAge is forgotten:
// it is swept by then, or soon.
func (u *unstaged) of(scope kv.Scope, now time.Time) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owners[scope].bytes <= 0 || now.Sub(u.owners[scope].since) > orphanAge {
		delete(u.owners, scope)
	}
	return u.owners[scope].bytes
}

// add counts bytes; a negative number are bytes that a blob has now.
func (u *unstaged) add(scope kv.Scope, bytes int64, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owners == nil {
		u.owners = make(map[kv.Scope]unstagedBytes)
	}
	owner, known := u.owners[scope]
	if !known {
		owner.since = now
	}
	if owner.bytes += bytes; owner.bytes <= 0 {
		delete(u.owners, scope)
		return
	}
	u.owners[scope] = owner
}

// aheadBytes are the bytes that one upload has written ahead, until it is staged.
type aheadBytes struct {
	bytes int64
	once  sync.Once
}

// staged says that an upload becomes a blob: its bytes count as the blob's from then
// on.
func (s *Store) staged(scope kv.Scope, stored Stored) {
	if a := stored.ahead; a != nil {
		a.once.Do(func() { s.unstaged.add(scope, -a.bytes, s.now()) })
	}
}
