package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

// world is the sessions of a test.
type world struct {
	mu   sync.Mutex
	open map[string]bool
	// afterLook runs once, when the first look is over but for the names.
	afterLook func()
}

// IsOpen knows the sessions that the test opened by hand, or by f.openSession.
func (w *world) IsOpen(ctx context.Context, from kv.Getter, scope kv.Scope, id string) (bool, error) {
	values, err := from.Get(ctx, kv.Log, scope.Key('s', []byte(id)))
	w.mu.Lock()
	open, run := w.open[id] || values[0] != nil, w.afterLook
	w.afterLook = nil
	w.mu.Unlock()
	if run != nil {
		run()
	}
	return open, err
}

// put stages in a commit of its own.
func (f *fixture) put(tb testing.TB, stage func(tx *kv.Tx), refs ...kv.Ref) {
	tb.Helper()
	err := f.writer.Do(tb.Context(), kv.Request{Refs: refs[:1], Blind: refs[1:], Stage: func(_ context.Context, tx *kv.Tx) error {
		stage(tx)
		return nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
}

func (f *fixture) openSession(tb testing.TB, scope kv.Scope, id string) {
	tb.Helper()
	ref := kv.Ref{Keyspace: kv.Log, Scope: scope}
	f.put(tb, func(tx *kv.Tx) { tx.Put(kv.Log, scope.Key('s', []byte(id)), nil) }, ref)
}

// say writes the mentions of a record with a text.
func (f *fixture) say(tb testing.TB, scope kv.Scope, text string) {
	tb.Helper()
	ref := kv.Ref{Keyspace: kv.Records, Scope: scope}
	f.put(tb, func(tx *kv.Tx) { mention.Stage(tx, ref, text[:min(len(text), 100)], mention.InText([]byte(text))) }, ref, mention.ListRef(scope.Tenant))
}

// sayIn is say for a text in a session.
func (f *fixture) sayIn(tb testing.TB, scope kv.Scope, session, text string) {
	tb.Helper()
	ref := kv.Ref{Keyspace: kv.Log, Scope: scope}
	f.put(tb, func(tx *kv.Tx) { mention.Stage(tx, ref, session, mention.InText([]byte(text))) }, ref)
}

func (f *fixture) mustCollect(tb testing.TB, scope kv.Scope, opts *blob.CollectOptions) blob.Collected {
	tb.Helper()
	done, err := f.Collect(tb.Context(), scope, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return done
}

// late is long after everything with a time has expired.
var late = noon.Add(365 * 24 * time.Hour)

// A blob goes only if it has expired, nobody refers to it, and it is not
// important, long-term or archived; the answer says what stayed and why.
func TestWhatIsCollected(t *testing.T) {
	w := &world{open: map[string]bool{"goes on": true}}
	f := newFixtureWith(t, blob.Options{Sessions: w, CollectEvery: -1})
	stage := func(n int, session, category string) blob.Entry {
		return f.mustStage(t, alice, noise(uint64(n), 1000+n), blob.Entry{StepID: fmt.Sprintf("step_%03d", n), SessionID: session, Category: category})
	}
	garbage := stage(1, "ended", "read")
	stage(2, "goes on", "read") // its own step names it
	named := stage(3, "ended", "read")
	f.say(t, alice, "see "+named.Path)
	stage(4, "ended", "report") // never expires
	stage(5, "ended", "read")
	stage(6, "ended", "read")
	stage(7, "ended", "read")
	memory := stage(8, "ended", "shell")
	f.say(t, kv.Scope{Tenant: "t", Kind: kv.OwnerUser, Owner: "eva"}, "the build log is "+memory.Ref[:12])
	f.sayIn(t, alice, "ended", "see "+garbage.Ref)
	f.mustPromote(t, "step_005", blob.Promotion{Tier: blob.LongTerm})
	f.mustPromote(t, "step_006", blob.Promotion{Tier: blob.ShortTerm, Important: true})
	f.mustArchive(t, "step_007", blob.Archiving{})

	if done := f.mustCollect(t, alice, nil); done.Entries != 0 || done.Kept.NotExpired != 5 {
		t.Errorf("before anything expired: %+v", done)
	}
	f.now = late
	kept := blob.Kept{Archived: 1, LongTerm: 1, Important: 1, NotExpired: 1, Referenced: 3}
	want := blob.Collected{Entries: 1, Refs: []string{garbage.Ref}, Bytes: garbage.Size, Kept: kept}
	before := f.keys(t, alice)
	if diff := cmp.Diff(want, f.mustCollect(t, alice, &blob.CollectOptions{DryRun: true})); diff != "" {
		t.Errorf("dry run: %s", diff)
	}
	if diff := cmp.Diff(before, f.keys(t, alice)); diff != "" {
		t.Errorf("a dry run wrote: %s", diff)
	}
	if diff := cmp.Diff(want, f.mustCollect(t, alice, nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(blob.Collected{Kept: kept}, f.mustCollect(t, alice, nil)); diff != "" {
		t.Errorf("again: %s", diff)
	}
	f.checkCollected(t, garbage)
	f.checkUsage(t, alice, 7, 7*1000+2+3+4+5+6+7+8)
	for i := 2; i <= 8; i++ {
		e := f.mustLookup(t, alice, fmt.Sprintf("step_%03d", i))
		if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, noise(uint64(i), 1000+i)) {
			t.Errorf("%s came back different", e.Path)
		}
	}
}

func (f *fixture) mustPromote(tb testing.TB, name string, p blob.Promotion) blob.Entry {
	tb.Helper()
	e, err := f.Promote(tb.Context(), alice, name, p)
	if err != nil {
		tb.Fatalf("promote %s: %v", name, err)
	}
	return e
}

func (f *fixture) mustArchive(tb testing.TB, name string, a blob.Archiving) blob.Entry {
	tb.Helper()
	e, err := f.Archive(tb.Context(), alice, name, a)
	if err != nil {
		tb.Fatalf("archive %s: %v", name, err)
	}
	return e
}

// Any number of results are archived and promoted under one name.
func TestPathsOfOneName(t *testing.T) {
	const results = 1100 // more than once had a path of one name
	f := newMemory(t)
	f.harmed = true // nothing is, and all of it was read back by others
	paths := map[string]bool{}
	for n := range results {
		step := fmt.Sprintf("step_%03d", n+1)
		for _, e := range []blob.Entry{
			f.mustStage(t, alice, []byte("the same result"), blob.Entry{StepID: step, SessionID: "s", Category: "read"}),
			f.mustArchive(t, step, blob.Archiving{Name: "same.txt"}),
			f.mustPromote(t, step, blob.Promotion{Tier: blob.LongTerm, Name: "same.txt"}),
		} {
			if e.Path == "" || paths[e.Path] {
				t.Fatalf("path %d is %q, which is taken", len(paths), e.Path)
			}
			paths[e.Path] = true
		}
	}
	if last := fmt.Sprintf("archive/general/same_%d.txt", results); !paths[last] {
		t.Errorf("none is at %s", last)
	}
}

// checkCollected checks that a blob is gone under every name, and known to be.
func (f *fixture) checkCollected(tb testing.TB, e blob.Entry) {
	tb.Helper()
	names := append([]string{e.Path, e.StepID, e.StepID + ".txt", e.Ref, e.Ref[:12]}, e.Aliases...)
	for _, name := range names {
		_, err := f.Lookup(tb.Context(), alice, name)
		var gone *blob.CollectedError
		if !errors.As(err, &gone) || !errors.Is(err, blob.ErrCollected) || !errors.Is(err, blob.ErrNotFound) || !gone.Time.Equal(f.now) {
			tb.Errorf("%s: %v", name, err)
		}
	}
	if _, err := collect(f.Read(tb.Context(), alice, e, 0, -1)); !errors.Is(err, blob.ErrCollected) {
		tb.Errorf("read: %v", err)
	}
}

// Every way to name a blob keeps it, wherever it stands in a text.
func TestNamesThatKeep(t *testing.T) {
	made := func(f *fixture) blob.Entry {
		f.mustStage(t, alice, []byte("x"), blob.Entry{StepID: "step_012", SessionID: "s", Category: "read"})
		e, err := f.Promote(t.Context(), alice, "step_012", blob.Promotion{Tier: blob.ShortTerm, Category: "c", Name: `Übersicht 1.txt`})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	ref := made(newMemory(t)).Ref
	for text, keeps := range map[string]bool{
		"workspace/outputs/read_012.txt":             true,
		"see outputs/read_012.txt.":                  true,
		"J\x1dworkspace/outputs/read_012.txtR\x02ab": true,
		`{"path":"workspace/outputs/file_012.txt"}`:  true,
		"persistent/alice/c/Übersicht 1.txt":         true,
		`"persistent\/alice/c/\u00dcbersicht 1.txt"`: true,
		"step_012":                            true,
		"outputs/step_012.json, for instance": true,
		ref:                                   true,
		"B@" + ref + "J":                      true,
		"a" + ref[:12] + "b":                  true,
		strings.ToUpper(ref[:14]):             true,
		ref[:11]:                              false,
		ref[1:12]:                             false,
		"step_01":                             false,
		"step_0123":                           false,
		"step_112":                            false,
		"step_99999999999999999999999999":     false,
		"read_012.txt":                        false, // no folder: nobody finds a blob by that
		"outputs/read_01":                     false,
		"":                                    false,
		strings.Repeat("/", 1000) + "\xff\x00" + ref[:10]: false,
	} {
		f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
		e := made(f)
		if e.Ref != ref {
			t.Fatal("another ref")
		}
		f.say(t, alice, "text "+text)
		f.now = late
		if done := f.mustCollect(t, alice, nil); done.Entries == 0 != keeps {
			t.Errorf("%q keeps the blob: %v, want %v", text, done.Entries == 0, keeps)
		} else if !keeps {
			f.checkCollected(t, e)
		}
	}
}

// Shared bytes go with their last entry.
func TestSharedBytesGoWithTheirLastEntry(t *testing.T) {
	for _, size := range []int{500, 2*blob.ChunkBytes + 5} {
		f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
		body := noise(7, size)
		first := f.mustStage(t, alice, body, blob.Entry{StepID: "step_001", Category: "shell"})
		second := f.mustStage(t, alice, body, blob.Entry{StepID: "step_002", Category: "read"})
		f.now = noon.Add(time.Hour) // shell has expired, read has not
		done := f.mustCollect(t, alice, nil)
		if done.Entries != 1 || done.Bytes != 0 || len(done.Refs) != 0 {
			t.Errorf("the first entry: %+v", done)
		}
		if _, err := f.Lookup(t.Context(), alice, first.Path); !errors.Is(err, blob.ErrCollected) {
			t.Errorf("the first entry: %v", err)
		}
		for _, name := range []string{second.Path, first.Ref, first.Ref[:12], "step_002"} {
			e := f.mustLookup(t, alice, name)
			if e.Path != second.Path {
				t.Errorf("%s leads to %s", name, e.Path)
			}
			if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, body) {
				t.Errorf("%s reads something else", name)
			}
		}
		f.now = late
		if done := f.mustCollect(t, alice, nil); done.Entries != 1 || done.Bytes != int64(size) || !slices.Equal(done.Refs, []string{first.Ref}) {
			t.Errorf("the second entry: %+v", done)
		}
		f.checkUsage(t, alice, 0, 0)
		// And the same content can come again.
		again := f.mustStage(t, alice, body, blob.Entry{StepID: "step_003", Category: "read"})
		if got := mustCollect(t, f.Read(t.Context(), alice, f.mustLookup(t, alice, again.Ref), 0, -1)); !bytes.Equal(got, body) {
			t.Error("stored again it reads something else")
		}
	}
}

// What begins to be needed between the first look and the commit, or while the commit
// is made, stays.
func TestAReferenceThatComesMeanwhile(t *testing.T) {
	eva := kv.Scope{Tenant: "t", Kind: kv.OwnerSpace, Owner: "eva"}
	for name, tt := range map[string]struct {
		inCommit  bool
		meanwhile func(f *fixture)
	}{
		"a promotion":             {false, func(f *fixture) { f.mustPromote(t, "step_001", blob.Promotion{Tier: blob.LongTerm}) }},
		"an archive":              {false, func(f *fixture) { f.mustArchive(t, "step_001", blob.Archiving{}) }},
		"a record":                {true, func(f *fixture) { f.say(t, alice, "read outputs/read_001.txt") }},
		"a shared one":            {true, func(f *fixture) { f.say(t, eva, "read outputs/read_001.txt") }},
		"a message":               {true, func(f *fixture) { f.sayIn(t, alice, "goes on", "read outputs/read_001.txt") }},
		"a session":               {true, func(f *fixture) { f.openSession(t, alice, "s") }},
		"a session that named it": {true, func(f *fixture) { f.openSession(t, alice, "over") }},
		"a use": {true, func(f *fixture) {
			if _, err := f.Use(t.Context(), alice, "step_001"); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{open: map[string]bool{"goes on": true}}
			engine := &hookedEngine{Engine: memkv.New(nil)}
			f := newFixtureOn(t, engine, blob.Options{Sessions: w, CollectEvery: -1})
			f.mustStage(t, alice, []byte("x"), blob.Entry{StepID: "step_001", SessionID: "s", Category: "read"})
			f.sayIn(t, alice, "over", "see step_001")
			f.now = late
			happened := false
			run := func() { happened = true; tt.meanwhile(f) }
			if tt.inCommit {
				engine.beforeCommit = run
			} else {
				w.afterLook = run
			}
			done, err := f.Collect(t.Context(), alice, nil)
			if err != nil || done.Entries != 0 || !happened {
				t.Errorf("%+v, %v", done, err)
			}
			f.mustLookup(t, alice, "step_001")
		})
	}
}

// hookedEngine runs something once before it makes a commit.
type hookedEngine struct {
	kv.Engine
	beforeCommit func()
}

func (h *hookedEngine) Commit(ctx context.Context, c kv.Commit) error {
	if run := h.beforeCommit; run != nil {
		h.beforeCommit = nil
		run()
	}
	return h.Engine.Commit(ctx, c)
}

// What is in use stays while its call runs, for hours if need be, and a little longer;
// another store on the same engine keeps to it.
func TestUsesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		f := newFixtureOn(t, engine, blob.Options{Sessions: &world{}, CollectEvery: -1})
		other := newFixtureOn(t, engine, blob.Options{Sessions: &world{}, CollectEvery: -1})
		f.mustStage(t, alice, []byte("x"), blob.Entry{StepID: "step_001", Category: "read"})
		pass := func(d time.Duration) {
			for ; d > 0; d -= time.Minute {
				f.now = f.now.Add(time.Minute)
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			other.now = f.now
		}
		f.now = noon.Add(24*time.Hour - 11*time.Minute) // it needs no lease yet
		ctx, end := context.WithCancel(t.Context())
		defer end()
		if _, err := f.Use(ctx, alice, "step_001"); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Hour)
		for _, wait := range []time.Duration{0, 4 * time.Minute} {
			pass(wait)
			if done := other.mustCollect(t, alice, nil); done.Entries != 0 || done.Kept.InUse != 1 {
				t.Errorf("%+v", done)
			}
			end()
		}
		pass(10 * time.Minute)
		if done := other.mustCollect(t, alice, nil); done.Entries != 1 {
			t.Errorf("after the use: %+v", done)
		}
		if _, err := f.Use(t.Context(), alice, "step_001"); !errors.Is(err, blob.ErrCollected) {
			t.Errorf("use what is gone: %v", err)
		}
		if len(f.keys(t, alice)['l']) != 0 {
			t.Error("the lease is left")
		}
	})
}

// Steps that read a blob back while garbage is collected never refer to one that
// is gone.
func TestUsesAgainstCollections(t *testing.T) {
	f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
	const blobs = 40
	for i := range blobs {
		f.mustStage(t, alice, noise(uint64(i), 100), blob.Entry{StepID: fmt.Sprintf("step_%03d", i+1), Category: "read"})
	}
	f.now = late
	var readers sync.WaitGroup
	for i := range blobs {
		readers.Go(func() {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			e, err := f.Use(ctx, alice, fmt.Sprintf("step_%03d", i+1))
			if errors.Is(err, blob.ErrNotFound) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			f.say(t, alice, "step "+e.Ref) // the step is recorded
			if _, err := f.Lookup(t.Context(), alice, e.Path); err != nil {
				t.Errorf("a recorded step refers to what is gone: %v", err)
			}
		})
	}
	f.mustCollect(t, alice, nil)
	readers.Wait()
	f.mustCollect(t, alice, nil)
	for e, err := range f.all(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		mustCollect(t, f.Read(t.Context(), alice, e, 0, -1))
	}
}

// all yields alice's entries.
func (f *fixture) all(ctx context.Context) iter.Seq2[blob.Entry, error] {
	return func(yield func(blob.Entry, error) bool) {
		page, err := f.List(ctx, alice, blob.Filter{}, "", 0)
		for _, e := range page.Entries {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(blob.Entry{}, err)
		}
	}
}

// A collection that is broken off, by an error or the death of the process, has
// done part of it; what it has not done is whole, and the next one does it.
func TestACollectionThatIsBrokenOff(t *testing.T) {
	for _, failAt := range []int{0, 1, 20, 37, 38} {
		engine := &failingAt{Engine: memkv.New(nil), left: 1 << 30}
		f := newFixtureOn(t, engine, blob.Options{Sessions: &world{}, CollectEvery: -1})
		const blobs = 600 // 38 commits of 16
		stored := make(map[string][]byte)
		for i := range blobs {
			body := noise(uint64(i), 50)
			e := f.mustStage(t, alice, body, blob.Entry{StepID: fmt.Sprintf("step_%03d", i+1), Category: "read"})
			stored[e.Path] = body
		}
		f.now = late
		engine.left = failAt
		first, err := f.Collect(t.Context(), alice, nil)
		if failed := failAt < 38; failed != errors.Is(err, kv.ErrFull) {
			t.Fatalf("failing at %d: %v", failAt, err)
		}
		left := 0
		for e, err := range f.all(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			left++
			if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, stored[e.Path]) {
				t.Errorf("%s came back different", e.Path)
			}
		}
		f.checkUsage(t, alice, int64(left), int64(left*50))
		engine.left = 1 << 30
		second := f.mustCollect(t, alice, nil)
		if first.Entries+second.Entries != blobs || second.Entries != int64(left) || second.More {
			t.Errorf("failing at %d: %d and %d deleted, %d were left", failAt, first.Entries, second.Entries, left)
		}
		f.checkUsage(t, alice, 0, 0)
	}
}

// failingAt is an engine whose commits fail after so many.
type failingAt struct {
	kv.Engine
	left int
}

func (f *failingAt) Commit(ctx context.Context, c kv.Commit) error {
	if f.left--; f.left < 0 {
		return kv.ErrFull
	}
	return f.Engine.Commit(ctx, c)
}

// One call deletes so much and says that there is more.
func TestManyToCollect(t *testing.T) {
	f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
	const blobs = blob.MaxCollected + 300
	stored, err := f.Add(t.Context(), alice, []byte("all the same"))
	if err != nil {
		t.Fatal(err)
	}
	err = f.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{f.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for i := range blobs {
			if _, err := f.Stage(ctx, tx, alice, stored, blob.Entry{Path: fmt.Sprintf("p/%05d", i)}); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.now = late
	first := f.mustCollect(t, alice, nil)
	if !first.More || first.Entries < blob.MaxCollected || first.Entries == blobs || len(first.Refs) != 0 {
		t.Errorf("first: %+v", first)
	}
	second := f.mustCollect(t, alice, nil)
	if second.More || first.Entries+second.Entries != blobs || len(second.Refs) != 1 {
		t.Errorf("second: %+v", second)
	}
}

func TestCollectingTwiceWithOneRequest(t *testing.T) {
	f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
	for i := range 3 {
		f.mustStage(t, alice, noise(uint64(i), 50), blob.Entry{StepID: fmt.Sprintf("step_%03d", i+1), Category: []string{"read", "report", "read"}[i]})
	}
	f.now = late
	opts := &blob.CollectOptions{RequestID: "r1", Orphans: true}
	first := f.mustCollect(t, alice, opts)
	if first.Entries != 2 || len(first.Refs) != 2 {
		t.Errorf("%+v", first)
	}
	if diff := cmp.Diff(first, f.mustCollect(t, alice, opts)); diff != "" {
		t.Error(diff)
	}
	if _, err := f.Collect(t.Context(), alice, &blob.CollectOptions{RequestID: "r1", DryRun: true}); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("another request: %v", err)
	}
}

// A store that knows of no sessions keeps what steps have made.
func TestWithoutSessions(t *testing.T) {
	f := newMemory(t)
	f.mustStage(t, alice, []byte("a"), blob.Entry{StepID: "step_001", Category: "read"})
	f.mustStage(t, alice, []byte("b"), blob.Entry{Path: "b", Category: "read"})
	f.now = late
	if done := f.mustCollect(t, alice, nil); done.Entries != 1 || done.Kept.Referenced != 1 {
		t.Errorf("%+v", done)
	}
	f.Nudge(alice) // nothing happens
}
