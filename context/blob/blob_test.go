package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

var (
	alice = kv.AgentScope("t", "alice")
	bob   = kv.AgentScope("t", "bob")
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// rounds is how often a test repeats what it does: less often with -short, under
// which the race detector runs.
func rounds(usual, short int) int {
	if testing.Short() {
		return short
	}
	return usual
}

// fixture is a store on an engine that can be looked into.
type fixture struct {
	*blob.Store
	engine kv.Engine
	writer *kv.Writer
	now    time.Time
	// harmed says that the test has written what the store would not.
	harmed bool
}

func newFixture(tb testing.TB, engine kv.Engine) *fixture {
	tb.Helper()
	f := &fixture{engine: engine, writer: kv.NewWriter(engine, nil), now: noon}
	f.Store = blob.New(engine, f.writer, &blob.Options{Now: func() time.Time { return f.now }})
	tb.Cleanup(func() {
		f.writer.Close()
		if !f.harmed {
			mustBeWhole(tb, engine)
		}
	})
	return f
}

// mustBeWhole reads back all that a test has stored.
func mustBeWhole(tb testing.TB, engine kv.Engine) {
	tb.Helper()
	for scope, err := range kv.Scopes(context.Background(), engine, kv.Blobs) {
		if errors.Is(err, kv.ErrClosed) {
			return
		}
		if err == nil {
			err = blob.Check(context.Background(), engine, scope, func(err error) { tb.Errorf("%s: %v", scope, err) })
		}
		if err != nil {
			tb.Errorf("read %s back: %v", scope, err)
		}
	}
}

func newMemory(tb testing.TB) *fixture {
	tb.Helper()
	engine := memkv.New(nil)
	tb.Cleanup(func() { engine.Close() })
	return newFixture(tb, engine)
}

// mustStage makes data a blob under an entry.
func (f *fixture) mustStage(tb testing.TB, scope kv.Scope, data []byte, e blob.Entry) blob.Entry {
	tb.Helper()
	stored, err := f.Add(tb.Context(), scope, data)
	if err != nil {
		tb.Fatal(err)
	}
	got, err := f.stage(tb.Context(), scope, stored, e)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func (f *fixture) stage(ctx context.Context, scope kv.Scope, stored blob.Stored, e blob.Entry) (got blob.Entry, err error) {
	err = f.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{f.Ref(scope)},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			got, err = f.Stage(ctx, tx, scope, stored, e)
			return err
		},
	})
	return got, err
}

func (f *fixture) mustLookup(tb testing.TB, scope kv.Scope, name string) blob.Entry {
	tb.Helper()
	e, err := f.Lookup(tb.Context(), scope, name)
	if err != nil {
		tb.Fatalf("look up %q: %v", name, err)
	}
	return e
}

// keys are the keys of a scope in the blobs keyspace, by tag.
func (f *fixture) keys(tb testing.TB, scope kv.Scope) map[byte][]kv.Pair {
	tb.Helper()
	byTag := make(map[byte][]kv.Pair)
	prefix := scope.AppendPrefix(nil)
	for pair, err := range f.engine.Scan(tb.Context(), kv.Blobs, kv.Prefix(prefix)) {
		if err != nil {
			tb.Fatal(err)
		}
		byTag[pair.Key[len(prefix)]] = append(byTag[pair.Key[len(prefix)]], pair)
	}
	return byTag
}

// overwrite changes a stored value behind the store's back.
func (f *fixture) overwrite(tb testing.TB, scope kv.Scope, change func(tx *kv.Tx)) {
	tb.Helper()
	f.harmed = true
	err := f.writer.Do(tb.Context(), kv.Request{
		Blind: []kv.Ref{f.Ref(scope)},
		Stage: func(_ context.Context, tx *kv.Tx) error { change(tx); return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func collect(pieces iter.Seq2[[]byte, error]) ([]byte, error) {
	var all []byte
	for piece, err := range pieces {
		if err != nil {
			return all, err
		}
		if len(piece) > blob.ChunkBytes {
			return all, fmt.Errorf("a piece of %d bytes", len(piece))
		}
		all = append(all, piece...)
	}
	return all, nil
}

func mustCollect(tb testing.TB, pieces iter.Seq2[[]byte, error]) []byte {
	tb.Helper()
	all, err := collect(pieces)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// noise is bytes that do not shrink.
func noise(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func textOf(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d of some text\n", i)
	}
	return b.Bytes()[:n]
}

// D03, D05: what goes in comes out byte for byte by path, step id and ref,
// after a restart too, at every size around the borders of chunks.
func TestBlobsComeBackByteForByteAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	const c = blob.ChunkBytes
	sizes := []int{0, 1, 127, 128, 4096, c - 1, c, c + 1, 2*c - 1, 2 * c, 2*c + 1, 3*c + 77}
	for range 4 {
		sizes = append(sizes, random.IntN(3*c))
	}
	var entries []blob.Entry
	var bodies [][]byte
	open(t, dir, func(f *fixture) {
		for i, size := range sizes {
			body := textOf(size)
			if i%2 == 1 {
				body = noise(seed+uint64(i), size)
			}
			e := f.mustStage(t, alice, body, blob.Entry{StepID: step.ID(uint64(i + 1)), Category: "tool", SessionID: "s"})
			entries, bodies = append(entries, e), append(bodies, body)
		}
	})
	open(t, dir, func(f *fixture) {
		for i, want := range entries {
			for _, name := range []string{want.Path, strings.TrimPrefix(want.Path, "workspace/"), want.StepID, want.Ref, want.Ref[:12]} {
				e := f.mustLookup(t, alice, name)
				if diff := cmp.Diff(want, e); diff != "" {
					t.Fatalf("size %d by %q: %s", sizes[i], name, diff)
				}
			}
			got := mustCollect(t, f.Read(t.Context(), alice, want, 0, -1))
			if !bytes.Equal(got, bodies[i]) {
				t.Fatalf("size %d came back different", sizes[i])
			}
			for range 5 {
				checkRange(t, f, want, bodies[i], random)
			}
		}
	})
}

func open(t *testing.T, dir string, use func(*fixture)) {
	t.Helper()
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, db)
	use(f)
	f.writer.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkRange(t *testing.T, f *fixture, e blob.Entry, body []byte, random *rand.Rand) {
	t.Helper()
	offset, limit := random.Int64N(e.Size+2), random.Int64N(e.Size+2)
	end := min(offset+limit, e.Size)
	want := body[min(offset, e.Size):max(end, min(offset, e.Size))]
	if got := mustCollect(t, f.Read(t.Context(), alice, e, offset, limit)); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes from %d of %d came back different", limit, offset, e.Size)
	}
}

// D03: equal bytes of one owner are stored once, and every path is an entry of
// its own.
func TestEqualBytesAreStoredOnce(t *testing.T) {
	for _, size := range []int{2000, 2*blob.ChunkBytes + 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f := newMemory(t)
			body := textOf(size)
			first := f.mustStage(t, alice, body, blob.Entry{StepID: "step_001", Category: "read"})
			before := f.keys(t, alice)
			second := f.mustStage(t, alice, body, blob.Entry{StepID: "step_002", Category: "read"})
			after := f.keys(t, alice)
			if len(before['m']) != 1 || len(after['m']) != 1 || len(after['c']) != len(before['c']) {
				t.Errorf("manifests %d then %d, chunks %d then %d",
					len(before['m']), len(after['m']), len(before['c']), len(after['c']))
			}
			if first.Path == second.Path || first.Ref != second.Ref || len(after['p']) != 2 {
				t.Errorf("entries %+v and %+v", first, second)
			}
			for _, e := range []blob.Entry{first, second} {
				if diff := cmp.Diff(e, f.mustLookup(t, alice, e.Path)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// D03: never across owners.
func TestOwnersShareNothing(t *testing.T) {
	f := newMemory(t)
	body := textOf(blob.ChunkBytes + 1)
	e := f.mustStage(t, alice, body, blob.Entry{StepID: "step_001", Category: "read"})
	for _, name := range []string{e.Path, e.StepID, e.Ref} {
		if _, err := f.Lookup(t.Context(), bob, name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("bob finds %q: %v", name, err)
		}
	}
	if _, err := collect(f.Read(t.Context(), bob, e, 0, -1)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("bob reads alice's blob: %v", err)
	}
	f.mustStage(t, bob, body, blob.Entry{StepID: "step_001", Category: "read"})
	if a, b := f.keys(t, alice), f.keys(t, bob); len(b['m']) != 1 || len(b['c']) != len(a['c']) {
		t.Errorf("bob has %d manifests and %d chunks of his own", len(b['m']), len(b['c']))
	}
}

// D03: the path is made of category, step number and ending by content, a
// second blob of a step gets _2, and the entry is complete.
func TestPathsOfBlobs(t *testing.T) {
	f := newMemory(t)
	tests := []struct {
		body string
		e    blob.Entry
		want string
		kind string
	}{
		{"text", blob.Entry{StepID: "step_001", Category: "read"}, "workspace/outputs/read_001.txt", "text"},
		{`{"a":1}`, blob.Entry{StepID: "step_002", Category: "search"}, "workspace/outputs/search_002.json", "json"},
		{"out", blob.Entry{StepID: "step_1000", Category: "shell", Kind: "log"}, "workspace/outputs/shell_1000.log", "log"},
		{"a\x00", blob.Entry{StepID: "step_003", Category: "tool"}, "workspace/outputs/tool_003.bin", "binary"},
		{"more", blob.Entry{StepID: "step_001", Category: "read"}, "workspace/outputs/read_001_2.txt", "text"},
		{"more", blob.Entry{StepID: "step_001", Category: "read"}, "workspace/outputs/read_001_3.txt", "text"},
		{"own", blob.Entry{Path: "workspace/history/x"}, "workspace/history/x", "text"},
		{"own too", blob.Entry{Path: "workspace/history/x"}, "workspace/history/x_2", "text"},
	}
	for _, tt := range tests {
		tt.e.SessionID = "s1"
		got := f.mustStage(t, alice, []byte(tt.body), tt.e)
		want := tt.e
		want.Path, want.Kind, want.Size, want.Time = tt.want, tt.kind, int64(len(tt.body)), noon
		want.Ref, want.Owner, want.TTL = got.Ref, "alice", 24*time.Hour
		if ttl, known := map[string]time.Duration{"search": 6 * time.Hour, "shell": 30 * time.Minute}[tt.e.Category]; known {
			want.TTL = ttl
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(got, f.mustLookup(t, alice, got.Path)); diff != "" {
			t.Errorf("stored otherwise: %s", diff)
		}
	}
}

// D05: one blob, many names.
func TestNamesOfABlob(t *testing.T) {
	f := newMemory(t)
	read := f.mustStage(t, alice, []byte("read"), blob.Entry{StepID: "step_001", Category: "read"})
	other := f.mustStage(t, alice, []byte(`["other"]`), blob.Entry{StepID: "step_001", Category: "tool"})
	tests := map[string]string{
		"workspace/outputs/read_001.txt":   read.Path,
		"./workspace/outputs/read_001.txt": read.Path,
		"outputs/read_001.txt":             read.Path,
		"workspace/outputs/file_001.txt":   read.Path,
		"outputs/file_001.txt":             read.Path,
		"step_001":                         read.Path,
		"step_001.txt":                     read.Path,
		"step_001.json":                    other.Path,
		"workspace/outputs/step_001.json":  other.Path,
		"outputs/step_001.json":            other.Path,
		"step_001.log":                     read.Path,
		read.Ref:                           read.Path,
		read.Ref[:12]:                      read.Path,
		read.Ref[:13]:                      read.Path,
		strings.ToUpper(read.Ref[:20]):     read.Path,
		"":                                 "",
		"read_001.txt":                     "",
		"outputs/read_002.txt":             "",
		"step_002":                         "",
		"step_1":                           "",
		read.Ref[:11]:                      "",
		read.Ref + "00":                    "",
		"ffffffffffff":                     "",
		"outputs/../../etc/passwd":         "",
		"a\x00b":                           "",
		strings.Repeat("x", 10000):         "",
	}
	for name, want := range tests {
		got, err := f.Lookup(t.Context(), alice, name)
		if want == "" {
			if !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("Lookup(%.80q) = %+v, %v, want ErrNotFound", name, got, err)
			}
			continue
		}
		if err != nil || got.Path != want {
			t.Errorf("Lookup(%q) = %q, %v, want %q", name, got.Path, err, want)
		}
	}
}

func TestAShortRefThatFitsTwoBlobs(t *testing.T) {
	f := newMemory(t)
	e := f.mustStage(t, alice, []byte("a"), blob.Entry{Path: "a"})
	// A second manifest whose hash differs in the last digit only.
	manifest := f.keys(t, alice)['m'][0]
	twin := slices.Clone(manifest.Key)
	twin[len(twin)-1] ^= 1
	f.overwrite(t, alice, func(tx *kv.Tx) { tx.Put(kv.Blobs, twin, manifest.Value) })
	for _, digits := range []int{12, 13, 63} {
		if _, err := f.Lookup(t.Context(), alice, e.Ref[:digits]); !errors.Is(err, blob.ErrAmbiguous) {
			t.Errorf("%d digits: %v, want ErrAmbiguous", digits, err)
		}
	}
	if got := f.mustLookup(t, alice, e.Ref); got.Path != "a" {
		t.Errorf("all digits lead to %q", got.Path)
	}
}

func TestRangesOutsideABlob(t *testing.T) {
	f := newMemory(t)
	e := f.mustStage(t, alice, []byte("abc"), blob.Entry{Path: "a"})
	for _, r := range [][2]int64{{3, -1}, {4, 1}, {1 << 62, 1 << 62}, {0, 0}} {
		if got := mustCollect(t, f.Read(t.Context(), alice, e, r[0], r[1])); len(got) != 0 {
			t.Errorf("range %v gives %q", r, got)
		}
	}
	if got := mustCollect(t, f.Read(t.Context(), alice, e, 1, 1<<62)); string(got) != "bc" {
		t.Errorf("a long limit gives %q", got)
	}
	if _, err := collect(f.Read(t.Context(), alice, e, -1, 1)); !errors.Is(err, blob.ErrInvalid) {
		t.Errorf("negative offset: %v", err)
	}
}

func TestNewReader(t *testing.T) {
	f := newMemory(t)
	body := noise(1, blob.ChunkBytes+100)
	e := f.mustStage(t, alice, body, blob.Entry{Path: "a"})
	r := blob.NewReader(f.Read(t.Context(), alice, e, 0, -1))
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	missing := blob.NewReader(f.Read(t.Context(), bob, e, 0, -1))
	defer missing.Close()
	if _, err := io.ReadAll(missing); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
}
