package blob

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of a manifest (memory/FORMAT.md).
const (
	fieldSize   protowire.Number = iota + 1 // varint: bytes of the blob
	fieldFrame                              // bytes: the only chunk, as a frame
	fieldChunks                             // bytes: the hashes of all chunks, in order
	fieldFirst                              // text: the path of the first entry
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
	dst = protowire.AppendTag(dst, fieldSize, protowire.VarintType)
	dst = protowire.AppendVarint(dst, uint64(m.size))
	if m.frame != nil {
		dst = protowire.AppendTag(dst, fieldFrame, protowire.BytesType)
		dst = protowire.AppendBytes(dst, m.frame)
	} else {
		dst = protowire.AppendTag(dst, fieldChunks, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(32*len(m.chunks)))
		for _, hash := range m.chunks {
			dst = append(dst, hash[:]...)
		}
	}
	dst = protowire.AppendTag(dst, fieldFirst, protowire.BytesType)
	return protowire.AppendString(dst, m.first)
}

var errManifest = errors.New("the manifest can't be read")

// decodeManifest reads a manifest. Its frame shares memory with value.
func decodeManifest(value []byte) (manifest, error) {
	var m manifest
	err := eachField(value, func(number protowire.Number, v uint64, b []byte) error {
		switch number {
		case fieldSize:
			m.size = int64(v)
		case fieldFrame:
			m.frame = b
		case fieldChunks:
			return m.setChunks(b)
		case fieldFirst:
			m.first = string(b)
		}
		return nil
	})
	if err != nil {
		return manifest{}, err
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

// eachField calls visit with every field of a stored value in order: a number
// or bytes, which alias value. Bytes that are no fields are errManifest.
func eachField(value []byte, visit func(protowire.Number, uint64, []byte) error) error {
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return errManifest
		}
		value = value[n:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(value)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(value)
		default:
			n = protowire.ConsumeFieldValue(number, kind, value)
		}
		if n < 0 {
			return errManifest
		}
		value = value[n:]
		if err := visit(number, v, b); err != nil {
			return err
		}
	}
	return nil
}
