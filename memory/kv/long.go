package kv

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"
)

// viewAttempts bounds how often View begins anew. A snapshot becomes too old for what
// is surely short only where the process stood still.
const viewAttempts = 3

// View runs do on a snapshot that is opened with refs, for what is surely done within
// SnapshotLife. It runs do again on another one where the snapshot became too old
// nevertheless, so do must be repeatable.
func View(ctx context.Context, engine Opener, refs []Ref, do func(view Snapshot) error) error {
	return ViewWith(ctx, engine, refs, nil, do)
}

// ViewWith is View of which some is foreseen (SnapshotWith).
func ViewWith(ctx context.Context, engine Opener, refs []Ref, foresee Foresight, do func(view Snapshot) error) error {
	for attempt := 1; ; attempt++ {
		err := viewOnce(ctx, engine, refs, foresee, do)
		if attempt == viewAttempts || !errors.Is(err, ErrTooOld) {
			return err
		}
	}
}

func viewOnce(ctx context.Context, engine Opener, refs []Ref, foresee Foresight, do func(Snapshot) error) error {
	view, err := SnapshotWith(ctx, engine, refs, foresee)
	if err != nil {
		return err
	}
	defer view.Close()
	return do(view)
}

// opener opens a snapshot, as Engine.Snapshot and Sweeper.Sweep do.
type opener = func(ctx context.Context, refs ...Ref) (Snapshot, error)

// ResumeScan yields what scan yields of a range. Where that ends with ErrTooOld it
// calls scan for the rest, which begins behind the last key that was yielded; so keys come
// in order and no key twice; keys written meanwhile may be missing.
func ResumeScan(r Range, scan func(Range) iter.Seq2[Pair, error]) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		left := r       // what is still to come
		var last []byte // the last key that was yielded; the receiver owns its own
		for {
			tooOld := false
			for pair, err := range scan(left) {
				if tooOld = errors.Is(err, ErrTooOld); tooOld {
					break
				}
				if left.Limit != 1 {
					last = append(last[:0], pair.Key...)
				}
				if !yield(pair, err) || err != nil {
					return
				}
				if left.Limit > 0 {
					if left.Limit--; left.Limit == 0 {
						return
					}
				}
			}
			switch {
			case !tooOld:
				return
			case last == nil:
			case left.Reverse:
				left.End = bytes.Clone(last)
			default:
				left.Start = append(bytes.Clone(last), 0)
			}
		}
	}
}

// LongReader is a Reader for what takes longer than a snapshot lives: where its
// snapshot has become too old it goes on with another. What is read within
// SnapshotLife is of one moment; all in all it is of as many as Moments says, each
// later than the one before. All methods are safe for concurrent use.
type LongReader struct {
	open opener

	mu      sync.Mutex
	view    Snapshot // guarded by mu; nil before the first read and after Close
	moments int      // guarded by mu
	closed  bool     // guarded by mu
}

// ReadLong returns a LongReader on engine. The caller closes it.
func ReadLong(engine Engine) *LongReader { return &LongReader{open: engine.Snapshot} }

// SweepLong is ReadLong for reading everything once (Sweeper), where the engine can.
func SweepLong(engine Engine) *LongReader {
	if sweeper, ok := engine.(Sweeper); ok {
		return &LongReader{open: sweeper.Sweep}
	}
	return ReadLong(engine)
}

// Moments is how many moments were read so far.
func (l *LongReader) Moments() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moments
}

// Get is Reader's. The keys of one call are read at one moment.
func (l *LongReader) Get(ctx context.Context, ks Keyspace, keys ...[]byte) (values [][]byte, err error) {
	err = l.read(ctx, func(view Snapshot) (err error) {
		values, err = view.Get(ctx, ks, keys...)
		return err
	})
	return values, err
}

// Sequence is Reader's. The refs of one call are read at one moment.
func (l *LongReader) Sequence(ctx context.Context, refs ...Ref) (sequences []uint64, err error) {
	err = l.read(ctx, func(view Snapshot) (err error) {
		sequences, err = view.Sequence(ctx, refs...)
		return err
	})
	return sequences, err
}

// Scan is Reader's, with the consistency of ResumeScan.
func (l *LongReader) Scan(ctx context.Context, ks Keyspace, r Range) iter.Seq2[Pair, error] {
	return ResumeScan(r, func(rest Range) iter.Seq2[Pair, error] {
		return func(yield func(Pair, error) bool) {
			view, err := l.current(ctx)
			if err != nil {
				yield(Pair{}, err)
				return
			}
			for pair, err := range view.Scan(ctx, ks, rest) {
				if errors.Is(err, ErrTooOld) {
					l.outdate(view)
				}
				if !yield(pair, err) {
					return
				}
			}
		}
	})
}

// read reads from the current snapshot, or from another when that is too old.
func (l *LongReader) read(ctx context.Context, do func(Snapshot) error) error {
	for {
		view, err := l.current(ctx)
		if err == nil {
			err = do(view)
		}
		if !errors.Is(err, ErrTooOld) {
			return err
		}
		l.outdate(view)
	}
}

func (l *LongReader) current(ctx context.Context) (Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.view == nil {
		view, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.view = view
		l.moments++
	}
	return l.view, nil
}

// outdate closes a snapshot that is too old, unless another reader has done so.
func (l *LongReader) outdate(view Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view == view {
		l.view = nil
		_ = view.Close() // it has let go already
	}
}

// Close lets the snapshot go. Closing twice is harmless; reading afterwards is
// ErrClosed.
func (l *LongReader) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.view == nil {
		return nil
	}
	view := l.view
	l.view = nil
	return view.Close()
}
