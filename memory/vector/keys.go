package vector

import (
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The tags of the records keyspace; memory/FORMAT.md says what follows them.
const (
	tagSpaces = 'e'
	tagVector = 'v'
)

// tagCodes is what all that is derived from the vectors stands under, in the
// index keyspace.
const tagCodes = 'v'

// The parts of a space in the index keyspace.
const (
	partHead   = 'h'
	partList   = 'l'
	partTail   = 't'
	partBlock  = 'b'
	partCentre = 'c'
	partFine   = 'f'

	partExact = 'x' // in memory only
)

// place makes the keys of one space in a scope.
type place struct {
	scope  kv.Scope
	number uint16
}

func be16(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func spacesKey(scope kv.Scope) []byte { return scope.Key(tagSpaces) }

// vectors is what the keys of all vectors of the space begin with.
func (p place) vectors() []byte { return p.scope.Key(tagVector, be16(p.number)) }

func (p place) vector(ordinal uint32) []byte {
	return p.scope.Key(tagVector, be16(p.number), be32(ordinal))
}

// codes is what all keys of the space in the index begin with.
func (p place) codes() []byte { return p.scope.Key(tagCodes, be16(p.number)) }

func (p place) head() []byte { return append(p.codes(), partHead) }

func (p place) list() []byte { return append(p.codes(), partList) }

func (p place) tail(slot uint32) []byte {
	return append(append(p.codes(), partTail), be32(slot)...)
}

func (p place) block(id uint32) []byte {
	return append(append(p.codes(), partBlock), be32(id)...)
}

func (p place) centre(id uint32) []byte {
	return append(append(p.codes(), partCentre), be32(id)...)
}

// fines is what the keys of all fine codes of the space begin with.
func (p place) fines() []byte { return append(p.codes(), partFine) }

func (p place) fine(id uint32) []byte { return append(p.fines(), be32(id)...) }

// Refs are what a request that stages vectors of the scope must name.
func Refs(scope kv.Scope) []kv.Ref {
	return []kv.Ref{{Keyspace: kv.Records, Scope: scope}, {Keyspace: kv.Index, Scope: scope}}
}
