package admission

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// ItemLimits is how many items each repeated field and map may have, and how many
// values each field of JSON in protobuf's own types, by the full name of the field.
type ItemLimits map[protoreflect.FullName]int

// Full names of the types that hold JSON.
const (
	jsonStruct = "google.protobuf.Struct"
	jsonValue  = "google.protobuf.Value"
	jsonList   = "google.protobuf.ListValue"
)

// IsJSON reports whether a field holds JSON in protobuf's own types.
func IsJSON(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && !field.IsMap() && isJSON(field.Message())
}

func isJSON(d protoreflect.MessageDescriptor) bool {
	return slices.Contains([]protoreflect.FullName{jsonStruct, jsonValue, jsonList}, d.FullName())
}

// plan is what the walk needs to know about a type of message.
type plan struct {
	// fields are those whose items or content are counted, by number; nil for others.
	// No message of a service has large numbers.
	fields []*field
	// messages is the number of fields that hold a single message.
	messages int
	// slots is the number of counters that the message needs.
	slots int
}

// field is what the walk needs to know about a field.
type field struct {
	name string
	// slot is the index of its counter; -1 for a field that is not repeated.
	slot int
	// limit bounds its items, or the values of its JSON.
	limit int
	// json reports whether a JSON value begins in this field.
	json bool
	// member reports whether it holds the members of a JSON object or list.
	member bool
	// kind is the wire type of its numbers; BytesType if they are no numbers.
	kind protowire.Type
	// inner is the plan of its messages; nil where nothing inside is counted.
	inner *plan
}

// at returns the entry of a field; nil for a field that is not counted.
func (p *plan) at(number uint64) *field {
	if number < uint64(len(p.fields)) {
		return p.fields[number]
	}
	return nil
}

// planner makes plans, one for each type of message.
type planner struct {
	table ItemLimits
	plans map[protoreflect.FullName]*plan
}

func (b *planner) plan(d protoreflect.MessageDescriptor) *plan {
	if known, ok := b.plans[d.FullName()]; ok {
		return known
	}
	p := &plan{}
	b.plans[d.FullName()] = p // before the fields: JSON values hold themselves
	for i := range d.Fields().Len() {
		b.add(p, d.Fields().Get(i))
	}
	return p
}

func (b *planner) add(p *plan, d protoreflect.FieldDescriptor) {
	f := &field{name: string(d.Name()), slot: -1, limit: math.MaxInt, kind: wireKind(d)}
	f.member = isJSON(d.ContainingMessage()) && (d.IsMap() || d.IsList())
	if limit, ok := b.table[d.FullName()]; ok {
		f.limit = limit
	}
	if d.Message() != nil {
		if inner := b.plan(d.Message()); len(inner.fields) > 0 || isJSON(d.Message()) {
			f.inner = inner
		}
		f.json = IsJSON(d) && !isJSON(d.ContainingMessage()) && !d.ContainingMessage().IsMapEntry()
	}
	switch {
	case d.IsList() || d.IsMap():
		f.slot = p.slots
		p.slots++
	case d.Message() != nil:
		p.messages++
	default:
		return
	}
	number := int(d.Number())
	if number >= len(p.fields) {
		p.fields = append(p.fields, make([]*field, number+1-len(p.fields))...)
	}
	p.fields[number] = f
}

// wireKind is how one number of a field is written.
func wireKind(d protoreflect.FieldDescriptor) protowire.Type {
	switch d.Kind() {
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.Fixed32Type
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return protowire.BytesType
	}
	return protowire.VarintType
}

// Counted returns the fields that a Table must name: all that are repeated or
// hold JSON, in the messages and what they hold.
func Counted(messages ...protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var counted []protoreflect.FieldDescriptor
	seen := map[protoreflect.FullName]bool{}
	var visit func(d protoreflect.MessageDescriptor)
	visit = func(d protoreflect.MessageDescriptor) {
		if seen[d.FullName()] || isJSON(d) {
			return
		}
		seen[d.FullName()] = true
		for i := range d.Fields().Len() {
			field := d.Fields().Get(i)
			if field.IsList() || field.IsMap() || IsJSON(field) {
				counted = append(counted, field)
			}
			if field.Message() != nil {
				visit(field.Message())
			}
		}
	}
	for _, d := range messages {
		visit(d)
	}
	return counted
}

// Requests returns the requests of all services of a proto package.
func Requests(name protoreflect.FullName) []protoreflect.MessageDescriptor {
	var requests []protoreflect.MessageDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(name, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for k := range methods.Len() {
				requests = append(requests, methods.Get(k).Input())
			}
		}
		return true
	})
	return requests
}
