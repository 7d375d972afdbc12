package step

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

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
	span
	at, size int
}

// frameOf describes a JSON text as what stands around quoted parts of another
// text. False says that it can't be restored so.
func frameOf(text []byte, holes []hole) ([]byte, bool) {
	if len(holes) == 0 {
		return nil, false
	}
	holes = slices.Clone(holes)
	slices.SortFunc(holes, func(a, b hole) int { return cmp.Compare(a.from, b.from) })
	var frame []byte
	from := 0
	for _, h := range holes {
		if h.from < from || h.to > len(text) {
			return nil, false
		}
		frame = wire.AppendItem(frame, frameLiteral, text[from:h.from])
		frame = wire.AppendNumber(frame, frameFrom, uint64(h.at))
		frame = wire.AppendNumber(frame, frameSize, uint64(h.size))
		from = h.to
	}
	frame = wire.AppendItem(frame, frameLiteral, text[from:])
	return frame, len(frame) <= maxFrameBytes
}

// Unframe restores a JSON result from its frame and the text that the frame stands
// around. Bytes that don't fit are ErrDamaged.
func Unframe(frame, text []byte) ([]byte, error) {
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
			if from > uint64(len(text)) || f.Value > uint64(len(text))-from {
				return nil, damaged(errors.New("the text is shorter than its frame says"))
			}
			out = slices.Grow(out, int(f.Value)+int(f.Value)/framedPart)
			out = appendString(out, string(text[from:from+f.Value]))
		}
	}
	return out, nil
}

// framedPart: about one byte in so many of a text is escaped in JSON.
const framedPart = 16

// textAt is where a text of a JSON object stands, quotes included.
type textAt struct {
	span
	// usual says that appendString would write it so.
	usual bool
}

// usualEscape tells whether appendString would write an escape so.
func usualEscape(text string) bool {
	switch {
	case text[1] == '/':
		return false
	case text[1] != 'u':
		return true
	case len(text) < len(`\u0000`) || text[2:4] != "00" || text[4] != '0' && text[4] != '1':
		return false
	}
	digit := strings.IndexByte(hexDigits, text[5])
	return digit >= 0 && !bytes.ContainsRune([]byte("\b\t\n\f\r"), rune(text[4]-'0')<<4|rune(digit))
}

// wholeText is the key of a text that is the whole result.
const wholeText = ""

// ParseResult reads a JSON result that a caller gave. The text belongs to the
// result from then on. Of its value as much is taken apart as by DecodeJSON. Text that
// is not one JSON value is an error.
func ParseResult(text []byte) (Result, error) {
	r := Result{Form: FormJSON, JSON: text}
	d := decoder{text: string(text), texts: make(map[string]textAt), left: MaxDecodedContainers}
	value, ok := d.value(0)
	end := d.at
	if ok = ok && d.end(); !ok {
		var err error
		if value, err = decodeSlowly(text); err != nil {
			return Result{}, err
		}
	}
	if object, isObject := value.(map[string]any); isObject {
		r.Output = object
	} else {
		r.Value, r.IsValue = value, true
	}
	if !ok {
		return r, nil // nobody knows where its texts stand
	}
	if _, isText := value.(string); isText {
		d.texts[wholeText] = textAt{span{d.valueAt, end}, !d.odd}
	}
	r.texts = d.texts
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
		if !known || !found.usual {
			return nil
		}
		holes = append(holes, hole{found.span, at, sizes[i]})
		at += sizes[i]
	}
	return holes
}
