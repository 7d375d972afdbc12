package blob

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Erasure is what becomes of offloaded results when a subject is erased. It needs the steps of
// a session, and learns the hashes of results that nothing leads to without it.
func Erasure() erase.Owner {
	const others = "results of tools of others"
	sort := func(tags, counted string, phase int, open func([]byte) ([]byte, error)) erase.Sort {
		return erase.Sort{Keyspace: kv.Blobs, Kinds: "aus", Tags: tags, Counted: counted, Phase: phase, Texts: others, Open: open}
	}
	decoder := newDecoder()
	unpack := func(frame []byte) ([]byte, error) {
		if len(frame) < frameHeader || frame[0] != packedZstd {
			return frame, nil
		}
		return decoder.DecodeAll(frame[frameHeader:], nil)
	}
	inManifest := func(value []byte) ([]byte, error) {
		m, err := decodeManifest(value)
		if err != nil || m.frame == nil {
			return value, err
		}
		chunk, err := unpack(m.frame)
		return slices.Concat(chunk, []byte{'\n'}, []byte(m.first)), err
	}
	return erase.Owner{
		Name: "context/blob",
		Sorts: []erase.Sort{
			sort(string(rune(tagPath)), "blobs", 1, nil),
			sort(string(rune(tagManifest)), "", 0, inManifest),
			sort(string(rune(tagChunk)), "", 0, unpack),
			sort(string([]byte{tagAlias, tagCollected, tagKind, tagLease, tagRef, tagStep, tagUsage, 'q'}), "", 0, nil),
		},
		Begin: func(ctx context.Context, r *erase.Run) (erase.Change, error) {
			x := &eraser{Run: r, paths: make(map[string]bool), chunks: make(map[string]bool)}
			return x.change, x.learn(ctx)
		},
	}
}

// eraser is one run.
type eraser struct {
	*erase.Run
	paths  map[string]bool // of results that go
	chunks map[string]bool // that what stays is made of
}

// learn sorts the owner's results: results of the session, and results that stay.
func (x *eraser) learn(ctx context.Context) error {
	if x.Subject.Session == "" && len(x.Steps) == 0 {
		return nil
	}
	stay := make(map[string]bool)
	err := erase.Each(ctx, x.From, kv.Blobs, x.Scope.Key(tagPath), func(path, value []byte) error {
		var m storev1.BlobEntry
		if wire.Unmarshal(value, &m) != nil {
			return damagedEntry(string(path))
		}
		ref := string(m.Sha256)
		ours := x.Steps[m.Step] || x.Subject.Step == 0 && m.Session != "" && m.Session == x.Subject.Session
		if !ours {
			stay[ref] = true
			return nil
		}
		x.paths[string(path)], x.Refs[ref] = true, true
		return nil
	})
	for ref := range stay {
		if delete(x.Refs, ref); err != nil {
			return err
		}
		values, got := x.From.Get(ctx, kv.Blobs, append(x.Scope.Key(tagManifest), ref...))
		if got != nil {
			return got
		}
		m, got := decodeManifest(values[0])
		if got != nil {
			continue // a reader gets the error
		}
		for _, hash := range m.chunks {
			x.chunks[string(hash[:])] = true
		}
	}
	return err
}

func (x *eraser) change(_ context.Context, e erase.Entry) ([]byte, bool, error) {
	if x.Subject.Session == "" && len(x.Steps) == 0 || !x.Own(e) {
		return e.Stays()
	}
	tail := e.Tail
	switch e.Tag {
	case tagPath:
		return e.Goes(x.paths[string(tail)], nil)
	case tagAlias:
		return e.Goes(x.paths[string(e.Value)], nil)
	case tagStep:
		return e.Goes(len(tail) >= 8 && (x.Steps[binary.BigEndian.Uint64(tail)] || x.paths[string(tail[8:])]), nil)
	case tagRef:
		return e.Goes(len(tail) >= sha256.Size && x.paths[string(tail[sha256.Size:])], nil)
	case tagManifest, tagLease:
		return e.Goes(x.Refs[string(tail)], nil)
	case tagChunk: // one that nothing is made of may be of an upload that was cut off
		return e.Goes(!x.Looks && !x.chunks[string(tail)], nil)
	case tagUsage, 'q': // counted again when it is needed; answers name paths
		return e.Goes(!x.Looks, nil)
	}
	return e.Stays()
}
