package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MustChurn saves that many records that expire, and sweeps them.
func (r *rig) MustChurn(tb testing.TB, n int) {
	tb.Helper()
	for n > 0 {
		batch := make([]record.Record, min(n, memory.MaxBatchRecords))
		for i := range batch {
			batch[i] = record.Record{Text: fmt.Sprintf("Passing note %d", i%50), SessionID: "churn", TTL: time.Second}
		}
		if _, err := r.SaveBatch(tb.Context(), agent, batch, ""); err != nil {
			tb.Fatalf("batch: %v", err)
		}
		r.clock.Set(r.clock.Now().Add(time.Minute + time.Second))
		if swept, err := r.Sweep(tb.Context()); err != nil || swept < len(batch) {
			tb.Fatalf("%d of %d swept: %v", swept, len(batch), err)
		}
		n -= len(batch)
	}
}

// MustSettle packs and merges until nothing is left to do.
func (r *rig) MustSettle(tb testing.TB) {
	tb.Helper()
	for range 50 {
		r.MustPack(tb)
	}
}

// weigh returns how many keys the index has and their bytes, values included.
func weigh(tb testing.TB, engine kv.Engine) (keys, bytes int) {
	tb.Helper()
	for pair, err := range engine.Scan(tb.Context(), kv.Index, kv.Range{}) {
		if err != nil {
			tb.Fatal(err)
		}
		keys++
		bytes += len(pair.Key) + len(pair.Value)
	}
	return keys, bytes
}

// heap returns how many bytes do costs that stay.
func heap(do func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	do()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// A scope in which much was changed and little lives costs what lives in it: in
// memory, in keys, and for a store that meets it cold.
func TestChurnStaysSmall(t *testing.T) {
	const total, few = 15_000, 300 // more in package lexical
	engine := memkv.New(nil)
	r := MustRig(t, engine)
	r.opts.PackAfter = 0 // the default
	r.Reopen()
	for i := range few {
		r.MustSave(t, record.Record{ID: fmt.Sprint("note-", i), Text: fmt.Sprintf("Note %d about gardens", i), SessionID: fmt.Sprint("s", i%9)})
	}
	for i := range 10 {
		r.MustChurn(t, total/10)
		r.MustUpdate(t, text(fmt.Sprint("note-", i*7), "A changed note about harbours"))
	}
	r.MustSettle(t)
	keys, bytes := weigh(t, engine)
	if bytes > 1000*few+total/8 || keys > few {
		t.Errorf("%d living records take %d keys of %d bytes", few, keys, bytes)
	}
	fresh := &rig{engine: engine, clock: r.clock, opts: r.opts}
	cost := heap(func() {
		fresh.open()
		if hits := ids(fresh.MustQuery(t, question.Question{Text: "harbours", Limit: 20})); len(hits) < 10 {
			t.Errorf("found %q", hits)
		}
	})
	fresh.close()
	if cost > 2<<20 {
		t.Errorf("%d living records take %d bytes of memory", few, cost)
	}
}

// vectored gives a record a vector, or none.
func vectored(rng *rand.Rand, r record.Record) record.Record {
	if rng.IntN(2) == 0 {
		r.Embedding, r.EmbeddingSpace = []float32{rng.Float32(), rng.Float32(), rng.Float32()}, "m"
	}
	return r
}

// MustAge makes random changes, much of it of records that do not stay.
func (p *liver) MustAge(t *testing.T, steps int) {
	t.Helper()
	for range steps {
		switch p.rng.IntN(8) {
		case 0:
			p.MustChurn(t, 1+p.rng.IntN(700))
			p.life.records = slices.DeleteFunc(p.life.records, func(r record.Record) bool { return expired(r, p.clock.Now()) })
		case 1:
			p.delete(t)
		case 2, 3, 4:
			p.update(t)
		case 5:
			p.MustPack(t)
		default:
			r := vectored(p.rng, p.draft())
			r.EventTime = start.Add(time.Duration(p.rng.IntN(99)) * time.Hour)
			if old := p.any(); old != nil && p.rng.IntN(4) == 0 && old.SupersededBy == "" && !expired(*old, p.clock.Now()) {
				r.Supersedes = old.ID
			}
			p.keep(t, r)
		}
	}
	p.clock.Set(p.clock.Now().Add(time.Hour))
	p.sweep(t)
}

// keep saves a record at a moment of its own: of two that are as good, the one
// that was written last comes first, which a copy does not know of an update.
func (p *liver) keep(t *testing.T, r record.Record) {
	t.Helper()
	p.clock.Set(p.clock.Now().Add(time.Millisecond))
	p.note(p.MustSave(t, r))
}

// MustCopy saves the same records into another store, in their order.
func (p *liver) MustCopy(t *testing.T, to *rig) {
	t.Helper()
	all, err := p.List(t.Context(), agent, memory.Listing{PageSize: memory.MaxPageSize, WithVectors: true})
	if err != nil || all.NextPageToken != "" {
		t.Fatalf("list: %v", err)
	}
	for _, r := range all.Records {
		to.clock.Set(r.CreateTime)
		by := r.SupersededBy
		if p.life.find(r.Supersedes) == nil {
			r.Supersedes = ""
		}
		to.MustSave(t, r)
		if by != "" && p.life.find(by) == nil { // whatever superseded it is gone
			gone := to.MustSave(t, record.Record{Text: "gone", Supersedes: r.ID})
			if _, err := to.Delete(t.Context(), agent, memory.Deletion{ID: gone.ID}, ""); err != nil {
				t.Fatal(err)
			}
		}
		if r.Archived {
			to.MustUpdate(t, memory.Update{ID: r.ID, Fields: memory.ArchivedField, Values: record.Record{Archived: true}})
		}
	}
	to.clock.Set(p.clock.Now())
}

// answer is what is compared of a hit.
type answer struct {
	ID          string
	Score       float64
	Explanation *memory.Explanation
}

func answers(result memory.Answer) (all []answer) {
	for _, hit := range result.Hits {
		all = append(all, answer{hit.Record.ID, hit.Score, hit.Explanation})
	}
	return all
}

// Whatever died before, a store answers as one that was given only what is left:
// the same hits with the same scores for the same reasons.
func TestChurnAnswersLikeAFreshStore(t *testing.T) {
	for range 2 {
		seed := chance.Seed(t)
		p := &liver{
			player: player{rig: MustRig(t, memkv.New(nil)), rng: rand.New(rand.NewPCG(seed, 0))},
			life:   &life{versions: make(map[string][]record.Record)},
		}
		p.MustAge(t, 150)
		for len(p.life.records) < 40 { // few may have been left
			r := vectored(p.rng, p.draft())
			r.TTL = 0
			p.keep(t, r)
		}
		fresh := MustRig(t, memkv.New(nil))
		p.MustCopy(t, fresh)
		found := 0
		for range 2 {
			for range 40 {
				q := question.Question{Text: p.words(1 + p.rng.IntN(4)), Limit: 1 + p.rng.IntN(20), Filter: p.filter().filter, Explain: true}
				if p.rng.IntN(2) == 0 {
					q.Embedding, q.EmbeddingSpace = []float32{p.rng.Float32(), p.rng.Float32(), p.rng.Float32()}, "m"
				}
				want, got := fresh.MustQuery(t, q), p.MustQuery(t, q)
				found += len(got.Hits)
				mustEqual(t, fmt.Sprintf("hits of %+v", q), answers(want), answers(got))
				want.Receipt.IndexSequence, got.Receipt.IndexSequence = 0, 0
				mustEqual(t, fmt.Sprintf("receipt of %+v", q), want.Receipt, got.Receipt)
				if t.Failed() {
					return
				}
			}
			l := memory.Listing{PageSize: 1 + p.rng.IntN(9), NewestFirst: p.rng.IntN(2) == 0}
			want, _ := fresh.MustList(t, l)
			got, _ := p.MustList(t, l)
			mustEqual(t, "list", want, got)
			p.MustSettle(t)
			p.Reopen()
		}
		t.Logf("%d hits", found)
		if found < 100 {
			t.Errorf("%d hits are not enough to tell", found)
		}
	}
}

// A page token stays good while what stood behind it dies and is packed away.
func TestPagesWhileChurning(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	var want []string
	for i := range 20 {
		want = append(want, r.MustSave(t, record.Record{ID: fmt.Sprint("note-", i), Text: "A note"}).ID)
	}
	var got []string
	l := memory.Listing{PageSize: 6, Filter: `kind = "fact"`}
	for {
		page, err := r.List(t.Context(), agent, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range page.Records {
			got = append(got, record.ID)
			r.MustUpdate(t, text(record.ID, "Changed"))
		}
		r.MustChurn(t, 1200)
		r.MustSettle(t)
		if l.PageToken = page.NextPageToken; l.PageToken == "" {
			break
		}
	}
	mustEqual(t, "pages", want, got)
}

// Dead blocks go in commits of their own. Whichever fails, or the process with
// it, all that was acknowledged is there, and the rest is made up for later.
func TestChurnSurvivesFaults(t *testing.T) {
	for fail := 1; ; fail++ {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		r := MustRig(t, engine)
		r.opts.PackAfter = 100_000 // by hand
		r.Reopen()
		for i := range 3 {
			r.MustSave(t, vectored(rand.New(rand.NewPCG(1, uint64(i))), record.Record{ID: fmt.Sprint("note-", i), Text: "A lasting note"}))
			for range 2 {
				r.MustChurn(t, 700)
				r.MustPack(t)
			}
		}
		want, _ := r.MustList(t, memory.Listing{})
		hits := answers(r.MustQuery(t, question.Question{Text: "lasting"}))
		r.close()
		engine.Replan(kvtest.FailurePlan{Commit: fail, Repeat: true})
		err := shape(t, engine)
		engine.Replan(kvtest.FailurePlan{})
		if err != nil && !errors.Is(err, kvtest.ErrFault) {
			t.Fatal(err)
		}
		r.open()
		r.MustCheck(t, agent)
		got, _ := r.MustList(t, memory.Listing{})
		mustEqual(t, "list", want, got)
		mustEqual(t, "hits", hits, answers(r.MustQuery(t, question.Question{Text: "lasting"})))
		r.MustSave(t, record.Record{Text: "One more"})
		r.MustSettle(t)
		if keys, _ := weigh(t, engine); keys > 60 {
			t.Errorf("fault %d leaves %d keys", fail, keys)
		}
		if err == nil {
			if fail < 3 {
				t.Errorf("%d commits", fail-1)
			}
			return
		}
	}
}

// shape packs and merges until nothing is left to do.
func shape(tb testing.TB, engine kv.Engine) error {
	tb.Helper()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	index := lexical.New(nil)
	for more := true; more; {
		s, _, err := index.Pack(tb.Context(), engine, writer, agent)
		if err != nil {
			return err
		}
		merge, err := index.Merge(tb.Context(), engine, writer, agent)
		if err != nil {
			return err
		}
		more = merge || s.Tail() > 0
	}
	return nil
}
