package lexical

import (
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The tags of the index keyspace; memory/FORMAT.md tells what follows them.
const (
	tagHead    = 'm'
	tagList    = 'l'
	tagEntry   = 'f'
	tagIDs     = 'i'
	tagSegment = 'g'
	tagColumns = 'c'
	tagDead    = 'x'
	tagSession = 'n'
)

// The parts of a segment.
const (
	partChunk     = 'c'
	partDirectory = 'd'
)

// generation tells the layouts of the index apart, of which a scope may hold
// several beside each other.
type generation uint16

// firstGeneration is the one of a scope that never had another. Generation 1
// had layout 1.
const firstGeneration generation = 2

// space makes the keys of one scope and generation.
type space struct {
	scope      kv.Scope
	generation generation
}

func (s space) key(tag byte, suffix ...byte) []byte {
	head := binary.BigEndian.AppendUint16(make([]byte, 0, 16), uint16(s.generation))
	return s.scope.Key(tag, append(head, suffix...))
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func headKey(scope kv.Scope) []byte         { return scope.Key(tagHead) }
func (s space) list() []byte                { return s.key(tagList) }
func (s space) entry(ordinal uint32) []byte { return s.key(tagEntry, be32(ordinal)...) }

// ids is the key of the ids of ordinals block*idsPerBlock and up.
func (s space) ids(block uint32) []byte { return s.key(tagIDs, be32(block)...) }

// columns is the key of the rows of ordinals block*rowsPerBlock and up.
func (s space) columns(block uint32) []byte { return s.key(tagColumns, be32(block)...) }

// deadSet is the key of the dead among ordinals chunk*deadPerChunk and up.
func (s space) deadSet(chunk uint32) []byte { return s.key(tagDead, be32(chunk)...) }

// session is the key of a session's count.
func (s space) session(digest uint64) []byte {
	return s.key(tagSession, binary.BigEndian.AppendUint64(nil, digest)...)
}

// segment is what all keys of a segment begin with.
func (s space) segment(id uint32) []byte { return s.key(tagSegment, be32(id)...) }

func (s space) directory(id uint32) []byte { return append(s.segment(id), partDirectory) }
func (s space) chunk(id, number uint32) []byte {
	return append(append(s.segment(id), partChunk), be32(number)...)
}

// Ref is what a request that stages documents of scope, or packs them, must
// name.
func Ref(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.Index, Scope: scope} }
