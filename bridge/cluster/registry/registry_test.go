package registry_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// process is one of several on a store. While it is cut off it reaches nothing.
type process struct {
	*kvtest.Peer
	*registry.Registry
	cut   atomic.Bool
	ahead time.Duration // of the store's clock
}

func (p *process) Commit(ctx context.Context, c kv.Commit) error {
	if p.cut.Load() {
		return kv.ErrUnreachable
	}
	return p.Peer.Commit(ctx, c)
}

func (p *process) Time(ctx context.Context) (time.Time, error) {
	if p.cut.Load() {
		return time.Time{}, kv.ErrUnreachable
	}
	now, err := p.Peer.Time(ctx)
	return now.Add(p.ahead), err
}

func (p *process) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	if p.cut.Load() {
		return nil, kv.ErrUnreachable
	}
	return p.Peer.Get(ctx, ks, keys...)
}

func (p *process) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	if p.cut.Load() {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, kv.ErrUnreachable) }
	}
	return p.Peer.Scan(ctx, ks, r)
}

// Close is that of both.
func (p *process) Close() error { return errors.Join(p.Registry.Close(), p.Peer.Close()) }

func (p *process) MustJoin(t *testing.T, name string) {
	t.Helper()
	r, err := registry.Join(t.Context(), p, &registry.Options{Name: name, Address: name + ":1"})
	if err != nil {
		t.Fatalf("join %s: %v", name, err)
	}
	p.Registry = r
}

// processes are n of them, registered in turn.
func processes(t *testing.T, n int) []*process {
	var all []*process
	for i, peer := range kvtest.Peers(n) {
		p := &process{Peer: peer}
		p.MustJoin(t, string(rune('a'+i)))
		t.Cleanup(func() { _ = p.Close() }) // some are closed by then
		all = append(all, p)
	}
	return all
}

// MustSee waits until a process sees those of the names.
func (p *process) MustSee(t *testing.T, names string) {
	t.Helper()
	timeout := time.After(10 * registry.Term)
	for {
		all, changed := p.All()
		var seen []string
		for _, b := range all {
			seen = append(seen, b.Name)
		}
		if strings.Join(seen, "") == names {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("sees %v, want %s", seen, names)
		}
	}
}

var note = kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("acme", "notes")}

// write commits something.
func (p *process) write() error {
	c := kv.Commit{Guards: []kv.Guard{{Ref: note, Any: true}}, Batch: new(kv.Batch)}
	c.Batch.Put(kv.Records, note.Scope.Key('n'), []byte(p.Self().Name))
	return p.Commit(context.Background(), c)
}

func TestBridgesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := processes(t, 3)
		for _, p := range all {
			p.MustSee(t, "abc")
		}
		seen, _ := all[0].All()
		for i, b := range seen {
			if b != all[i].Self() || b.Epoch != uint64(i+1) || b.Address != b.Name+":1" {
				t.Errorf("%+v, registered as %+v", b, all[i].Self())
			}
		}
		time.Sleep(3 * registry.Term) // leases are renewed
		all[2].MustSee(t, "abc")
		began := time.Now()
		if err := all[1].Close(); err != nil {
			t.Fatal(err)
		}
		all[0].MustSee(t, "ac")
		if passed := time.Since(began); passed > registry.RenewEvery {
			t.Errorf("an end that was told was seen after %v", passed)
		}
	})
}

// One that is cut off for longer than its lease is taken for dead, at the end of its lease,
// and by nobody's clock but the store's. It writes nothing under its old epoch, and comes back
// under another.
func TestDeadBridgeIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := processes(t, 2)
		a, b := all[0], all[1]
		a.MustSee(t, "ab")
		time.Sleep(registry.Term)
		old := b.Self()
		b.cut.Store(true)
		began := time.Now()
		a.MustSee(t, "a")
		if passed := time.Since(began); passed > registry.Term || passed < registry.Term-registry.RenewEvery-time.Second {
			t.Errorf("it was taken for dead after %v", passed)
		}
		if ended, err := a.Ended(t.Context(), old.String()); err != nil || !ended {
			t.Errorf("ended: %v %v", ended, err)
		}
		if err := b.Peer.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: note, Any: true}}}); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit of one that was taken for dead: %v, want ErrFenced", err)
		}
		b.cut.Store(false)
		a.MustSee(t, "ab")
		synctest.Wait() // b hears of it later than a may
		if now := b.Self(); now.Epoch != 3 || now.ID != old.ID {
			t.Errorf("back as %+v, was %+v", now, old)
		}
		if err := b.write(); err != nil {
			t.Errorf("commit of one that is back: %v", err)
		}
		if ended, err := b.Ended(t.Context(), old.String()); err != nil || !ended {
			t.Errorf("its old epoch ended: %v %v", ended, err)
		}
		if condition, _ := b.Health().Condition(); condition.Failed != nil {
			t.Errorf("health: %v", condition)
		}
	})
}

// After the store was away for all, nobody takes anybody for dead.
func TestOutageEndsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := processes(t, 3)
		all[0].MustSee(t, "abc")
		for _, p := range all {
			p.cut.Store(true)
		}
		time.Sleep(4 * registry.Term)
		for i, p := range all { // one after another
			p.cut.Store(false)
			time.Sleep(time.Duration(i) * time.Second)
		}
		time.Sleep(3 * registry.Term)
		for i, p := range all {
			p.MustSee(t, "abc")
			if epoch := p.Self().Epoch; epoch != uint64(i+1) {
				t.Errorf("%s has epoch %d", p.Self().Name, epoch)
			}
		}
	})
}

// Leases of one that ended are free at once, however long they were to last.
func TestLeasesEndWithTheirBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := processes(t, 2)
		work := lease.Tenant("acme", "work").Every(time.Hour)
		holders := make([]*lease.Holder, len(all))
		for i, p := range all {
			writer := kv.NewWriter(p, nil)
			defer writer.Close()
			holders[i] = lease.NewHolder(p, writer, nil)
		}
		do := func(h *lease.Holder) error {
			return h.Do(t.Context(), work, func(context.Context) error { return nil })
		}
		if err := errors.Join(do(holders[0]), do(holders[0])); err != nil {
			t.Fatal(err)
		}
		if err := do(holders[1]); !errors.Is(err, lease.ErrHeld) {
			t.Fatalf("%v, want ErrHeld", err)
		}
		all[0].cut.Store(true)
		all[1].MustSee(t, "b")
		if err := do(holders[1]); err != nil {
			t.Errorf("the lease of one that ended: %v", err)
		}
		all[0].cut.Store(false)
		all[1].MustSee(t, "ba")
		if err := do(holders[0]); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("the lease that another has taken: %v, want ErrHeld", err)
		}
	})
}

func TestJoinRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := kvtest.Peers(1)[0]
		defer peer.Close()
		for _, o := range []registry.Options{{Name: strings.Repeat("x", registry.MaxNameBytes+1)}, {Name: "a\x00"}, {Address: "\xff"}, {Address: strings.Repeat("x", registry.MaxAddressBytes+1)}} {
			if _, err := registry.Join(t.Context(), peer, &o); !errors.Is(err, registry.ErrInvalid) {
				t.Errorf("%q %q: %v, want ErrInvalid", o.Name, o.Address, err)
			}
		}
		for _, ahead := range []time.Duration{registry.MaxSkew + time.Millisecond, -registry.MaxSkew - time.Millisecond} {
			if _, err := registry.Join(t.Context(), &process{Peer: peer, ahead: ahead}, nil); !errors.Is(err, registry.ErrSkew) {
				t.Errorf("a clock that differs by %v: %v, want ErrSkew", ahead, err)
			}
		}
		p := &process{Peer: peer, ahead: registry.MaxSkew}
		p.MustJoin(t, "a")
		if ahead := time.Until(p.Now()); ahead != registry.MaxSkew {
			t.Errorf("the store's clock is %v before, want %v", ahead, registry.MaxSkew)
		}
		if err := p.Registry.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestNobodySharesWithoutRegistry(t *testing.T) {
	var none *registry.Registry
	all, changed := none.All()
	ended, err := none.Ended(t.Context(), "x@1")
	if none.Self() != (registry.Bridge{}) || none.Holder() != "" || len(all) > 0 || changed != nil || !ended || err != nil || none.Close() != nil {
		t.Error("no registry has somebody in it")
	}
	if registry.Of(memkv.New(nil)) != nil {
		t.Error("a store of one process has a registry")
	}
	synctest.Test(t, func(t *testing.T) {
		p := processes(t, 1)[0]
		if registry.Of(p) != p.Registry {
			t.Error("the registry of an engine is not found")
		}
		if all, _ := p.All(); !slices.Equal(all, []registry.Bridge{p.Self()}) {
			t.Errorf("%v", all)
		}
	})
}
