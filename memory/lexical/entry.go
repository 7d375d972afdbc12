package lexical

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// entry is a stored document. Its terms stay packed until they are asked for.
type entry struct {
	id    []byte
	terms []byte
	row
	size int // of the stored form, when it was read from one
}

func (e entry) encode() []byte {
	const overhead = 32
	b := make([]byte, 0, len(e.id)+len(e.terms)+overhead)
	b = wire.AppendUint(b, entryFormat, layout)
	b = wire.AppendText(b, entryID, e.id)
	b = wire.AppendUint(b, entryBody, uint64(e.body))
	b = wire.AppendUint(b, entryHeader, uint64(e.header))
	if len(e.terms) <= deflateFrom {
		b = wire.AppendText(b, entryTerms, e.terms)
	} else {
		b = wire.AppendText(b, entryDeflated, deflate(e.terms))
	}
	b = wire.AppendInt(b, entryExpires, e.expires)
	b = wire.AppendUint(b, entrySupersedes, uint64(e.supersedes))
	return e.row.appendFacts(b)
}

// appendFacts appends the columns that come from Facts.
func (r row) appendFacts(b []byte) []byte {
	if r.session != 0 {
		b = wire.AppendFixed64(b, entrySession, r.session)
	}
	b = wire.AppendText(b, entryAuthor, r.author)
	b = wire.AppendInt(b, entryEvent, r.event)
	b = wire.AppendInt(b, entryCreate, r.create)
	b = wire.AppendUint(b, entryImportance, uint64(math.Float32bits(r.importance)))
	b = wire.AppendUint(b, entryTier, uint64(r.tier))
	b = wire.AppendUint(b, entryFlags, uint64(r.flags))
	b = wire.AppendUint(b, entryPlace, uint64(r.place))
	return wire.AppendInt(b, entrySuperseded, r.superseded)
}

// setFact takes one of the fields that appendFacts writes.
func (r *row) setFact(f wire.Field) {
	switch f.Number {
	case entrySession:
		r.session = f.Value
	case entryAuthor:
		r.author = string(f.Bytes)
	case entryEvent:
		r.event = f.Int()
	case entryCreate:
		r.create = f.Int()
	case entryImportance:
		r.importance = math.Float32frombits(uint32(f.Value))
	case entryTier:
		r.tier = uint8(f.Value)
	case entryFlags:
		r.flags = Flags(f.Value)
	case entryPlace:
		r.place = uint32(f.Value)
	case entrySuperseded:
		r.superseded = f.Int()
	}
}

// decodeEntry reads an entry, which aliases b.
func decodeEntry(b []byte) (entry, error) {
	e := entry{size: len(b)}
	format := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return entry{}, fmt.Errorf("%w: entry: %w", ErrDamaged, err)
		}
		switch f.Number {
		case entryFormat:
			format = f.Value
		case entryID:
			e.id = f.Bytes
		case entryBody:
			e.body = uint32(f.Value)
		case entryHeader:
			e.header = uint32(f.Value)
		case entryTerms:
			e.terms = f.Bytes
		case entryExpires:
			e.expires = f.Int()
		case entrySupersedes:
			e.supersedes = uint32(f.Value)
		case entryDeflated:
			if e.terms, err = inflate(f.Bytes); err != nil {
				return entry{}, err
			}
		default:
			e.setFact(f)
		}
	}
	return e, checkFormat("entry", format)
}

const (
	// deflateFrom is the size of terms from which they are deflated. Only a
	// text that is built to have as many terms as can be comes near, and
	// without it one could be too large for a value.
	deflateFrom = 512 << 10
	// maxTerms bounds the terms of an entry: a text of the greatest size has a
	// quarter of it.
	maxTerms = 8 << 20
)

func deflate(terms []byte) []byte {
	var b bytes.Buffer
	// Neither the level nor a buffer can be at fault.
	w, _ := flate.NewWriter(&b, flate.BestSpeed)
	_, _ = w.Write(terms)
	_ = w.Close()
	return b.Bytes()
}

func inflate(b []byte) ([]byte, error) {
	terms, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxTerms+1))
	if err != nil || len(terms) > maxTerms {
		return nil, fmt.Errorf("%w: deflated terms of an entry", ErrDamaged)
	}
	return terms, nil
}

func checkFormat(what string, format uint64) error {
	switch {
	case format < layout:
		return fmt.Errorf("%w: %s of format %d", ErrDamaged, what, format)
	case format > layout:
		return fmt.Errorf("%w: %s of format %d", ErrNewer, what, format)
	}
	return nil
}

// entryTerm is a term of an entry: field and text in one, as segments have it.
type entryTerm struct {
	term         []byte
	body, header uint32
}

// each yields the terms of the entry, its columns not among them. The bytes
// alias the entry.
func (e entry) each() iter.Seq2[entryTerm, error] {
	return func(yield func(entryTerm, error) bool) {
		r := parser{bytes: e.terms}
		for !r.done() {
			var t entryTerm
			t.term = r.take(r.uint())
			if len(t.term) > 0 && Field(t.term[0]) == Word {
				t.body, t.header = r.frequency()
			}
			if r.bad || len(t.term) == 0 || len(t.term) > MaxTermBytes {
				yield(entryTerm{}, fmt.Errorf("%w: terms of an entry", ErrDamaged))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}
