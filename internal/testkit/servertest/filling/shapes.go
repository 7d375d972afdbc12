package filling

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// perParent are how many items each of many parents gets where a repeated field
// lies inside another one: few enough for the smallest limit, and more. manyParents
// is the most parents that any limit allows.
var perParent = []int{1, 4, 64}

const manyParents = 1000

// fewValues are numbers of values at which JSON is tried in addition to the largest number
// that fits: just within the limits that fields have.
var fewValues = []int{4_000, 32_000, 49_000}

// textSizes are the sizes at which texts of JSON are tried in addition to the whole:
// limits that fields have.
var textSizes = []int{64 << 10, 256 << 10, 1 << 20}

// shape is a way to fill a field; body makes it.
type shape struct {
	name string
	body func() []byte
}

// shapes are the ways to fill the last field of a path, as bodies of the message
// that the path begins in.
func shapes(p path, size int) []shape {
	last := p.last()
	switch {
	case isJSON(last):
		return within(p[:len(p)-1], last, jsonValues(last.Message().Name(), size))
	case isJSONText(last):
		return within(p[:len(p)-1], last, jsonTexts(size))
	}
	var all []shape
	for _, i := range items(last) {
		all = append(all, shape{i.name, func() []byte { return wrap(p[:len(p)-1], repeat(i, size)) }})
		all = append(all, spread(p, i, size)...)
	}
	return all
}

// within puts bodies into a field at the end of a path.
func within(p path, field protoreflect.FieldDescriptor, all []shape) []shape {
	out := make([]shape, len(all))
	for i, s := range all {
		out[i] = shape{s.name, func() []byte { return wrap(p, member(field, s.body())) }}
	}
	return out
}

// spread fills many parents with a few items each, where a parent is repeated.
func spread(p path, i item, size int) []shape {
	repeated := -1
	for n, field := range p[:len(p)-1] {
		if field.IsList() {
			repeated = n
		}
	}
	if repeated < 0 {
		return nil
	}
	var all []shape
	for _, n := range perParent {
		var few []byte
		for k := range n {
			few = i.add(few, k)
		}
		parent := constant("", wrap(p[repeated:len(p)-1], few))
		name := i.name + ", " + strconv.Itoa(n) + " each"
		all = append(all,
			shape{name, func() []byte { return wrap(p[:repeated], repeat(parent, size)) }},
			shape{name + " of 1000", func() []byte {
				return wrap(p[:repeated], repeat(parent, min(size, manyParents*len(parent.add(nil, 0)))))
			}},
		)
	}
	return all
}

// wrap puts the body of a message into the fields that lead to it.
func wrap(p path, body []byte) []byte {
	for _, field := range slices.Backward(p) {
		body = member(field, append(requiredOf(field), body...))
	}
	return body
}

// member is a field of bytes.
func member(field protoreflect.FieldDescriptor, value []byte) []byte {
	return nested(field.Number(), value)
}

func nested(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// item is one of many. Its add appends the i-th.
type item struct {
	name string
	add  func(dst []byte, i int) []byte
}

func constant(name string, value []byte) item {
	return item{name, func(dst []byte, _ int) []byte { return append(dst, value...) }}
}

// repeat is as many items as fit the size.
func repeat(one item, size int) []byte { return atMost(math.MaxInt, one, size) }

// atMost is so many items, or as many as fit the size.
func atMost(n int, one item, size int) []byte {
	out := make([]byte, 0, min(size, 1<<20))
	for i := range n {
		next := one.add(out, i)
		if len(next) > size {
			break
		}
		out = next
	}
	return out
}

// items are what a repeated field or map can be filled with.
func items(field protoreflect.FieldDescriptor) []item {
	empty := constant("empty items", member(field, nil))
	switch {
	case field.IsMap():
		empty.name = "empty entries"
		return []item{empty, {"entries", func(dst []byte, i int) []byte { return append(dst, member(field, mapEntry(field, i))...) }}}
	case field.Message() != nil:
		return []item{empty}
	case field.Kind() == protoreflect.StringKind, field.Kind() == protoreflect.BytesKind:
		return []item{empty, {"items", func(dst []byte, i int) []byte {
			return protowire.AppendString(protowire.AppendTag(dst, field.Number(), protowire.BytesType), text(i))
		}}}
	}
	return numbers(field)
}

// numbers are items of a number each, packed and not.
func numbers(field protoreflect.FieldDescriptor) []item {
	one, kind := []byte{1}, protowire.VarintType
	switch field.Kind() {
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		one, kind = protowire.AppendFixed32(nil, math.Float32bits(1)), protowire.Fixed32Type
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		one, kind = protowire.AppendFixed64(nil, math.Float64bits(1)), protowire.Fixed64Type
	}
	const block = 4 << 10
	return []item{
		constant("numbers", append(protowire.AppendTag(nil, field.Number(), kind), one...)),
		constant("packed numbers", member(field, slices.Repeat(one, block))),
	}
}

// text is a short text, another one for each number.
func text(i int) string { return "k" + strconv.FormatInt(int64(i), 36) }

// mapEntry has its own key and no value.
func mapEntry(field protoreflect.FieldDescriptor, i int) []byte {
	key := field.MapKey()
	if key.Kind() == protoreflect.StringKind {
		return member(key, []byte(text(i)))
	}
	return protowire.AppendVarint(protowire.AppendTag(nil, key.Number(), protowire.VarintType), uint64(i))
}

// Numbers of the fields of google.protobuf.Struct, Value and ListValue.
const (
	structFields = 1
	entryKey     = 1
	entryValue   = 2
	valueNull    = 1
	valueNumber  = 2
	valueStruct  = 5
	valueList    = 6
	listValues   = 1
)

// entry is a member of a Struct.
func entry(key string, value []byte) []byte {
	return nested(structFields, append(nested(entryKey, []byte(key)), nested(entryValue, value)...))
}

// jsonValues are the bodies of a Struct, Value or ListValue.
func jsonValues(kind protoreflect.Name, size int) []shape {
	null := protowire.AppendVarint(protowire.AppendTag(nil, valueNull, protowire.VarintType), 0)
	number := protowire.AppendFixed64(protowire.AppendTag(nil, valueNumber, protowire.Fixed64Type), math.Float64bits(0.1))
	object, array := nested(valueStruct, nil), nested(valueList, nil)
	some := func(n int, name string, value []byte) shape {
		one := constant(name, nested(listValues, value))
		return shape{name, func() []byte { return nested(valueList, atMost(n, one, size)) }}
	}
	list := func(name string, value []byte) shape { return some(math.MaxInt, name, value) }
	someMembers := func(n int, name string, value []byte) shape {
		one := item{name, func(dst []byte, i int) []byte { return append(dst, entry(text(i), value)...) }}
		return shape{name, func() []byte { return nested(valueStruct, atMost(n, one, size)) }}
	}
	members := func(name string, value []byte) shape { return someMembers(math.MaxInt, name, value) }
	nest := func(name string, around func([]byte) []byte) shape {
		return shape{name, func() []byte { return deep(size, around) }}
	}
	values := []shape{
		list("nulls", null), list("numbers", number), list("objects", object), list("nothings", nil),
		list("small objects", nested(valueStruct, entry("k", null))),
		members("members", null), members("object members", object),
		nest("nested lists", func(value []byte) []byte { return nested(valueList, nested(listValues, value)) }),
		nest("nested objects", func(value []byte) []byte { return nested(valueStruct, entry("k", value)) }),
		{"repeated", func() []byte { return repeat(constant("", object), size) }},
		{"switched", func() []byte { return repeat(constant("", append(slices.Clone(object), array...)), size) }},
	}
	for _, n := range fewValues {
		of := " of " + strconv.Itoa(n)
		values = append(values, some(n, "numbers"+of, number), some(n/2, "small objects"+of, nested(valueStruct, entry("k", null))),
			someMembers(n, "members"+of, null), someMembers(n, "object members"+of, object))
	}
	switch kind {
	case "Struct":
		return around(values, func(value []byte) []byte { return entry("k", value) })
	case "ListValue":
		return around(values, func(value []byte) []byte { return nested(listValues, value) })
	}
	return values
}

func around(all []shape, wrap func([]byte) []byte) []shape {
	out := make([]shape, len(all))
	for i, s := range all {
		out[i] = shape{s.name, func() []byte { return wrap(s.body()) }}
	}
	return out
}

// deep puts a value into itself as deep as the size allows, or as deep as decoders
// go at all: beyond they refuse it at once.
func deep(size int, around func([]byte) []byte) []byte {
	const deepest = 3000
	value := []byte{}
	for range deepest {
		next := around(value)
		if len(next) > size {
			break
		}
		value = next
	}
	return value
}

// jsonTexts are texts of JSON of several sizes.
func jsonTexts(size int) []shape {
	var all []shape
	for _, n := range append(slices.Clone(textSizes), size) {
		for _, one := range []shape{
			{"lists", func() []byte { return list("[]", n) }},
			{"numbers", func() []byte { return list("1", n) }},
			{"small objects", func() []byte { return list(`{"k":0}`, n) }},
			{"held objects", func() []byte { return []byte(`{"k":` + string(list(`{"k":0}`, n-len(`{"k":}`))) + `}`) }},
			{"held lists", func() []byte { return []byte(`{"k":` + string(list(`[0]`, n-len(`{"k":}`))) + `}`) }},
			{"escaped objects", func() []byte { return list(`{"\ud83d\ude00":0}`, n) }},
			{"members", func() []byte {
				members := repeat(item{"", func(dst []byte, i int) []byte { return append(dst, `"`+text(i)+`":1,`...) }}, n-8)
				return append(append([]byte("{"), members[:len(members)-1]...), '}')
			}},
			{"nested", func() []byte {
				const deepest = 9000
				depth := min(n/2-1, deepest)
				return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
			}},
		} {
			all = append(all, shape{one.name + " in " + strconv.Itoa(n>>10) + " KiB", one.body})
		}
	}
	return all
}

func list(item string, size int) []byte {
	return []byte("[" + strings.Repeat(item+",", (size-2-len(item))/(len(item)+1)) + item + "]")
}
