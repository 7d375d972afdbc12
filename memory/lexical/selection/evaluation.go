package selection

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// verifyBatch is how many documents a Verifier is asked about at a time.
const verifyBatch = 512

// evaluation finds what a filter lets through, by slot. Deleted documents may be
// among it.
type evaluation struct {
	reader *lexical.Reader
	has    map[string]lexical.TermPostings // the postings of every value that the filter names
}

func (e *evaluation) run(ctx context.Context, f Filter) (bitset.Set, error) {
	terms := slices.Sorted(slices.Values(namedTerms(nil, f)))
	terms = slices.Compact(terms)
	found, err := e.reader.Postings(ctx, terms)
	if err != nil {
		return nil, err
	}
	e.has = make(map[string]lexical.TermPostings, len(terms))
	for i, term := range terms {
		e.has[term] = found[i]
	}
	return e.eval(ctx, f, nil)
}

// namedTerms appends the terms that the filter names, which are read at once.
func namedTerms(dst []string, f Filter) []string {
	if f.op == opHas {
		dst = append(dst, f.term())
	}
	for _, arg := range f.args {
		dst = namedTerms(dst, arg)
	}
	return dst
}

// term is the term that opHas asks for.
func (f Filter) term() string { return string([]byte{byte(f.field)}) + segment.Value(f.value) }

// eval returns a set that belongs to the caller. It is exact within a set of
// documents and anything outside; nil is all documents. So no verifier is asked
// about a document that other conditions have settled.
func (e *evaluation) eval(ctx context.Context, f Filter, within bitset.Set) (bitset.Set, error) {
	set := bitset.New(e.reader.Frame().Slots())
	switch f.op {
	case opEverything:
		set.Complement(e.reader.Frame().Slots())
		return set, nil
	case opAnd:
		return e.every(ctx, f.args, within)
	case opOr:
		return e.either(ctx, f.args, within)
	case opNot:
		return e.none(ctx, f.args[0], within)
	case opHas:
		return set, e.mark(set, e.has[f.term()])
	case opMatching:
		return e.matching(ctx, f, within)
	case opVerified:
		unsure, err := e.eval(ctx, f.args[0], within)
		if err != nil {
			return nil, err
		}
		set := bitset.New(e.reader.Frame().Slots())
		return set, e.verify(ctx, set, unsure, within, f.verify)
	case opBetween:
		e.between(set, f)
	case opOnly:
		for _, ordinal := range f.ordinals {
			if slot := e.reader.Frame().Slot(ordinal); slot != 0 {
				set.Add(slot)
			}
		}
	}
	return set, nil
}

// every stops where nothing is left. Conditions that documents have to be asked
// about come last, when few are left.
func (e *evaluation) every(ctx context.Context, filters []Filter, within bitset.Set) (bitset.Set, error) {
	set := slices.Clone(within)
	if set == nil {
		set = bitset.New(e.reader.Frame().Slots())
		set.Complement(e.reader.Frame().Slots())
	}
	for _, asks := range []bool{false, true} {
		for _, f := range filters {
			if f.asks() != asks {
				continue
			}
			other, err := e.eval(ctx, f, set)
			if err != nil {
				return nil, err
			}
			if set.And(other); set.Empty() {
				return set, nil
			}
		}
	}
	return set, nil
}

// asks reports whether the documents themselves have to be asked.
func (f Filter) asks() bool {
	return f.op == opVerified || slices.ContainsFunc(f.args, Filter.asks)
}

func (e *evaluation) none(ctx context.Context, f Filter, within bitset.Set) (bitset.Set, error) {
	set, err := e.eval(ctx, f, within)
	if err != nil {
		return nil, err
	}
	set.Complement(e.reader.Frame().Slots())
	return set, nil
}

func (e *evaluation) either(ctx context.Context, filters []Filter, within bitset.Set) (bitset.Set, error) {
	set := bitset.New(e.reader.Frame().Slots())
	for _, f := range filters {
		other, err := e.eval(ctx, f, within)
		if err != nil {
			return nil, err
		}
		set.Or(other)
	}
	return set, nil
}

// mark puts the documents of a term into the set.
func (e *evaluation) mark(set bitset.Set, w lexical.TermPostings) error {
	return e.reader.EachPosting(w, func(slot uint32, _ uint64) { set.Add(slot) })
}

// matching walks the values that begin with the prefix.
func (e *evaluation) matching(ctx context.Context, f Filter, within bitset.Set) (bitset.Set, error) {
	set, unsure := bitset.New(e.reader.Frame().Slots()), bitset.New(e.reader.Frame().Slots())
	prefix := string([]byte{byte(f.field)}) + f.value
	for w, err := range e.reader.Terms(ctx, prefix) {
		if err == nil {
			err = ctx.Err() // cached postings are walked without reading
		}
		if err != nil {
			return nil, err
		}
		match := Yes
		if f.test != nil {
			match = f.test(w.Term[len(prefix):])
		}
		switch match {
		case Yes:
			err = e.mark(set, w)
		case Unsure:
			err = e.mark(unsure, w)
		}
		if err != nil {
			return nil, err
		}
	}
	unsure.AndNot(set)
	return set, e.verify(ctx, set, unsure, within, f.verify)
}

// verify puts those live documents into the set that the verifier confirms.
func (e *evaluation) verify(ctx context.Context, set, unsure, within bitset.Set, verify Verifier) error {
	unsure.AndNot(e.reader.Frame().Deleted)
	if within != nil {
		unsure.And(within)
	}
	for batch := range slices.Chunk(slices.Collect(unsure.All()), verifyBatch) {
		ids, err := e.reader.IDs(ctx, e.reader.Frame().Ordinals(batch))
		if err != nil {
			return err
		}
		confirmed, err := verify(ctx, ids)
		if err != nil {
			return err
		}
		for i, slot := range batch {
			if confirmed[i] {
				set.Add(slot)
			}
		}
	}
	return nil
}

func (e *evaluation) between(set bitset.Set, f Filter) {
	frame := e.reader.Frame()
	if column := times(frame, f.column); column != nil {
		for i, at := range column[:frame.Slots()+1] { // index 0 is unset
			if f.from <= at && at <= f.to && at != 0 {
				set.Add(uint32(i))
			}
		}
		return
	}
	value := number(frame, f.column)
	for i := range frame.Slots() {
		if n := value(i + 1); f.from <= n && n <= f.to {
			set.Add(i + 1)
		}
	}
}

// times returns a column of times, zero being unset; nil for other columns.
func times(f *frame.Frame, c Column) []int64 {
	switch c {
	case EventTime:
		return f.Event
	case CreateTime:
		return f.Create
	case ExpireTime:
		return f.Expires
	}
	return nil
}

// number returns the function that reads a document's number in a column that
// every document has.
func number(f *frame.Frame, c Column) func(slot uint32) int64 {
	switch c {
	case Importance:
		return func(o uint32) int64 { return ImportanceRank(float64(f.Importance[o])) }
	case Tier:
		return func(o uint32) int64 { return int64(f.TierOf(o)) }
	case IsArchived:
		return func(o uint32) int64 { return int64(f.Flags[o] & segment.FlagArchived / segment.FlagArchived) }
	case IsSuperseded:
		return func(o uint32) int64 {
			if f.IsSuperseded(o) {
				return 1
			}
			return 0
		}
	}
	return func(o uint32) int64 { return int64(f.Flags[o] & segment.FlagPinned) }
}
