package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Errors of jobs.
var (
	// ErrNotFound: the session has no job of that id.
	ErrNotFound = errors.New("jobs: no such job")
	// ErrClosed: the server stops.
	ErrClosed = errors.New("jobs: closed")
)

// EarlierError is an ErrNotFound for what is no job of this server: if it was one, it ended with the
// server that ran it.
type EarlierError struct {
	ID string
	// Since is when this server began to run jobs.
	Since time.Time
}

func (e *EarlierError) Error() string {
	return ErrNotFound.Error() + ": " + e.ID + " of another server"
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *EarlierError) Is(target error) bool { return target == ErrNotFound }

// idBegin begins the id of every job.
const idBegin = "job_"

func randomly(n int) string { return strings.ToLower(rand.Text()[:n]) }

// Defaults and limits.
const (
	// DefaultMaxRunning bounds the jobs that run at once.
	DefaultMaxRunning = 32
	// MaxEnded bounds the jobs of a session that have ended and can still be read, and
	// maxEndedOfAll bounds the ended jobs of all sessions. Beyond it, the oldest job is
	// removed of the agent with most, in the tenant with most.
	MaxEnded      = 8
	maxEndedOfAll = 64
	// SpoolBytes is how much is kept of what a job prints.
	SpoolBytes = 16 << 20
	// DefaultReadBytes and MaxReadBytes bound what one reading gives.
	DefaultReadBytes = 32 << 10
	MaxReadBytes     = 256 << 10
	// startTime is how long a start waits for a program that can't be started.
	startTime = 150 * time.Millisecond
	// stopTime is how long a stop waits for the end.
	stopTime = 5 * time.Second
	// sweepEvery is the time between two looks for sessions that were closed.
	sweepEvery = time.Minute
	// anyOutput is no limit on what a job prints: what is old is dropped.
	anyOutput = 1 << 60
	// maxCommandBytes bounds the shown part of a command line.
	maxCommandBytes = 256
)

// JobOwner is whom a job belongs to.
type JobOwner struct {
	Scope   kv.Scope
	Session string
}

// Status is how far a job is.
type Status string

// The statuses.
const (
	Running Status = "running"
	Exited  Status = "exited"  // by itself
	Stopped Status = "stopped" // by a call, its session, its timeout or the server
	Failed  Status = "failed"  // it could not be run, or not to its end
)

// Info describes a job.
type Info struct {
	ID      string
	Command string
	Status  Status
	// Exit is the exit code; -1 when a signal or a limit ended it, or nothing yet.
	Exit int
	// Limit names the limit that ended it; empty for none.
	Limit string
	// Refused are protected paths that it was kept from.
	Refused []string
	// Problem says why it failed.
	Problem string
	Started time.Time
	Ended   time.Time // zero while it runs
	Printed int64     // bytes of stdout and stderr together
}

// Options adjusts Jobs. Nil and zero fields mean the defaults.
type Options struct {
	// MaxRunning bounds the jobs that run at once. Tenants and agents share them. Default
	// DefaultMaxRunning.
	MaxRunning int
	// OneTenant keeps none for other tenants: there are none.
	OneTenant bool
	// TempDir holds what jobs print. Default: that of the system.
	TempDir string
	// Closed reports whether a session is over. It is asked from time to time. Default: only
	// EndSession ends one.
	Closed func(ctx context.Context, scope kv.Scope, session string) (bool, error)
	// Audit takes a record of each job's end. Default nil: none is taken.
	Audit func(ctx context.Context, r audit.Record) error
	// Secrets are what the server knows to be secret: stars stand for it in what jobs print.
	// Default: it knows none.
	Secrets *secret.Set
	// Now gives the time. Default time.Now.
	Now func() time.Time
	// Logger logs jobs that were stopped with their session. Default silent.
	Logger *slog.Logger
}

// Jobs are the jobs of all agents. All methods are safe for concurrent use; a nil Jobs has
// none.
type Jobs struct {
	runner sandbox.Runner
	opts   Options
	era    string // begins the ids of jobs, unlike those of another server
	since  time.Time
	places *share.Pool
	stop   chan struct{}
	swept  sync.WaitGroup

	mu     sync.Mutex
	closed bool                // guarded by mu
	owners map[JobOwner][]*job // guarded by mu; oldest first
	number uint64              // guarded by mu; of the job that was started last
}

type job struct {
	id      string
	number  uint64 // in the order in which all were started
	start   Start
	command string
	started time.Time
	out     *spool
	cancel  context.CancelFunc
	ended   chan struct{} // closed at the end
	audited chan struct{} // closed behind it, when the record was written

	mu      sync.Mutex
	cursor  int64     // guarded by mu; where the last reading ended
	halted  bool      // guarded by mu; somebody stopped it
	end     time.Time // guarded by mu
	outcome sandbox.RunOutcome
	err     error
}

// New returns jobs that runner runs.
func New(runner sandbox.Runner, opts *Options) *Jobs {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	j := &Jobs{runner: runner, opts: o, era: idBegin + randomly(4), since: o.Now(), stop: make(chan struct{}), owners: map[JobOwner][]*job{}, places: share.New(share.Options{
		Name: "background jobs", Setting: "--max-jobs", Total: int64(cmp.Or(o.MaxRunning, DefaultMaxRunning)), OneTenant: o.OneTenant,
	})}
	if o.Closed != nil {
		j.swept.Go(j.sweep)
	}
	return j
}

// Start is how a job is started.
type Start struct {
	Owner JobOwner
	// CallID and Profile are taken from the starting call, for the audit.
	CallID, Profile string
	Run             sandbox.Job
	// Timeout ends the job. Default: nothing does.
	Timeout time.Duration
	// Done is called when the job has ended, or could not be started. Required.
	Done func()
}

// Start starts a job, which runs until it ends, its timeout has passed or it is stopped. A
// program that is not there is an error; so is a full share of jobs, a
// *share.ExhaustedError.
func (j *Jobs) Start(s Start) (Info, error) {
	owner, run, timeout, done := s.Owner, s.Run, s.Timeout, s.Done
	place, err := j.places.TryTake(share.Owner{Tenant: owner.Scope.Tenant, Agent: owner.Scope.Owner}, 1)
	if err != nil {
		done()
		return Info{}, fmt.Errorf("jobs: start: %w", err)
	}
	out, err := newSpool(j.opts.TempDir, SpoolBytes)
	if err != nil {
		place.Leave()
		done()
		return Info{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if timeout > 0 {
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), timeout)
	}
	b := &job{
		id: j.era + randomly(8), start: s, command: text.Cut(strings.Join(run.Argv, " "), maxCommandBytes, text.Ellipsis),
		started: j.opts.Now(), out: out, cancel: cancel, ended: make(chan struct{}), audited: make(chan struct{}),
	}
	if err := j.add(owner, b); err != nil {
		cancel()
		out.close()
		place.Leave()
		done()
		return Info{}, err
	}
	run.Policy.Limits.Output = anyOutput
	go func() {
		defer cancel()
		// Masked as it comes: a reader of small pieces would see through a later mask.
		mask := j.opts.Secrets.For(owner.Scope.Tenant)
		stdout, stderr := mask.Writer(out), mask.Writer(out)
		outcome, err := j.runner.Run(ctx, run, sandbox.Streams{Stdout: stdout, Stderr: stderr})
		err = errors.Join(err, stdout.Close(), stderr.Close())
		done()
		place.Leave() // before the end is reported: its reader may start the next at once
		b.finish(outcome, err, j.opts.Now())
		j.audit(b)
		close(b.audited)
	}()
	started := time.NewTimer(startTime)
	defer started.Stop()
	select {
	case <-b.ended:
		if b.err != nil && !errors.Is(b.err, context.Canceled) && !errors.Is(b.err, context.DeadlineExceeded) {
			j.remove(b)
			return Info{}, b.err
		}
	case <-started.C:
	}
	j.trim(owner)
	return b.info(), nil
}

func (b *job) finish(outcome sandbox.RunOutcome, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcome, b.err, b.end = outcome, err, now
	close(b.ended)
}

// add takes a job in.
func (j *Jobs) add(owner JobOwner, b *job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	j.number++
	b.number = j.number
	j.owners[owner] = append(j.owners[owner], b)
	return nil
}

// trim forgets the oldest jobs that have ended where there are too many: of a session, and
// of all.
func (j *Jobs) trim(owner JobOwner) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for mine := j.ended(func(o JobOwner) bool { return o == owner }); len(mine) > MaxEnded; mine = mine[1:] {
		j.drop(mine[0])
	}
	all := j.ended(func(JobOwner) bool { return true })
	for len(all) > maxEndedOfAll {
		of := mostOf(all, func(b *job) string { return b.start.Owner.Scope.Tenant })
		oldest := mostOf(of, func(b *job) kv.Scope { return b.start.Owner.Scope })[0]
		all = slices.DeleteFunc(all, func(b *job) bool { return b == oldest })
		j.drop(oldest)
	}
}

// ended are the jobs of some owners that have ended, in the order in which they did. The
// caller holds mu.
func (j *Jobs) ended(of func(JobOwner) bool) (all []*job) {
	for owner, list := range j.owners {
		if !of(owner) {
			continue
		}
		for _, b := range list {
			if b.over() {
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, func(a, b *job) int { // what has ended changes no more
		return cmp.Or(a.end.Compare(b.end), cmp.Compare(a.number, b.number))
	})
	return all
}

// mostOf are those jobs, in their order, of the owner that has most of them; of several who have as
// many, of the one whose first is the oldest.
func mostOf[K comparable](jobs []*job, whose func(*job) K) []*job {
	of := map[K][]*job{}
	for _, b := range jobs {
		of[whose(b)] = append(of[whose(b)], b)
	}
	most := of[whose(jobs[0])]
	for _, b := range jobs {
		if list := of[whose(b)]; len(list) > len(most) {
			most = list
		}
	}
	return most
}

// drop forgets a job. The caller holds mu.
func (j *Jobs) drop(gone *job) {
	owner := gone.start.Owner
	j.owners[owner] = slices.DeleteFunc(j.owners[owner], func(b *job) bool { return b == gone })
	if len(j.owners[owner]) == 0 {
		delete(j.owners, owner)
	}
	gone.out.close()
}

func (j *Jobs) remove(gone *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop(gone)
}

func (b *job) over() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

func (b *job) info() Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := Info{ID: b.id, Command: b.command, Status: Running, Exit: -1, Started: b.started, Ended: b.end, Printed: b.out.total()}
	if !b.over() {
		return i
	}
	switch {
	case b.halted, errors.Is(b.err, context.DeadlineExceeded), errors.Is(b.err, sandbox.ErrClosed):
		i.Status = Stopped
	case b.err != nil:
		i.Status, i.Problem = Failed, b.err.Error()
	default:
		i.Status, i.Exit, i.Limit = Exited, b.outcome.Exit, b.outcome.Limit
	}
	i.Refused = b.outcome.Refused
	return i
}

// Since is when the first of the jobs can have been started. Those of before ended with their server.
func (j *Jobs) Since() time.Time { return j.since }

// List describes the jobs of an owner, oldest first.
func (j *Jobs) List(owner JobOwner) []Info {
	j.mu.Lock()
	list := slices.Clone(j.owners[owner])
	j.mu.Unlock()
	out := make([]Info, len(list))
	for i, b := range list {
		out[i] = b.info()
	}
	return out
}

func (j *Jobs) find(owner JobOwner, id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.owners[owner] {
		if b.id == id {
			return b, nil
		}
	}
	if strings.HasPrefix(id, idBegin) && !strings.HasPrefix(id, j.era) {
		return nil, &EarlierError{ID: id, Since: j.since}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
}

// Chunk is a part of what a job printed.
type Chunk struct {
	Info
	// Data begins at the byte Offset of all that was printed.
	Data   []byte
	Offset int64
}

// Read returns at most limit bytes (zero: DefaultReadBytes) of what a job printed, from an
// offset on; below zero from where the last reading ended. Where there is nothing yet, it
// waits that long for more, or for the end.
func (j *Jobs) Read(ctx context.Context, owner JobOwner, id string, offset int64, limit int, wait time.Duration) (Chunk, error) {
	b, err := j.find(owner, id)
	if err != nil {
		return Chunk{}, err
	}
	if offset < 0 {
		b.mu.Lock()
		offset = b.cursor
		b.mu.Unlock()
	}
	limit = min(cmp.Or(limit, DefaultReadBytes), MaxReadBytes)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		over := b.over() // before reading, so that nothing printed at the end is missed
		data, begin, more, err := b.out.read(offset, limit)
		if err != nil {
			return Chunk{}, err
		}
		if !over && int64(len(data)) < int64(limit) {
			data = text.WholeChars(data)
		}
		if len(data) > 0 || over || wait <= 0 {
			b.mu.Lock()
			b.cursor = begin + int64(len(data))
			b.mu.Unlock()
			return Chunk{Info: b.info(), Data: data, Offset: begin}, nil
		}
		select {
		case <-more:
		case <-b.ended:
		case <-timer.C:
			wait = 0
		case <-ctx.Done():
			return Chunk{}, ctx.Err()
		}
	}
}

// Stop ends a job with all that it started, and describes it.
func (j *Jobs) Stop(ctx context.Context, owner JobOwner, id string) (Info, error) {
	b, err := j.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	b.halt()
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	select {
	case <-b.ended:
		return b.info(), nil
	case <-ctx.Done():
		return Info{}, ctx.Err()
	}
}

func (b *job) halt() {
	b.mu.Lock()
	if !b.over() {
		b.halted = true
	}
	b.mu.Unlock()
	b.cancel()
}

// EndSession ends the jobs of a session and forgets them.
func (j *Jobs) EndSession(scope kv.Scope, session string) {
	if j == nil {
		return
	}
	owner := JobOwner{scope, session}
	j.mu.Lock()
	list := j.owners[owner]
	delete(j.owners, owner)
	j.mu.Unlock()
	for _, b := range list {
		if !b.over() {
			j.opts.Logger.Info("a background job ends with its session", "agent", scope.String(), "session", session, "job", b.id)
		}
		b.halt()
		go func() {
			<-b.ended
			b.out.close()
		}()
	}
}

// EndAgent ends the jobs of all sessions of an agent and forgets them.
func (j *Jobs) EndAgent(scope kv.Scope) {
	if j == nil {
		return
	}
	j.mu.Lock()
	var sessions []string
	for owner := range j.owners {
		if owner.Scope == scope {
			sessions = append(sessions, owner.Session)
		}
	}
	j.mu.Unlock()
	for _, session := range sessions {
		j.EndSession(scope, session)
	}
}

// sweep ends the jobs of sessions that were closed, from time to time.
func (j *Jobs) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-tick.C:
			j.Sweep(context.Background())
		}
	}
}

// Sweep ends the jobs of sessions that were closed.
func (j *Jobs) Sweep(ctx context.Context) {
	j.mu.Lock()
	var owners []JobOwner
	for owner := range j.owners {
		owners = append(owners, owner)
	}
	j.mu.Unlock()
	for _, owner := range owners {
		closed, err := j.opts.Closed(ctx, owner.Scope, owner.Session)
		if err != nil {
			j.opts.Logger.Error("background jobs of a session are not looked after", "agent", owner.Scope.String(), "error", err)
			continue
		}
		if closed {
			j.EndSession(owner.Scope, owner.Session)
		}
	}
}

// Running is how many jobs run.
func (j *Jobs) Running() int {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, list := range j.owners {
		for _, b := range list {
			if !b.over() {
				running++
			}
		}
	}
	return running
}

// Close ends all jobs and waits for them. Closing twice is harmless.
func (j *Jobs) Close() error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.stop)
	}
	var all []*job
	for _, list := range j.owners {
		all = append(all, list...)
	}
	j.owners = map[JobOwner][]*job{}
	j.mu.Unlock()
	for _, b := range all {
		b.halt()
	}
	for _, b := range all {
		<-b.audited
		b.out.close()
	}
	j.swept.Wait()
	return nil
}
