package step

import (
	"cmp"
	"errors"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a stored frame (memory/FORMAT.md).
const (
	frameLiteral = 1 // bytes: JSON text as it stands
	frameFrom    = 2 // varint: where in the text the next part begins
	frameSize    = 3 // varint: how long it is; the part stands here, quoted
)

// hole is a part of a text, and where it stands quoted in a JSON text, quotes
// included.
type hole struct {
	text.Place
	at, size int
}

// frameOf describes a JSON text as what stands around quoted parts of another
// text. False says that it can't be restored so.
func frameOf(text []byte, holes []hole) ([]byte, bool) {
	if len(holes) == 0 {
		return nil, false
	}
	holes = slices.Clone(holes)
	slices.SortFunc(holes, func(a, b hole) int { return cmp.Compare(a.From, b.From) })
	var frame []byte
	from := 0
	for _, h := range holes {
		if h.From < from || h.To > len(text) {
			return nil, false
		}
		frame = wire.AppendItem(frame, frameLiteral, text[from:h.From])
		frame = wire.AppendNumber(frame, frameFrom, uint64(h.at))
		frame = wire.AppendNumber(frame, frameSize, uint64(h.size))
		from = h.To
	}
	frame = wire.AppendItem(frame, frameLiteral, text[from:])
	return frame, len(frame) <= maxFrameBytes
}

// Unframe restores a JSON result from its frame and the text that the frame stands
// around. Bytes that don't fit are ErrDamaged.
func Unframe(frame, body []byte) ([]byte, error) {
	var out []byte
	from := uint64(0)
	for f, err := range wire.Fields(frame) {
		if err != nil {
			return nil, damaged(err)
		}
		switch f.Number {
		case frameLiteral:
			out = append(out, f.Bytes...)
		case frameFrom:
			from = f.Value
		case frameSize:
			if from > uint64(len(body)) || f.Value > uint64(len(body))-from {
				return nil, damaged(errors.New("the text is shorter than its frame says"))
			}
			out = slices.Grow(out, int(f.Value)+int(f.Value)/framedPart)
			out = text.AppendString(out, string(body[from:from+f.Value]))
		}
	}
	return out, nil
}

// framedPart: about one byte in so many of a text is escaped in JSON.
const framedPart = 16

// ParseResult reads a JSON result that a caller gave. The text belongs to the
// result from then on. Of its value as much is taken apart as by text.DecodeJSON. Text
// that is not one JSON value is an error.
func ParseResult(data []byte) (Result, error) {
	value, texts, err := text.DecodePlaces(data)
	if err != nil {
		return Result{}, err
	}
	r := Result{Form: FormJSON, JSON: data, texts: texts}
	if object, isObject := value.(map[string]any); isObject {
		r.Output = object
	} else {
		r.Value, r.IsValue = value, true
	}
	return r, nil
}

// holes are where parts of a text stand in the JSON result, by the keys that they
// were taken from, one behind the other. Nil: that is not known, or they can't be
// written again as they were.
func (r *Result) holes(keys []string, sizes []int) []hole {
	var holes []hole
	at := 0
	for i, key := range keys {
		found, known := r.texts[key]
		if !known || !found.Canonical {
			return nil
		}
		holes = append(holes, hole{found, at, sizes[i]})
		at += sizes[i]
	}
	return holes
}
