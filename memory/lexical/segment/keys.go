package segment

import (
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The tags of the index keyspace; memory/FORMAT.md says what follows them.
const (
	tagHead    = 'm'
	TagList    = 'l'
	TagEntry   = 'f'
	TagIDs     = 'i'
	TagSegment = 'g'
	TagColumns = 'c'
	TagDeleted = 'x'
	TagSession = 'n'
)

// The parts of a segment.
const (
	partChunk     = 'c'
	partDirectory = 'd'
)

// generation distinguishes the layouts of the index; a scope may hold several at once.
type generation uint16

// FirstGeneration is the one of a scope that never had another. Generation 1
// had layout 1.
const FirstGeneration generation = 2

// Space makes the keys of one scope and generation.
type Space struct {
	Scope      kv.Scope
	Generation generation
}

// Key is the key of that tag and suffix.
func (s Space) Key(tag byte, suffix ...byte) []byte {
	head := binary.BigEndian.AppendUint16(make([]byte, 0, 16), uint16(s.Generation))
	return s.Scope.Key(tag, append(head, suffix...))
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// HeadKey is the key of the head of a scope, the only one without a generation.
func HeadKey(scope kv.Scope) []byte { return scope.Key(tagHead) }

// ListKey is the key of the list of segments.
func (s Space) ListKey() []byte { return s.Key(TagList) }

// EntryKey is the key of the entry of a document that is not packed.
func (s Space) EntryKey(ordinal uint32) []byte { return s.BlockKey(TagEntry, ordinal) }

// BlockKey is the key of a numbered piece.
func (s Space) BlockKey(tag byte, number uint32) []byte { return s.Key(tag, be32(number)...) }

// IDsKey is the key of the ids of ordinals block*idsPerBlock and up.
func (s Space) IDsKey(block uint32) []byte { return s.BlockKey(TagIDs, block) }

// ColumnsKey is the key of the rows of ordinals block*rowsPerBlock and up.
func (s Space) ColumnsKey(block uint32) []byte { return s.BlockKey(TagColumns, block) }

// DeletedKey is the key of the deleted documents among ordinals
// chunk*DeletedPerChunk and up.
func (s Space) DeletedKey(chunk uint32) []byte { return s.BlockKey(TagDeleted, chunk) }

// SessionKey is the key of a session's count.
func (s Space) SessionKey(digest uint64) []byte {
	return s.Key(TagSession, binary.BigEndian.AppendUint64(nil, digest)...)
}

// SegmentPrefix is what all keys of a segment begin with.
func (s Space) SegmentPrefix(id uint32) []byte { return s.BlockKey(TagSegment, id) }

// DirectoryKey is the key of the first terms of the chunks of a segment.
func (s Space) DirectoryKey(id uint32) []byte { return append(s.SegmentPrefix(id), partDirectory) }

// ChunkKey is the key of a chunk of a segment.
func (s Space) ChunkKey(id, number uint32) []byte {
	return append(append(s.SegmentPrefix(id), partChunk), be32(number)...)
}
