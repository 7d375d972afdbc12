package admission

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// CheckJSON returns what is too much in a message that is written in JSON; false when nothing
// is. It bounds what decoding takes: what each field may hold is counted once the message is
// encoded. Text that is no JSON is left to the decoder.
func CheckJSON(d protoreflect.MessageDescriptor, text []byte) (Excess, bool) {
	c := &jsonCount{Decoder: json.NewDecoder(bytes.NewReader(text))}
	c.UseNumber()
	c.value(d, false)
	return Excess{Problem: c.problem}, c.problem != ""
}

// jsonCount is one pass over a message in JSON.
type jsonCount struct {
	*json.Decoder
	items, depth int
	problem      string
}

// value counts a value and what it holds, and reports whether to go on. An object has the
// fields of d, or any if that is nil. Numbers of a list of numbers do not count.
func (c *jsonCount) value(d protoreflect.MessageDescriptor, numbers bool) bool {
	token, err := c.Token()
	if err != nil {
		return false
	}
	if _, number := token.(json.Number); !number || !numbers {
		c.items++
	}
	if c.items > MaxItems {
		c.problem = fmt.Sprintf("holds more than %d items and JSON values in all", MaxItems)
		return false
	}
	opening, ok := token.(json.Delim)
	if !ok {
		return true
	}
	if c.depth++; c.depth > MaxDepth {
		c.problem = fmt.Sprintf("is nested deeper than %d levels", MaxDepth)
		return false
	}
	for c.More() {
		inner, innerNumbers := d, numbers
		if opening == '{' {
			name, err := c.Token()
			if err != nil {
				return false
			}
			inner, innerNumbers = fieldIn(d, fmt.Sprint(name))
		}
		if !c.value(inner, innerNumbers) {
			return false
		}
	}
	c.depth--
	_, err = c.Token()
	return err == nil
}

// fieldIn returns what the field of an object holds: the type of its messages, nil for none,
// and whether it is a list of numbers.
func fieldIn(d protoreflect.MessageDescriptor, name string) (inner protoreflect.MessageDescriptor, numbers bool) {
	if d == nil || isJSON(d) {
		return nil, false
	}
	f := d.Fields().ByJSONName(name)
	if f == nil {
		f = d.Fields().ByTextName(name)
	}
	if f == nil || f.IsMap() {
		return nil, false
	}
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return f.Message(), false
	}
	return nil, f.IsList()
}
