package lexical

import (
	"context"
	"slices"
)

// verifyBatch is how many documents a Verifier is asked about at a time.
const verifyBatch = 512

// evaluation finds what a filter lets through, by slot. Dead documents may be
// among it.
type evaluation struct {
	reader *Reader
	has    map[string]wanted // the postings of every value that the filter names
}

func (e *evaluation) run(ctx context.Context, f Filter) (bitset, error) {
	terms := slices.Sorted(slices.Values(namedTerms(nil, f)))
	terms = slices.Compact(terms)
	found, err := e.reader.postings(ctx, terms)
	if err != nil {
		return nil, err
	}
	e.has = make(map[string]wanted, len(terms))
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
func (f Filter) term() string { return string([]byte{byte(f.field)}) + Value(f.value) }

// eval returns a set that belongs to the caller. It is exact within a set of
// documents and anything outside; nil is all documents. So nobody is asked about a
// document that other conditions have settled.
func (e *evaluation) eval(ctx context.Context, f Filter, within bitset) (bitset, error) {
	set := newBitset(e.reader.frame.slots())
	switch f.op {
	case opEverything:
		set.complement(e.reader.frame.slots())
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
		return e.verified(ctx, f, within)
	case opBetween:
		e.between(set, f)
	case opOnly:
		for _, ordinal := range f.ordinals {
			if slot := e.reader.frame.slot(ordinal); slot != 0 {
				set.set(slot)
			}
		}
	}
	return set, nil
}

// every stops where nothing is left. Conditions that documents have to be asked
// about come last, when few are left.
func (e *evaluation) every(ctx context.Context, filters []Filter, within bitset) (bitset, error) {
	set := slices.Clone(within)
	if set == nil {
		set = newBitset(e.reader.frame.slots())
		set.complement(e.reader.frame.slots())
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
			if set.and(other); set.empty() {
				return set, nil
			}
		}
	}
	return set, nil
}

// asks tells whether the documents themselves have to be asked.
func (f Filter) asks() bool {
	return f.op == opVerified || slices.ContainsFunc(f.args, Filter.asks)
}

func (e *evaluation) none(ctx context.Context, f Filter, within bitset) (bitset, error) {
	set, err := e.eval(ctx, f, within)
	if err != nil {
		return nil, err
	}
	set.complement(e.reader.frame.slots())
	return set, nil
}

func (e *evaluation) either(ctx context.Context, filters []Filter, within bitset) (bitset, error) {
	set := newBitset(e.reader.frame.slots())
	for _, f := range filters {
		other, err := e.eval(ctx, f, within)
		if err != nil {
			return nil, err
		}
		set.or(other)
	}
	return set, nil
}

// mark puts the documents of a term into the set.
func (e *evaluation) mark(set bitset, w wanted) error {
	return e.reader.each(w, func(slot uint32, _ uint64) { set.set(slot) })
}

// matching walks the values that begin with the prefix.
func (e *evaluation) matching(ctx context.Context, f Filter, within bitset) (bitset, error) {
	set, unsure := newBitset(e.reader.frame.slots()), newBitset(e.reader.frame.slots())
	prefix := string([]byte{byte(f.field)}) + f.value
	for w, err := range e.reader.terms(ctx, prefix) {
		if err == nil {
			err = ctx.Err() // what is remembered is walked without asking anybody
		}
		if err != nil {
			return nil, err
		}
		match := Yes
		if f.test != nil {
			match = f.test(w.term[len(prefix):])
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
	unsure.andNot(set)
	return set, e.verify(ctx, set, unsure, within, f.verify)
}

func (e *evaluation) verified(ctx context.Context, f Filter, within bitset) (bitset, error) {
	unsure, err := e.eval(ctx, f.args[0], within)
	if err != nil {
		return nil, err
	}
	set := newBitset(e.reader.frame.slots())
	return set, e.verify(ctx, set, unsure, within, f.verify)
}

// verify puts those living documents into the set that the verifier confirms.
func (e *evaluation) verify(ctx context.Context, set, unsure, within bitset, verify Verifier) error {
	unsure.andNot(e.reader.frame.dead)
	if within != nil {
		unsure.and(within)
	}
	for batch := range slices.Chunk(slices.Collect(unsure.all()), verifyBatch) {
		ids, err := e.reader.IDs(ctx, e.reader.frame.ordinals(batch))
		if err != nil {
			return err
		}
		confirmed, err := verify(ctx, ids)
		if err != nil {
			return err
		}
		for i, slot := range batch {
			if confirmed[i] {
				set.set(slot)
			}
		}
	}
	return nil
}

func (e *evaluation) between(set bitset, f Filter) {
	frame := e.reader.frame
	if times := frame.times(f.column); times != nil {
		for i, at := range times[:frame.slots()+1] { // index 0 is unset
			if f.from <= at && at <= f.to && at != 0 {
				set.set(uint32(i))
			}
		}
		return
	}
	number := frame.number(f.column)
	for i := range frame.slots() {
		if n := number(i + 1); f.from <= n && n <= f.to {
			set.set(i + 1)
		}
	}
}

// times returns a column of times, zero being unset; nil for other columns.
func (f *frame) times(c Column) []int64 {
	switch c {
	case EventTime:
		return f.event
	case CreateTime:
		return f.create
	case ExpireTime:
		return f.expires
	}
	return nil
}

// number returns the function that tells a document's number in a column that
// every document has.
func (f *frame) number(c Column) func(slot uint32) int64 {
	switch c {
	case Importance:
		return func(o uint32) int64 { return ImportanceRank(float64(f.importance[o])) }
	case Tier:
		return func(o uint32) int64 { return int64(f.tierOf(o)) }
	case IsSuperseded:
		return func(o uint32) int64 {
			if f.isSuperseded(o) {
				return 1
			}
			return 0
		}
	}
	return func(o uint32) int64 { return int64(f.flags[o] & FlagPinned) }
}
