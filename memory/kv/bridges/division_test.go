package bridges_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/bridges"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// divided is a process on two stores: the tenant acme lies in the second one.
type divided struct {
	process // on the store of the registry
	second  *memkv.Peer
	gate    atomic.Pointer[gate]
	ahead   time.Duration // of the second store's clock
}

// gate holds a row that is on its way to the second store, or is about to be.
type gate struct {
	waiting, open chan struct{}
	before        bool // the first thing that is read for it
}

func (g *gate) pass() {
	close(g.waiting)
	<-g.open
}

// registry is where registrations, and rows, lie.
var registry = kv.Ref{Keyspace: kv.System, Scope: kv.Scope{Tenant: "*", Kind: kv.OwnerSystem, Owner: "bridges"}}

// secondStore is the second store of a process.
type secondStore struct {
	*memkv.Peer
	of *divided
}

func (s secondStore) Commit(ctx context.Context, c kv.Commit) error {
	if g := s.of.gate.Load(); g != nil && !g.before && c.Unfenced {
		g.pass()
		ctx = context.WithoutCancel(ctx) // it is on its way
	}
	return s.Peer.Commit(ctx, c)
}

func (s secondStore) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if g := s.of.gate.Load(); g != nil && g.before && s.of.gate.CompareAndSwap(g, nil) {
		g.pass()
	}
	return s.Peer.Sequence(ctx, refs...)
}

func (s secondStore) Time(ctx context.Context) (time.Time, error) {
	now, err := s.Peer.Time(ctx)
	return now.Add(s.of.ahead), err
}

// dividedOf are n processes on two stores, which no server has used.
func dividedOf(t *testing.T, n int) []*divided {
	first, second := memkv.Peers(n, nil), memkv.Peers(n, nil)
	all := make([]*divided, n)
	for i := range all {
		p := &divided{second: second[i]}
		p.Peer = first[i]
		t.Cleanup(func() { _ = errors.Join(p.Registry.Close(), p.Peer.Close(), p.second.Close()) })
		all[i] = p
	}
	return all
}

func (p *divided) division(epoch uint64, of string) *bridges.Division {
	inSecond := func(tenant string) bool { return tenant == "acme" }
	d := &bridges.Division{
		Epoch: epoch, Own: bridges.Part{Name: "one", Engine: &p.process, Holds: func(tenant string) bool { return !inSecond(tenant) }},
		Others: []bridges.Part{{Name: "two", Engine: secondStore{p.second, p}, Holds: inSecond}},
	}
	copy(d.Digest[:], of)
	return d
}

func (p *divided) join(t *testing.T, name string, d *bridges.Division) error {
	registry, err := bridges.Join(t.Context(), &p.process, &bridges.Options{Name: name, Division: d})
	if err == nil {
		p.Registry = registry
	}
	return err
}

func (p *divided) MustDivide(t *testing.T, name string, d *bridges.Division) {
	t.Helper()
	if err := p.join(t, name, d); err != nil {
		t.Fatalf("join %s: %v", name, err)
	}
}

// writeSecond commits something of acme.
func (p *divided) writeSecond() error {
	c := kv.Commit{Guards: []kv.Guard{{Ref: note, Any: true}}, Batch: new(kv.Batch)}
	c.Batch.Put(kv.Records, note.Scope.Key('n'), []byte("x"))
	return p.second.Commit(context.Background(), c)
}

// A server that is taken for dead commits nothing to the second store either once anything of
// it there may be settled, and is back in both under one epoch.
func TestDeadBridgeIsFencedInAllStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := dividedOf(t, 3)
		a, b, c := all[0], all[1], all[2]
		for i, p := range all[:2] {
			p.MustDivide(t, string(rune('a'+i)), p.division(1, "x"))
			if err := p.writeSecond(); err != nil {
				t.Fatalf("commit of one that is registered: %v", err)
			}
		}
		a.MustSee(t, "ab")
		old := b.Self()
		if ended, err := a.Ended(t.Context(), "acme", old.String()); ended || err != nil {
			t.Errorf("it ended while it lives: %v", err)
		}
		b.cut.Store(true)
		a.MustSee(t, "a")
		if ended, err := a.Ended(t.Context(), "acme", old.String()); err != nil || !ended {
			t.Errorf("ended: %v %v", ended, err)
		}
		if err := b.writeSecond(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit of one whose work is settled: %v, want ErrFenced", err)
		}
		b.cut.Store(false)
		a.MustSee(t, "ab")
		synctest.Wait()
		c.MustDivide(t, "c", c.division(1, "x")) // it never saw the old one
		if ended, err := c.Ended(t.Context(), "acme", old.String()); err != nil || !ended {
			t.Errorf("its old registration ended: %v %v", ended, err)
		}
		if err := b.writeSecond(); err != nil || b.Self().Epoch == old.Epoch {
			t.Errorf("commit of one that is back as %v: %v", b.Self(), err)
		}
	})
}

// Nobody asks for what a dead server did: its rows are gone nevertheless, as are those of one
// that ends.
func TestRowsAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := dividedOf(t, 3)
		for i, p := range all {
			p.MustDivide(t, string(rune('a'+i)), p.division(1, "x"))
		}
		all[0].MustSee(t, "abc")
		all[1].cut.Store(true)
		all[0].MustSee(t, "ac")
		time.Sleep(2 * bridges.RenewEvery)
		if err := all[1].writeSecond(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit of one that is dead: %v, want ErrFenced", err)
		}
		if err := all[2].Registry.Close(); err != nil {
			t.Fatal(err)
		}
		if err := all[2].writeSecond(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit of one that has ended: %v, want ErrFenced", err)
		}
	})
}

// A row that comes when its server was taken for dead, and its work settled, is refused.
func TestLateRowIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := dividedOf(t, 2)
		a, b := all[0], all[1]
		for i, p := range all {
			p.MustDivide(t, string(rune('a'+i)), p.division(1, "x"))
		}
		a.MustSee(t, "ab")
		b.cut.Store(true)
		a.MustSee(t, "a")
		g := &gate{waiting: make(chan struct{}), open: make(chan struct{})}
		b.gate.Store(g)
		b.cut.Store(false)
		a.MustSee(t, "ab")
		<-g.waiting // it is registered, and its row is on its way
		late := b.Self()
		b.cut.Store(true)
		a.MustSee(t, "a")
		if ended, err := a.Ended(t.Context(), "acme", late.String()); err != nil || !ended {
			t.Errorf("ended: %v %v, %s", ended, err, late)
		}
		b.gate.Store(nil)
		close(g.open)
		synctest.Wait()
		if err := b.writeSecond(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit behind a late row: %v, want ErrFenced", err)
		}
	})
}

// A server that was taken for dead before it began to write its row writes none.
func TestRowOfOneThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := dividedOf(t, 2)
		a, b := all[0], all[1]
		a.MustDivide(t, "a", a.division(1, "x"))
		b.MustDivide(t, "b", b.division(1, "x"))
		synctest.Wait() // until they look next
		first := b.Self()
		g := &gate{waiting: make(chan struct{}), open: make(chan struct{}), before: true}
		end := func(self bridges.Bridge) {
			t.Helper()
			c := kv.Commit{Guards: []kv.Guard{{Ref: registry, Any: true}}, Batch: new(kv.Batch)}
			c.Batch.Delete(kv.System, registry.Scope.Key('b', []byte(self.ID)))
			if err := errors.Join(a.Peer.Commit(t.Context(), c), a.Refresh(t.Context())); err != nil {
				t.Fatal(err)
			}
			if ended, err := a.Ended(t.Context(), "acme", self.String()); err != nil || !ended {
				t.Fatalf("ended: %v %v", ended, err)
			}
		}
		end(first)
		b.gate.Store(g)
		<-g.waiting // it is registered anew
		ended := b.Self()
		end(ended)
		close(g.open)
		synctest.Wait()
		// It may have found out, and be back by now.
		if err := b.writeSecond(); !errors.Is(err, kv.ErrFenced) && b.Self().Epoch <= ended.Epoch {
			t.Errorf("commit of one that has ended: %v, want ErrFenced", err)
		}
		time.Sleep(3 * bridges.RenewEvery)
		if err := b.writeSecond(); err != nil || b.Self().Epoch <= first.Epoch+1 {
			t.Errorf("it is back as %v: %v", b.Self(), err)
		}
	})
}

// Where the row of a server is gone, as after a restore, it is registered anew.
func TestLostRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := dividedOf(t, 2)
		a := all[0]
		a.MustDivide(t, "a", a.division(1, "x"))
		all[1].MustDivide(t, "b", all[1].division(1, "x"))
		synctest.Wait() // until they look next
		old := a.Self()
		c := kv.Commit{Guards: []kv.Guard{{Ref: registry, Any: true}}, Batch: new(kv.Batch)}
		c.Batch.Delete(kv.System, c.Guards[0].Scope.Key('b', []byte(old.ID)))
		if err := all[1].second.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := a.writeSecond(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit without a row: %v, want ErrFenced", err)
		}
		time.Sleep(2 * bridges.RenewEvery)
		if err := a.writeSecond(); err != nil || a.Self().Epoch <= old.Epoch {
			t.Errorf("it is %v: %v", a.Self(), err)
		}
	})
}

// Servers with differing maps never both write, and no map hides what is stored.
func TestOneMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := dividedOf(t, 3)
		a, b, c := all[0], all[1], all[2]
		refused := func(p *divided, d *bridges.Division, says string) {
			t.Helper()
			if err := p.join(t, "refused", d); !errors.Is(err, bridges.ErrDivision) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want ErrDivision that says %s", err, says)
			}
		}
		a.MustDivide(t, "a", a.division(7, "x"))
		refused(b, b.division(6, "x"), "epoch 7, this map has 6")
		refused(b, b.division(7, "y"), "another map of the same epoch 7")
		refused(b, nil, "--store-map")
		twice := b.division(8, "x")
		twice.Others[0].Engine = &b.process
		refused(b, twice, `"one" and "two" are one`)
		turned := b.division(8, "x")
		turned.Own, turned.Others[0] = bridges.Part{Name: "two", Engine: &b.process, Holds: turned.Own.Holds}, bridges.Part{Name: "one", Engine: b.second, Holds: turned.Others[0].Holds}
		refused(b, turned, "keeps its name")
		without := b.division(8, "x")
		without.Others = nil
		refused(b, without, `store "two" of epoch 7 is missing`)
		other := b.division(8, "x")
		other.Others[0].Engine = memkv.Peers(1, nil)[0]
		refused(b, other, `store "two" of epoch 7 is missing, or another`)
		if err := a.writeSecond(); err != nil {
			t.Errorf("commit after others were refused: %v", err)
		}
		hides := b.division(8, "y")
		hides.Own.Holds, hides.Others[0].Holds = hides.Others[0].Holds, hides.Own.Holds
		refused(b, hides, `such as ["acme"]; no data is moved: pin them to "two"`)

		// A newer map ends the others at once, also where they write to the second store.
		b.MustDivide(t, "b", b.division(8, "y"))
		if err := a.write(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit by the older map: %v, want ErrFenced", err)
		}
		if err := a.writeSecond(); !errors.Is(err, kv.ErrFenced) {
			t.Errorf("commit by the older map to the second store: %v, want ErrFenced", err)
		}
		time.Sleep(3 * bridges.Term)
		b.MustSee(t, "b")
		if condition, _ := a.Health().Condition(); !errors.Is(condition.Failed, kv.ErrFenced) {
			t.Errorf("health by the older map: %v", condition)
		}
		if err := b.writeSecond(); err != nil {
			t.Errorf("commit by the newer map: %v", err)
		}
		c.ahead = 3 * time.Second
		if err := c.join(t, "c", c.division(8, "y")); !errors.Is(err, bridges.ErrSkew) || !strings.Contains(err.Error(), "by 3s") {
			t.Errorf("stores of differing clocks: %v", err)
		}
		c.ahead = 0
		c.MustDivide(t, "c", c.division(8, "y"))
	})
}
