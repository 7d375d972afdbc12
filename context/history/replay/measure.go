package replay

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// measurement is what one policy did on all runs.
type measurement struct {
	steps, busts int
	sent, shared float64
	costs        []float64
	peaks        []int
	// needed and visible are of all identifiers, neededTool and visibleTool of
	// those that only results had shown.
	needed, visible, neededTool, visibleTool int
	held, survived                           map[string]int
}

// Bench replays runs under policies.
type Bench struct {
	// Count counts tokens. Required.
	Count func(text string) int
	// Prices are what tokens cost. Default history.DefaultPrices.
	Prices history.Prices

	counts map[string]int
	ids    map[string][]string
}

// Run measures policies on runs and returns a row for each. Their ratios are to
// AppendOnly, which is measured, too.
func (b *Bench) Run(runs []Run, policies []Policy) ([]Row, error) {
	if b.Prices == (history.Prices{}) {
		b.Prices = history.DefaultPrices()
	}
	b.counts, b.ids = make(map[string]int), make(map[string][]string)
	base, err := b.measure(runs, AppendOnly())
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(policies))
	for _, p := range policies {
		m, err := b.measure(runs, p)
		if err != nil {
			return nil, err
		}
		rows = append(rows, m.row(p.Name(), base))
	}
	return rows, nil
}

// count remembers what it counted.
func (b *Bench) count(text string) int {
	n, known := b.counts[text]
	if !known {
		n = b.Count(text)
		b.counts[text] = n
	}
	return n
}

// identifiers returns the identifiers of a text, each once.
func (b *Bench) identifiers(text string) []string {
	ids, known := b.ids[text]
	if !known {
		history.EachIdentifier(text, func(id string) { ids = append(ids, id) })
		slices.Sort(ids)
		ids = slices.Compact(ids)
		b.ids[text] = ids
	}
	return ids
}

func (b *Bench) measure(runs []Run, p Policy) (*measurement, error) {
	m := &measurement{held: make(map[string]int), survived: make(map[string]int)}
	for i := range runs {
		r := replayed{
			b: b, m: m, run: &runs[i], session: p.Start(&runs[i], b.count),
			shown: make(map[string]int), earlier: make(map[string]bool), elsewhere: make(map[string]bool),
		}
		if err := r.replay(); err != nil {
			return nil, fmt.Errorf("replay: policy %s: %w", p.Name(), err)
		}
	}
	return m, nil
}

// replayed is one run while it is replayed.
type replayed struct {
	b       *Bench
	m       *measurement
	run     *Run
	session Session

	last   View
	lastAt int
	cost   float64
	peak   int
	// shown counts, for each identifier, the pieces of the last view with it.
	shown map[string]int
	// earlier are the identifiers of all messages so far, elsewhere those that
	// did not only stand in results.
	earlier, elsewhere map[string]bool
}

func (r *replayed) replay() error {
	for i, m := range r.run.Messages {
		if m.Role == "assistant" {
			v, err := r.session.View(i)
			if err != nil {
				return err
			}
			r.step(v)
			r.lastAt = i
			r.need(asked(m.Calls))
		}
		r.remember(&r.run.Entries[i])
	}
	r.m.costs = append(r.m.costs, r.cost)
	r.m.peaks = append(r.m.peaks, r.peak)
	r.survival()
	return nil
}

// step takes one prompt into account.
func (r *replayed) step(v View) {
	same, shared := 0, 0
	before := r.last.Pieces
	for same < len(v.Pieces) && same < len(before) && v.Pieces[same] == before[same] {
		shared += v.Pieces[same].Tokens
		same++
	}
	for _, p := range before[same:] {
		r.show(p, -1)
	}
	for _, p := range v.Pieces[same:] {
		r.show(p, 1)
	}
	n := total(v.Pieces)
	r.m.steps++
	r.m.sent += float64(n)
	r.m.shared += float64(shared)
	if same < len(before) {
		r.m.busts++
	}
	prices := r.b.Prices
	r.cost += prices.CachedInput*float64(shared) + max(prices.CacheWrite, prices.Input)*float64(n-shared)
	r.peak = max(r.peak, n)
	r.last = v
}

func (r *replayed) show(p Piece, by int) {
	for _, text := range []string{p.Text, p.Args} {
		for _, id := range r.b.identifiers(text) {
			r.shown[id] += by
		}
	}
}

// need looks for the identifiers of a call among those shown.
func (r *replayed) need(call string) {
	for _, id := range r.b.identifiers(call) {
		if !r.earlier[id] {
			continue
		}
		seen := 0
		if r.shown[id] > 0 {
			seen = 1
		}
		r.m.needed++
		r.m.visible += seen
		if !r.elsewhere[id] {
			r.m.neededTool++
			r.m.visibleTool += seen
		}
	}
}

// remember takes a message into account as a source of identifiers.
func (r *replayed) remember(e *history.Entry) {
	for _, text := range []string{e.Text, asked(e.Calls), shown(e)} {
		for _, id := range r.b.identifiers(text) {
			r.earlier[id] = true
			if e.Kind != history.Result {
				r.elsewhere[id] = true
			}
		}
	}
}
