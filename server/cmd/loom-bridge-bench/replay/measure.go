package replay

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
)

// measurement is what one policy did on all runs.
type measurement struct {
	steps, busts, over int
	sent, shared       float64
	costs              []float64
	peaks              []int
	// needed and visible count all identifiers, neededTool and visibleTool the ones that
	// only results had shown.
	needed, visible, neededTool, visibleTool int
	// calls counts the calls of all runs; faults the calls with a name that only results
	// had shown and the prompt does not show; repeats the calls made before whose result is
	// folded.
	calls, faults, repeats int
	rehydrated             float64
	held, survived         map[string]int
}

func newMeasurement() *measurement {
	return &measurement{held: make(map[string]int), survived: make(map[string]int)}
}

// add adds the measurement of another run.
func (m *measurement) add(o *measurement) {
	m.steps += o.steps
	m.busts += o.busts
	m.over += o.over
	m.sent += o.sent
	m.shared += o.shared
	m.costs = append(m.costs, o.costs...)
	m.peaks = append(m.peaks, o.peaks...)
	m.needed += o.needed
	m.visible += o.visible
	m.neededTool += o.neededTool
	m.visibleTool += o.visibleTool
	m.calls += o.calls
	m.faults += o.faults
	m.repeats += o.repeats
	m.rehydrated += o.rehydrated
	for class, n := range o.held {
		m.held[class] += n
		m.survived[class] += o.survived[class]
	}
}

// Bench replays runs under policies.
type Bench struct {
	// Count counts tokens; it is called by many goroutines at a time. Required.
	Count func(text string) int
	// Prices are what tokens cost. Default history.DefaultPrices.
	Prices history.Prices
	// Replayed, if not nil, is called with the number of replayed runs, by one goroutine at
	// a time.
	Replayed func(runs int)
}

// Run measures policies on runs and returns a row for each. Their ratios are to
// AppendOnly, which is measured, too. Several runs are replayed at a time. It returns the
// errors of ctx and of policies.
func (b *Bench) Run(ctx context.Context, runs []Run, policies []Policy) ([]Measured, error) {
	all := append([]Policy{AppendOnly()}, policies...)
	measured, err := b.replayAll(ctx, runs, all)
	if err != nil {
		return nil, err
	}
	rows := make([]Measured, 0, len(policies))
	for i, p := range policies {
		rows = append(rows, measured[i+1].row(p.Name(), measured[0]))
	}
	return rows, nil
}

// replayAll replays all runs under all policies and returns a measurement for
// each policy. What a run gave is added in the order of the runs, so that the
// sums are the same each time.
func (b *Bench) replayAll(ctx context.Context, runs []Run, policies []Policy) ([]*measurement, error) {
	each, errs := make([][]*measurement, len(runs)), make([]error, len(runs))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex // guards done
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(runs)) {
		workers.Go(func() {
			for i := range next {
				each[i], errs[i] = b.replayRun(ctx, &runs[i], policies)
				mu.Lock()
				done++
				if b.Replayed != nil {
					b.Replayed(done)
				}
				mu.Unlock()
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	workers.Wait()
	sums := make([]*measurement, len(policies))
	for k := range sums {
		sums[k] = newMeasurement()
		for i := range runs {
			if errs[i] != nil {
				return nil, errs[i]
			}
			sums[k].add(each[i][k])
		}
	}
	return sums, nil
}

// replayRun replays one run under each policy.
func (b *Bench) replayRun(ctx context.Context, run *Run, policies []Policy) ([]*measurement, error) {
	texts := memo{counter: b.Count, counts: make(map[string]int), ids: make(map[string][]string)}
	prices := b.Prices
	if prices == (history.Prices{}) {
		prices = history.DefaultPrices()
	}
	all := make([]*measurement, len(policies))
	for i, p := range policies {
		all[i] = newMeasurement()
		r := replayed{
			texts: &texts, prices: prices, m: all[i], run: run, session: p.Start(run, texts.count),
			shown: make(map[string]int), earlier: make(map[string]bool), elsewhere: make(map[string]bool),
			made: make(map[string]int),
		}
		if err := r.replay(ctx); err != nil {
			return nil, fmt.Errorf("replay: policy %s: %w", p.Name(), err)
		}
	}
	return all, nil
}

// memo remembers the state of the texts of a run.
type memo struct {
	counter func(string) int
	counts  map[string]int
	ids     map[string][]string
}

// count remembers what it counted.
func (m *memo) count(text string) int {
	n, known := m.counts[text]
	if !known {
		n = m.counter(text)
		m.counts[text] = n
	}
	return n
}

// identifiers returns the identifiers of a text, each once.
func (m *memo) identifiers(text string) []string {
	ids, known := m.ids[text]
	if !known {
		excerpt.EachIdentifier(text, func(id string) { ids = append(ids, id) })
		slices.Sort(ids)
		ids = slices.Compact(ids)
		m.ids[text] = ids
	}
	return ids
}

// replayed is one run while it is replayed.
type replayed struct {
	texts   *memo
	prices  history.Prices
	m       *measurement
	run     *Run
	session Session

	last   Sent
	lastAt int
	cost   float64
	peak   int
	// shown counts, for each identifier, the pieces of the last view with it.
	shown map[string]int
	// earlier are the identifiers of all messages so far, elsewhere the ones that stood not
	// only in results.
	earlier, elsewhere map[string]bool
	// made is, for each call, the message that made it last.
	made map[string]int
}

func (r *replayed) replay(ctx context.Context) error {
	for i, m := range r.run.Messages {
		if m.Role == roleAssistant {
			v, err := r.session.View(i)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			r.step(v)
			r.lastAt = i
			r.need(r.run.asked(i))
		}
		r.remember(&r.run.Entries[i])
	}
	r.m.costs = append(r.m.costs, r.cost)
	r.m.peaks = append(r.m.peaks, r.peak)
	r.survival()
	return nil
}

// step takes one prompt into account.
func (r *replayed) step(v Sent) {
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
	r.m.rehydrated += float64(v.Rehydrated)
	r.m.shared += float64(shared)
	if same < len(before) {
		r.m.busts++
	}
	if v.Over {
		r.m.over++
	}
	r.cost += r.prices.CachedInput*float64(shared) + max(r.prices.CacheWrite, r.prices.Input)*float64(n-shared)
	r.peak = max(r.peak, n)
	r.last = v
}

func (r *replayed) show(p PromptPart, by int) {
	for _, text := range []string{p.Text, p.Args} {
		for _, id := range r.texts.identifiers(text) {
			r.shown[id] += by
		}
	}
}

// need looks for the identifiers of calls among those shown, and for calls whose result
// was folded.
func (r *replayed) need(calls []history.Call) {
	for _, call := range calls {
		text := asked([]history.Call{call})
		r.m.calls++
		if at, made := r.made[text]; made && r.last.folded(at) {
			r.m.repeats++
		}
		r.made[text] = r.lastAt
	}
	missing := 0
	for _, id := range r.texts.identifiers(asked(calls)) {
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
			missing += 1 - seen
		}
	}
	if missing > 0 {
		r.m.faults++
	}
}

// folded reports whether the results of message i are not there as they were.
func (v Sent) folded(i int) bool { return i < len(v.Folded) && v.Folded[i] }

// remember takes a message into account as a source of identifiers.
func (r *replayed) remember(e *history.Entry) {
	for _, text := range []string{e.Text, asked(e.Calls), shown(e)} {
		for _, id := range r.texts.identifiers(text) {
			r.earlier[id] = true
			if e.Kind != history.Result {
				r.elsewhere[id] = true
			}
		}
	}
}
