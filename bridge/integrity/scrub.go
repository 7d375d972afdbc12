package integrity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// DefaultScrubEvery is the time between the beginnings of two passes.
	DefaultScrubEvery = 24 * time.Hour
	// DefaultScrubRate is how many bytes a scrub reads in a second: so few that
	// no caller notices, and enough for 300 GB a day.
	DefaultScrubRate = 4 << 20
	// firstScrub is when the first pass begins, or a whole interval after the start
	// if that is shorter: a server that is starting has other things to do.
	firstScrub = time.Minute
	// pausesPerSecond is how often a pass waits at most: each wait costs a wake-up.
	pausesPerSecond = 16
	// maxNoted bounds the findings of a pass that are kept and logged one by one.
	maxNoted = 16
)

// ScrubOptions adjusts a Scrub. Nil and zero fields mean the defaults.
type ScrubOptions struct {
	// Every is the time between the beginnings of two passes; a pass that takes
	// longer is followed by the next at once. Default DefaultScrubEvery.
	Every time.Duration
	// BytesPerSecond bounds how much is read. Default DefaultScrubRate.
	BytesPerSecond int64
	// Logger gets what was found. Default: silent.
	Logger *slog.Logger
}

// Scrub reads everything back that a store holds, again and again, and notes what is
// damaged in the store's health. All methods are safe for concurrent use.
type Scrub struct {
	engine  kv.Engine
	options ScrubOptions
	stop    context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	report Report // guarded by mu
}

// Report is what scrubbing has come to.
type Report struct {
	// Passes is how many came through.
	Passes int
	// End is when the last of them did; zero if none has.
	End time.Time
	// Bytes is how much has been read since the start, the present pass included.
	Bytes int64
	// Damaged is how many findings the last pass had, and Findings the first of
	// them.
	Damaged  int
	Findings []Finding
}

// StartScrub begins to scrub. The engine must outlive the Scrub, which Close ends.
func StartScrub(engine kv.Engine, opts *ScrubOptions) *Scrub {
	s := &Scrub{engine: engine, stopped: make(chan struct{})}
	if opts != nil {
		s.options = *opts
	}
	if s.options.Every <= 0 {
		s.options.Every = DefaultScrubEvery
	}
	if s.options.BytesPerSecond <= 0 {
		s.options.BytesPerSecond = DefaultScrubRate
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.run(ctx)
	return s
}

// Close ends the pass under way and waits for that. Closing again is harmless.
func (s *Scrub) Close() error {
	s.stop()
	<-s.stopped
	return nil
}

// Report returns what scrubbing has come to.
func (s *Scrub) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

func (s *Scrub) run(ctx context.Context) {
	defer close(s.stopped)
	for wait := min(firstScrub, s.options.Every); kv.Sleep(ctx, wait); {
		began := time.Now()
		s.pass(ctx)
		wait = max(0, s.options.Every-time.Since(began))
	}
}

// pass is one reading of everything.
type pass struct {
	scrub    *Scrub
	damaged  map[kv.Keyspace]error
	findings []Finding
	total    int
	unpaid   int64 // bytes read and not waited for
}

func (s *Scrub) pass(ctx context.Context) {
	p := &pass{scrub: s, damaged: make(map[kv.Keyspace]error)}
	err := errors.Join(p.files(ctx), p.entries(ctx))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.options.Logger.ErrorContext(ctx, "the store could not be read back", "error", err)
		return
	}
	if m, ok := s.engine.(kv.Monitored); ok {
		m.Health().Whole(p.damaged)
	}
	s.mu.Lock()
	s.report.Passes++
	s.report.Bytes += p.unpaid
	s.report.End, s.report.Damaged, s.report.Findings = time.Now(), p.total, slices.Clip(p.findings)
	bytes := s.report.Bytes
	s.mu.Unlock()
	if p.total > 0 {
		s.options.Logger.ErrorContext(ctx, "the store was read back and parts of it are damaged; restore a backup",
			"damaged", p.total, "first", p.findings[0].String())
		return
	}
	s.options.Logger.InfoContext(ctx, "the store was read back, nothing is damaged", "bytes_since_start", bytes)
}

// files reads the files byte by byte, where the engine has any.
func (p *pass) files(ctx context.Context) error {
	verifier, ok := p.scrub.engine.(kv.Verifier)
	if !ok {
		return nil
	}
	read := int64(0)
	return verifier.Verify(ctx, kv.Verification{
		Found: func(damage *kv.DamageError) error {
			p.found(ctx, Finding{Keyspace: damage.Keyspace, Problem: damage})
			return nil
		},
		Read: func(done, _ int64) error {
			bytes := done - read
			read = done
			return p.slow(ctx, bytes)
		},
	})
}

func (p *pass) entries(ctx context.Context) error {
	_, err := Entries(ctx, p.scrub.engine, Options{
		Found: func(f Finding) { p.found(ctx, f) },
		Read:  func(bytes int64) error { return p.slow(ctx, bytes) },
	})
	return err
}

// found notes a finding at once: a pass takes long.
func (p *pass) found(ctx context.Context, f Finding) {
	if ctx.Err() != nil {
		return
	}
	if p.damaged[f.Keyspace] == nil {
		p.damaged[f.Keyspace] = f.Problem
	}
	if m, ok := p.scrub.engine.(kv.Monitored); ok {
		m.Health().Damage(f.Keyspace, f.Problem)
	}
	if p.total++; len(p.findings) < maxNoted {
		p.findings = append(p.findings, f)
		p.scrub.options.Logger.ErrorContext(ctx, "damage was found in the store", "where", f.String())
	}
}

// slow waits as long as reading so many bytes may take, now and then.
func (p *pass) slow(ctx context.Context, bytes int64) error {
	s := p.scrub
	p.unpaid += bytes
	if p.unpaid < s.options.BytesPerSecond/pausesPerSecond {
		return ctx.Err()
	}
	s.mu.Lock()
	s.report.Bytes += p.unpaid
	s.mu.Unlock()
	wait := time.Duration(float64(p.unpaid) / float64(s.options.BytesPerSecond) * float64(time.Second))
	p.unpaid = 0
	kv.Sleep(ctx, wait)
	return ctx.Err()
}
