package proxy

import (
	"bytes"
	"encoding/json"
	"slices"
)

// span is where a value stands in JSON text.
type span struct{ from, to int }

// member is the place of an object's member; false where there is none, or more than one.
func member(text []byte, within span, name string) (found span, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(text[within.from:within.to]))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return span{}, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return span{}, false
		}
		at, err := next(dec, within.from)
		if err != nil || ok && key == name {
			return span{}, false
		}
		if key == name {
			found, ok = at, true
		}
	}
	return found, ok
}

// element is the place of a list's element.
func element(text []byte, within span, n int) (span, bool) {
	dec := json.NewDecoder(bytes.NewReader(text[within.from:within.to]))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return span{}, false
	}
	for i := 0; dec.More(); i++ {
		at, err := next(dec, within.from)
		if err != nil {
			return span{}, false
		}
		if i == n {
			return at, true
		}
	}
	return span{}, false
}

// next is the place of the value that a decoder is at.
func next(dec *json.Decoder, from int) (span, error) {
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return span{}, err
	}
	end := from + int(dec.InputOffset())
	return span{end - len(value), end}, nil
}

// addText adds a text behind what the user says in element n of the list that a request has of
// its conversation; n is negative where that is a text itself. All other bytes stay. False: it
// can't be added.
func (d dialect) addText(body []byte, n int, text string) ([]byte, bool) {
	list, kind := "messages", "text"
	if d == responses {
		list, kind = "input", "input_text"
	}
	at, ok := member(body, span{0, len(body)}, list)
	if ok && n >= 0 {
		if at, ok = element(body, at, n); ok {
			at, ok = member(body, at, "content")
		}
	}
	if !ok {
		return body, false
	}
	var said string
	if json.Unmarshal(body[at.from:at.to], &said) == nil && body[at.from] == '"' {
		return slices.Concat(body[:at.from], quoted(said+"\n\n"+text), body[at.to:]), true
	}
	inner := bytes.TrimSpace(body[at.from+1 : at.to-1])
	if body[at.from] != '[' || len(inner) == 0 {
		return body, false
	}
	block := slices.Concat([]byte(`,{"type":"`+kind+`","text":`), quoted(text), []byte("}"))
	return slices.Concat(body[:at.to-1], block, body[at.to-1:]), true
}

// quoted is a text as JSON.
func quoted(text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
