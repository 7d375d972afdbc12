package lexical

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

var modelScope = kv.AgentScope("default", "model")

// known is a document as the naive index has it.
type known struct {
	*segment.Document
	ordinal    uint32
	id         string
	supersedes uint32
	dead       bool
}

// naive is an index that is a list.
type naive struct {
	documents []*known // by ordinal, from 1
}

func (n *naive) living() (all []*known) {
	for _, d := range n.documents {
		if !d.dead {
			all = append(all, d)
		}
	}
	return all
}

func (n *naive) place(d *known) uint32 {
	if d.Facts().Place != 0 {
		return d.Facts().Place
	}
	return d.ordinal
}

// neighbours returns the living documents of each session by place.
func (n *naive) sessions() map[string][]*known {
	all := make(map[string][]*known)
	for _, d := range n.living() {
		if s := d.Facts().Session; s != "" {
			all[s] = append(all[s], d)
		}
	}
	for _, s := range all {
		slices.SortStableFunc(s, func(a, b *known) int { return int(n.place(a)) - int(n.place(b)) })
	}
	return all
}

func (n *naive) postings() map[string][]segment.Posting {
	all := make(map[string][]segment.Posting)
	for _, d := range n.living() {
		for _, t := range d.Terms() {
			term := string(byte(t.Field)) + t.Text
			all[term] = append(all[term], segment.Posting{Ordinal: d.ordinal, Value: segment.PackFrequency(t.Body, t.Header)})
		}
	}
	return all
}

// gambler makes random moves on an index and on the naive one.
type gambler struct {
	tb     testing.TB
	index  *Index
	engine *kvtest.FaultyEngine
	writer *kv.Writer
	rng    *rand.Rand
	naive  *naive
}

func mustGambler(tb testing.TB, rng *rand.Rand) *gambler {
	tb.Helper()
	engine := kvtest.Faulty(memkv.New(&memkv.Options{SnapshotLife: time.Hour}), kvtest.FailurePlan{}) // the past is looked at again
	g := &gambler{tb: tb, index: New(nil), engine: engine, writer: kv.NewWriter(engine, nil), rng: rng, naive: &naive{}}
	tb.Cleanup(func() { _ = g.writer.Close() })
	return g
}

func (g *gambler) document() *known {
	n := uint32(len(g.naive.documents))
	d := &known{Document: segment.NewDocument(fmt.Sprint("id", n+1)), ordinal: n + 1, id: fmt.Sprint("id", n+1)}
	d.AddBody(g.words(g.rng.IntN(12)))
	d.AddHeader(g.words(g.rng.IntN(3)))
	d.AddValue(segment.Tag, fmt.Sprint(g.rng.IntN(5)))
	d.AddValue(segment.Metadata, fmt.Sprintf("path\x00\xf8%d", g.rng.IntN(30)))
	f := segment.Facts{Create: int64(n) * 1000, Event: g.rng.Int64N(3) * 77, Importance: float64(g.rng.IntN(4)) / 4, Tier: uint8(1 + g.rng.IntN(4)), Flags: segment.Flags(g.rng.IntN(256))}
	if g.rng.IntN(4) > 0 {
		f.Session = fmt.Sprint("s", g.rng.IntN(6))
	}
	if g.rng.IntN(2) == 0 {
		f.Author = []string{"Ann", "Bob  B.", "É"}[g.rng.IntN(3)]
	}
	if g.rng.IntN(9) == 0 {
		f.Superseded = 5
	}
	if g.rng.IntN(5) == 0 {
		d.Expire(1 + g.rng.Int64N(100))
	}
	if n > 0 && g.rng.IntN(4) == 0 {
		d.supersedes = 1 + g.rng.Uint32N(n)
	}
	d.SetFacts(f)
	return d
}

func (g *gambler) words(n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for range n {
			if !yield(fmt.Sprint("w", min(g.rng.IntN(40), g.rng.IntN(40)))) {
				return
			}
		}
	}
}

// change makes a random change: new documents, new versions of old ones and
// deaths. Sometimes the commit fails.
func (g *gambler) change() {
	if g.rng.IntN(150) == 0 {
		g.churn()
	}
	var c Change
	var added []*known
	var killed []uint32
	living := g.naive.living()
	add := func(d *known) {
		d.ordinal += uint32(len(added))
		c.Add = append(c.Add, Added{d.Encode(), d.supersedes})
		added = append(added, d)
	}
	for range g.rng.IntN(4) {
		add(g.document())
	}
	if len(living) > 0 && g.rng.IntN(3) == 0 {
		old := living[g.rng.IntN(len(living))]
		d := g.document()
		f := d.Facts()
		f.Place = g.naive.place(old)
		if g.rng.IntN(4) > 0 {
			f.Session = old.Facts().Session
		}
		d.SetFacts(f)
		add(d)
		killed = append(killed, old.ordinal)
	}
	for range g.rng.IntN(3) {
		if len(g.naive.documents) > 0 && g.rng.IntN(2) == 0 {
			killed = append(killed, 1+g.rng.Uint32N(uint32(len(g.naive.documents))))
		}
	}
	if g.rng.IntN(40) == 0 {
		for _, d := range living {
			killed = append(killed, d.ordinal)
		}
	}
	c.Delete = killed
	if g.rng.IntN(10) == 0 {
		g.engine.Replan(kvtest.FailurePlan{Commit: 1})
		defer g.engine.Replan(kvtest.FailurePlan{})
	}
	err := g.writer.Do(g.tb.Context(), kv.Request{Refs: []kv.Ref{Ref(modelScope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		first, s, err := g.index.Apply(ctx, tx, modelScope, c)
		if err == nil && (first != uint32(len(g.naive.documents))+1 || int(s.Last) != len(g.naive.documents)+len(added)) {
			g.tb.Errorf("first ordinal %d, statistics %+v", first, s)
		}
		return err
	}})
	if errors.Is(err, kvtest.ErrFault) {
		return
	}
	if err != nil {
		g.tb.Fatal(err)
	}
	g.naive.documents = append(g.naive.documents, added...)
	for _, o := range killed {
		g.naive.documents[o-1].dead = true
	}
}

// churn adds documents that die at once, enough to empty blocks.
func (g *gambler) churn() {
	c := Change{}
	first := uint32(len(g.naive.documents)) + 1
	for range 1 + g.rng.IntN(1024+500) {
		o := uint32(len(g.naive.documents)) + 1
		d := &known{Document: segment.NewDocument("churn"), ordinal: o, id: "churn", dead: true}
		d.AddValue(segment.Tag, "churn")
		c.Add = append(c.Add, Added{Encoded: d.Encode()})
		g.naive.documents = append(g.naive.documents, d)
	}
	for _, c := range []Change{c, {Delete: slices.Collect(func(yield func(uint32) bool) {
		for o := first; int(o) <= len(g.naive.documents) && yield(o); o++ {
		}
	})}} {
		if err := g.writer.Do(g.tb.Context(), kv.Request{Refs: []kv.Ref{Ref(modelScope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, _, err := g.index.Apply(ctx, tx, modelScope, c)
			return err
		}}); err != nil {
			g.tb.Fatal(err)
		}
	}
}

// shape packs or merges; a fault must change nothing that counts.
func (g *gambler) shape() {
	if g.rng.IntN(3) == 0 {
		g.engine.Replan(kvtest.FailurePlan{Commit: 1 + g.rng.IntN(3)})
		defer g.engine.Replan(kvtest.FailurePlan{})
	}
	var err error
	if g.rng.IntN(2) == 0 {
		_, _, err = g.index.Pack(g.tb.Context(), g.engine, g.writer, modelScope)
	} else {
		g.index.mergeCommitBytes = 1 + g.rng.IntN(4000)
		for more := true; more && err == nil; {
			more, err = g.index.Merge(g.tb.Context(), g.engine, g.writer, modelScope)
		}
	}
	if err != nil && !errors.Is(err, kvtest.ErrFault) {
		g.tb.Fatal(err)
	}
}

// wantState compares all that a reader of the view says with the naive index.
func (g *gambler) wantState(x *Index, view kv.Reader, n *naive) {
	g.tb.Helper()
	r, err := x.Open(g.tb.Context(), view, modelScope)
	if err != nil {
		g.tb.Fatal(err)
	}
	f := r.frame
	if int(f.Last) != len(n.documents) {
		g.tb.Fatalf("last is %d of %d", f.Last, len(n.documents))
	}
	g.wantColumns(r, n)
	g.wantRelations(f, n)
	g.wantStatistics(r, n)
	g.wantPostings(r, n)
}

func (g *gambler) wantColumns(r *Reader, n *naive) {
	g.tb.Helper()
	f := r.frame
	for _, d := range n.documents {
		o := d.ordinal
		if f.IsLive(o) == d.dead {
			g.tb.Fatalf("document %d: dead is %v", o, !f.IsLive(o))
		}
		if d.dead {
			continue
		}
		if r.Place(o) != n.place(d) {
			g.tb.Fatalf("document %d: place %d, want %d", o, r.Place(o), n.place(d))
		}
		want := d.Row()
		want.Supersedes = d.supersedes
		if want.Place != 0 {
			want.Place = n.place(d)
		}
		if f.Ordinal(f.Slot(o)) != o {
			g.tb.Fatalf("document %d has the slot of %d", o, f.Ordinal(f.Slot(o)))
		}
		if got := f.Row(f.Slot(o)); got != want {
			g.tb.Fatalf("document %d: %+v, want %+v", o, got, want)
		}
		ids, err := r.IDs(g.tb.Context(), []uint32{o})
		if err != nil || ids[0] != d.id {
			g.tb.Fatalf("document %d has id %q, want %q, %v", o, ids, d.id, err)
		}
	}
}

func (g *gambler) wantRelations(f *frame.Frame, n *naive) {
	g.tb.Helper()
	sessions := n.sessions()
	want := make(map[uint32]relations)
	for _, s := range sessions {
		words := uint32(0)
		for _, d := range s {
			words += d.Row().Body + d.Row().Header
		}
		for i, d := range s {
			rel := relations{sessionWords: words, sessionSize: uint32(len(s))}
			if i > 0 {
				rel.prev = s[i-1].ordinal
			}
			if i < len(s)-1 {
				rel.next = s[i+1].ordinal
			}
			want[d.ordinal] = rel
		}
	}
	living := n.living()
	for _, d := range living {
		rel := want[d.ordinal]
		if d.Facts().Session == "" {
			rel = relations{sessionWords: d.Row().Body + d.Row().Header, sessionSize: 1}
		}
		for _, other := range living {
			if other.supersedes == d.ordinal {
				rel.superseder = other.ordinal
			}
		}
		if got := relationsOf(f, f.Slot(d.ordinal)); got != rel {
			g.tb.Fatalf("document %d: %+v, want %+v", d.ordinal, got, rel)
		}
		if (sessionOf(f, d.Facts().Session) == f.Session[f.Slot(d.ordinal)]) != (d.Facts().Session != "") {
			g.tb.Fatalf("document %d: session %q is %d", d.ordinal, d.Facts().Session, sessionOf(f, d.Facts().Session))
		}
	}
}

func (g *gambler) wantStatistics(r *Reader, n *naive) {
	g.tb.Helper()
	got := r.Statistics()
	want := segment.Statistics{Packed: got.Packed, Purged: got.Purged, TailBytes: got.TailBytes, Last: uint32(len(n.documents))}
	alone := uint32(0)
	for _, d := range n.documents {
		if d.dead {
			want.Deleted++
			continue
		}
		want.Documents++
		want.BodyWords += uint64(d.Row().Body)
		want.HeaderWords += uint64(d.Row().Header)
		if d.Facts().Session != "" {
			want.InSessions++
		} else {
			alone++
		}
	}
	want.Sessions = uint64(len(n.sessions()))
	if got != want {
		g.tb.Fatalf("statistics %+v, want %+v", got, want)
	}
	wantSums := [7]uint64{uint64(want.Last), want.Deleted, want.Documents, want.BodyWords, want.HeaderWords, want.Sessions + uint64(alone), uint64(alone)}
	if got := sums(r.frame); got != wantSums {
		g.tb.Fatalf("sums %v, want %v", got, wantSums)
	}
}

func (g *gambler) wantPostings(r *Reader, n *naive) {
	g.tb.Helper()
	want := n.postings()
	terms := append(slices.Sorted(maps.Keys(want)), "wnowhere", "t9")
	found, err := r.Postings(g.tb.Context(), terms)
	if err != nil {
		g.tb.Fatal(err)
	}
	for i, w := range found {
		if diff := cmp.Diff(want[terms[i]], g.collect(r, w), cmp.AllowUnexported(segment.Posting{})); diff != "" {
			g.tb.Fatalf("postings of %q (-want +got):\n%s", terms[i], diff)
		}
	}
	for _, prefix := range []string{"w", "w1", "m", "mpath\x00\xf8", "mpath\x00\xf82", "t", "z"} {
		got, expected := map[string][]segment.Posting{}, map[string][]segment.Posting{}
		for w, err := range r.Terms(g.tb.Context(), prefix) {
			if err != nil {
				g.tb.Fatal(err)
			}
			if all := g.collect(r, w); len(all) > 0 {
				got[w.Term] = append(got[w.Term], all...)
			}
		}
		for term, postings := range want {
			if strings.HasPrefix(term, prefix) {
				expected[term] = postings
			}
		}
		if diff := cmp.Diff(expected, got, cmp.AllowUnexported(segment.Posting{})); diff != "" {
			g.tb.Fatalf("terms with prefix %q (-want +got):\n%s", prefix, diff)
		}
	}
}

func (g *gambler) collect(r *Reader, w TermPostings) (all []segment.Posting) {
	g.tb.Helper()
	if err := r.EachPosting(w, func(slot uint32, value uint64) {
		all = append(all, segment.Posting{Ordinal: r.frame.Ordinal(slot), Value: value})
	}); err != nil {
		g.tb.Fatal(err)
	}
	return all
}

// copyOf is the naive index as it is now.
func (n *naive) copyOf() *naive {
	c := &naive{}
	for _, d := range n.documents {
		twin := *d
		c.documents = append(c.documents, &twin)
	}
	return c
}

func (g *gambler) mustCheck() {
	g.tb.Helper()
	found, err := g.check(g.index)
	if err != nil || found.Total > 0 {
		g.tb.Fatalf("check: %v, %d differences: %q", err, found.Total, found.First)
	}
}

func (g *gambler) check(x *Index) (Differences, error) {
	return x.Check(g.tb.Context(), g.engine, modelScope, func(yield func(Numbered, error) bool) {
		for _, d := range g.naive.living() {
			d.Document.Supersede(d.supersedes)
			if !yield(Numbered{d.ordinal, d.Document}, nil) {
				return
			}
		}
	})
}

// Whatever the order of changes, packing, merging, deaths and faults, readers
// see what a list of documents says: those of now, those of earlier states, and
// those that remember nothing.
func TestAgreesWithAList(t *testing.T) {
	for _, cacheBytes := range []int{DefaultCacheBytes, 1} {
		for range 3 {
			seed := chance.Seed(t)
			g := mustGambler(t, rand.New(rand.NewPCG(seed, 0)))
			g.index = New(&Options{CacheBytes: cacheBytes})
			g.index.maxUnusedSlots = g.rng.IntN(3) * 20
			type past struct {
				view  kv.Snapshot
				naive *naive
			}
			var pasts []past
			for step := range 250 {
				switch g.rng.IntN(5) {
				case 0:
					g.shape()
				case 1:
					view, err := g.engine.Snapshot(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					pasts = append(pasts, past{view, g.naive.copyOf()})
					if len(pasts) > 6 {
						_ = pasts[0].view.Close()
						pasts = pasts[1:]
					}
				case 2:
					if len(pasts) > 0 {
						p := pasts[g.rng.IntN(len(pasts))]
						g.wantState(g.index, p.view, p.naive)
					}
				default:
					g.change()
				}
				if step%3 == 0 {
					g.wantState(g.index, g.engine, g.naive)
				}
				if step%50 == 49 {
					g.wantState(New(nil), g.engine, g.naive)
					g.mustCheck()
				}
			}
			for _, p := range pasts {
				g.wantState(g.index, p.view, p.naive)
				_ = p.view.Close()
			}
		}
	}
}

// Readers of many states at once, while documents come, change, die, are packed
// and merged, each see a state that fits together.
func TestReadersWhileWriting(t *testing.T) {
	g := mustGambler(t, rand.New(rand.NewPCG(3, 4)))
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := g.readConsistently(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		if g.rng.IntN(8) == 0 {
			g.shape()
		} else {
			g.change()
		}
	}
	stop()
	readers.Wait()
	g.wantState(g.index, g.engine, g.naive)
}

// readConsistently compares what a reader of one snapshot says in several ways.
func (g *gambler) readConsistently() error {
	view, err := g.engine.Snapshot(context.Background())
	if errors.Is(err, kvtest.ErrFault) {
		return nil
	}
	if err != nil {
		return err
	}
	defer view.Close()
	r, err := g.index.Open(context.Background(), view, modelScope)
	if err != nil {
		return err
	}
	tagged := make(map[uint32]bool)
	for w, err := range r.Terms(context.Background(), string(byte(segment.Tag))) {
		if err != nil {
			return err
		}
		if err := r.EachPosting(w, func(slot uint32, _ uint64) { tagged[slot] = true }); err != nil {
			return err
		}
	}
	s, chained := r.Statistics(), uint64(0)
	for o := uint32(1); o <= r.frame.Slots(); o++ {
		if r.frame.Prev[o] != 0 && r.frame.Next[r.frame.Prev[o]] != o {
			return fmt.Errorf("%d follows %d, which %d follows", o, r.frame.Prev[o], r.frame.Next[r.frame.Prev[o]])
		}
		if r.frame.Prev[o] != 0 {
			chained++
		}
	}
	if uint64(len(tagged)) != s.Documents || s.Documents != r.frame.Documents || chained+s.Sessions != s.InSessions {
		return fmt.Errorf("%d tagged, %d chained, frame has %d, %+v", len(tagged), chained, r.frame.Documents, s)
	}
	return nil
}

// sessionOf returns the number of a session by its id; 0 when no document has
// it.
func sessionOf(f *frame.Frame, session string) uint32 {
	digest := segment.SessionDigest(session)
	for number, d := range f.SessionDigest {
		if d == digest && digest != 0 {
			return uint32(number)
		}
	}
	return 0
}
