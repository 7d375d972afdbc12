package proxy

import (
	"bytes"
	"encoding/json"
	"slices"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// added is the body with texts behind what the user says. All other bytes stay.
func (t *talk) added(d dialect, body []byte, all []addition) []byte {
	out := make([]byte, 0, len(body)+addedBytes(all))
	from := 0
	for _, a := range all {
		at := t.list
		if a.at >= 0 {
			at = t.elements[a.at]
		}
		if text, ok := d.addText(at.of(body), a.at < 0, a.text); ok {
			out = append(append(out, body[from:at.from]...), text...)
			from = at.to
		}
	}
	return append(out, body[from:]...)
}

func addedBytes(all []addition) (n int) {
	for _, a := range all {
		n += 2 * len(a.text)
	}
	return n
}

// addText adds a text behind what the user says in an element, which may be a text itself.
// False: it can't be added.
func (d dialect) addText(element []byte, itself bool, text string) ([]byte, bool) {
	at, ok := span{0, len(element)}, true
	if !itself {
		at, ok = member(element, at, "content")
	}
	var said string
	switch given := at.of(element); {
	case !ok || len(given) == 0:
		return nil, false
	case given[0] == '"' && json.Unmarshal(given, &said) == nil:
		return replaced(element, at, quoted(said+"\n\n"+text)), true
	case given[0] != '[' || len(bytes.TrimSpace(given[1:len(given)-1])) == 0:
		return nil, false
	}
	return replaced(element, span{at.to - 1, at.to}, slices.Concat([]byte(","), d.textBlock(text), []byte("]"))), true
}

func replaced(text []byte, at span, by []byte) []byte {
	return slices.Concat(text[:at.from], by, text[at.to:])
}

// textBlock is a block of what the user says.
func (d dialect) textBlock(text string) []byte {
	kind := "text"
	if d == responses {
		kind = "input_text"
	}
	return slices.Concat([]byte(`{"type":"`+kind+`","text":`), quoted(text), []byte("}"))
}

// piece is an element of a conversation as it is sent.
type piece struct {
	role loombridgev1.Role
	text []byte
	at   int // in the request's list; negative for one that is new
}

// conversation is the list of pieces. Anthropic's messages take turns, so that two of the user
// that did not stand side by side are one.
func (d dialect) conversation(pieces []piece) ([]byte, bool) {
	out := []byte("[")
	var last piece
	for i, p := range pieces {
		if d == anthropic && i > 0 && p.role == last.role && (p.at < 0 || last.at < 0 || p.at != last.at+1) {
			joined, ok := joined(last.text, p.text)
			if !ok {
				return nil, false
			}
			p.text = joined
		} else if i > 0 {
			out = append(append(out, last.text...), ',')
		}
		last = p
	}
	return append(append(out, last.text...), ']'), true
}

// joined is one message of Anthropic's made of two of the same role.
func joined(a, b []byte) ([]byte, bool) {
	to, ok := member(a, span{0, len(a)}, "content")
	from, also := member(b, span{0, len(b)}, "content")
	if !ok || !also {
		return nil, false
	}
	first, second := blocksIn(to.of(a)), blocksIn(from.of(b))
	if first == nil || second == nil {
		return nil, false
	}
	return replaced(a, to, slices.Concat([]byte("["), first, []byte(","), second, []byte("]"))), true
}

// blocksIn are the blocks of content without the brackets; nil for none.
func blocksIn(given []byte) []byte {
	if len(given) < 2 {
		return nil
	}
	if given[0] == '"' {
		return slices.Concat([]byte(`{"type":"text","text":`), given, []byte("}"))
	}
	if inner := bytes.TrimSpace(given[1 : len(given)-1]); len(inner) > 0 {
		return inner
	}
	return nil
}
