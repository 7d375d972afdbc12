package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// growthSaves is how many records an ordinary run saves, and growthSoakSaves how many
	// `make soak` does; growthLimit and growthSoakLimit bound the memory afterwards.
	growthSaves, growthSoakSaves = 2_000, 100_000
	growthLimit, growthSoakLimit = 400, 20_000
	// growthWindow is of how many saves the times are compared, at the beginning and at the
	// end; those before growthFrom warm up.
	growthWindow, growthFrom = 1_000, 100
	// growthRepeats is the share of saves that repeat one before, and growthNegatives of
	// the others that only look so, in hundredths.
	growthRepeats, growthNegatives = 40, 35
)

// statement is a fact in parts, so that what is changed of it is known.
type statement struct {
	name, verb, thing, city, month string
	number, day                    int
	denied, asked                  bool
}

func (s statement) text() string {
	verb, end := s.verb+"s", "."
	if s.denied {
		verb = "does not " + s.verb
	}
	if s.asked {
		end = "?"
	}
	return fmt.Sprintf("%s %s the %d %s in %s since %s %d%s", s.name, verb, s.number, s.thing, s.city, s.month, s.day, end)
}

var (
	growthNames  = []string{"Ann", "Anna", "Bob", "Rob", "Carla", "Carlo", "Dana", "Dan", "Eve", "Evan", "Mark", "May"}
	growthVerbs  = []string{"rent", "keep", "need", "sell", "repair", "store"}
	growthThings = []string{"boats", "goats", "pumps", "lamps", "keys", "bikes", "drums", "kilns"}
	growthCities = []string{"Bern", "Berlin", "Oslo", "Rome", "Lima", "Paris", "Turin", "Tunis"}
	growthMonths = []string{"January", "March", "May", "June", "July", "August"}
)

func one[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

func newStatement(rng *rand.Rand) statement {
	return statement{
		name: one(rng, growthNames), verb: one(rng, growthVerbs), thing: one(rng, growthThings), city: one(rng, growthCities),
		month: one(rng, growthMonths), number: 2 + rng.IntN(998), day: 1 + rng.IntN(28),
	}
}

// changed is a statement that says something else: a hard negative.
func (s statement) changed(rng *rand.Rand) statement {
	switch rng.IntN(8) {
	case 0:
		s.number++
	case 1:
		s.number *= 10
	case 2:
		s.day = 1 + s.day%28
	case 3:
		s.month = one(rng, growthMonths)
	case 4:
		s.name = one(rng, growthNames)
	case 5:
		s.city = one(rng, growthCities)
	case 6:
		s.denied = !s.denied
	case 7:
		s.asked = !s.asked
	}
	return s
}

// growthNear are the ways to say the same in other letters. The last two are beyond what is
// recognised without a model, and are there to be counted.
var growthNear = []struct {
	name string
	say  func(string) string
}{
	{"the same", func(s string) string { return s }},
	{"lower case", strings.ToLower},
	{"no point", func(s string) string { return strings.TrimSuffix(s, ".") }},
	{"more blanks", func(s string) string { return "  " + strings.ReplaceAll(s, " in ", "  in\n") }},
	{"an opening", func(s string) string { return "Note: " + s }},
	{"a longer opening", func(s string) string { return "Please remember that " + s }},
	{"no article", func(s string) string { return strings.Replace(s, " the ", " ", 1) }},
	{"a contraction", func(s string) string { return strings.Replace(s, "does not", "doesn't", 1) }},
	{"other words", func(s string) string { return strings.Replace(s, " since ", " as of ", 1) }},
	{"more words", func(s string) string { return "As everybody here knows, " + s }},
}

// growth is a run of saves whose labels are known.
type growth struct {
	p      *process
	rng    *rand.Rand
	saved  []statement
	id     map[statement]string
	says   map[string]statement // what each record says
	times  []time.Duration
	wrong  int
	kept   map[string]int // labelled repeats that were added, by the way they were said
	said   map[string]int
	looked int // hard negatives
}

func (g *growth) save(t *testing.T, text string) *loombridgev1.MemorySaveResponse {
	t.Helper()
	started := time.Now()
	got, err := loombridgev1.NewBridgeServiceClient(g.p.conn).MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "grown", Text: text})
	must(t, err)
	g.times = append(g.times, time.Since(started))
	return got
}

// step saves one record and compares what became of it with its label.
func (g *growth) step(t *testing.T) {
	t.Helper()
	if len(g.saved) > 0 && g.rng.IntN(100) < growthRepeats {
		of, way := one(g.rng, g.saved), one(g.rng, growthNear)
		got := g.save(t, way.say(of.text()))
		g.said[way.name]++
		switch repeated := got.GetOutcome() == loombridgev1.SaveOutcome_SAVE_OUTCOME_REINFORCED; {
		case !repeated:
			g.kept[way.name]++
			g.says[got.GetId()] = of
		case g.says[got.GetId()] != of:
			t.Errorf("%q repeats %q, and not %s", way.say(of.text()), of.text(), got.GetId())
			g.wrong++
		}
		return
	}
	next := newStatement(g.rng)
	if len(g.saved) > 0 && g.rng.IntN(100) < growthNegatives {
		next = one(g.rng, g.saved).changed(g.rng)
		g.looked++
	}
	if g.id[next] != "" {
		return
	}
	got := g.save(t, next.text())
	if got.GetOutcome() != loombridgev1.SaveOutcome_SAVE_OUTCOME_SAVED {
		t.Errorf("%q was merged into %s", next.text(), got.GetId())
		g.wrong++
		return
	}
	g.id[next], g.says[got.GetId()] = got.GetId(), next
	g.saved = append(g.saved, next)
}

func p95(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)*95/100]
}

// Of many saves, two in five of which repeat others, those that are the same in other
// letters add nothing and none of those that only look so is merged. Saves stay about as
// fast. With a limit then, the memory comes down to it, and all that left is in the archive.
//
// Y12
func TestSoakGrowth(t *testing.T) {
	saves, limit := growthSaves, growthLimit
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		saves, limit = growthSoakSaves, growthSoakLimit
	}
	seed := chance.Seed(t)
	dir := t.TempDir()
	c := MustStartChild(t, dir, "--duplicates=reinforce")
	g := &growth{
		p: &process{conn: MustDial(t, c.Address)}, rng: rand.New(rand.NewPCG(seed, 0)), id: make(map[statement]string), says: make(map[string]statement),
		kept: make(map[string]int), said: make(map[string]int),
	}
	for len(g.times) < saves {
		g.step(t)
	}
	g.report(t, saves)
	must(t, c.Process.Signal(syscall.SIGTERM))
	must(t, c.Wait())

	c = MustStartChild(t, dir, fmt.Sprint("--memory-limit=", limit))
	g.p = &process{conn: MustDial(t, c.Address)}
	g.limit(t, limit)
}

func (g *growth) report(t *testing.T, saves int) {
	t.Helper()
	said, kept, hard := 0, 0, 0
	for i, way := range growthNear {
		t.Logf("%-18s %6d said, %6d kept", way.name, g.said[way.name], g.kept[way.name])
		said, kept = said+g.said[way.name], kept+g.kept[way.name]
		if i < len(growthNear)-2 {
			hard += g.kept[way.name]
		}
	}
	window := min(growthWindow, saves/4)
	first, last := p95(g.times[growthFrom:growthFrom+window]), p95(g.times[saves-window:])
	t.Logf("%d saves, %d labelled repeats, %d of them kept, %d looked like repeats, %d merged wrongly; p95 of a save %v at the beginning, %v at the end: %.2f",
		saves, said, kept, g.looked, g.wrong, first, last, float64(last)/float64(first))
	if hard != 0 || g.wrong != 0 {
		t.Errorf("%d repeats in other letters were kept, %d records were merged wrongly", hard, g.wrong)
	}
}

// limit saves until the memory is as small as it may be, and looks for what left.
func (g *growth) limit(t *testing.T, limit int) {
	t.Helper()
	memories, bridge := loombridgev1.NewMemoryServiceClient(g.p.conn), loombridgev1.NewBridgeServiceClient(g.p.conn)
	stats := func() (live, archived int) {
		got, err := memories.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "grown", StatsOnly: true})
		must(t, err)
		return int(got.GetStats().GetRecords() - got.GetStats().GetArchived()), int(got.GetStats().GetArchived())
	}
	before, _ := stats()
	g.times = nil
	left := make(map[string]bool)
	live, archived := before, 0
	for i := 0; i < 200 || i < before && (live > limit || archived > len(left)); i++ {
		for _, id := range g.save(t, fmt.Sprintf("the last ledger has the number %d", i)).GetArchivedIds() {
			left[id] = true
		}
		live, archived = stats()
	}
	t.Logf("%d records before, %d after %d saves, %d archived; p95 of a save %v, the first %v, the longest %v", before, live, len(g.times), archived, p95(g.times[len(g.times)-200:]), g.times[0], slices.Max(g.times))
	if live > limit || live < limit*9/10 || archived != len(left) {
		t.Errorf("%d records with a limit of %d, %d in the archive, %d of them told", live, limit, archived, len(left))
	}
	listed := 0
	for token, more := "", true; more; more = token != "" {
		page, err := memories.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "grown", Filter: "archived = true", PageSize: 500, PageToken: token})
		must(t, err)
		for _, r := range page.GetRecords() {
			if !left[r.GetId()] {
				t.Errorf("%s is in the archive, and no answer told so", r.GetId())
			}
			listed++
		}
		token = page.GetNextPageToken()
	}
	if listed != len(left) {
		t.Errorf("%d are listed, %d left", listed, len(left))
	}
	found := 0
	asked := g.saved[:min(len(g.saved), 2_000)]
	gone := 0
	for _, s := range asked {
		id := g.id[s]
		if !left[id] {
			continue
		}
		gone++
		got, err := bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{
			AgentId: "grown", Query: s.text(), Limit: 5, IncludeArchived: true, Filter: fmt.Sprintf("id = %q AND archived = true", id),
		})
		must(t, err)
		found += cmp.Compare(len(got.GetHits()), 0)
	}
	t.Logf("%d listed in the archive; of %d asked for, %d are found there", listed, gone, found)
	if gone == 0 || found != gone {
		t.Errorf("%d of %d that left are found", found, gone)
	}
}
