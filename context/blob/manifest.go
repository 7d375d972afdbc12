package blob

import (
	"errors"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a manifest (memory/FORMAT.md).
const (
	fieldSize   = iota + 1 // varint: bytes of the blob
	fieldFrame             // bytes: the only chunk, as a frame
	fieldChunks            // bytes: the hashes of all chunks, in order
	fieldFirst             // text: the path of the first entry
)

// manifest says what a blob is made of: one frame in it, or chunks of
// ChunkBytes beside it, the last one shorter.
type manifest struct {
	size   int64
	frame  []byte
	chunks [][32]byte
	// first is the path of the entry that brought the blob: it answers for a
	// ref.
	first string
}

func (m manifest) encode() []byte {
	dst := make([]byte, 0, len(m.frame)+len(m.first)+32*len(m.chunks)+32)
	dst = wire.AppendNumber(dst, fieldSize, uint64(m.size))
	if m.frame != nil {
		dst = wire.AppendItem(dst, fieldFrame, m.frame)
	} else {
		dst = wire.AppendSize(dst, fieldChunks, 32*len(m.chunks))
		for _, hash := range m.chunks {
			dst = append(dst, hash[:]...)
		}
	}
	return wire.AppendItem(dst, fieldFirst, m.first)
}

var errManifest = errors.New("the manifest can't be read")

// decodeManifest reads a manifest. Its frame shares memory with value.
func decodeManifest(value []byte) (manifest, error) {
	var m manifest
	for f, err := range wire.Fields(value) {
		if err != nil {
			return manifest{}, errManifest
		}
		switch f.Number {
		case fieldSize:
			m.size = int64(f.Value)
		case fieldFrame:
			m.frame = f.Bytes
		case fieldChunks:
			if err := m.setChunks(f.Bytes); err != nil {
				return manifest{}, err
			}
		case fieldFirst:
			m.first = string(f.Bytes)
		}
	}
	return m, m.check()
}

func (m *manifest) setChunks(hashes []byte) error {
	if len(hashes)%32 != 0 {
		return errManifest
	}
	m.chunks = make([][32]byte, len(hashes)/32)
	for i := range m.chunks {
		copy(m.chunks[i][:], hashes[32*i:])
	}
	return nil
}

// check tells whether size and chunks agree, so that readers may count on it.
func (m manifest) check() error {
	switch {
	case m.size < 0 || m.size > MaxBytes:
		return errManifest
	case m.frame != nil:
		if m.size > ChunkBytes || m.chunks != nil {
			return errManifest
		}
	case (m.size+ChunkBytes-1)/ChunkBytes != int64(len(m.chunks)) || len(m.chunks) == 0:
		return errManifest
	}
	return nil
}

// chunkSize is the length of chunk i.
func (m manifest) chunkSize(i int) int64 {
	return min(m.size-int64(i)*ChunkBytes, ChunkBytes)
}
