package blob

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A stored chunk is a frame: one byte that says how it is packed, the hour it
// was written in (4 bytes, big endian, hours since 1970), then the payload.
const (
	packedRaw  = 0x00 // the payload is the bytes themselves
	packedZstd = 0x01 // the payload is one zstd frame

	frameHeader = 1 + 4
	// frameSlack is room for what a chunk that does not shrink gains at first.
	frameSlack = 128
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

// pack returns chunk as a frame written at a time.
func (s *Store) pack(chunk []byte, at time.Time) []byte {
	frame := make([]byte, frameHeader, frameHeader+len(chunk)+frameSlack)
	binary.BigEndian.PutUint32(frame[1:], frameHour(at))
	if len(chunk) >= minPacked {
		frame[0] = packedZstd
		if frame = s.encoder.EncodeAll(chunk, frame); len(frame)-frameHeader < len(chunk) {
			return frame
		}
	}
	frame[0] = packedRaw
	return append(frame[:frameHeader], chunk...)
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
