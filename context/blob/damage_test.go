package blob_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A whole read checks everything, a ranged one its own chunks.
func TestDamageIsFoundAndNamed(t *testing.T) {
	body := noise(3, 3*blob.ChunkBytes)
	tests := []struct {
		name   string
		change func(tx *kv.Tx, second kv.Pair)
	}{
		{"a byte", func(tx *kv.Tx, p kv.Pair) { p.Value[len(p.Value)-1] ^= 1; tx.Put(kv.Blobs, p.Key, p.Value) }},
		{"the packing", func(tx *kv.Tx, p kv.Pair) { p.Value[0] = 9; tx.Put(kv.Blobs, p.Key, p.Value) }},
		{"cut off", func(tx *kv.Tx, p kv.Pair) { tx.Put(kv.Blobs, p.Key, p.Value[:3]) }},
		{"empty", func(tx *kv.Tx, p kv.Pair) { tx.Put(kv.Blobs, p.Key, nil) }},
		{"missing", func(tx *kv.Tx, p kv.Pair) { tx.Delete(kv.Blobs, p.Key) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newMemory(t)
			e := f.mustStage(t, alice, body, blob.Entry{Path: "a"})
			second := f.chunkOf(t, body[blob.ChunkBytes:2*blob.ChunkBytes])
			f.overwrite(t, alice, func(tx *kv.Tx) { tt.change(tx, second) })
			got, err := collect(f.Read(t.Context(), alice, e, 0, -1))
			var damage *blob.DamagedError
			if !errors.As(err, &damage) || damage.Chunk != 1 || damage.Ref != e.Ref || !errors.Is(err, blob.ErrDamaged) {
				t.Errorf("whole read: %v", err)
			}
			if !bytes.Equal(got, body[:blob.ChunkBytes]) {
				t.Errorf("%d bytes came before the error", len(got))
			}
			third := mustCollect(t, f.Read(t.Context(), alice, e, 2*blob.ChunkBytes, -1))
			if !bytes.Equal(third, body[2*blob.ChunkBytes:]) {
				t.Error("a range without the damaged chunk came back different")
			}
		})
	}
}

// chunkOf finds the stored chunk of some incompressible bytes.
func (f *fixture) chunkOf(tb testing.TB, data []byte) kv.Pair {
	tb.Helper()
	for _, pair := range f.keys(tb, alice)['c'] {
		if bytes.HasSuffix(pair.Value, data) {
			return pair
		}
	}
	tb.Fatal("no such chunk")
	return kv.Pair{}
}

// A chunk that is whole but stands in the wrong blob is found by the whole
// blob's hash.
func TestSwappedManifestIsFound(t *testing.T) {
	f := newMemory(t)
	e := f.mustStage(t, alice, noise(4, blob.ChunkBytes+1), blob.Entry{Path: "a"})
	f.mustStage(t, alice, noise(5, blob.ChunkBytes+1), blob.Entry{Path: "b"})
	manifests := f.keys(t, alice)['m']
	f.overwrite(t, alice, func(tx *kv.Tx) {
		tx.Put(kv.Blobs, manifests[0].Key, manifests[1].Value)
		tx.Put(kv.Blobs, manifests[1].Key, manifests[0].Value)
	})
	_, err := collect(f.Read(t.Context(), alice, e, 0, -1))
	var damage *blob.DamagedError
	if !errors.As(err, &damage) || damage.Chunk != blob.WholeBlob {
		t.Errorf("got %v", err)
	}
}

func TestDamagedManifestsAndEntries(t *testing.T) {
	for _, value := range [][]byte{nil, {0xff}, {0x08, 0x05}, {0x08, 0x05, 0x1a, 0x01, 0x00}} {
		f := newMemory(t)
		e := f.mustStage(t, alice, []byte("abc"), blob.Entry{Path: "a"})
		keys := f.keys(t, alice)
		f.overwrite(t, alice, func(tx *kv.Tx) {
			tx.Put(kv.Blobs, keys['m'][0].Key, value)
			tx.Put(kv.Blobs, keys['p'][0].Key, value)
		})
		if _, err := collect(f.Read(t.Context(), alice, e, 0, -1)); !errors.Is(err, blob.ErrDamaged) {
			t.Errorf("manifest %x: %v", value, err)
		}
		for _, name := range []string{"a", e.Ref} {
			if _, err := f.Lookup(t.Context(), alice, name); !errors.Is(err, blob.ErrDamaged) {
				t.Errorf("entry %x by %q: %v", value, name, err)
			}
		}
	}
}

// failing is an engine whose commits fail on demand.
type failing struct {
	kv.Engine
	err error
}

func (f *failing) Commit(ctx context.Context, c kv.Commit) error {
	if f.err != nil {
		return f.err
	}
	return f.Engine.Commit(ctx, c)
}

// A failed write leaves nothing that leads anywhere.
func TestAFullDiskEndsTheUpload(t *testing.T) {
	engine := &failing{Engine: newMemory(t).engine}
	f := newFixture(t, engine)
	engine.err = kv.ErrFull
	if _, err := f.Add(t.Context(), alice, noise(1, 3*blob.ChunkBytes)); !errors.Is(err, kv.ErrFull) {
		t.Errorf("a body of several chunks: %v, want ErrFull", err)
	}
	u := f.Create(t.Context(), alice)
	if _, err := u.ReadFrom(bytes.NewReader(noise(1, 3*blob.ChunkBytes))); !errors.Is(err, kv.ErrFull) {
		t.Errorf("ReadFrom: %v, want ErrFull", err)
	}
	if _, err := u.Finish(t.Context()); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Finish: %v, want ErrFull", err)
	}
	small, err := f.Add(t.Context(), alice, []byte("small"))
	if err != nil {
		t.Fatalf("a small body needs no write: %v", err)
	}
	if _, err := f.stage(t.Context(), alice, small, blob.Entry{Path: "a"}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("stage: %v, want ErrFull", err)
	}
	engine.err = nil
	if keys := f.keys(t, alice); len(keys) != 0 {
		t.Errorf("keys are left: %v", keys)
	}
}

func TestStoredChunksOfADamagedStoreAreWrittenAgain(t *testing.T) {
	f := newMemory(t)
	body := noise(6, blob.ChunkBytes+1)
	e := f.mustStage(t, alice, body, blob.Entry{Path: "a"})
	chunk := f.chunkOf(t, body[:blob.ChunkBytes])
	f.overwrite(t, alice, func(tx *kv.Tx) { tx.Put(kv.Blobs, chunk.Key, slices.Repeat([]byte{1}, 100)) })
	f.mustStage(t, alice, body, blob.Entry{Path: "b"})
	if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, body) {
		t.Error("the blob came back different")
	}
}
