package validate

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loom-bridge/loom-bridge/server/admission"
)

// Request checks what a method of the native API, or the first message of a stream, is asked:
// each field by its rule, then what fields say together.
func Request(r proto.Message) error {
	var c checker
	c.fields(r.ProtoReflect(), true)
	c.together(r)
	return c.err()
}

// Counts is how much of everything that can be counted a request of the native API may hold, for
// the codec, which counts before it decodes.
func Counts() admission.ItemLimits {
	all := admission.ItemLimits{"google.protobuf.FieldMask.paths": maxMaskPaths}
	for field, r := range rules {
		if r.most > 0 {
			all[nativePackage+"."+protoreflect.FullName(field)] = r.most
		}
	}
	return all
}

const nativePackage = "loombridge.v1"

// step is one field of a message, with its rule.
type step struct {
	rule
	field    protoreflect.FieldDescriptor
	name     string
	presence bool // where it is empty it is not set
	ofCaller bool // it is checked in the request itself alone
}

// plans are the fields that have rules, by message, in the order of the protos.
var plans = sync.OnceValue(func() map[protoreflect.MessageDescriptor][]step {
	all := map[protoreflect.MessageDescriptor][]step{}
	for _, d := range admission.Requests(nativePackage) {
		plan(all, d)
	}
	return all
})

func plan(all map[protoreflect.MessageDescriptor][]step, d protoreflect.MessageDescriptor) {
	if _, known := all[d]; known || d.ParentFile().Package() != nativePackage {
		return
	}
	all[d] = nil
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.Message() != nil {
			plan(all, f.Message())
		}
		if byHand[d.Name()] {
			continue
		}
		s := step{field: f, name: string(f.Name()), presence: f.HasPresence() || f.IsList() || f.IsMap()}
		var own, common bool
		if s.rule, own = rules[string(d.Name())+"."+s.name]; !own {
			s.rule, common = rules[s.name]
			s.ofCaller = common && callers[s.name]
		}
		switch {
		case f.Kind() == protoreflect.EnumKind && (!own || s.check != nil):
			s.rule = oneOf(f.Enum().Values(), s.check)
		case !own && !common && f.Message() != nil && f.Message().FullName() == "google.protobuf.Timestamp":
			s.rule = aTime
		}
		if s.check != nil || s.inner || s.needed {
			all[d] = append(all[d], s)
		}
	}
}

// oneOf are the values of an enum that have a name; check may have more to say.
func oneOf(values protoreflect.EnumValueDescriptors, check func(*checker, protoreflect.Value)) rule {
	return rule{check: func(c *checker, v protoreflect.Value) {
		if check != nil {
			check(c, v)
		}
		if values.ByNumber(v.Enum()) == nil {
			c.add("", "has the unknown value %d", v.Enum())
		}
	}}
}

// fields checks the fields of a message by their rules.
func (c *checker) fields(m protoreflect.Message, request bool) {
	steps := plans()[m.Descriptor()]
	for i := range steps {
		s := &steps[i]
		switch broken := len(c.violations); {
		case s.ofCaller && !request:
		case s.presence && !m.Has(s.field):
			if s.needed {
				c.add(s.name, "is required")
			}
		default:
			s.of(c, m.Get(s.field), s.field)
			c.within(broken, s.name)
		}
	}
}

// of checks a value by the rule of its field. How many items a list has is counted before it is
// decoded, see Counts.
func (r *rule) of(c *checker, v protoreflect.Value, f protoreflect.FieldDescriptor) {
	if !f.IsList() || r.check == nil && !r.inner {
		r.one(c, v)
		return
	}
	for i := range v.List().Len() {
		broken := len(c.violations)
		if r.one(c, v.List().Get(i)); len(c.violations) > broken {
			c.within(broken, Item("", i))
		}
	}
}

// one checks a value that is no list.
func (r *rule) one(c *checker, v protoreflect.Value) {
	switch {
	case r.inner:
		c.fields(v.Message(), false)
	case r.check != nil:
		r.check(c, v)
	}
}

// within puts the path of a field before those of the violations behind the first so many. Most
// checks find nothing, and names that are made for nothing take as long as they do.
func (c *checker) within(broken int, path string) {
	for i := range c.violations[broken:] {
		switch v := &c.violations[broken+i]; {
		case v.Field == "", v.Field[0] == '[':
			v.Field = path + v.Field
		default:
			v.Field = path + "." + v.Field
		}
	}
}
