package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	hash := bytes.Repeat([]byte{0xab}, 32)
	full := Entry{SessionID: "s", Kind: "text", Category: "read", Size: 300, Time: time.UnixMicro(1700000000000001)}
	moved := Entry{
		Path: "c", Aliases: []string{"a", "b"}, TaskID: "t1", MediaType: "image/png", Time: time.UnixMicro(1700000000000001),
		TTL: 24 * time.Hour, Tier: ShortTerm, Important: true, PromoteTime: time.UnixMicro(1700000000000002),
		Archive: Archived{Category: "reports", Tags: []string{"x"}, Time: time.UnixMicro(1700000000000003)},
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"entry", full.encode(hash, 12), "0a20abababababababababababababababababababababababababababababababab" + "100c" + "1a0173" + "220474657874" + "2a0472656164" + "30ac02" + "388280f28183898506"},
		{"bare entry", Entry{Time: time.UnixMicro(0)}.encode(hash, 0), "0a20abababababababababababababababababababababababababababababababab" + "3800"},
		{"entry that was moved about", moved.encode(hash, 0), "0a20abababababababababababababababababababababababababababababababab" + "388280f28183898506" + "4080b89929" + "4801" + "5001" + "5a0163" + "620162" + "6a0274" + "31" + "7209696d6167652f706e67" + "788480f28183898506" + "820107" + "7265706f727473" + "8a010178" + "90018680f28183898506"},
		{"usage", Usage{Bytes: 300, Blobs: 2}.encode(), "08ac021002"},
		{"usage of nothing", Usage{}.encode(), "0800"},
		{"what is left", encodeCollected(time.UnixMicro(1700000000000001)), "088280f28183898506"},
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
	e.Path, e.Aliases, e.Archive.Tags = "q", []string{"p", "o"}, []string{"t"}
	f.Add(e.encode(make([]byte, 32), 1))
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := decodeEntry("p", value)
		if err != nil {
			return
		}
		if len(e.Ref) != 64 || e.Size < 0 || e.TTL < 0 {
			t.Fatalf("%x became %+v", value, e)
		}
		number, _ := step.ParseID(e.StepID)
		again, err := decodeEntry("p", e.encode(refHash(e.Ref), number))
		if diff := cmp.Diff(e, again); diff != "" || err != nil {
			t.Fatalf("%v, %s", err, diff)
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

func FuzzDecodeUsage(f *testing.F) {
	f.Add(Usage{Bytes: 300, Blobs: 2}.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		u, err := decodeUsage(value)
		if err != nil {
			return
		}
		if again, err := decodeUsage(u.encode()); err != nil || again != u {
			t.Fatalf("%x became %+v, then %+v, %v", value, u, again, err)
		}
	})
}

// What is kept for a request id comes back as it was.
func TestAnswers(t *testing.T) {
	want := Collected{
		Entries: 1, Refs: []string{strings.Repeat("ab", 32), strings.Repeat("01", 32)}, Bytes: 2,
		Kept:    Kept{Archived: 3, LongTerm: 4, Important: 5, NotExpired: 6, InUse: 7, Referenced: 8},
		Orphans: 9, OrphanBytes: 10, More: true,
	}
	if diff := cmp.Diff(want, decodeAnswer(encodeAnswer(want))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Collected{}, decodeAnswer(encodeAnswer(Collected{}))); diff != "" {
		t.Error(diff)
	}
	decodeAnswer([]byte{0xff, 0xff})
}
