//go:build linux

package paths

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Settle waits until nothing has been written for a while: until the background is done
// with what was written before. Then it collects garbage, so that pools begin empty.
func (m *Meter) Settle() {
	m.still(200 * time.Millisecond)
	runtime.GC()
}

// still waits until nothing has been written for so long, and nothing is being written.
func (m *Meter) still(quiet time.Duration) {
	for before := int64(-1); before != m.store.commits.Load() || m.store.underWay.Load() > 0; time.Sleep(quiet) {
		before = m.store.commits.Load()
	}
}

// Meter measures calls against a store: that of Of.
type Meter struct {
	store *Store
	work  []time.Duration // what the fixed work took
}

// Of has the next calls use a store.
func (m *Meter) Of(store *Store) { m.store = store }

// Path is what the calls of one path took.
type Path struct {
	cpu   []time.Duration
	taken []Figures
}

// after is how long nothing is written before a call is over: what it leaves to the
// background is a part of it.
const after = 2 * time.Millisecond

// Call measures one call for a path, and the fixed work beside it. of returns which path it
// was, known when the call is over; nil: none.
func (m *Meter) Call(call func() (of *Path, err error)) error {
	m.work = append(m.work, m.fixed())
	before := m.read()
	begin := cpu()
	of, err := call()
	m.still(after)
	took := cpu() - begin
	end := m.read()
	if err != nil || of == nil {
		return err
	}
	of.cpu = append(of.cpu, took)
	was := before.fields()
	for i, f := range end.fields() {
		*f -= *was[i]
	}
	of.taken = append(of.taken, *end)
	return nil
}

// Unit is the CPU time of the fixed work.
func (m *Meter) Unit() time.Duration { return median(m.work) }

// Figures are the medians of a path, whose calls were measured.
func (m *Meter) Figures(p *Path) Figures {
	out := Figures{CPU: math.Round(100*float64(median(p.cpu))/float64(max(m.Unit(), 1))) / 100}
	for i, f := range out.fields() {
		all := make([]float64, len(p.taken))
		for k := range p.taken {
			all[k] = *p.taken[k].fields()[i]
		}
		*f = median(all)
	}
	return out
}

// Calls is how many calls were measured.
func (p *Path) Calls() int { return len(p.cpu) }

func (f *Figures) fields() []*float64 {
	return []*float64{&f.Allocations, &f.Bytes, &f.Reads, &f.Keys, &f.Scans, &f.Pairs, &f.Syncs, &f.Written}
}

func (m *Meter) read() *Figures {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s := m.store
	return &Figures{
		Allocations: float64(memory.Mallocs), Bytes: float64(memory.TotalAlloc), Reads: float64(s.gets.Load()), Keys: float64(s.keys.Load()),
		Scans: float64(s.scans.Load()), Pairs: float64(s.pairs.Load()), Syncs: float64(s.commits.Load()), Written: float64(s.written.Load()),
	}
}

// fixed hashes and writes as JSON what never changes.
func (*Meter) fixed() time.Duration {
	begin := cpu()
	text := make([]byte, 64<<10)
	for i := range 8 {
		sum := sha256.Sum256(text)
		text, _ = json.Marshal(map[string]any{"text": text[:32<<10], "sum": sum, "i": i}) // plain data
	}
	return cpu() - begin
}

// cpu is the CPU time of the process.
func cpu() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func median[T cmp.Ordered](all []T) (none T) {
	if len(all) == 0 {
		return none
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}
