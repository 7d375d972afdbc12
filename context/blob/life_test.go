package blob_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// newFixtureWith is newMemory with other options.
func newFixtureWith(tb testing.TB, opts blob.Options) *fixture {
	tb.Helper()
	engine := memkv.New(nil)
	tb.Cleanup(func() { engine.Close() })
	return newFixtureOn(tb, engine, opts)
}

func newFixtureOn(tb testing.TB, engine kv.Engine, opts blob.Options) *fixture {
	tb.Helper()
	f := &fixture{engine: engine, writer: kv.NewWriter(engine, nil), now: noon}
	if opts.Now == nil {
		opts.Now = func() time.Time { return f.now }
	}
	f.Store = blob.New(engine, f.writer, &opts)
	tb.Cleanup(func() {
		f.Close()
		f.writer.Close()
	})
	return f
}

// P15: each category has its time, and from then on the blob is marked, which
// deletes nothing.
func TestExpiryByCategory(t *testing.T) {
	never := time.Duration(0)
	tests := map[string]time.Duration{
		"shell": 30 * time.Minute, "search": 6 * time.Hour, "page": 6 * time.Hour,
		"read": 24 * time.Hour, "list": 24 * time.Hour, "tool": 24 * time.Hour, "another": 24 * time.Hour,
		"note": 7 * 24 * time.Hour, "report": never,
	}
	for category, ttl := range tests {
		t.Run(category, func(t *testing.T) {
			f := newMemory(t)
			e := f.mustStage(t, alice, []byte(category), blob.Entry{StepID: "step_001", Category: category})
			at, ever := e.ExpireTime()
			if ever != (ttl != never) || ever && !at.Equal(noon.Add(ttl)) {
				t.Fatalf("expires %v at %v, want after %v", ever, at, ttl)
			}
			if ttl == never {
				ttl = 100 * 365 * 24 * time.Hour
			}
			for after, want := range map[time.Duration]bool{ttl - 1: false, ttl: ever, ttl + 1: ever} {
				f.now = noon.Add(after)
				if got := f.mustLookup(t, alice, e.Path); got.Expired != want {
					t.Errorf("after %v: expired %v", after, got.Expired)
				}
			}
			if got := mustCollect(t, f.Read(t.Context(), alice, e, 0, -1)); string(got) != category {
				t.Errorf("an expired blob reads %q", got)
			}
		})
	}
}

// The time of a category is a setting, fixed when the blob is made.
func TestExpiryIsASetting(t *testing.T) {
	engine := memkv.New(nil)
	t.Cleanup(func() { engine.Close() })
	f := newFixtureOn(t, engine, blob.Options{TTL: map[string]time.Duration{"shell": time.Hour, "read": -1}})
	shell := f.mustStage(t, alice, []byte("a"), blob.Entry{StepID: "step_001", Category: "shell"})
	read := f.mustStage(t, alice, []byte("b"), blob.Entry{StepID: "step_002", Category: "read"})
	list := f.mustStage(t, alice, []byte("c"), blob.Entry{StepID: "step_003", Category: "list"})
	if shell.TTL != time.Hour || read.TTL != 0 || list.TTL != 24*time.Hour {
		t.Errorf("TTLs %v, %v, %v", shell.TTL, read.TTL, list.TTL)
	}
	later := newFixtureOn(t, engine, blob.Options{TTL: map[string]time.Duration{"shell": time.Minute}})
	if got := later.mustLookup(t, alice, shell.Path); got.TTL != time.Hour {
		t.Errorf("TTL %v after the setting has changed", got.TTL)
	}
}

// P11: what is known of a blob is listed, page by page, and survives a restart.
func TestListing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var all []blob.Entry
	open(t, dir, func(f *fixture) {
		for i, body := range []string{"text", `{"a":1}`, "\x89PNG\r\n\x1a\n\x00", "more"} {
			all = append(all, f.mustStage(t, alice, []byte(body), blob.Entry{
				StepID: fmt.Sprintf("step_%03d", i+1), SessionID: fmt.Sprint("s", i%2), TaskID: "t1",
				Category: []string{"read", "search", "page", "shell"}[i],
			}))
		}
		f.mustStage(t, bob, []byte("bob's"), blob.Entry{StepID: "step_001", Category: "read"})
		var err error
		if all[0], err = f.Promote(t.Context(), alice, "step_001", blob.Promotion{Tier: blob.LongTerm, Important: true}); err != nil {
			t.Fatal(err)
		}
		if all[1], err = f.Archive(t.Context(), alice, "step_002", blob.Archiving{Category: "datasets", Tags: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	})
	open(t, dir, func(f *fixture) {
		sorted := slices.SortedFunc(slices.Values(all), func(a, b blob.Entry) int { return strings.Compare(a.Home(), b.Home()) })
		for size := 1; size <= 5; size++ {
			got := f.mustList(t, alice, blob.Filter{}, size)
			if diff := cmp.Diff(sorted, got); diff != "" {
				t.Errorf("pages of %d: %s", size, diff)
			}
		}
		for name, tt := range map[string]struct {
			filter blob.Filter
			want   []blob.Entry
		}{
			"session":  {blob.Filter{SessionID: "s1"}, []blob.Entry{all[1], all[3]}},
			"step":     {blob.Filter{StepID: "step_003"}, all[2:3]},
			"kind":     {blob.Filter{Kind: "image"}, all[2:3]},
			"category": {blob.Filter{Category: "shell"}, all[3:]},
			"tier":     {blob.Filter{OneTier: true, Tier: blob.LongTerm}, all[:1]},
			"archived": {blob.Filter{Archived: true}, all[1:2]},
			"several":  {blob.Filter{SessionID: "s1", Kind: "image"}, nil},
		} {
			got := f.mustList(t, alice, tt.filter, 1)
			slices.SortFunc(got, func(a, b blob.Entry) int { return strings.Compare(a.StepID, b.StepID) })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
	if image := all[2]; image.Kind != blob.KindImage || image.MediaType != "image/png" || image.TaskID != "t1" {
		t.Errorf("image %+v", image)
	}
}

func (f *fixture) mustList(tb testing.TB, scope kv.Scope, filter blob.Filter, size int) []blob.Entry {
	tb.Helper()
	var all []blob.Entry
	for after, more := "", true; more; {
		page, err := f.List(tb.Context(), scope, filter, after, size)
		if err != nil {
			tb.Fatal(err)
		}
		if len(page.Entries) > size {
			tb.Fatalf("a page of %d", len(page.Entries))
		}
		all = append(all, page.Entries...)
		after, more = page.Next, page.Next != ""
	}
	return all
}

// P14: a promoted blob has a new path, and the old one still leads to it; a
// long-term one never expires.
func TestPromotion(t *testing.T) {
	f := newMemory(t)
	body := []byte("what was found out")
	made := f.mustStage(t, alice, body, blob.Entry{StepID: "step_001", Category: "read"})
	f.now = noon.Add(time.Hour)
	short, err := f.Promote(t.Context(), alice, "step_001", blob.Promotion{Tier: blob.ShortTerm})
	if err != nil {
		t.Fatal(err)
	}
	if short.Path != "persistent/alice/read/read_001.txt" || !slices.Equal(short.Aliases, []string{made.Path}) {
		t.Errorf("path %s, aliases %v", short.Path, short.Aliases)
	}
	if at, ever := short.ExpireTime(); !ever || !at.Equal(f.now.Add(7*24*time.Hour)) || !short.PromoteTime.Equal(f.now) {
		t.Errorf("a short-term blob expires %v at %v", ever, at)
	}
	long, err := f.Promote(t.Context(), alice, short.Path, blob.Promotion{Tier: blob.LongTerm, Category: "reports", Name: "end.md"})
	if err != nil {
		t.Fatal(err)
	}
	if long.Path != "persistent/alice/reports/end.md" || len(long.Aliases) != 2 {
		t.Errorf("path %s, aliases %v", long.Path, long.Aliases)
	}
	if _, ever := long.ExpireTime(); ever {
		t.Error("a long-term blob expires")
	}
	lowered, err := f.Promote(t.Context(), alice, long.Path, blob.Promotion{Tier: blob.ShortTerm, Category: "reports", Name: "end.md"})
	if err != nil || lowered.Tier != blob.LongTerm {
		t.Errorf("lowered to %v, %v", lowered.Tier, err)
	}
	f.now = noon.Add(1000 * 24 * time.Hour)
	for _, name := range []string{made.Path, "outputs/read_001.txt", short.Path, long.Path, "step_001", "step_001.txt", made.Ref, made.Ref[:12]} {
		got := f.mustLookup(t, alice, name)
		if diff := cmp.Diff(long, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if content := mustCollect(t, f.Read(t.Context(), alice, got, 0, -1)); string(content) != string(body) {
			t.Errorf("%s reads %q", name, content)
		}
	}
}

// A name that is taken gets a number, of whatever sort the other one is.
func TestPromotedNamesDoNotClash(t *testing.T) {
	f := newMemory(t)
	for i := range 3 {
		f.mustStage(t, alice, fmt.Append(nil, i), blob.Entry{StepID: fmt.Sprintf("step_%03d", i+1), Category: "read"})
	}
	var paths []string
	for i := range 3 {
		e, err := f.Promote(t.Context(), alice, fmt.Sprintf("step_%03d", i+1), blob.Promotion{Tier: blob.ShortTerm, Category: "c", Name: "n.txt"})
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, e.Path)
	}
	const folder = "persistent/alice/c/"
	if diff := cmp.Diff([]string{folder + "n.txt", folder + "n_2.txt", folder + "n_3.txt"}, paths); diff != "" {
		t.Error(diff)
	}
	e := f.mustStage(t, alice, []byte("x"), blob.Entry{Path: folder + "n.txt"})
	if e.Path != folder+"n_4.txt" {
		t.Errorf("an entry took %s", e.Path)
	}
}

func TestBadPromotions(t *testing.T) {
	f := newMemory(t)
	f.mustStage(t, alice, []byte("a"), blob.Entry{StepID: "step_001", Category: "read"})
	before := f.keys(t, alice)
	for name, p := range map[string]blob.Promotion{
		"no tier":             {},
		"working":             {Tier: blob.Working},
		"unknown tier":        {Tier: 9},
		"slash in category":   {Tier: blob.LongTerm, Category: "a/b"},
		"dots as category":    {Tier: blob.LongTerm, Category: ".."},
		"dots as name":        {Tier: blob.LongTerm, Name: ".."},
		"line feed in name":   {Tier: blob.LongTerm, Name: "a\nb"},
		"name is not UTF-8":   {Tier: blob.LongTerm, Name: "\xff"},
		"long name":           {Tier: blob.LongTerm, Name: strings.Repeat("n", 129)},
		"long category":       {Tier: blob.LongTerm, Category: strings.Repeat("c", 65)},
		"backslash in a name": {Tier: blob.LongTerm, Name: `a\b`},
	} {
		if _, err := f.Promote(t.Context(), alice, "step_001", p); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := f.Promote(t.Context(), alice, "step_002", blob.Promotion{Tier: blob.LongTerm}); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("no such blob: %v", err)
	}
	if _, err := f.Promote(t.Context(), bob, "step_001", blob.Promotion{Tier: blob.LongTerm}); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("somebody else's blob: %v", err)
	}
	if diff := cmp.Diff(before, f.keys(t, alice)); diff != "" {
		t.Errorf("something was written: %s", diff)
	}
}

// An owner whose name looks like a path stays within the folder.
func TestOwnersThatLookLikePaths(t *testing.T) {
	for owner, want := range map[string]string{"a/b": "a_b", "..": "owner", "../x": ".._x", "línea 1": "línea 1", "x\n": "x_"} {
		f := newMemory(t)
		scope := kv.AgentScope("t", owner)
		f.mustStage(t, scope, []byte("a"), blob.Entry{StepID: "step_001", Category: "read"})
		e, err := f.Promote(t.Context(), scope, "step_001", blob.Promotion{Tier: blob.LongTerm})
		if err != nil || e.Path != "persistent/"+want+"/read/read_001.txt" {
			t.Errorf("%q: %s, %v", owner, e.Path, err)
		}
		if got := f.mustLookup(t, scope, e.Path); got.Path != e.Path {
			t.Errorf("%q: found %s", owner, got.Path)
		}
	}
}

func TestABlobHasOnlySoManyPaths(t *testing.T) {
	f := newMemory(t)
	f.mustStage(t, alice, []byte("a"), blob.Entry{StepID: "step_001", Category: "read"})
	var err error
	moves := 0
	for err == nil {
		_, err = f.Promote(t.Context(), alice, "step_001", blob.Promotion{Tier: blob.LongTerm, Category: fmt.Sprint("c", moves)})
		moves++
	}
	if !errors.Is(err, blob.ErrInvalid) || moves != blob.MaxAliases+1 {
		t.Errorf("after %d moves: %v", moves, err)
	}
	if e := f.mustLookup(t, alice, "step_001"); e.Path != fmt.Sprintf("persistent/alice/c%d/read_001.txt", blob.MaxAliases-1) {
		t.Errorf("it is %s", e.Path)
	}
}

func TestPromotingTwiceWithOneRequest(t *testing.T) {
	f := newMemory(t)
	f.mustStage(t, alice, []byte("a"), blob.Entry{StepID: "step_001", Category: "read"})
	p := blob.Promotion{Tier: blob.ShortTerm, RequestID: "r1"}
	first, err := f.Promote(t.Context(), alice, "step_001", p)
	if err != nil {
		t.Fatal(err)
	}
	f.now = noon.Add(time.Hour)
	again, err := f.Promote(t.Context(), alice, "step_001", p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	p.Tier = blob.LongTerm
	if _, err := f.Promote(t.Context(), alice, "step_001", p); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("another promotion: %v", err)
	}
}

// An archived blob lies in its category, has its tags, and stays.
//
// P17
func TestArchiving(t *testing.T) {
	f := newMemory(t)
	made := f.mustStage(t, alice, []byte("data"), blob.Entry{StepID: "step_001", Category: "shell", Kind: "log"})
	e, err := f.Archive(t.Context(), alice, made.Ref, blob.Archiving{Tags: []string{"b", "a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := made
	want.Path, want.Aliases = "archive/general/shell_001.log", []string{made.Path}
	want.Archive = blob.Archived{Category: "general", Tags: []string{"b", "a"}, Time: noon}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	again, err := f.Archive(t.Context(), alice, "step_001", blob.Archiving{Category: "reports", Name: "r.log"})
	if err != nil || again.Path != "archive/reports/r.log" || again.Archive.Tags != nil {
		t.Errorf("moved to %s with %v, %v", again.Path, again.Archive.Tags, err)
	}
	for _, name := range []string{made.Path, "archive/general/shell_001.log", again.Path} {
		if got := f.mustLookup(t, alice, name); got.Path != again.Path {
			t.Errorf("%s leads to %s", name, got.Path)
		}
	}
	for name, a := range map[string]blob.Archiving{
		"category": {Category: "other"},
		"tags":     {Tags: slices.Repeat([]string{"x"}, blob.MaxTags+1)},
		"tag":      {Tags: []string{""}},
		"long tag": {Tags: []string{strings.Repeat("t", blob.MaxTagBytes+1)}},
		"name":     {Name: "a/b"},
	} {
		if _, err := f.Archive(t.Context(), alice, "step_001", a); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Equal content counts once, and what does not fit changes nothing.
func TestQuota(t *testing.T) {
	for _, size := range []int{1000, blob.ChunkBytes + 1000} {
		f := newFixtureWith(t, blob.Options{MaxOwnerBytes: int64(2 * size)})
		step := blob.Entry{StepID: "step_001", Category: "read"}
		f.mustStage(t, alice, noise(0, size), step)
		f.mustStage(t, alice, noise(0, size), step) // the same again
		f.mustStage(t, alice, noise(1, size), step) // exactly full
		f.checkUsage(t, alice, 2, int64(2*size))
		before := f.keys(t, alice)
		stored, err := f.Add(t.Context(), alice, noise(2, size))
		if err == nil {
			_, err = f.stage(t.Context(), alice, stored, step)
		}
		var quota *blob.QuotaError
		if !errors.As(err, &quota) || !errors.Is(err, blob.ErrQuota) || quota.Max != int64(2*size) || quota.Used != int64(2*size) {
			t.Fatalf("size %d: %v", size, err)
		}
		if !reflect.DeepEqual(before, f.keys(t, alice)) {
			t.Errorf("size %d: something was written", size)
		}
		f.mustStage(t, bob, noise(2, size), step) // his is another quota
		if size < blob.ChunkBytes {
			f.mustStage(t, alice, noise(0, size), step) // what is there needs no room
		}
	}
}

func (f *fixture) checkUsage(tb testing.TB, scope kv.Scope, blobs, size int64) {
	tb.Helper()
	u, err := f.Usage(tb.Context(), scope)
	if err != nil {
		tb.Fatal(err)
	}
	if u.Blobs != blobs || u.Bytes != size {
		tb.Errorf("usage %+v, want %d blobs of %d bytes", u, blobs, size)
	}
}

// A store from before usages were kept counts them, and goes on from there.
func TestUsageOfAnOlderStore(t *testing.T) {
	f := newMemory(t)
	for i := range 3 {
		f.mustStage(t, alice, noise(uint64(i/2), 100+i/2), blob.Entry{StepID: "step_001", Category: "read"})
	}
	forget := f.keys(t, alice)['u'][0].Key
	f.overwrite(t, alice, func(tx *kv.Tx) { tx.Delete(kv.Blobs, forget) })
	f.checkUsage(t, alice, 2, 201)
	f.mustStage(t, alice, []byte("new"), blob.Entry{StepID: "step_002", Category: "read"})
	f.checkUsage(t, alice, 3, 204)
	if len(f.keys(t, alice)['u']) != 1 {
		t.Error("the count is not kept")
	}
}
