package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// DefaultDrainTime is how long an erasure waits for the calls of its subject that are
// running, after they were asked to end.
const DefaultDrainTime = 30 * time.Second

var (
	// ErrBusy: another subject is being erased.
	ErrBusy = errors.New("erasure: another subject is being erased")
	// ErrInUse: calls of the subject did not end in time. Nothing was erased.
	ErrInUse = errors.New("erasure: calls of the subject are under way and do not end")
	// ErrShared: other servers have the store open, too.
	ErrShared = errors.New("erasure: other servers have the store open; stop them, or erase while none runs")
	// ErrLeft: something of the subject was there again and again.
	ErrLeft = errors.New("erasure: something of the subject is left")
	// ErrClosed: the worker is closed.
	ErrClosed = errors.New("erasure: the server is stopping")
)

// Parts are what holds anything of a subject, in the store or in memory.
type Parts struct {
	Engine kv.Engine
	Writer *kv.Writer
	// Gate is new.
	Gate   *Gate
	Memory interface {
		Forget(scope kv.Scope)
		Expunge(ctx context.Context, scope kv.Scope, subject erasure.Subject, ids map[string]bool) error
		List(ctx context.Context, scope kv.Scope, l memory.Listing) (memory.Page, error)
	}
	Log interface {
		Forget(tenant string, match func(kv.Scope) bool)
	}
	Prompts interface {
		Forget(match func(kv.Scope) bool)
	}
	Past interface {
		Settle(ctx context.Context, scope kv.Scope)
	}
	Events interface {
		Erase(ctx context.Context, tenant string, of store.Erasing) (int, error)
	}
	Messages interface {
		Erase(ctx context.Context, tenant, source, session string) (int, error)
	}
	Audit interface {
		Erase(ctx context.Context, tenant, agent, session string, step uint64) (int, error)
	}
	Agents interface {
		DeleteHere(ctx context.Context, tenant, id string) (bool, error)
	}
	Children interface {
		Erased(ctx context.Context, scope kv.Scope) error
	}
	Jobs interface{ EndAgent(scope kv.Scope) }
	// Others reports whether other servers have the store open. Nil: none does.
	Others func(ctx context.Context) (bool, error)
}

// Options adjusts a Worker. Nil and zero fields mean the defaults.
type Options struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Version is the program's version, for certificates. Backups are the names of known
	// backups, which may still hold erased data. Default: none.
	Version string
	Backups func() ([]string, error)
	// Logger logs each erasure. Default silent.
	Logger *slog.Logger
}

// Result is what an erasure did.
type Result struct {
	erasure.Holdings
	// Resumed says that the erasure had begun before, in this process or an earlier one.
	Resumed bool
	// Reclaimed says that the engine has let go of the bytes.
	Reclaimed bool
	// Began and Ended are when.
	Began, Ended time.Time
	// Certificate is signed with the store's own key (see erasure.Certificate).
	Certificate *erasure.Certificate
}

// Step is what an erasure does at a moment.
type Step string

// The steps, in order.
const (
	Waiting    Step = "waiting"    // for calls of the subject that are under way
	Counting   Step = "counting"   // what there is
	Erasing    Step = "erasing"    // entries
	Checking   Step = "checking"   // that nothing is left
	Reclaiming Step = "reclaiming" // the bytes
)

// EraseProgress is how far an erasure is.
type EraseProgress struct {
	Step Step
	// Entries is how many entries the step has looked at or changed.
	Entries int64
}

// Worker erases. All methods are safe for concurrent use.
type Worker struct {
	Parts
	opts Options

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	job    *job // nil: nothing is being erased
	others []func()
}

// OnForget has a function called whenever a subject is to be forgotten, for what keeps in memory
// what prompts have shown, and knows of no scope.
func (w *Worker) OnForget(forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(w.others, forget)
}

// job is an erasure that runs.
type job struct {
	subject erasure.Subject
	scope   kv.Scope
	done    chan struct{}
	result  Result // set, like err, before done is closed
	err     error

	mu       sync.Mutex // guards progress
	progress EraseProgress
}

func (j *job) at(step Step, entries int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = EraseProgress{step, entries}
}

// Open returns a worker. What had begun in an earlier process is refused to callers when it
// returns, and goes on.
func Open(parts Parts, opts *Options) (*Worker, error) {
	w := &Worker{Parts: parts}
	if opts != nil {
		w.opts = *opts
	}
	if w.opts.Now == nil {
		w.opts.Now = time.Now
	}
	if w.opts.Logger == nil {
		w.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if w.Others == nil {
		w.Others = func(context.Context) (bool, error) { return false, nil }
	}
	w.ctx, w.stop = context.WithCancel(kv.PastBars(context.Background()))
	begun, err := intents(w.ctx, w.Engine)
	if err != nil {
		w.stop()
		return nil, fmt.Errorf("erasure: read the unfinished erasures: %w", err)
	}
	for _, i := range begun {
		scope, err := erasure.Scope(i.subject)
		if err != nil {
			return nil, err
		}
		w.shut(scope)
	}
	if len(begun) > 0 {
		w.running.Go(func() { w.resume(begun) })
	}
	return w, nil
}

// Close ends the erasure that runs; the next start goes on with it. Closing twice is
// harmless.
func (w *Worker) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
	return nil
}

// resume goes on with erasures one after the other.
func (w *Worker) resume(begun []intent) {
	for _, i := range begun {
		for w.ctx.Err() == nil {
			j, _, err := w.start(i.subject)
			if err != nil {
				break
			}
			<-j.done
			if j.subject == i.subject {
				break // where it failed, a call may make it go on
			}
		}
	}
}

// Erase erases a subject and returns when all is done, or when ctx ends: the erasure then
// goes on, and a later call for the same subject waits for it. A dry run only counts.
// ErrNothing: the store has nothing of the subject. progress is called now and then.
func (w *Worker) Erase(ctx context.Context, s erasure.Subject, dry bool, progress func(EraseProgress)) (Result, error) {
	if err := erasure.Check(s); err != nil {
		return Result{}, err
	}
	if s.Kind == erasure.Tenant {
		return Result{}, invalid.Field(erasure.ErrInvalid, "subject", "can be an agent or a person on a running server; erase a tenant while none runs")
	}
	if dry {
		picked, err := w.pick(ctx, s)
		if err != nil {
			return Result{}, err
		}
		found, _, err := w.count(ctx, s, picked, func(n int64) { progress(EraseProgress{Counting, n}) })
		return Result{Holdings: found}, err
	}
	if err := w.alone(ctx); err != nil {
		return Result{}, err
	}
	j, resumed, err := w.start(s)
	if err != nil {
		return Result{}, err
	}
	if j.subject != s {
		return Result{}, fmt.Errorf("%w: %s", ErrBusy, j.subject)
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.done:
			result := j.result
			result.Resumed = result.Resumed || resumed
			return result, j.err
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		case <-tick.C:
			j.mu.Lock()
			now := j.progress
			j.mu.Unlock()
			progress(now)
		}
	}
}

// alone refuses a store that others have open.
func (w *Worker) alone(ctx context.Context) error {
	others, err := w.Others(ctx)
	if err == nil && others {
		err = ErrShared
	}
	return err
}

// Enter is the gate's.
func (w *Worker) Enter(scope kv.Scope, end func(error)) (*Visit, error) {
	return w.Gate.Enter(scope, end)
}

// progressEvery is the time between two calls of progress.
const progressEvery = 200 * time.Millisecond

// count counts what there is of a subject, and of a step who else has lines of it.
func (w *Worker) count(ctx context.Context, s erasure.Subject, picked erasure.Picked, each func(int64)) (erasure.Holdings, map[string]int64, error) {
	e, err := erasure.New(ctx, s, w.Engine, picked)
	if err != nil {
		return erasure.Holdings{}, nil, err
	}
	found, err := e.Count(ctx, w.Engine, each)
	if err == nil && found.Empty() {
		err = erasure.ErrNothing
	}
	return found, e.Quoted(), err
}

// start starts an erasure, or returns the one that runs.
func (w *Worker) start(s erasure.Subject) (j *job, running bool, err error) {
	scope, err := erasure.Scope(s)
	if err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil, false, ErrClosed
	case w.job != nil:
		return w.job, true, nil
	}
	j = &job{subject: s, scope: scope, done: make(chan struct{})}
	w.job = j
	w.running.Go(func() {
		j.result, j.err = w.erase(w.ctx, j)
		if j.err != nil && w.ctx.Err() != nil {
			j.err = ErrClosed
		}
		r := &j.result
		switch {
		case errors.Is(j.err, erasure.ErrNothing), errors.Is(j.err, ErrInUse), errors.Is(j.err, ErrClosed):
		case j.err != nil:
			w.opts.Logger.Error("an erasure has not ended; calls of its subject are refused until the erasure is repeated or the server restarts", "subject", j.subject.String(), "error", j.err)
		default:
			if r.Resumed {
				w.opts.Logger.Info("the certificate of an erasure that went on", "certificate", r.Certificate.Text())
			}
			w.opts.Logger.Info("a subject was erased", "subject", j.subject.String(), "entries", r.Entries, "bytes", r.Bytes, "reclaimed", r.Reclaimed, "resumed", r.Resumed, "took", r.Ended.Sub(r.Began))
		}
		w.mu.Lock()
		w.job = nil
		w.mu.Unlock()
		close(j.done)
	})
	return j, false, nil
}
