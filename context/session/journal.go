package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// journal is where one session's folds stand: entries that never change, and a
// state that says which of them count.
type journal struct {
	scope   kv.Scope
	session string
}

// Kinds of entries of a journal. One of a kind that is not known here is never
// passed over: without it prompts would show something else.
const (
	kindFold = 1
	kindMark = 2
	kindUndo = 3
)

// journalEntry is one entry of a journal.
type journalEntry struct {
	number uint64 // from 1; stands in the key
	kind   uint64
	time   time.Time
	body   []byte
	// change is what it takes to undo the change that begins with this entry; nil
	// in all others.
	change *undoneChange
}

// undoneChange is what a batch or a moved mark took away.
type undoneChange struct {
	before         uint64 // first entry of the change before it, 0 for none
	entries        int    // how many entries it has
	superseded     []uint64
	batch, through uint64        // what they were
	mark           *history.Mark // what it was; nil for none, or of a batch
}

// first is the change for its first entry, and nil for all others.
func (c *undoneChange) first(i int) *undoneChange {
	if i > 0 {
		return nil
	}
	return c
}

// getter is what reads a journal: a transaction, or an engine.
type getter interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
}

// state reads the state; all zero when the session has no folds.
func (j journal) state(ctx context.Context, from getter) (foldState, error) {
	values, err := from.Get(ctx, kv.Log, foldsKey(j.scope, j.session))
	if err != nil {
		return foldState{}, err
	}
	return decodeState(values[0])
}

func (j journal) put(tx *kv.Tx, state foldState) error {
	value := encodeState(state)
	if len(value) > kv.MaxValueBytes {
		return &kv.LimitError{What: "state of folds", Size: len(value), Limit: kv.MaxValueBytes}
	}
	tx.Put(kv.Log, foldsKey(j.scope, j.session), value)
	return nil
}

// end is the last position of the session's log.
func (j journal) end(ctx context.Context, from getter) (uint64, error) {
	values, err := from.Get(ctx, kv.Log, headKey(j.scope, j.session))
	if err != nil {
		return 0, err
	}
	h, err := decodeHead(values[0])
	return h.last, err
}

// add writes the next entry of the journal.
func (j journal) add(tx *kv.Tx, state *foldState, e journalEntry) {
	state.version++
	value := encodeJournalEntry(e)
	tx.Put(kv.Log, journalKey(j.scope, j.session, state.version), value)
	stageMentions(tx, j.scope, j.session, value)
}

// entries reads entries of the journal, all of which must be there.
func (j journal) entries(ctx context.Context, from getter, numbers []uint64) ([]journalEntry, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	values, err := from.Get(ctx, kv.Log, numberedKeys(journalPrefix(j.scope, j.session), numbers)...)
	if err != nil {
		return nil, err
	}
	entries := make([]journalEntry, len(values))
	for i, value := range values {
		if entries[i], err = decodeJournalEntry(value); err != nil {
			return nil, fmt.Errorf("entry %d of the journal: %w", numbers[i], err)
		}
		entries[i].number = numbers[i]
	}
	return entries, nil
}

// folds reads the folds of some entries.
func (j journal) folds(ctx context.Context, from getter, numbers []uint64) ([]history.Fold, error) {
	entries, err := j.entries(ctx, from, numbers)
	if err != nil {
		return nil, err
	}
	folds := make([]history.Fold, len(entries))
	for i, e := range entries {
		if folds[i], err = e.fold(); err != nil {
			return nil, err
		}
	}
	return folds, nil
}

// fold is the fold of an entry that must be one.
func (e journalEntry) fold() (history.Fold, error) {
	if e.kind != kindFold {
		return history.Fold{}, fmt.Errorf("%w: entry %d of the journal is no fold", ErrDamaged, e.number)
	}
	f, err := history.DecodeFold(e.body)
	if err != nil {
		return history.Fold{}, damaged(err)
	}
	return f, nil
}

// change reads the entries of the change that begins with one.
func (j journal) change(ctx context.Context, from getter, number uint64) ([]journalEntry, error) {
	first, err := j.entries(ctx, from, []uint64{number})
	if err != nil {
		return nil, err
	}
	c := first[0].change
	if c == nil {
		return nil, fmt.Errorf("%w: entry %d of the journal begins no change", ErrDamaged, number)
	}
	rest := make([]uint64, c.entries-1)
	for i := range rest {
		rest[i] = number + uint64(i) + 1
	}
	others, err := j.entries(ctx, from, rest)
	return append(first, others...), err
}

// superseded returns the numbers of the live folds that denser ones of a batch
// stand for, as history.Live returns them.
func (j journal) superseded(ctx context.Context, from getter, live []uint64, made []history.Fold) ([]uint64, error) {
	if !slices.ContainsFunc(made, isDense) {
		return nil, nil
	}
	folds, err := j.folds(ctx, from, live)
	if err != nil {
		return nil, err
	}
	var gone []uint64
	for i := range folds {
		if slices.ContainsFunc(made, func(f history.Fold) bool { return isDense(f) && f.Holds(folds[i].Spans[0].First) }) {
			gone = append(gone, live[i])
		}
	}
	return gone, nil
}

func isDense(f history.Fold) bool { return f.Level > history.LevelLines }

// checkSizes keeps a batch within its limits.
func checkSizes(made []history.Fold) error {
	total := 0
	for i := range made {
		size := len(history.AppendFold(nil, made[i]))
		if size > MaxFoldBytes {
			return &kv.LimitError{What: "fold", Size: size, Limit: MaxFoldBytes}
		}
		if total += size; total > MaxFoldsBytes {
			return &kv.LimitError{What: "batch of folds", Size: total, Limit: MaxFoldsBytes}
		}
	}
	return nil
}

// checkBatch reports whether folds can be a batch of a number in a log that ends
// at a position.
func checkBatch(made []history.Fold, number, end uint64) error {
	if len(made) == 0 {
		return invalid.Field(ErrInvalid, "folds", "are missing")
	}
	for i, f := range made {
		field := fmt.Sprintf("folds[%d]", i)
		switch _, err := history.DecodeFold(history.AppendFold(nil, f)); {
		case err != nil:
			return invalid.Field(ErrInvalid, field, "can't stand in a history: %s", err.Error())
		case f.Batch != number:
			return invalid.Field(ErrInvalid, field+".batch", "is %d; the next batch is %d", f.Batch, number)
		case f.Spans[len(f.Spans)-1].Last > end || f.Through > end:
			return invalid.Field(ErrInvalid, field, "reaches behind the end of the log at %d", end)
		}
	}
	return nil
}
