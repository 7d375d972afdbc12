package admission

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// MaxItems bounds all items of a message: items of repeated fields (numbers do not
	// count), entries of maps, and values of JSON. An item takes 100 to 300 bytes of
	// memory while the request is handled.
	MaxItems = 1 << 17
	// MaxDepth bounds how deep JSON in protobuf's own types is nested.
	MaxDepth = 100
	// maxSlots is at least the number of repeated fields of any message.
	maxSlots = 8
)

// Excess says which field of a message holds too many items.
type Excess struct {
	// Field is the path of the field, such as `records[3].tags`; empty for the
	// message as a whole.
	Field string
	// Problem completes the sentence "{field} …".
	Problem string
}

// Counter counts messages of known types. It is safe for concurrent use.
type Counter struct {
	plans map[protoreflect.MessageDescriptor]*plan
}

// NewCounter returns a counter for messages of these types. A field without an
// entry in the table is bounded by MaxItems alone.
func NewCounter(table ItemLimits, messages ...protoreflect.MessageDescriptor) *Counter {
	b := planner{table: table, plans: make(map[protoreflect.FullName]*plan)}
	c := &Counter{plans: make(map[protoreflect.MessageDescriptor]*plan, len(messages))}
	for _, d := range messages {
		if len(Counted(d)) > 0 {
			c.plans[d] = b.plan(d)
		}
	}
	return c
}

// Check returns the first excess of an encoded message; false when there is none.
// Messages of a type without a countable field are never in excess.
func (c *Counter) Check(d protoreflect.MessageDescriptor, raw []byte) (Excess, bool) {
	p := c.plans[d]
	if p == nil {
		return Excess{}, false
	}
	var w walk
	if w.message(p, raw) {
		return Excess{}, false
	}
	return Excess{Field: w.path, Problem: w.problem}, true
}

// walk is one pass over a message.
type walk struct {
	items int // in the whole message
	// values counts the values of the JSON value that is being walked, limit is how
	// many it may have, and depth how deep the walk is in it.
	values, limit, depth int

	// problem and path are set when the walk stops; whole says that they are about
	// the message as a whole.
	problem, path string
	whole         bool
}

// message walks over one message and reports whether to go on. Bytes that can't be read
// end the walk of this message; the decoder reports them.
func (w *walk) message(p *plan, raw []byte) bool {
	var counts [maxSlots]int
	messages := 0
	for len(raw) > 0 {
		tag, n := uint64(raw[0]), 1
		if tag >= 0x80 {
			if tag, n = protowire.ConsumeVarint(raw); n < 0 {
				return true
			}
		}
		raw = raw[n:]
		f, kind := p.at(tag>>3), protowire.Type(tag&7)
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(protowire.Number(tag>>3), kind, raw); n < 0 {
				return true
			}
			raw = raw[n:]
			if f != nil && f.slot >= 0 && !w.count(f, &counts[f.slot], 1, 0) {
				return false
			}
			continue
		}
		size, n := sizeOf(raw)
		if n < 0 || size > uint64(len(raw)-n) {
			return true
		}
		value := raw[n : n+int(size)]
		raw = raw[n+int(size):]
		switch {
		case f == nil:
		case f.slot < 0:
			// The decoder merges several into one. No client sends that.
			if messages++; messages > p.messages && !w.item() {
				return false
			}
			if !w.enter(f, value, -1) {
				return false
			}
		case f.kind != protowire.BytesType:
			if !w.count(f, &counts[f.slot], numbers(f.kind, value), 0) {
				return false
			}
		default:
			if !w.count(f, &counts[f.slot], 1, 1) || !w.enter(f, value, counts[f.slot]-1) {
				return false
			}
		}
	}
	return true
}

// sizeOf reads the size of a field of bytes.
func sizeOf(raw []byte) (size uint64, n int) {
	if len(raw) > 0 && raw[0] < 0x80 {
		return uint64(raw[0]), 1
	}
	return protowire.ConsumeVarint(raw)
}

// count adds items to a repeated field, and unless weight is 0 one item to the message.
func (w *walk) count(f *field, counted *int, items, weight int) bool {
	if *counted += items; *counted > f.limit {
		return w.stop(f.name, "has more than "+strconv.Itoa(f.limit)+" items")
	}
	return weight == 0 || w.item()
}

// item counts one item of the message.
func (w *walk) item() bool {
	if w.items++; w.items > MaxItems {
		w.whole = true
		return w.stop("", fmt.Sprintf("holds more than %d items and JSON values in all", MaxItems))
	}
	if w.limit == 0 {
		return true
	}
	if w.values++; w.values > w.limit {
		return w.stop("", fmt.Sprintf("has more than %d JSON values; give it as JSON text", w.limit))
	}
	return true
}

// enter walks over what an item holds; index is -1 for a field that is not
// repeated.
func (w *walk) enter(f *field, value []byte, index int) bool {
	if f.inner == nil {
		return true
	}
	switch {
	case f.json:
		w.values, w.limit, w.depth = 0, f.limit, 0
		defer func() { w.limit = 0 }()
	case f.member:
		if w.depth++; w.depth > MaxDepth {
			return w.stop("", fmt.Sprintf("is nested deeper than %d levels", MaxDepth))
		}
		defer func() { w.depth-- }()
	}
	if w.message(f.inner, value) {
		return true
	}
	w.within(f, index)
	return false
}

// numbers returns how many numbers a packed field holds.
func numbers(kind protowire.Type, packed []byte) int {
	switch kind {
	case protowire.Fixed32Type:
		return len(packed) / 4
	case protowire.Fixed64Type:
		return len(packed) / 8
	}
	n := 0
	for _, b := range packed {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// stop ends the walk.
func (w *walk) stop(field, problem string) bool {
	w.path, w.problem = field, problem
	return false
}

// within prepends the field that the walk leaves to the path. Inside a JSON value the
// path does not grow.
func (w *walk) within(f *field, index int) {
	if w.whole || w.limit != 0 && !f.json {
		return
	}
	name := f.name
	if index >= 0 {
		name += "[" + strconv.Itoa(index) + "]"
	}
	if w.path != "" {
		name += "." + w.path
	}
	w.path = name
}
