package blob

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a manifest (memory/FORMAT.md).
//
// By hand: the generated message takes 2.8 times as long to read and write, and copies the frame.
const (
	fieldSize   = iota + 1 // varint: bytes of the blob
	fieldFrame             // bytes: the only chunk, as a frame
	fieldChunks            // bytes: the hashes of all chunks, in order
	fieldFirst             // text: the path of the first entry
)

// manifest says what a blob is made of: one frame in it, or chunks of
// ChunkBytes next to it, the last one shorter.
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

// check reports whether size and chunks agree, so that readers may count on it.
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

// A stored chunk is a frame: one byte that says how it is packed, the hour it
// was written in (4 bytes, big endian, hours since 1970), then the payload.
const (
	packedRaw  = 0x00 // the payload is the bytes themselves
	packedZstd = 0x01 // the payload is one zstd frame

	frameHeader = 1 + 4
)

// minPacked is the length from which a chunk is packed while the caller waits.
// Packing a shorter one takes as long as all else that is done for it; the
// engine compresses those later, in the background.
const minPacked = 16 << 10

var errFrame = errors.New("not a frame")

func newEncoder() *zstd.Encoder {
	// The options are constants that the library accepts, so there is no error.
	encoder, _ := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(ChunkBytes),
		zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true))
	return encoder
}

func newDecoder() *zstd.Decoder {
	// As above.
	decoder, _ := zstd.NewReader(nil,
		zstd.WithDecoderMaxMemory(ChunkBytes),
		zstd.WithDecoderMaxWindow(ChunkBytes),
		zstd.WithDecoderConcurrency(0))
	return decoder
}

// minAlong is the length from which a chunk is packed while its caller goes on: what is left
// to do for a result of that length takes about as long.
const minAlong = 64 << 10

// packing is a frame that may still be made.
type packing struct {
	frame []byte
	done  chan struct{} // closed when frame is set; nil: it was set at once
}

// packAlong begins to pack a chunk, which must not be changed.
func (s *Store) packAlong(chunk []byte) *packing {
	now := s.now()
	if len(chunk) < minAlong {
		return &packing{frame: s.pack(chunk, now)}
	}
	p := &packing{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.frame = s.pack(chunk, now)
	}()
	return p
}

// wait returns the frame; nil of none.
func (p *packing) wait() []byte {
	if p == nil {
		return nil
	}
	if p.done != nil {
		<-p.done
	}
	return p.frame
}

// pack returns chunk as a frame written at a time.
func (s *Store) pack(chunk []byte, at time.Time) []byte {
	packing, payload := byte(packedRaw), chunk
	if len(chunk) >= minPacked {
		room := s.rooms.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
		defer s.rooms.Put(room)
		*room = s.encoder.EncodeAll(chunk, (*room)[:0])
		if len(*room) < len(chunk) {
			packing, payload = packedZstd, *room
		}
	}
	frame := make([]byte, frameHeader, frameHeader+len(payload))
	frame[0] = packing
	binary.BigEndian.PutUint32(frame[1:], frameHour(at))
	return append(frame, payload...)
}

// newRoom returns room for a packed chunk, of which most need less than half.
func newRoom() any {
	room := make([]byte, 0, ChunkBytes/2)
	return &room
}

func frameHour(at time.Time) uint32 {
	return uint32(max(at.Unix()/int64(time.Hour/time.Second), 0))
}

// frameAge is how long ago a frame was written, in full hours; at least zero.
func frameAge(frame []byte, now time.Time) time.Duration {
	written := binary.BigEndian.Uint32(frame[1:])
	return time.Duration(max(int64(frameHour(now))-int64(written), 0)) * time.Hour
}

// unpack returns the bytes of a frame, checked against their hash. The result
// may share memory with frame.
func (s *Store) unpack(frame []byte, hash [32]byte) ([]byte, error) {
	if len(frame) < frameHeader {
		return nil, errFrame
	}
	chunk := frame[frameHeader:]
	switch frame[0] {
	case packedRaw:
	case packedZstd:
		var err error
		if chunk, err = s.decoder.DecodeAll(chunk, nil); err != nil {
			return nil, err
		}
	default:
		return nil, errFrame
	}
	if sha256.Sum256(chunk) != hash {
		return nil, errors.New("the bytes do not match their hash")
	}
	return chunk, nil
}
