package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

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
func (w *Writer) base(ctx context.Context, snapshot Snapshot, refs []Ref, before *flight) (Getter, []Guard, error) {
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
// and stops when the batch is large enough. A call that fails leaves nothing
// in the batch.
func stageAll(base Getter, guards []Guard, group []*call) (Commit, overlay, int) {
	commit := Commit{Guards: slices.Clone(guards), Batch: &Batch{}, Lazy: true}
	var staged overlay
	watched := 0
	for i, c := range group {
		if i > 0 && commit.Batch.Size() > maxJoinedBytes {
			return commit, staged, i
		}
		tx := &Tx{base: base, staged: staged}
		if c.err = stageOne(c, tx); c.err != nil || tx.batch.Len() == 0 {
			continue
		}
		watched += tx.watchedBytes()
		if i > 0 && (commit.Batch.Size()+tx.batch.Size() > MaxBatchBytes || watched > MaxWatchBytes) {
			return commit, staged, i
		}
		commit.Batch.Append(&tx.batch)
		commit.Watched = append(commit.Watched, tx.watched...)
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
	return checkAlone(c.req, tx)
}

// checkAlone refuses what would spoil the commit of the others.
func checkAlone(req Request, tx *Tx) error {
	guards := addBlind(nil, req.Refs)
	return Commit{Guards: addBlind(guards, req.Blind), Watched: tx.watched, Batch: &tx.batch}.Check()
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
