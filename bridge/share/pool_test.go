package share_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

func owner(tenant, agent string) share.Owner { return share.Owner{Tenant: tenant, Agent: agent} }

// fill takes one unit after another until no more are to be had.
func fill(p *share.Pool, o share.Owner) (places []*share.Holding, refused *share.ExhaustedError) {
	for {
		place, err := p.TryTake(o, 1)
		if err != nil {
			refused, _ = errors.AsType[*share.ExhaustedError](err)
			return places, refused
		}
		places = append(places, place)
	}
}

func leave(places []*share.Holding) {
	for _, p := range places {
		p.Leave()
	}
}

// Places of no units, as of empty requests, belong to their owner as all others do.
func TestPlacesOfNoUnits(t *testing.T) {
	p := share.New(share.Options{Name: "bytes", Total: 8})
	first, err := p.TryTake(owner("t", "a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.TryTake(owner("t", "a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	first.Leave()
	other, err := p.TryTake(owner("u", "b"), 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Resize(2); err != nil || p.HeldBy("t") != 2 || p.HeldBy("u") != 3 {
		t.Errorf("%v: t holds %d, u %d", err, p.HeldBy("t"), p.HeldBy("u"))
	}
	second.Leave()
	other.Leave()
	if p.Held() != 0 {
		t.Errorf("%d units are left", p.Held())
	}
}

// One owner alone gets nearly all; a newcomer gets its first place at once, as
// another agent and as another tenant, and then some more.
func TestAloneAndNewcomers(t *testing.T) {
	p := share.New(share.Options{Name: "calls", Setting: "--max-calls", Total: 1024})
	held, refused := fill(p, owner("a", "one"))
	if len(held) < 1024*7/8 || refused == nil || refused.Whose != share.ByAgent || refused.Name != "one" {
		t.Fatalf("one agent alone got %d of 1024, then %v", len(held), refused)
	}
	if want := `share: the agent "one" has 900 of 1024 calls, which is its share; wait until some have ended, or raise --max-calls`; refused.Error() != want {
		t.Errorf("the refusal says %q, want %q", refused, want)
	}
	more, refused := fill(p, owner("a", "two"))
	if len(more) < 30 {
		t.Errorf("another agent got %d, then %v", len(more), refused)
	}
	for i := range 20 {
		if _, err := p.TryTake(owner(fmt.Sprint("tenant ", i), "x"), 1); err != nil {
			t.Fatalf("tenant %d: %v", i, err)
		}
	}
	leave(held)
	leave(held) // harmless
	leave(more)
	if got := p.Held(); got != 20 {
		t.Errorf("%d units are held, want 20", got)
	}
}

// Where there is one tenant, nothing is kept for others.
func TestOneTenant(t *testing.T) {
	p := share.New(share.Options{Name: "streams", Total: 160, OneTenant: true})
	if held, _ := fill(p, owner("default", "a")); len(held) != 150 {
		t.Errorf("one agent got %d of 160, want 150", len(held))
	}
	for i := range 10 {
		if _, err := p.TryTake(owner("default", fmt.Sprint(i)), 1); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.TryTake(owner("default", "late"), 1)
	if refused, ok := errors.AsType[*share.ExhaustedError](err); !ok || refused.Whose != share.ByServer || !errors.Is(err, share.ErrExhausted) {
		t.Errorf("a full pool says %v", err)
	}
}

// Whoever holds much gets nothing more while others ask: the shares become
// equal as places are left, however many more one asks for.
func TestSharesBecomeEqual(t *testing.T) {
	p := share.New(share.Options{Name: "calls", Total: 320})
	first, _ := fill(p, owner("greedy", "x"))
	held := map[string][]*share.Holding{"greedy": first}
	dice := rand.New(rand.NewPCG(chance.Seed(t), 0))
	for range 5000 {
		leaver := "greedy"
		if len(held["late"]) > 0 && dice.IntN(4) == 0 {
			leaver = "late"
		}
		held[leaver][0].Leave()
		held[leaver] = held[leaver][1:]
		for range 4 { // greedy asks first, and four times as often
			for _, name := range []string{"greedy", "greedy", "greedy", "greedy", "late"} {
				if place, err := p.TryTake(owner(name, "x"), 1); err == nil {
					held[name] = append(held[name], place)
				}
			}
		}
	}
	if greedy, late := len(held["greedy"]), len(held["late"]); late < 120 || greedy < 120 {
		t.Errorf("greedy holds %d, late %d", greedy, late)
	}
}

// Random work keeps the books: what is held is what was taken and not left, it
// never exceeds the total, and who holds nothing gets a place while one is free.
func TestBooks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		total := int64(1 + random.IntN(200))
		p := share.New(share.Options{Name: "units", Total: total, OneTenant: random.IntN(4) == 0})
		type held struct {
			o share.Owner
			n int64
			p *share.Holding
		}
		var all []held
		sum, byOwner, byTenant := int64(0), map[share.Owner]int64{}, map[string]int64{}
		for range 500 {
			if len(all) > 0 && random.IntN(3) == 0 {
				i := random.IntN(len(all))
				h := all[i]
				all = slices.Delete(all, i, i+1)
				h.p.Leave()
				sum, byOwner[h.o], byTenant[h.o.Tenant] = sum-h.n, byOwner[h.o]-h.n, byTenant[h.o.Tenant]-h.n
				continue
			}
			o := owner(fmt.Sprint(random.IntN(5)), fmt.Sprint(random.IntN(4)))
			n := int64(1 + random.IntN(5))
			place, err := p.TryTake(o, n)
			if err != nil {
				if byTenant[o.Tenant] == 0 && sum+n <= total {
					t.Fatalf("a tenant that holds nothing was refused %d of %d free units: %v", n, total-sum, err)
				}
				continue
			}
			if sum+n > total {
				t.Fatalf("%d of %d units are taken", sum+n, total)
			}
			all = append(all, held{o, n, place})
			sum, byOwner[o], byTenant[o.Tenant] = sum+n, byOwner[o]+n, byTenant[o.Tenant]+n
		}
		if p.Held() != sum {
			t.Fatalf("%d are held, want %d", p.Held(), sum)
		}
		for tenant, n := range byTenant {
			if p.HeldBy(tenant) != n {
				t.Fatalf("%s holds %d, want %d", tenant, p.HeldBy(tenant), n)
			}
		}
		for _, h := range all {
			h.p.Leave()
		}
		if p.Held() != 0 {
			t.Fatalf("%d are held after all have left", p.Held())
		}
	}
}

// Those who wait are served in turn, tenant by tenant and agent by agent, not as
// they came.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := share.New(share.Options{Name: "slots", Total: 1, Waiting: 1000, OneTenant: true})
		first, err := p.Take(t.Context(), owner("z", "z"), 1)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		wait := func(tenant, agent string) {
			go func() {
				place, err := p.Take(t.Context(), owner(tenant, agent), 1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, tenant+agent)
				mu.Unlock()
				place.Leave()
			}()
			synctest.Wait()
		}
		for range 4 {
			wait("a", "1")
		}
		for range 2 {
			wait("a", "2")
		}
		for range 2 {
			wait("b", "1")
		}
		first.Leave()
		synctest.Wait()
		if want := []string{"a1", "b1", "a2", "b1", "a1", "a2", "a1", "a1"}; !slices.Equal(order, want) {
			t.Errorf("served in the order %v, want %v", order, want)
		}
	})
}

// The places to wait in are shared as well: one agent that fills the queue leaves
// room for others, and is refused itself.
func TestQueueIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := share.New(share.Options{Name: "slots", Total: 1, Waiting: 64})
		first, _ := p.Take(t.Context(), owner("z", "z"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		var refused, given int
		var mu sync.Mutex
		for range 100 {
			go func() {
				_, err := p.Take(ctx, owner("a", "1"), 1)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, share.ErrExhausted):
					refused++
				case errors.Is(err, context.Canceled):
					given++
				}
			}()
		}
		synctest.Wait()
		if refused < 36 || refused > 50 {
			t.Errorf("%d of 100 were refused", refused)
		}
		got := make(chan error, 1)
		go func() {
			_, err := p.Take(t.Context(), owner("b", "1"), 1)
			got <- err
		}()
		synctest.Wait()
		first.Leave() // the agent of tenant a comes first, and never leaves
		cancel()
		synctest.Wait()
		if refused+given != 99 {
			t.Errorf("%d were refused and %d gave up, want 99 together", refused, given)
		}
		select {
		case err := <-got:
			t.Errorf("tenant b got a place that is taken: %v", err)
		default:
		}
	})
}

// While several tenants are there, one that works much keeps to its part, and
// goes back to everything when the others have gone.
func TestContended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := share.New(share.Options{Name: "slots", Total: 64, Contended: 8, Waiting: 100, Presence: share.NewPresence()})
		busy := func() int {
			held, _ := fill(p, owner("busy", "x"))
			defer leave(held)
			return len(held)
		}
		if n := busy(); n < 50 {
			t.Errorf("alone it gets %d of 64", n)
		}
		place, err := p.TryTake(owner("other", "x"), 1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		if n := busy(); n > 7 {
			t.Errorf("beside another one it gets %d of 8", n)
		}
		place.Leave()
		time.Sleep(500 * time.Millisecond)
		if n := busy(); n > 8 {
			t.Errorf("just after the other one's call it gets %d of 8", n)
		}
		time.Sleep(2 * time.Second)
		if n := busy(); n < 50 {
			t.Errorf("alone again it gets %d of 64", n)
		}
	})
}

// Long calls of one agent keep the others of its tenant waiting for a while only.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := share.New(share.Options{Name: "slots", Total: 64, Contended: 4, Waiting: 100, Presence: share.NewPresence()})
		if _, err := p.TryTake(owner("other", "x"), 1); err != nil {
			t.Fatal(err)
		}
		_, _ = fill(p, owner("busy", "slow"))
		began := time.Now()
		if _, err := p.Take(t.Context(), owner("busy", "quick"), 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("the other agent waited for %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.Take(ctx, owner("busy", "slow"), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the slow agent got more: %v", err)
		}
	})
}

// A call that waits for another one holds nothing meanwhile, and goes on without
// waiting again; leaving during the pause is fine.
func TestPause(t *testing.T) {
	p := share.New(share.Options{Name: "calls", Total: 2})
	place, err := p.TryTake(owner("a", "1"), 2)
	if err != nil {
		t.Fatal(err)
	}
	outer := share.New(share.Options{Name: "calls", Total: 1})
	around, err := outer.TryTake(owner("a", "1"), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx := share.With(share.With(share.With(t.Context(), around), nil), place)
	resume, again := share.Pause(ctx), share.Pause(ctx)
	if p.Held() != 0 || outer.Held() != 0 {
		t.Errorf("%d and %d are held during the pause", p.Held(), outer.Held())
	}
	other, err := p.TryTake(owner("b", "1"), 1)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if p.Held() != 1 {
		t.Errorf("%d are held after one of two pauses", p.Held())
	}
	resume()
	if p.Held() != 3 || outer.Held() != 1 {
		t.Errorf("%d and %d are held after both, want 3 and 1", p.Held(), outer.Held())
	}
	last := share.Pause(ctx)
	place.Leave()
	last()
	other.Leave()
	if p.Held() != 0 {
		t.Errorf("%d are held at the end", p.Held())
	}
	share.Pause(t.Context())() // no place: nothing happens
}

// A place can be made that of the agent that turns out to hold it.
func TestMove(t *testing.T) {
	p := share.New(share.Options{Name: "streams", Total: 64, OneTenant: true})
	held, _ := fill(p, owner("a", "greedy"))
	place, err := p.TryTake(owner("a", ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := place.Move("greedy"); !errors.Is(err, share.ErrExhausted) {
		t.Errorf("moved beyond the share: %v", err)
	}
	if err := place.Move("modest"); err != nil {
		t.Error(err)
	}
	leave(held)
	place.Leave()
	if p.Held() != 0 {
		t.Errorf("%d are held at the end", p.Held())
	}
}

// While several tenants are there each gets its part of a rate, whoever asks for
// more; one alone gets what it asks for.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := share.NewRate("bytes", 1000, share.NewPresence())
		pay := func(tenant string, n int64) time.Duration {
			began := time.Now()
			if err := r.Pay(t.Context(), tenant, n); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		if took := pay("a", 1_000_000); took != 0 {
			t.Errorf("alone it waited for %v", took)
		}
		pay("b", 1)
		time.Sleep(200 * time.Millisecond) // counted anew
		pay("b", 1)
		if took := pay("a", 550); took < 900*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("half of 1000 a second: 550 took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		pay("b", 1)
		if err := r.Pay(ctx, "a", 500); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited beyond the context: %v", err)
		}
		if took := pay("b", 40); took != 0 {
			t.Errorf("the modest one waited for %v", took)
		}
		time.Sleep(3 * time.Second)
		if took := pay("a", 1_000_000); took != 0 {
			t.Errorf("alone again it waited for %v", took)
		}
	})
	if err := (*share.Rate)(nil).Pay(t.Context(), "a", 1<<40); err != nil {
		t.Error(err)
	}
}

// The level is max-min fair: nobody with less than it loses anything, and where
// not all fit, what is kept fills the total.
func TestLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		sizes := make([]int64, 1+random.IntN(8))
		sum := int64(0)
		for i := range sizes {
			sizes[i] = random.Int64N(1000)
			sum += sizes[i]
		}
		total := random.Int64N(4000)
		level := share.Level(sizes, total)
		kept := int64(0)
		for _, size := range sizes {
			kept += min(size, level)
		}
		if kept > total && sum > total || kept < min(sum, total-int64(len(sizes))) {
			t.Fatalf("%v in %d: the level %d keeps %d", sizes, total, level, kept)
		}
	}
}

// A meter takes what is used of the pool, in steps, and gives it back.
func TestMeter(t *testing.T) {
	p := share.New(share.Options{Name: "bytes", Total: 1600, OneTenant: true})
	m := share.NewMeter(p, owner("a", "x"), 100, 2)
	random := rand.New(rand.NewPCG(5, 6))
	used := int64(0)
	for range 5000 {
		n := random.Int64N(300)
		switch {
		case random.IntN(2) == 0:
			if m.Add(n) == nil {
				used += n
			} else if used+n < 1400 {
				t.Fatalf("%d were refused beside %d of 1600", n, used)
			}
		case used >= n:
			m.Sub(n)
			used -= n
		}
		if held := p.Held(); held < used || held > used+300 || held > 1600 {
			t.Fatalf("used %d, taken %d", used, held)
		}
	}
	m.Note(5)
	m.Close()
	m.Sub(5)
	if err := m.Add(1); err != nil || p.Held() != 0 {
		t.Errorf("after the end: %v, %d are taken", err, p.Held())
	}
}

// A meter that keeps nothing holds nothing when nothing is used.
func TestMeterThatKeepsNothing(t *testing.T) {
	p := share.New(share.Options{Name: "bytes", Total: 1600, OneTenant: true})
	m := share.NewMeter(p, owner("a", "x"), 100, 0)
	for _, n := range []int64{1, 250, 1000} {
		if err := m.Add(n); err != nil || p.Held() < n || p.Held() > n+100 {
			t.Errorf("used %d, taken %d, %v", n, p.Held(), err)
		}
		if m.Sub(n); p.Held() != 0 {
			t.Errorf("%d are taken when nothing is used", p.Held())
		}
	}
	if err := m.Add(1600); !errors.Is(err, share.ErrExhausted) && p.Held() != 1600 {
		t.Errorf("%v, %d are taken", err, p.Held())
	}
	none := share.NewMeter(nil, owner("a", "x"), 100, 0)
	none.Note(1)
	none.Sub(1)
	none.Close()
	if err := none.Add(1); err != nil {
		t.Error(err)
	}
}

func BenchmarkMeter(b *testing.B) {
	m := share.NewMeter(share.New(share.Options{Total: 1 << 30}), owner("a", "x"), 64<<10, 2)
	for b.Loop() {
		if err := m.Add(256); err != nil {
			b.Fatal(err)
		}
		m.Sub(256)
	}
}

func BenchmarkTakeAndLeave(b *testing.B) {
	for name, opts := range map[string]share.Options{
		"plain": {Total: 1024}, "contended": {Total: 1024, Contended: 8, Waiting: 10, Presence: share.NewPresence()},
	} {
		b.Run(name, func(b *testing.B) {
			p := share.New(opts)
			o := owner("tenant", "agent")
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					place, err := p.Take(context.Background(), o, 1)
					if err != nil {
						b.Error(err)
						return
					}
					place.Leave()
				}
			})
		})
	}
}
