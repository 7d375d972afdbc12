package mesh

import (
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// MaxFrameBytes bounds a frame: what any server of NATS takes unless it is set
	// otherwise.
	MaxFrameBytes = 1 << 20
	// partBytes is how much of a message is in one frame.
	partBytes = 512 << 10
	// maxAge is how old a frame may be: more than clocks differ and frames take.
	maxAge = time.Minute
	// maxSkew is how far the clocks of two bridges may differ.
	maxSkew = 2 * time.Second
)

// kind is what a message is.
type kind uint8

// The kinds; the numbers are on the wire.
const (
	kindBeat    kind = iota + 1 // the sender is there
	kindGoodbye                 // the sender goes
	kindPublish                 // a message to be handled
	kindRequest                 // a request to be served
	kindTaken                   // a request has arrived
	kindAnswer                  // the answer of a request
	kindFailed                  // the request failed; the payload says why
	kindBusy                    // the request was not taken
	kindCancel                  // the request has no waiter any more
	kinds
)

// message is what a mesh sends; a frame holds a part of it.
type message struct {
	kind    kind
	topic   string
	id      uint64        // of the request
	wait    time.Duration // how long the request is waited for
	payload []byte
}

// frame is a part of a message on its way.
type frame struct {
	message       // its payload is the part's
	from, to Peer // to is zero for all
	sent     time.Time
	number   uint64 // of the message, per sender
	part     int    // from 0
	parts    int
	size     int // of the whole payload
}

// Fields of a frame.
const (
	fieldKind = iota + 1
	fieldFrom
	fieldFromEpoch
	fieldTo
	fieldToEpoch
	fieldSent
	fieldNumber
	fieldPart
	fieldParts
	fieldSize
	fieldTopic
	fieldID
	fieldWait
	fieldPayload
)

func (f *frame) encode() []byte {
	b := make([]byte, 0, len(f.payload)+len(f.topic)+len(f.from.ID)+len(f.to.ID)+96)
	b = wire.AppendUint(b, fieldKind, uint64(f.kind))
	b = wire.AppendText(b, fieldFrom, f.from.ID)
	b = wire.AppendUint(b, fieldFromEpoch, f.from.Epoch)
	b = wire.AppendText(b, fieldTo, f.to.ID)
	b = wire.AppendUint(b, fieldToEpoch, f.to.Epoch)
	b = wire.AppendTime(b, fieldSent, f.sent)
	b = wire.AppendUint(b, fieldNumber, f.number)
	b = wire.AppendUint(b, fieldPart, uint64(f.part))
	b = wire.AppendUint(b, fieldParts, uint64(f.parts))
	b = wire.AppendUint(b, fieldSize, uint64(f.size))
	b = wire.AppendText(b, fieldTopic, f.topic)
	b = wire.AppendUint(b, fieldID, f.id)
	b = wire.AppendInt(b, fieldWait, int64(f.wait))
	return wire.AppendText(b, fieldPayload, f.payload)
}

var errFrame = errors.New("mesh: malformed frame")

// decodeFrame reads a frame. Its texts and payload alias b.
func decodeFrame(b []byte, maxMessage int) (f frame, err error) {
	for field, err := range wire.Fields(b) {
		if err != nil {
			return frame{}, errFrame
		}
		switch field.Number {
		case fieldKind:
			f.kind = kind(min(field.Value, uint64(kinds)))
		case fieldFrom:
			f.from.ID = string(field.Bytes)
		case fieldFromEpoch:
			f.from.Epoch = field.Value
		case fieldTo:
			f.to.ID = string(field.Bytes)
		case fieldToEpoch:
			f.to.Epoch = field.Value
		case fieldSent:
			f.sent = field.Time()
		case fieldNumber:
			f.number = field.Value
		case fieldPart:
			f.part = int(min(field.Value, 1<<20))
		case fieldParts:
			f.parts = int(min(field.Value, 1<<20))
		case fieldSize:
			f.size = int(min(field.Value, 1<<40))
		case fieldTopic:
			f.topic = string(field.Bytes)
		case fieldID:
			f.id = field.Value
		case fieldWait:
			f.wait = time.Duration(field.Int())
		case fieldPayload:
			f.payload = field.Bytes
		}
	}
	return f, f.check(maxMessage)
}

// check refuses what no bridge sends.
func (f *frame) check(maxMessage int) error {
	switch {
	case f.kind == 0 || f.kind >= kinds, f.from.ID == "" || len(f.from.ID) > MaxIDBytes, len(f.to.ID) > MaxIDBytes, len(f.topic) > MaxTopicBytes:
		return errFrame
	case f.size < 0 || f.size > maxMessage, f.parts != partsOf(f.size), f.part >= f.parts:
		return errFrame
	case len(f.payload) != min(partBytes, f.size-f.part*partBytes):
		return errFrame
	}
	return nil
}

// partsOf is how many frames a payload takes.
func partsOf(size int) int { return max(1, (size+partBytes-1)/partBytes) }
