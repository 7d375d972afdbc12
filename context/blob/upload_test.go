package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// counting is an engine that counts commits.
type counting struct {
	kv.Engine
	lazy, synced atomic.Int64
}

func (c *counting) Commit(ctx context.Context, commit kv.Commit) error {
	if commit.Lazy {
		c.lazy.Add(1)
	} else {
		c.synced.Add(1)
	}
	return c.Engine.Commit(ctx, commit)
}

// A body of one chunk is not written before its step; longer ones are
// written ahead without a sync.
func TestOnlyLongBodiesAreWrittenAhead(t *testing.T) {
	const c = blob.ChunkBytes
	for size, want := range map[int]int64{0: 0, 4096: 0, c - 1: 0, c: 0, c + 1: 2, 3 * c: 3} {
		for _, by := range []string{"Write", "ReadFrom"} {
			engine := &counting{Engine: memkv.New(nil)}
			f := newFixture(t, engine)
			u := f.Create(t.Context(), alice)
			body := noise(9, size)
			var err error
			if by == "Write" {
				_, err = u.Write(body)
			} else {
				_, err = u.ReadFrom(bytes.NewReader(body))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := u.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if lazy, synced := engine.lazy.Load(), engine.synced.Load(); lazy != want || synced != 0 {
				t.Errorf("%s of %d bytes: %d lazy and %d synced commits, want %d and 0", by, size, lazy, synced, want)
			}
		}
	}
}

func TestASmallBlobTakesFewKeys(t *testing.T) {
	f := newMemory(t)
	// Long enough to be packed.
	f.mustStage(t, alice, textOf(32<<10), blob.Entry{StepID: "step_001", Category: "read"})
	keys := f.keys(t, alice)
	if len(keys['m']) != 1 || len(keys['p']) != 1 || len(keys['s']) != 1 || len(keys['r']) != 1 || len(keys['u']) != 1 || len(keys) != 5 {
		t.Errorf("keys by tag: %v", keys)
	}
	if size := len(keys['m'][0].Value); size > 8<<10 {
		t.Errorf("32 KiB of text take %d bytes", size)
	}
}

// However a body comes in, the same blob comes out.
func TestUploadsInPieces(t *testing.T) {
	f := newMemory(t)
	body := textOf(2*blob.ChunkBytes + 12345)
	want := sha256.Sum256(body)
	feed := map[string]func(u *blob.Upload) error{
		"pieces": func(u *blob.Upload) error {
			random := rand.New(rand.NewPCG(1, 1))
			for rest := body; len(rest) > 0; {
				n := min(1+random.IntN(300000), len(rest))
				if _, err := u.Write(rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		},
		"a reader": func(u *blob.Upload) error {
			_, err := io.Copy(u, bytes.NewReader(body))
			return err
		},
		"a reader in halves": func(u *blob.Upload) error {
			_, err := u.ReadFrom(iotest.HalfReader(bytes.NewReader(body)))
			return err
		},
		"data with EOF": func(u *blob.Upload) error {
			_, err := u.ReadFrom(iotest.DataErrReader(bytes.NewReader(body)))
			return err
		},
	}
	for name, feed := range feed {
		t.Run(name, func(t *testing.T) {
			u := f.Create(t.Context(), alice)
			if err := feed(u); err != nil {
				t.Fatal(err)
			}
			s, err := u.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.SHA256 != want || s.Ref() != hex.EncodeToString(want[:]) || s.Size != int64(len(body)) {
				t.Errorf("hash %s, size %d", s.Ref(), s.Size)
			}
			checkHeld(t, s, body)
		})
	}
}

func checkHeld(t *testing.T, s blob.Stored, body []byte) {
	t.Helper()
	if len(body) <= blob.HeldBytes {
		if !bytes.Equal(s.Head, body) || s.Tail != nil {
			t.Errorf("%d bytes: head of %d, tail of %d", len(body), len(s.Head), len(s.Tail))
		}
		return
	}
	if !bytes.Equal(s.Head, body[:blob.HeldBytes]) || !bytes.Equal(s.Tail, body[len(body)-blob.HeldBytes:]) {
		t.Errorf("%d bytes: head of %d, tail of %d differ", len(body), len(s.Head), len(s.Tail))
	}
}

func TestHeadAndTail(t *testing.T) {
	f := newMemory(t)
	const c, h = blob.ChunkBytes, blob.HeldBytes
	for _, size := range []int{0, 1, h - 1, h, h + 1, c, c + 1, c + h - 1, c + h, c + h + 1, 2 * c, 2*c + 3} {
		body := noise(7, size)
		s, err := f.Add(t.Context(), alice, body)
		if err != nil {
			t.Fatal(err)
		}
		checkHeld(t, s, body)
	}
}

// What the content looks like.
func TestKinds(t *testing.T) {
	f := newMemory(t)
	long := strings.Repeat("é", blob.ChunkBytes/2+10) // a character lies on the border of chunks
	tests := []struct {
		name, body, kind string
		binary           bool
		lines            int64
	}{
		{"empty", "", "text", false, 0},
		{"one line", "a", "text", false, 1},
		{"two lines", "a\nb\n", "text", false, 2},
		{"JSON", " {\"a\": [1]}\n", "json", false, 1},
		{"nearly JSON", "{a}", "text", false, 1},
		{"a bare number", "12", "text", false, 1},
		{"NUL", "a\x00b", "binary", true, 1},
		{"not UTF-8", "a\xffb", "binary", true, 1},
		{"cut-off character", "a\xc3", "binary", true, 1},
		{"PNG", "\x89PNG\r\n\x1a\n\x00", "image", true, 3},
		{"JPEG", "\xff\xd8\xff\xe0", "image", true, 1},
		{"WAV", "RIFF\xff\xff\xff\xffWAVEfmt ", "audio", true, 1},
		{"long text", "x" + long, "text", false, 1},
		{"long, cut-off character", "x" + long + "\xc3", "binary", true, 1},
		{"long, bad character on the border", strings.Repeat("x", blob.ChunkBytes-1) + "\xc3x", "binary", true, 1},
		{"long, NUL in the second chunk", long + "\x00", "binary", true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := f.Add(t.Context(), alice, []byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if s.Kind != tt.kind || s.Binary != tt.binary || s.Lines != tt.lines {
				t.Errorf("%s, binary %t, %d lines", s.Kind, s.Binary, s.Lines)
			}
		})
	}
}

// Binary is told the same however the content is cut into pieces.
func TestBinaryDoesNotDependOnChunks(t *testing.T) {
	f := newMemory(t)
	random := rand.New(rand.NewPCG(2, 2))
	for range 30 {
		body := bytes.Repeat([]byte("é€😀"), (blob.ChunkBytes+2000)/9)
		body = body[random.IntN(9):]
		if random.IntN(2) == 0 {
			body[random.IntN(len(body))] ^= 0x40
		}
		s, err := f.Add(t.Context(), alice, body)
		if err != nil {
			t.Fatal(err)
		}
		if s.Binary == utf8.Valid(body) {
			t.Fatalf("binary = %t for %d bytes that begin with %q", s.Binary, len(body), body[:4])
		}
	}
}

func TestUploadsThatEnd(t *testing.T) {
	f := newMemory(t)
	u := f.Create(t.Context(), alice)
	u.Abort()
	if _, err := u.Write([]byte("a")); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("write after abort: %v", err)
	}
	if _, err := u.Finish(t.Context()); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("finish after abort: %v", err)
	}
	u = f.Create(t.Context(), alice)
	if _, err := u.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.Abort()
	if _, err := u.Finish(t.Context()); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("second finish: %v", err)
	}
	if _, err := f.Add(t.Context(), kv.Scope{}, []byte("a")); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("bad scope: %v", err)
	}
	broken := errors.New("broken")
	u = f.Create(t.Context(), alice)
	if _, err := u.ReadFrom(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("broken source: %v", err)
	}
}

func TestStageRefusesBadEntries(t *testing.T) {
	f := newMemory(t)
	stored, err := f.Add(t.Context(), alice, []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []blob.Entry{
		{},
		{Category: "read"},
		{StepID: "step_001"},
		{StepID: "step_1", Path: "a"},
		{Path: "/a"},
		{Path: "../a"},
		{Path: "a/../b"},
		{Path: "a\x00"},
		{Path: "\xff"},
		{Path: strings.Repeat("a", blob.MaxPathBytes)},
	} {
		if _, err := f.stage(t.Context(), alice, stored, e); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", e, err)
		}
	}
	if _, err := f.stage(t.Context(), alice, blob.Stored{}, blob.Entry{Path: "a"}); !errors.Is(err, blob.ErrInvalid) {
		t.Errorf("nothing uploaded: %v", err)
	}
}

// Garbage collection takes unreferenced chunks by their age, so an upload must
// not rely on an old one.
func TestOldChunksAreWrittenAgain(t *testing.T) {
	engine := &counting{Engine: memkv.New(nil)}
	f := newFixture(t, engine)
	body := noise(8, 2*blob.ChunkBytes)
	commits := func() int64 {
		before := engine.lazy.Load()
		if _, err := f.Add(t.Context(), alice, body); err != nil {
			t.Fatal(err)
		}
		return engine.lazy.Load() - before
	}
	first, again := commits(), commits()
	f.now = f.now.Add(2 * time.Hour)
	later := commits()
	if got, want := fmt.Sprint(first, again, later), "2 0 2"; got != want {
		t.Errorf("commits of three uploads of the same bytes: %s, want %s", got, want)
	}
}

func BenchmarkAddAndStage4KiB(b *testing.B) {
	f := newMemory(b)
	body := textOf(4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		copy(body, fmt.Sprintf("%08d", i))
		stored, err := f.Add(b.Context(), alice, body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.stage(b.Context(), alice, stored, blob.Entry{Path: fmt.Sprint("p", i)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdd4KiB(b *testing.B) {
	f := newMemory(b)
	body := textOf(4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Add(b.Context(), alice, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpload64MiB(b *testing.B) {
	f := newMemory(b)
	body := textOf(blob.ChunkBytes)
	b.SetBytes(64 * blob.ChunkBytes)
	b.ReportAllocs()
	for b.Loop() {
		u := f.Create(b.Context(), alice)
		for i := range 64 {
			copy(body, fmt.Sprintf("%08d", i))
			if _, err := u.Write(body); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := u.Finish(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Writes of these sizes once left a buffer longer than a chunk, which reading
// into it then filled.
func TestWritesAndReadsInOneUpload(t *testing.T) {
	f := newMemory(t)
	u := f.Create(t.Context(), alice)
	body := noise(5, 4<<20)
	rest := body
	for _, n := range []int{475_000, 1, 200, 400_000, 100_000} {
		if _, err := u.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if _, err := u.ReadFrom(bytes.NewReader(rest)); err != nil {
		t.Fatal(err)
	}
	s, err := u.Finish(t.Context())
	if err != nil || s.SHA256 != sha256.Sum256(body) || s.Size != int64(len(body)) {
		t.Errorf("%d bytes, %v", s.Size, err)
	}
}
