package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// Pieces of uploads that never ended go after a day, those of blobs and of
// uploads under way never.
func TestOrphans(t *testing.T) {
	f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
	shared := noise(1, blob.ChunkBytes)
	kept := f.mustStage(t, alice, slices.Concat(shared, noise(2, 10)), blob.Entry{Path: "kept", Category: "report"})
	given := f.Create(t.Context(), alice)
	if _, err := given.Write(slices.Concat(shared, noise(3, 2*blob.ChunkBytes+1))); err != nil {
		t.Fatal(err)
	}
	given.Abort()
	if n := len(f.keys(t, alice)['c']); n != 4 {
		t.Fatalf("%d chunks", n)
	}
	sweep := &blob.CollectOptions{Orphans: true}
	for after, want := range map[time.Duration]int64{0: 0, 23 * time.Hour: 0} {
		f.now = noon.Add(after)
		if done := f.mustCollect(t, alice, sweep); done.Orphans != want {
			t.Errorf("after %v: %+v", after, done)
		}
	}
	f.now = noon.Add(24 * time.Hour)
	// An upload under way that meets an old piece makes it new.
	late := f.Create(t.Context(), alice)
	if _, err := late.Write(slices.Concat(noise(3, blob.ChunkBytes), noise(4, 1))); err != nil {
		t.Fatal(err)
	}
	if done := f.mustCollect(t, alice, &blob.CollectOptions{Orphans: true, DryRun: true}); done.Orphans != 1 || len(f.keys(t, alice)['c']) != 4 {
		t.Errorf("dry run: %+v", done)
	}
	if done := f.mustCollect(t, alice, sweep); done.Orphans != 1 || done.OrphanBytes < blob.ChunkBytes {
		t.Errorf("after a day: %+v", done)
	}
	stored, err := late.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.stage(t.Context(), alice, stored, blob.Entry{Path: "late"})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, slices.Concat(noise(3, blob.ChunkBytes), noise(4, 1))) {
		t.Error("the late upload came back different")
	}
	if got := mustCollect(t, f.Read(t.Context(), alice, kept, 0, -1)); !bytes.Equal(got, slices.Concat(shared, noise(2, 10))) {
		t.Error("the kept blob came back different")
	}
}

// Before an owner is refused for lack of room its garbage goes.
func TestQuotaCollectsFirst(t *testing.T) {
	for _, size := range []int{1000, blob.ChunkBytes + 1} {
		f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1, MaxOwnerBytes: int64(size)})
		first := f.mustStage(t, alice, noise(1, size), blob.Entry{StepID: "step_001", Category: "read"})
		f.now = late
		second := f.mustStage(t, alice, noise(2, size), blob.Entry{StepID: "step_002", Category: "read"})
		if _, err := f.Lookup(t.Context(), alice, first.Path); !errors.Is(err, blob.ErrCollected) {
			t.Errorf("size %d: %v", size, err)
		}
		if got := mustCollect(t, f.Read(t.Context(), alice, second, 0, -1)); !bytes.Equal(got, noise(2, size)) {
			t.Errorf("size %d came back different", size)
		}
		f.checkUsage(t, alice, 1, int64(size))
	}
}

// Garbage goes by itself at the interval, when a session begins, and
// when an owner has much; orphans once a day.
func TestCollectingInTheBackground(t *testing.T) {
	begin := func(t *testing.T, opts blob.Options) (*fixture, blob.Entry) {
		// Its clock stands, and is a year ahead of what it stores.
		opts.Sessions, opts.Now = &world{}, func() time.Time { return late }
		f := newFixtureWith(t, opts)
		e := f.mustStage(t, alice, noise(1, 1000), blob.Entry{StepID: "step_001", Category: "shell", Time: noon})
		synctest.Wait()
		return f, e
	}
	goes := func(t *testing.T, f *fixture, e blob.Entry, gone bool) {
		t.Helper()
		synctest.Wait()
		if _, err := f.Lookup(t.Context(), alice, e.Path); errors.Is(err, blob.ErrCollected) != gone {
			t.Errorf("gone %v: %v", !gone, err)
		}
	}
	t.Run("interval", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, e := begin(t, blob.Options{})
			time.Sleep(10*time.Minute - time.Millisecond)
			goes(t, f, e, false)
			time.Sleep(time.Millisecond)
			goes(t, f, e, true)
		})
	})
	t.Run("nudge", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, e := begin(t, blob.Options{})
			f.Nudge(alice)
			goes(t, f, e, true)
		})
	})
	t.Run("much", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, e := begin(t, blob.Options{CollectBytes: 2000})
			if _, err := f.Add(t.Context(), alice, noise(2, 1000)); err != nil {
				t.Fatal(err)
			}
			goes(t, f, e, false) // exactly as much
			if _, err := f.Add(t.Context(), alice, noise(2, 1001)); err != nil {
				t.Fatal(err)
			}
			goes(t, f, e, true)
		})
	})
	t.Run("off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, e := begin(t, blob.Options{CollectEvery: -1})
			f.Nudge(alice)
			time.Sleep(time.Hour)
			goes(t, f, e, false)
		})
	})
	t.Run("orphans", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// Its clock is that of the bubble.
			f := newFixtureWith(t, blob.Options{Sessions: &world{}, Now: time.Now})
			u := f.Create(t.Context(), bob)
			if _, err := u.Write(noise(3, blob.ChunkBytes+1)); err != nil {
				t.Fatal(err)
			}
			u.Abort()
			for _, wait := range []time.Duration{10 * time.Minute, 23 * time.Hour} {
				time.Sleep(wait)
				synctest.Wait()
				if len(f.keys(t, bob)['c']) != 1 {
					t.Fatal("an orphan is gone too early")
				}
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if len(f.keys(t, bob)['c']) != 0 {
				t.Error("an orphan stays")
			}
		})
	})
}

// Whatever happens in whatever order, a blob that must stay stays byte for
// byte, and the count is right.
func TestRandomLives(t *testing.T) {
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 5))
	w := &world{open: map[string]bool{}}
	f := newFixtureWith(t, blob.Options{Sessions: w, CollectEvery: -1})
	bodies := make(map[string][]byte) // by home path
	named := make(map[string]bool)
	for i := range rounds(600, 150) {
		f.now = f.now.Add(time.Duration(random.IntN(180)) * time.Minute)
		session := fmt.Sprint("s", random.IntN(5))
		switch random.IntN(8) {
		case 0, 1, 2:
			body := noise(random.Uint64N(20), 100+random.IntN(3))
			if random.IntN(10) == 0 {
				body = noise(random.Uint64N(3), blob.ChunkBytes+random.IntN(2))
			}
			e := f.mustStage(t, alice, body, blob.Entry{
				StepID: fmt.Sprintf("step_%03d", i+1), SessionID: session, Category: []string{"shell", "read", "note"}[random.IntN(3)],
			})
			bodies[e.Home()] = body
		case 3:
			w.open[session] = !w.open[session]
		case 4:
			f.mustCollect(t, alice, &blob.CollectOptions{Orphans: random.IntN(2) == 0})
		default:
			f.live(t, random, named)
		}
		if i%10 == 0 {
			f.checkLives(t, bodies, named)
		}
	}
}

// live does something with one of alice's blobs.
func (f *fixture) live(t *testing.T, random *rand.Rand, named map[string]bool) {
	page, err := f.List(t.Context(), alice, blob.Filter{}, "", 0)
	if err != nil || len(page.Entries) == 0 {
		return
	}
	e := page.Entries[random.IntN(len(page.Entries))]
	switch random.IntN(6) {
	case 0:
		f.mustPromote(t, e.Path, blob.Promotion{Tier: blob.ShortTerm, Category: "kept"})
	case 1:
		f.mustPromote(t, e.Path, blob.Promotion{Tier: blob.LongTerm, Category: "kept"})
	case 2:
		f.mustArchive(t, e.Path, blob.Archiving{})
	case 3:
		name := []string{e.Path, e.Home(), e.Ref[:12], e.StepID}[random.IntN(4)]
		f.say(t, alice, "text of "+name)
		named[e.Ref] = true
	}
}

// checkLives checks that everything that must stay is there.
func (f *fixture) checkLives(t *testing.T, bodies map[string][]byte, named map[string]bool) {
	t.Helper()
	there := make(map[string]bool)
	refs := make(map[string]int64)
	for e, err := range f.all(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		there[e.Home()] = true
		refs[e.Ref] = e.Size
		if got := mustCollect(t, f.Read(t.Context(), alice, f.mustLookup(t, alice, e.Home()), 0, -1)); !bytes.Equal(got, bodies[e.Home()]) {
			t.Fatalf("%s came back different", e.Path)
		}
	}
	for home := range bodies {
		if _, err := f.Lookup(t.Context(), alice, home); there[home] != (err == nil) || err != nil && !errors.Is(err, blob.ErrCollected) {
			t.Fatalf("%s: listed %v, %v", home, there[home], err)
		}
	}
	for ref := range named {
		if _, stays := refs[ref]; !stays {
			t.Fatalf("%s is named and gone", ref)
		}
	}
	var size int64
	for _, n := range refs {
		size += n
	}
	f.checkUsage(t, alice, int64(len(refs)), size)
}

// A piece that an upload writes again while it is being swept stays: the upload
// relies on it from then on.
func TestOrphanWrittenAgainWhileSwept(t *testing.T) {
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	t.Cleanup(func() { engine.Close() })
	f := newFixture(t, engine)
	data := noise(1, blob.ChunkBytes+1)
	given := f.Create(t.Context(), alice)
	if _, err := given.Write(data); err != nil {
		t.Fatal(err)
	}
	given.Abort()
	f.now = noon.Add(24 * time.Hour)
	upload := f.Create(t.Context(), alice)
	var swept atomic.Bool
	engine.Replan(kvtest.FailurePlan{Before: func(kv.Engine, kv.Commit) {
		if swept.Swap(true) {
			return
		}
		// The sweep has looked at the old piece and is about to delete it.
		if _, err := upload.Write(data); err != nil {
			t.Error(err)
		}
	}})
	if done := f.mustCollect(t, alice, &blob.CollectOptions{Orphans: true}); done.Orphans != 0 {
		t.Errorf("%d pieces were swept, want none", done.Orphans)
	}
	engine.Replan(kvtest.FailurePlan{})
	stored, err := upload.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.stage(t.Context(), alice, stored, blob.Entry{Path: "late"})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); !bytes.Equal(got, data) {
		t.Error("the upload came back different")
	}
}
