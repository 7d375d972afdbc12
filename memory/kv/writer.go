package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Limits of the writer.
const (
	// DefaultMaxWaiting bounds the calls that wait for the same refs.
	DefaultMaxWaiting = 4096
	// maxJoined bounds the calls of one commit, so that the first of them does
	// not wait for all that keep coming.
	maxJoined = 256
	// maxJoinedBytes ends a commit early: a larger one syncs no faster.
	maxJoinedBytes = 4 << 20
	// maxAttempts bounds how often a commit is repeated after a conflict. Only
	// another process on the same store can cause one.
	maxAttempts = 64
	// maxExpected bounds the remembered sequences.
	maxExpected = 1 << 14
)

// Stage reads a view and adds writes to it. It must be pure and re-runnable:
// it may run more than once, on other goroutines than the caller's, and what
// it computed counts only from its last run. An error of its own ends the call
// and leaves nothing behind.
type Stage func(ctx context.Context, tx *Tx) error

// Request is one caller's part of a commit.
type Request struct {
	// Refs are what the stage reads and writes. It has them to itself: calls
	// that share a ref run one after another, and the commit is refused and
	// repeated when somebody else changed one.
	Refs []Ref
	// Blind are refs it writes without reading; they make nobody wait.
	Blind []Ref
	// Stage does the work.
	Stage Stage
	// Lazy acknowledges before the commit is on disk (see Commit.Lazy).
	Lazy bool
}

// WriterOptions adjusts a Writer. Nil and zero fields mean the defaults.
type WriterOptions struct {
	// MaxWaiting bounds the calls waiting for the same refs; one more is a
	// *LimitError. Default DefaultMaxWaiting.
	MaxWaiting int
}

// Writer lets many callers share one engine. Calls that name the same refs and
// wait at the same time are staged one after another and share one commit.
// All methods are safe for concurrent use.
type Writer struct {
	engine     Engine
	maxWaiting int
	running    sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	queues map[string]*queue
	turns  map[Ref]*turn
	// expected remembers the sequences of this writer's own commits, which
	// saves reading them. A wrong guess costs a conflict, never correctness.
	expected map[Ref]uint64
}

// queue holds the calls that name the same refs. It exists while one of them
// leads: the first to come, on its own goroutine, stages and commits all that
// wait with it. So a lone call pays for no hand-over. While its commit is under
// way, the first of those who came meanwhile leads next and stages on top of
// it, so that nobody's staging waits for a disk.
type queue struct {
	id   string
	refs []Ref

	// The writer's mu guards what follows.
	waiting []*call
	leading bool    // somebody was told to lead and has not begun to commit
	held    bool    // the queue has the turn at its refs
	flight  *flight // the commit under way, if any
}

// flight is a commit under way.
type flight struct {
	staged overlay       // what it writes
	next   []Guard       // what its refs will have after it
	done   chan struct{} // closed when it has ended
	failed bool          // it is not what became of it; set before done is closed
}

// turn is the right to a ref. It exists while somebody has or awaits it.
type turn struct {
	busy  chan struct{} // holds one token
	users int
}

// call is one Do in flight.
type call struct {
	ctx context.Context
	req Request
	err error // set before the call is answered

	told  chan bool // gets true to lead, false when answered; never blocks
	leads bool      // guarded by the writer's mu
}

// NewWriter returns a writer on engine, which stays the caller's to close,
// after the writer.
func NewWriter(engine Engine, opts *WriterOptions) *Writer {
	w := &Writer{
		engine:     engine,
		maxWaiting: DefaultMaxWaiting,
		queues:     make(map[string]*queue),
		turns:      make(map[Ref]*turn),
		expected:   make(map[Ref]uint64),
	}
	if opts != nil && opts.MaxWaiting > 0 {
		w.maxWaiting = opts.MaxWaiting
	}
	return w
}

// Do stages and commits one request. Nil means: written, and as durable as
// asked for. A context that ends while the call waits for its turn takes it
// out; once staging began, Do waits for the outcome.
func (w *Writer) Do(ctx context.Context, req Request) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.running.Done()
	c := &call{ctx: ctx, req: req, told: make(chan bool, 2)}
	if len(req.Refs) == 0 {
		w.commitGroup(nil, []*call{c}, nil, nil)
		return c.err
	}
	q, err := w.enqueue(c)
	if err != nil {
		return err
	}
	select {
	case lead := <-c.told:
		return w.proceed(q, c, lead)
	case <-ctx.Done():
		if w.withdraw(q, c) {
			return ctx.Err()
		}
		return w.proceed(q, c, <-c.told)
	}
}

func (w *Writer) proceed(q *queue, c *call, lead bool) error {
	if lead {
		w.lead(q, c)
	}
	return c.err
}

// Close waits for the calls in flight. Later ones are ErrClosed.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

func (w *Writer) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.running.Add(1)
	return nil
}

// enqueue puts c behind those that name the same refs. Where nobody leads it is
// told to.
func (w *Writer) enqueue(c *call) (*queue, error) {
	refs, id := canonical(c.req.Refs)
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[id]
	if q == nil {
		q = &queue{id: id, refs: refs}
		w.queues[id] = q
	}
	if len(q.waiting) >= w.maxWaiting {
		return nil, &LimitError{What: "queue", Size: len(q.waiting) + 1, Limit: w.maxWaiting}
	}
	q.waiting = append(q.waiting, c)
	w.advance(q)
	return q, nil
}

func (c *call) tellToLead() {
	c.leads = true
	c.told <- true
}

// withdraw takes c out of its queue; false when staging has begun, or c leads.
func (w *Writer) withdraw(q *queue, c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i < 0 || c.leads {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// lead commits the calls that wait, the leader's own first among them.
func (w *Writer) lead(q *queue, leader *call) {
	before, err := w.board(leader.ctx, q)
	if err != nil {
		w.resign(q, leader, err)
		return
	}
	own := &flight{done: make(chan struct{})}
	departed := false
	failed := w.commitGroup(q.refs, w.take(q), before, func(staged overlay, next []Guard) {
		if departed {
			return // staged anew after a conflict; whoever built on it is staged again too
		}
		departed, own.staged, own.next = true, staged, next
		w.mu.Lock()
		defer w.mu.Unlock()
		q.leading, q.flight = false, own
		w.advance(q)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if departed {
		own.failed, q.flight = failed, nil
		close(own.done)
	} else {
		q.leading = false
	}
	w.advance(q)
}

// resign takes a leader out that did not get the turn in time; the next that
// waits leads.
func (w *Writer) resign(q *queue, leader *call, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	leader.err = err
	q.leading = false
	q.waiting = slices.Delete(q.waiting, 0, 1)
	w.advance(q)
}

// board waits for the turn at the refs, unless the queue has it, and returns
// the commit under way. An error is that of ctx.
func (w *Writer) board(ctx context.Context, q *queue) (*flight, error) {
	w.mu.Lock()
	held, before := q.held, q.flight
	w.mu.Unlock()
	if held {
		return before, nil
	}
	if err := w.acquire(ctx, q.refs); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q.held = true
	return nil, nil
}

// take returns the calls of the next commit.
func (w *Writer) take(q *queue) []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(q.waiting), maxJoined)
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// advance lets the first that waits lead, if it may; gives the turn up when
// nobody of the queue needs it or somebody else waits for it; and ends the
// queue. The caller holds mu.
func (w *Writer) advance(q *queue) {
	if q.leading {
		return
	}
	shared := slices.ContainsFunc(q.refs, func(r Ref) bool { return w.turns[r] != nil && w.turns[r].users > 1 })
	if q.flight == nil && q.held && (shared || len(q.waiting) == 0) {
		w.release(q.refs)
		q.held = false
	}
	switch {
	case len(q.waiting) > 0 && (q.flight == nil || !shared):
		q.leading = true
		q.waiting[0].tellToLead()
	case len(q.waiting) == 0 && q.flight == nil:
		delete(w.queues, q.id)
	}
}

// canonical sorts and deduplicates refs and names the set.
func canonical(refs []Ref) ([]Ref, string) {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, compareRefs)
	refs = slices.Compact(refs)
	var id []byte
	for _, r := range refs {
		id = r.Scope.AppendPrefix(append(id, byte(r.Keyspace)))
	}
	return refs, string(id)
}

func compareRefs(a, b Ref) int {
	return cmp.Or(
		cmp.Compare(a.Keyspace, b.Keyspace),
		strings.Compare(a.Scope.Tenant, b.Scope.Tenant),
		cmp.Compare(a.Scope.Kind, b.Scope.Kind),
		strings.Compare(a.Scope.Owner, b.Scope.Owner),
	)
}

// acquire waits for the turn at each ref, or until ctx ends. The refs are
// sorted, so two queues never wait for each other.
func (w *Writer) acquire(ctx context.Context, refs []Ref) error {
	for i, ref := range refs {
		w.mu.Lock()
		t := w.turns[ref]
		if t == nil {
			t = &turn{busy: make(chan struct{}, 1)}
			w.turns[ref] = t
		}
		t.users++
		w.mu.Unlock()
		select {
		case t.busy <- struct{}{}:
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			w.leave(ref)
			w.release(refs[:i])
			return ctx.Err()
		}
	}
	return nil
}

// release gives the turn at each ref to the next who waits. The caller holds
// mu.
func (w *Writer) release(refs []Ref) {
	for _, ref := range refs {
		<-w.turns[ref].busy
		w.leave(ref)
	}
}

// leave counts a user of a ref's turn out. The caller holds mu.
func (w *Writer) leave(ref Ref) {
	t := w.turns[ref]
	if t.users--; t.users == 0 {
		delete(w.turns, ref)
	}
}

// commitGroup commits the calls of a group, in as many commits as their size
// and conflicts need, and answers each. It stages on top of the commit under
// way before it, if there is one, and calls depart when the last of its own is
// staged and about to be written. It tells whether a commit failed or had to be
// staged again.
func (w *Writer) commitGroup(refs []Ref, group []*call, before *flight, depart func(overlay, []Guard)) (failed bool) {
	for attempt := 1; len(group) > 0; attempt++ {
		done, err := w.commitSome(refs, group, before, depart)
		before = nil // it has ended
		if errors.Is(err, ErrConflict) && attempt < maxAttempts {
			// Staged again, it may come out otherwise than what departed, or as
			// nothing at all.
			failed = failed || done > 0
			w.forget(refs)
			continue
		}
		if err != nil {
			failed = true
			failStaged(group[:done], err)
		}
		for _, c := range group[:done] {
			c.told <- false
		}
		group, attempt = group[done:], 0
	}
	return failed
}

// failStaged gives err to each call whose own outcome hung on the commit.
func failStaged(calls []*call, err error) {
	for _, c := range calls {
		if c.err == nil || !isContextError(c.err) {
			c.err = err
		}
	}
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// commitSome stages as many calls as fit one commit, commits them, and returns
// how many that were.
func (w *Writer) commitSome(refs []Ref, group []*call, before *flight, depart func(overlay, []Guard)) (int, error) {
	ctx := context.WithoutCancel(group[0].ctx)
	snapshot, err := w.engine.Snapshot(ctx)
	if err != nil {
		return len(group), fmt.Errorf("kv: take snapshot: %w", err)
	}
	defer snapshot.Close()
	base, guards, err := w.base(ctx, snapshot, refs, before)
	if err != nil {
		return len(group), err
	}
	commit, staged, done := stageAll(base, guards, group)
	if before != nil {
		// Its guards alone don't show that it failed: somebody else may have
		// raised the sequences just as it would have. And where nothing is
		// written no guard tells whether the snapshot is later than it.
		if <-before.done; before.failed || commit.Batch.Len() == 0 {
			return 0, ErrConflict
		}
	}
	if commit.Batch.Len() == 0 {
		return done, nil
	}
	if depart != nil && done == len(group) {
		depart(staged, raised(guards))
	}
	if err := w.engine.Commit(ctx, commit); err != nil {
		return done, err
	}
	w.remember(commit.Guards)
	return done, nil
}

// base returns what to stage on and the guards that hold if nobody interferes.
func (w *Writer) base(ctx context.Context, snapshot Snapshot, refs []Ref, before *flight) (reads, []Guard, error) {
	if before != nil {
		return &Tx{base: snapshot, staged: before.staged}, before.next, nil
	}
	guards, err := w.guards(ctx, snapshot, refs)
	return snapshot, guards, err
}

// raised returns the guards of a commit that follows one with these.
func raised(guards []Guard) []Guard {
	next := slices.Clone(guards)
	for i := range next {
		next[i].Sequence++
	}
	return next
}

// guards returns the exact guards of refs.
func (w *Writer) guards(ctx context.Context, r Reader, refs []Ref) ([]Guard, error) {
	guards := make([]Guard, len(refs))
	known := true
	w.mu.Lock()
	for i, ref := range refs {
		sequence, ok := w.expected[ref]
		guards[i] = Guard{Ref: ref, Sequence: sequence}
		known = known && ok
	}
	w.mu.Unlock()
	if known {
		return guards, nil
	}
	sequences, err := r.Sequence(ctx, refs...)
	if err != nil {
		return nil, fmt.Errorf("kv: read sequences: %w", err)
	}
	for i := range guards {
		guards[i].Sequence = sequences[i]
	}
	return guards, nil
}

func (w *Writer) remember(guards []Guard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.expected) > maxExpected {
		clear(w.expected)
	}
	for _, g := range guards {
		if g.Any {
			delete(w.expected, g.Ref)
			continue
		}
		w.expected[g.Ref] = g.Sequence + 1
	}
}

func (w *Writer) forget(refs []Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		delete(w.expected, ref)
	}
}

// stageAll runs the calls one after another, each on top of those before it,
// and stops when the batch is large enough. A call that fails leaves nothing
// in the batch.
func stageAll(base reads, guards []Guard, group []*call) (Commit, overlay, int) {
	commit := Commit{Guards: slices.Clone(guards), Batch: &Batch{}, Lazy: true}
	var staged overlay
	for i, c := range group {
		if i > 0 && commit.Batch.Size() > maxJoinedBytes {
			return commit, staged, i
		}
		tx := &Tx{base: base, staged: staged}
		if c.err = stageOne(c, tx); c.err != nil || tx.batch.Len() == 0 {
			continue
		}
		if i > 0 && commit.Batch.Size()+tx.batch.Size() > MaxBatchBytes {
			return commit, staged, i
		}
		commit.Batch.Append(&tx.batch)
		commit.Lazy = commit.Lazy && c.req.Lazy
		commit.Guards = addBlind(commit.Guards, c.req.Blind)
		staged = joined(staged, tx.own)
	}
	return commit, staged, len(group)
}

func stageOne(c *call, tx *Tx) (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kv: staging function panicked: %v", p)
		}
	}()
	if err := c.req.Stage(c.ctx, tx); err != nil {
		return err
	}
	return checkAlone(c.req, &tx.batch)
}

// checkAlone refuses what would spoil the commit of the others.
func checkAlone(req Request, b *Batch) error {
	guards := addBlind(nil, req.Refs)
	return Commit{Guards: addBlind(guards, req.Blind), Batch: b}.Check()
}

func addBlind(guards []Guard, refs []Ref) []Guard {
	for _, ref := range refs {
		if !slices.ContainsFunc(guards, func(g Guard) bool { return g.Ref == ref }) {
			guards = append(guards, Guard{Ref: ref, Any: true})
		}
	}
	return guards
}

func joined(staged, own overlay) overlay {
	if staged == nil {
		return own
	}
	for k, v := range own {
		staged[k] = v
	}
	return staged
}
