package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// commitGroup commits the calls of a group, in as many commits as their size
// and conflicts need, and answers each. It stages on top of the commit under
// way before it, if there is one, and calls depart when the last of its own is
// staged and about to be written. It reports whether a commit failed or had to be
// staged again.
func (w *Writer) commitGroup(refs []Ref, group []*call, before *flight, depart func(*overlay, []Guard)) (failed bool) {
	for attempt := 1; len(group) > 0; attempt++ {
		done, err := w.commitSome(refs, group, before, depart)
		before = nil // it has ended
		if errors.Is(err, ErrTooOld) && attempt < viewAttempts {
			continue
		}
		if errors.Is(err, ErrConflict) && attempt < maxAttempts {
			// Staged again, it may come out otherwise than what departed, or as
			// nothing at all.
			failed = failed || done > 0
			w.forget(refs)
			if attempt > patience {
				Sleep(group[0].ctx, pause(attempt-patience)) // staging looks at ctx
			}
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
func (w *Writer) commitSome(refs []Ref, group []*call, before *flight, depart func(*overlay, []Guard)) (int, error) {
	ctx := context.WithoutCancel(group[0].ctx)
	snapshot, guards, err := w.open(ctx, refs, group, before)
	if err != nil {
		return len(group), fmt.Errorf("kv: take snapshot: %w", err)
	}
	base := Getter(snapshot)
	if before != nil {
		base = &Tx{base: snapshot, staged: before.staged}
	}
	commit, staged, done := w.stageAll(base, guards, group)
	_ = snapshot.Close() // what waits for a disk holds none
	if before != nil {
		// Its guards alone don't show that it failed: somebody else may have
		// raised the sequences just as it would have. And where nothing is
		// written no guard reports whether the snapshot is later than it.
		if <-before.done; before.failed || commit.Batch.Len() == 0 {
			return 0, ErrConflict
		}
	}
	if errors.Is(group[0].err, ErrTooOld) {
		return 1, group[0].err
	}
	if commit.Batch.Len() == 0 {
		return done, nil
	}
	if depart != nil && done == len(group) {
		depart(staged, raised(guards))
	}
	err = w.engine.Commit(ctx, commit)
	if errors.Is(err, ErrUnknownOutcome) {
		if settled := Settle(ctx, w.engine, commit); !errors.Is(settled, ErrUnknownOutcome) {
			err = settled
		}
	}
	if err != nil {
		return done, err
	}
	w.remember(commit.Guards)
	w.count(group[:done], &commit)
	return done, nil
}

// open takes a snapshot to stage on, and returns the exact guards of refs that hold
// without interference: guards behind the commit under way, remembered guards, or guards
// that the snapshot read as well.
func (w *Writer) open(ctx context.Context, refs []Ref, group []*call, before *flight) (Snapshot, []Guard, error) {
	if before != nil {
		snapshot, err := w.later(ctx, group)
		return snapshot, before.next, err
	}
	guards, known := w.remembered(refs)
	if known {
		snapshot, err := w.later(ctx, group)
		return snapshot, guards, err
	}
	snapshot, err := SnapshotWith(ctx, w.engine, refs, foreseenBy(group))
	if err != nil {
		return nil, nil, err
	}
	for i, sequence := range snapshot.Sequences() {
		guards[i].Sequence = sequence
	}
	return snapshot, guards, nil
}

// later takes a snapshot whose moment may be that of its first read: the guards are compared
// at the commit.
func (w *Writer) later(ctx context.Context, group []*call) (Snapshot, error) {
	if far, ok := w.engine.(Far); ok {
		return far.SnapshotLater(ctx, foreseenBy(group).reads())
	}
	return w.engine.Snapshot(ctx)
}

// foreseenBy is what the stages of a group will read.
func foreseenBy(group []*call) Foresight {
	return func(along *Reads) {
		for _, c := range group {
			PermitOf(c.ctx).Foresee(along)
			if c.req.Foresee != nil {
				c.req.Foresee(along)
			}
		}
	}
}

// raised returns the guards of a commit that follows one with these.
func raised(guards []Guard) []Guard {
	next := slices.Clone(guards)
	for i := range next {
		next[i].Sequence++
	}
	return next
}

// remembered returns exact guards of refs, and whether the sequences of all of them
// are remembered.
func (w *Writer) remembered(refs []Ref) (guards []Guard, known bool) {
	guards, known = make([]Guard, len(refs)), true
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, ref := range refs {
		sequence, ok := w.expected[ref]
		guards[i] = Guard{Ref: ref, Sequence: sequence}
		known = known && ok
	}
	return guards, known
}

func (w *Writer) remember(guards []Guard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.expected) > maxExpected {
		clear(w.expected)
	}
	for _, g := range guards {
		if !g.Any {
			w.expected[g.Ref] = g.Sequence + 1
		}
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
// and stops when the batch is large enough or the snapshot too old. A call that
// fails leaves nothing in the batch.
func (w *Writer) stageAll(base Getter, guards []Guard, group []*call) (Commit, *overlay, int) {
	commit := Commit{Guards: slices.Clone(guards), Batch: &Batch{}, Token: rand.Uint64() | 1, Lazy: true}
	staged := &overlay{batch: commit.Batch}
	watched := 0
	for i, c := range group {
		if i > 0 && commit.Batch.Size() > maxJoinedBytes {
			return commit, staged, i
		}
		tx := &Tx{base: base, staged: staged}
		c.err = w.stageOne(c, tx)
		if errors.Is(c.err, ErrTooOld) {
			return commit, staged, max(i, 1)
		}
		if c.err != nil || tx.batch.Len() == 0 {
			continue
		}
		watched += tx.watchedBytes()
		if i > 0 && (commit.Batch.Size()+tx.batch.Size() > MaxBatchBytes || watched > MaxWatchBytes) {
			return commit, staged, i
		}
		if commit.Batch.Len() == 0 {
			*commit.Batch = tx.batch // which is not used any more
		} else {
			commit.Batch.Append(&tx.batch)
		}
		commit.Watched = append(commit.Watched, tx.watched...)
		commit.Lazy = commit.Lazy && c.req.Lazy
		commit.Large = commit.Large || c.req.Large
		commit.Guards = addBlind(commit.Guards, c.req.Blind)
	}
	return commit, staged, len(group)
}

func (w *Writer) stageOne(c *call, tx *Tx) (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if err := w.barred(c.ctx, &c.req); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kv: staging function panicked: %v", p)
		}
	}()
	if err := PermitOf(c.ctx).Meet(c.ctx, tx); err != nil {
		return err
	}
	if err := c.req.Stage(c.ctx, tx); err != nil {
		return err
	}
	if err := checkAlone(c.req, tx); err != nil {
		return err
	}
	return w.admit(c, tx)
}

// checkAlone refuses what would spoil the commit of the others.
func checkAlone(req Request, tx *Tx) error {
	guards := addBlind(nil, req.Refs)
	return Commit{Guards: addBlind(guards, req.Blind), Watched: tx.watched, Batch: &tx.batch, Large: req.Large}.Check()
}

func addBlind(guards []Guard, refs []Ref) []Guard {
	for _, ref := range refs {
		if !slices.ContainsFunc(guards, func(g Guard) bool { return g.Ref == ref }) {
			guards = append(guards, Guard{Ref: ref, Any: true})
		}
	}
	return guards
}
