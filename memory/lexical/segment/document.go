package segment

import (
	"encoding/binary"
	"iter"
)

// Term is one term of a document.
type Term struct {
	Field Field
	Text  string
	// Body and Header say how often a word stands in the text and in what
	// belongs to it, such as its author. They are zero for a value.
	Body, Header uint32
}

// Document is what the index knows of a record. Build it with NewDocument and
// the Add methods; it is not safe for concurrent use. Reset makes another of it
// and keeps its memory.
type Document struct {
	id           string
	terms        []Term // each once
	words        map[string]int
	values       map[Term]struct{}
	body, header uint32
	expires      int64
	supersedes   uint32
	facts        Facts
}

// NewDocument returns an empty document for the record of that id.
func NewDocument(id string) *Document {
	const usualTerms = 128
	return &Document{id: id, terms: make([]Term, 0, usualTerms), words: make(map[string]int, usualTerms)}
}

// Reset empties the document for the record of another id.
func (d *Document) Reset(id string) {
	clear(d.terms)
	clear(d.words)
	clear(d.values)
	*d = Document{id: id, terms: d.terms[:0], words: d.words, values: d.values}
}

// AddBody counts the words of the text, repeats included.
func (d *Document) AddBody(words iter.Seq[string]) {
	for word := range words {
		d.word(word).Body++
		d.body++
	}
}

// BodyAside adds a word of the text that makes it no longer.
func (d *Document) BodyAside(word string) { d.word(word).Body++ }

// HeaderAside is BodyAside for what belongs to the text.
func (d *Document) HeaderAside(word string) { d.word(word).Header++ }

// AddHeader counts words that belong to the text.
func (d *Document) AddHeader(words iter.Seq[string]) {
	for word := range words {
		d.word(word).Header++
		d.header++
	}
}

func (d *Document) word(word string) *Term {
	word = Value(word)
	i, ok := d.words[word]
	if !ok {
		i = len(d.terms)
		d.words[word] = i
		d.terms = append(d.terms, Term{Field: Word, Text: word})
	}
	return &d.terms[i]
}

// AddValue adds a value that filters can ask for; Value shortens it. An empty
// one and a repeat add nothing.
func (d *Document) AddValue(f Field, value string) {
	if value == "" {
		return
	}
	t := Term{Field: f, Text: Value(value)}
	if _, ok := d.values[t]; ok {
		return
	}
	if d.values == nil {
		d.values = make(map[Term]struct{})
	}
	d.values[t] = struct{}{}
	d.terms = append(d.terms, t)
}

// Expire sets the moment from which the document is no hit, in microseconds
// since 1970; zero means never.
func (d *Document) Expire(at int64) { d.expires = at }

// Supersede sets the ordinal of the document that this one replaces; zero
// means none.
func (d *Document) Supersede(ordinal uint32) { d.supersedes = ordinal }

// Terms returns the terms, which belong to the document.
func (d *Document) Terms() []Term { return d.terms }

// Facts returns what SetFacts was given.
func (d *Document) Facts() Facts { return d.facts }

// SetFacts sets the facts other than terms, lengths, expiry and replacement.
func (d *Document) SetFacts(f Facts) { d.facts = f }

// The fields of an entry, the stored form of a document.
const (
	entryFormat     = 1
	entryID         = 2
	entryBody       = 3
	entryHeader     = 4
	entryTerms      = 5
	entryExpires    = 6
	entrySupersedes = 7
	entryDeflated   = 8
	entrySession    = 9
	entryAuthor     = 10
	entryEvent      = 11
	entryCreate     = 12
	entryImportance = 13
	entryTier       = 14
	entryFlags      = 15
	entryPlace      = 16
	entrySuperseded = 17
)

// Format is the format number of every stored piece of the index.
const Format = 2

// Encode returns the stored form of the document.
func (d *Document) Encode() []byte { return d.Entry().Encode() }

// Entry returns the document as it is stored.
func (d *Document) Entry() Entry {
	const usualTermBytes = 10
	packed := make([]byte, 0, len(d.terms)*usualTermBytes)
	for _, t := range d.terms {
		packed = appendEntryTerm(packed, t)
	}
	return Entry{ID: []byte(d.id), Terms: packed, Row: d.Row()}
}

// Row returns the columns of the document.
func (d *Document) Row() Row {
	f := d.facts
	return Row{
		Body: d.body, Header: d.header,
		Session: SessionDigest(f.Session), Author: FoldName(f.Author),
		Event: f.Event, Create: f.Create, Expires: d.expires, Superseded: f.Superseded, Supersedes: d.supersedes,
		Importance: float32(f.Importance), Tier: f.Tier, Flags: f.Flags, Place: f.Place,
	}
}

// appendEntryTerm appends size, field, text and, for a word, its frequency.
func appendEntryTerm(dst []byte, t Term) []byte {
	dst = binary.AppendUvarint(dst, uint64(1+len(t.Text)))
	dst = append(dst, byte(t.Field))
	dst = append(dst, t.Text...)
	if t.Field == Word {
		dst = appendFrequency(dst, t.Body, t.Header)
	}
	return dst
}

// appendFrequency appends body and header in one byte where that is enough:
// the lowest bit reports whether a header frequency follows.
func appendFrequency(dst []byte, body, header uint32) []byte {
	if header == 0 {
		return binary.AppendUvarint(dst, uint64(body)<<1)
	}
	dst = binary.AppendUvarint(dst, uint64(body)<<1|1)
	return binary.AppendUvarint(dst, uint64(header))
}
