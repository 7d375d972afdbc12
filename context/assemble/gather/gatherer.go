package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	"github.com/loom-bridge/loom-bridge/memory/kv/span"
)

// maxKeptBytes bounds the texts of kept blocks: enough for some ten thousand
// sessions.
const maxKeptBytes = 64 << 20

// Options adjusts a Gatherer. Nil and zero fields mean the defaults.
type Options struct {
	// Logger logs sources that fail. Default silent.
	Logger *slog.Logger
	// Refused returns why a prompt must not show the memory of its user; empty if it may.
	// Such a prompt is made as if it named none. Default: every prompt may.
	Refused func(ctx context.Context, a *Ask) (reason string)
	// OnFailure is called for each failure, on the goroutine of the prompt. It must not
	// block. Default: no call.
	OnFailure func(Failure)
}

// Gatherer asks sources. All methods are safe for concurrent use.
type Gatherer struct {
	sources   []Source
	kept      *cache.Cache[keptKey, kept]
	logger    *slog.Logger
	onFailure func(Failure)
	refused   func(ctx context.Context, a *Ask) string
	running   sync.WaitGroup // of sources that are asked
}

// New returns a gatherer of sources, whose injections stand in their order. Close it.
func New(sources []Source, opts *Options) *Gatherer {
	o := *cmp.Or(opts, &Options{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Refused == nil {
		o.Refused = func(context.Context, *Ask) string { return "" }
	}
	if o.OnFailure == nil {
		o.OnFailure = func(Failure) {}
	}
	return &Gatherer{
		sources: slices.Clone(sources), kept: cache.New[keptKey, kept](maxKeptBytes), logger: o.Logger, onFailure: o.OnFailure,
		refused: o.Refused,
	}
}

// Close waits for sources that prompts did not wait for. Gather nothing afterwards.
func (g *Gatherer) Close() error {
	g.running.Wait()
	return nil
}

// answer is what a source answered.
type answer struct {
	found Found
	err   error
}

// Gather asks all sources that the settings do not exclude. One that fails or takes too
// long is named in the answer. An error is that of ctx, or kv.ErrTooOld where the view
// is.
func (g *Gatherer) Gather(ctx context.Context, a *Ask) (Gathered, error) {
	all := Gathered{Notes: map[string]string{}, Refs: map[string][]string{}, LeftOut: map[string][]string{}}
	if a.Settings.UserID != "" {
		if reason := g.refused(ctx, a); reason != "" {
			all.Failures = append(all.Failures, Failure{Source: settings.UserMemory, Reason: reason})
			own := *a
			own.Settings.UserID = ""
			a = &own
		}
	}
	waiting := make([]func() answer, len(g.sources))
	for i, s := range g.sources {
		if !excluded(s, &a.Settings) {
			waiting[i] = g.start(ctx, s, a)
		}
	}
	var tooOld error
	for i, s := range g.sources {
		if waiting[i] == nil {
			continue
		}
		got := waiting[i]()
		switch {
		case errors.Is(got.err, kv.ErrTooOld):
			tooOld = got.err
		case got.err != nil:
			g.fail(ctx, &all, s.Name(), got.err)
		default:
			all.Asked = append(all.Asked, s.Name())
			for _, f := range got.found.Failures {
				g.note(ctx, &all, f, errors.New(f.Reason))
			}
			g.add(&all, a, s.Name(), &got.found)
		}
	}
	if err := ctx.Err(); err != nil {
		return Gathered{}, fmt.Errorf("gather: %w", err)
	}
	if tooOld != nil {
		return Gathered{}, fmt.Errorf("gather: %w", tooOld)
	}
	return all, nil
}

func excluded(s Source, p *settings.Prompt) bool {
	if optional, ok := s.(Optional); ok {
		return optional.Excluded(p)
	}
	return p.Excludes(s.Name())
}

// start asks a source, and returns what waits for its answer.
func (g *Gatherer) start(ctx context.Context, s Source, a *Ask) func() answer {
	own := *a
	own.Shown = g.shown(a, s.Name())
	if r, ok := s.(Remembering); ok {
		if got, known := remembered(ctx, r, s.Name(), &own); known {
			return func() answer { return got }
		}
	}
	done := make(chan answer, 1)
	limited, stop := ctx, context.CancelFunc(func() {})
	if timed, ok := s.(Timed); ok {
		limited, stop = context.WithTimeout(ctx, timed.Timeout(a))
	}
	g.running.Go(func() {
		defer stop()
		found, err := collect(limited, s, &own)
		done <- answer{found, err}
	})
	return func() answer {
		select {
		case got := <-done:
			return got
		case <-limited.Done():
		}
		select { // what came in time counts
		case got := <-done:
			return got
		default:
			return answer{err: limited.Err()}
		}
	}
}

// remembered asks a source for what it knows.
func remembered(ctx context.Context, r Remembering, name string, a *Ask) (got answer, known bool) {
	defer func() {
		if p := recover(); p != nil {
			got, known = answer{err: panicked(name, p)}, true
		}
	}()
	got.found, known, got.err = r.Remembered(ctx, a)
	return got, known || got.err != nil
}

// collect asks a source; one that panics has failed.
func collect(ctx context.Context, s Source, a *Ask) (found Found, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(s.Name(), p)
		}
	}()
	ctx, end := span.Start(ctx, "ask_source", s.Name())
	defer func() { end(err) }()
	return s.Collect(ctx, a)
}

func panicked(name string, p any) error { return fmt.Errorf("gather: panic in source %s: %v", name, p) }

func (g *Gatherer) fail(ctx context.Context, all *Gathered, name string, err error) {
	f := Failure{Source: name, TimedOut: errors.Is(err, context.DeadlineExceeded), Reason: "its source failed"}
	if f.TimedOut {
		f.Reason = "its source took too long"
	}
	var public interface{ Public() string }
	if errors.As(err, &public) {
		f.Reason = public.Public()
	}
	g.note(ctx, all, f, err)
}

// note names a failure in the answer, and reports it.
func (g *Gatherer) note(ctx context.Context, all *Gathered, f Failure, err error) {
	all.Failures = append(all.Failures, f)
	if ctx.Err() == nil {
		g.logger.WarnContext(ctx, "a prompt goes without a source", "source", f.Source, "error", err)
		g.onFailure(f)
	}
}

func (g *Gatherer) add(all *Gathered, a *Ask, name string, found *Found) {
	all.Injections = append(all.Injections, found.Injections...)
	all.Skills = append(all.Skills, found.Skills...)
	if found.Note != "" {
		all.Notes[name] = found.Note
	}
	if len(found.Refs) > 0 {
		all.Refs[name] = append(all.Refs[name], found.Refs...)
	}
	if len(found.LeftOut) > 0 {
		all.LeftOut[name] = append(all.LeftOut[name], found.LeftOut...)
	}
	refs := slices.Clone(found.Refs)
	if found.Block != nil {
		refs = append(refs, g.place(all, a, name, found.Block)...)
	}
	if found.Rendered != nil {
		all.rendered = append(all.rendered, func() { found.Rendered(refs) })
	}
}

// keptFor is how long a block of a cache class stays.
func keptFor(stable bool) time.Duration {
	if stable {
		return stableTTL
	}
	return sessionTTL
}
