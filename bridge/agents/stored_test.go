package agents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// withStore runs work with a directory on the store in dir. The store is closed
// before the directory, so that what was not stored by then never is, as after a
// kill.
func withStore(tb testing.TB, dir string, work func(*agents.Directory)) {
	tb.Helper()
	engine, err := rockskv.Open(dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	writer := kv.NewWriter(engine, nil)
	d := agents.New(engine, writer, nil)
	work(d)
	if err := errors.Join(writer.Close(), engine.Close(), d.Close()); err != nil {
		tb.Error(err)
	}
}

func TestStateOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), 200<<10) // several keys
	states := map[string]agents.State{
		"small": {Persistent: []byte{0, 1}, Ephemeral: []byte("e"), UpdatedMillis: -5, Metadata: map[string]string{"k": "v", "": ""}},
		"large": {Persistent: large, UpdatedMillis: 1},
	}
	withStore(t, dir, func(d *agents.Directory) {
		for id, s := range states {
			if err := d.SaveState(t.Context(), tenant, id, s); err != nil {
				t.Fatal(err)
			}
		}
	})
	withStore(t, dir, func(d *agents.Directory) {
		for id, want := range states {
			got, err := d.LoadState(t.Context(), tenant, id)
			if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%.500s", id, err, diff)
			}
		}
		shorter := agents.State{Ephemeral: []byte("short"), UpdatedMillis: 2}
		if err := d.SaveState(t.Context(), tenant, "large", shorter); err != nil {
			t.Fatal(err)
		}
		if got, err := d.LoadState(t.Context(), tenant, "large"); err != nil || !cmp.Equal(got, shorter) {
			t.Errorf("shorter: %+v, %v", got, err)
		}
		if found, err := d.Delete(t.Context(), tenant, "small"); !found || err != nil {
			t.Errorf("delete: %v, %v", found, err)
		}
	})
	withStore(t, dir, func(d *agents.Directory) {
		if _, err := d.LoadState(t.Context(), tenant, "small"); !errors.Is(err, agents.ErrNotFound) {
			t.Errorf("deleted: %v", err)
		}
		if found, err := d.Delete(t.Context(), tenant, "small"); found || err != nil {
			t.Errorf("deleted again: %v, %v", found, err)
		}
	})
}

// A state is synced before it is acknowledged, and gets a time if it has none.
func TestSaveState(t *testing.T) {
	engine := &countingEngine{Engine: memkv.New(nil)}
	d := MustDirectory(t, engine, &agents.Options{Now: func() time.Time { return time.UnixMilli(1234) }})
	if err := d.SaveState(t.Context(), tenant, "one", agents.State{}); err != nil {
		t.Fatal(err)
	}
	if lazy, synced := engine.commits(); lazy != 0 || synced != 1 {
		t.Errorf("%d lazy commits, %d synced", lazy, synced)
	}
	if got, err := d.LoadState(t.Context(), tenant, "one"); err != nil || !cmp.Equal(got, agents.State{UpdatedMillis: 1234}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An id that no scope can have has its state all the same, and shares it with
// nobody.
func TestStateOfAnyID(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	ids := []string{"\x00", "a\x00", strings.Repeat("x", 257), strings.Repeat("x", 258), "\xff", "state/"}
	for i, id := range ids {
		if err := d.SaveState(t.Context(), tenant, id, agents.State{Persistent: []byte{byte(i)}, UpdatedMillis: 1}); err != nil {
			t.Fatalf("id %.10q: %v", id, err)
		}
	}
	for i, id := range ids {
		if s, err := d.LoadState(t.Context(), tenant, id); err != nil || !bytes.Equal(s.Persistent, []byte{byte(i)}) {
			t.Errorf("id %.10q: %+v, %v", id, s, err)
		}
		if found, err := d.Delete(t.Context(), tenant, id); !found || err != nil {
			t.Errorf("delete %.10q: %v, %v", id, found, err)
		}
		if _, err := d.LoadState(t.Context(), tenant, id); !errors.Is(err, agents.ErrNotFound) {
			t.Errorf("id %.10q: %v", id, err)
		}
	}
}

func TestStateRefuses(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	for _, of := range [][2]string{{tenant, ""}, {"", "one"}, {"t\x00", "one"}} {
		saving := d.SaveState(t.Context(), of[0], of[1], agents.State{})
		_, loading := d.LoadState(t.Context(), of[0], of[1])
		if !errors.Is(saving, agents.ErrInvalid) || !errors.Is(loading, agents.ErrInvalid) {
			t.Errorf("%q: %v, %v", of, saving, loading)
		}
	}
	if found, err := d.Delete(t.Context(), tenant, ""); found || err != nil {
		t.Errorf("delete: %v, %v", found, err)
	}
	if err := d.SaveState(t.Context(), tenant, "one", agents.State{Persistent: make([]byte, agents.MaxStateBytes)}); !errors.Is(err, agents.ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
	if err := d.SaveState(t.Context(), tenant, "one", agents.State{Persistent: make([]byte, agents.MaxStateBytes-100)}); err != nil {
		t.Errorf("largest: %v", err)
	}
	if s, err := d.LoadState(t.Context(), tenant, "one"); err != nil || len(s.Persistent) != agents.MaxStateBytes-100 {
		t.Errorf("largest: %d bytes, %v", len(s.Persistent), err)
	}
}

// Gaps outlive the process, those of streams that were open as ended with their
// last mark and without ids, and are taken once.
func TestGapsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	withStore(t, dir, func(d *agents.Directory) {
		for _, id := range []string{"open", "broken", "left", "taken"} {
			link := MustOpen(t, d, id)
			mark(d, link, "a", 1, id)
			switch id {
			case "broken", "taken":
				end(t, d, link, true)
			case "left":
				end(t, d, link, false)
			}
		}
		MustTake(t, d, "taken")
	})
	var opened *agents.Link
	withStore(t, dir, func(d *agents.Directory) {
		noGap(t, d, "taken")
		noGap(t, d, "left")
		for _, id := range []string{"open", "broken"} {
			g := MustTake(t, d, id)
			want := map[string]string{"open": "map[a:1] []", "broken": "map[a:1] [broken]"}[id]
			if delivered(g) != want || time.Since(g.Ended) > time.Minute {
				t.Errorf("%s: %+v", id, g)
			}
		}
		opened = MustOpen(t, d, "open")
		mark(d, opened, "a", 2, "again")
		end(t, d, opened, true)
	})
	withStore(t, dir, func(d *agents.Directory) {
		noGap(t, d, "broken")
		if g := MustTake(t, d, "open"); delivered(g) != "map[a:2] [again]" {
			t.Errorf("open: %+v", g)
		}
	})
}

// Whoever waits for one gap to be stored waits for all that were marked before.
func TestOneEndStoresAllMarks(t *testing.T) {
	dir := t.TempDir()
	withStore(t, dir, func(d *agents.Directory) {
		link := MustOpen(t, d, "one")
		other := MustOpen(t, d, "other")
		mark(d, link, "a", 1, "x")
		mark(d, other, "a", 1, "x")
		end(t, d, other, true)
	})
	withStore(t, dir, func(d *agents.Directory) { MustTake(t, d, "one") })
}

func BenchmarkSaveState(b *testing.B) {
	withStore(b, b.TempDir(), func(d *agents.Directory) {
		for b.Loop() {
			if err := d.SaveState(b.Context(), tenant, "one", agents.State{Persistent: make([]byte, 1000)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// process counts the known tools that one of two processes on a store deletes.
type process struct {
	*kvtest.Peer
	deleted atomic.Int64
}

func (p *process) Commit(ctx context.Context, c kv.Commit) error {
	if err := p.Peer.Commit(ctx, c); err != nil {
		return err
	}
	for _, op := range c.Batch.Ops() {
		if _, rest, err := kv.SplitKey(op.Key); err == nil && op.Delete && rest[0] == 'k' {
			p.deleted.Add(1)
		}
	}
	return nil
}

// Of two processes on a store one deletes the tools whose agents stayed away.
func TestOneProcessForgetsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both []*process
		var directories []*agents.Directory
		for _, peer := range kvtest.Peers(2) {
			p := &process{Peer: peer}
			both, directories = append(both, p), append(directories, MustDirectory(t, p, &agents.Options{KeepTools: 2 * time.Hour, IdleRegistration: time.Minute}))
			time.Sleep(20 * time.Second) // they look by turns
		}
		const tools = 6
		for i := range tools {
			MustRegister(t, directories[i%2], fmt.Sprint("agent ", i), fmt.Sprint("tool ", i))
			time.Sleep(10*time.Minute + 25*time.Second) // so that either is the first to see one that is old
		}
		time.Sleep(3 * time.Hour)
		if n, m := both[0].deleted.Load(), both[1].deleted.Load(); n+m != tools || n != 0 && m != 0 {
			t.Errorf("the processes deleted %d and %d tools, want one of them to delete all %d", n, m, tools)
		}
	})
}
