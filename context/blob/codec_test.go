package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	hash := bytes.Repeat([]byte{0xab}, 32)
	full := Entry{SessionID: "s", Kind: "text", Category: "read", Size: 300, Time: time.UnixMicro(1700000000000001)}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"entry", full.encode(hash, 12), "0a20abababababababababababababababababababababababababababababababab" + "100c" + "1a0173" + "220474657874" + "2a0472656164" + "30ac02" + "388280f28183898506"},
		{"bare entry", Entry{Time: time.UnixMicro(0)}.encode(hash, 0), "0a20abababababababababababababababababababababababababababababababab" + "3800"},
		{"manifest of one frame", manifest{size: 3, frame: []byte("abc"), first: "p"}.encode(), "08031203616263220170"},
		{"manifest of nothing", manifest{frame: []byte{}}.encode(), "080012002200"},
		{"manifest of chunks", manifest{size: ChunkBytes + 1, chunks: [][32]byte{{1}, {2}}, first: "p"}.encode(), "08818040" + "1a4001000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000" + "220170"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add(manifest{size: 3, frame: []byte("\x00\x00\x00\x00\x01abc"), first: "p"}.encode())
	f.Add(manifest{size: ChunkBytes + 1, chunks: make([][32]byte, 2), first: "p"}.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		m, err := decodeManifest(value)
		if err != nil {
			return
		}
		again, err := decodeManifest(m.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmp.AllowUnexported(manifest{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	e := Entry{StepID: "step_001", SessionID: "s", Kind: "text", Category: "read", Size: 3, Time: time.UnixMicro(1)}
	f.Add(e.encode(make([]byte, 32), 1))
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := decodeEntry("p", value)
		if err != nil {
			return
		}
		if len(e.Ref) != 64 || e.Size < 0 {
			t.Fatalf("%x became %+v", value, e)
		}
	})
}

// FuzzUnpack: whatever is stored, what comes out has the hash that was asked
// for.
func FuzzUnpack(f *testing.F) {
	s := New(nil, nil, nil)
	f.Add([]byte("some bytes"), []byte{packedZstd, 0, 0, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, chunk, garbage []byte) {
		if len(chunk) > ChunkBytes {
			return
		}
		hash := sha256.Sum256(chunk)
		got, err := s.unpack(s.pack(chunk, time.Unix(1e9, 0)), hash)
		if err != nil || !bytes.Equal(got, chunk) {
			t.Fatalf("%q came back as %q, %v", chunk, got, err)
		}
		if got, err := s.unpack(garbage, hash); err == nil && !bytes.Equal(got, chunk) {
			t.Fatalf("%x passed for %q", garbage, chunk)
		}
	})
}
