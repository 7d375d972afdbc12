package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ErrMalformed: a file is not what it should be. It is left as it is.
var ErrMalformed = errors.New("hosts: malformed")

// jsonMember is one member of an object whose members have an order.
type objectField struct {
	name  string
	value any
}

type fields []objectField

func object(all ...objectField) fields { return all }

// MarshalJSON writes the members in their order.
func (f fields) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, one := range f {
		out.WriteByte("{,"[min(i, 1)])
		name, err := marshal(one.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(one.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s:%s", name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// marshal is a value as people write it: `&` stays `&`.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

// jsonMember is a member of an object, at a path.
type jsonMember struct {
	path  []string
	value any
}

// jsonDefault is a member of the whole file that has to be there, whatever it is.
type jsonDefault struct{ name, value string }

// jsonElement is an element of a list, at a path, that has a mark in it.
type jsonElement struct {
	path  []string
	value any
	mark  string
}

func (e jsonMember) put(text []byte) ([]byte, error) {
	return editJSON(text, true, func(d *document) error {
		at, err := d.object(e.path[:len(e.path)-1])
		if err != nil {
			return err
		}
		return d.set(at, len(e.path)-1, e.path[len(e.path)-1], e.value)
	})
}

func (e jsonMember) take(text []byte) ([]byte, error) {
	return editJSON(text, false, func(d *document) error { return d.remove(e.path, nil) })
}

func (e jsonDefault) put(text []byte) ([]byte, error) {
	return editJSON(text, true, func(d *document) error {
		root, err := d.object(nil)
		if err != nil || member(root, e.name) >= 0 {
			return err
		}
		return d.set(root, 0, e.name, json.RawMessage(e.value))
	})
}

func (jsonDefault) take(text []byte) ([]byte, error) { return text, nil }

func (e jsonElement) put(text []byte) ([]byte, error) {
	return editJSON(text, true, func(d *document) error {
		depth, name := len(e.path)-1, e.path[len(e.path)-1]
		at, err := d.object(e.path[:depth])
		if err != nil {
			return err
		}
		i := member(at, name)
		if i < 0 {
			return d.set(at, depth, name, []any{e.value})
		}
		list, ok := at.Members[i].Value.Value.(*hujson.Array)
		if !ok {
			return fmt.Errorf("%w: %s is no list", ErrMalformed, strings.Join(e.path, "."))
		}
		value, err := d.value(e.value, depth+2)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(list.Elements, e.ours); i >= 0 {
			list.Elements[i].Value = value
			return nil
		}
		var last *hujson.Value
		if n := len(list.Elements); n > 0 {
			last = &list.Elements[n-1]
		}
		added := hujson.Value{Value: value}
		d.append(depth+2, last, &list.AfterExtra, &added, &added)
		list.Elements = append(list.Elements, added)
		return nil
	})
}

func (e jsonElement) take(text []byte) ([]byte, error) {
	return editJSON(text, false, func(d *document) error { return d.remove(e.path, e.ours) })
}

// ours reports whether an element has the mark.
func (e jsonElement) ours(v hujson.Value) bool {
	for one := range v.All() {
		text, ok := one.Value.(hujson.Literal)
		if ok && text.Kind() == '"' && strings.Contains(text.String()+" ", e.mark+" ") {
			return true
		}
	}
	return false
}

// document is a text of JSON, with comments and trailing commas, that is edited.
type document struct {
	root        hujson.Value
	indent, eol string
	makes       bool
}

// editJSON edits a text. An empty one is an object without members.
func editJSON(text []byte, makes bool, change func(d *document) error) ([]byte, error) {
	d := document{indent: "  ", eol: "\n", makes: makes}
	if len(bytes.TrimSpace(text)) == 0 {
		if !makes {
			return text, nil
		}
		text = []byte("{}\n")
	}
	if bytes.Contains(text, []byte("\r\n")) {
		d.eol = "\r\n"
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%w: it is no object", ErrMalformed)
	}
	if len(top.Members) > 0 {
		blank := string(top.Members[0].Name.BeforeExtra)
		if at := strings.LastIndexByte(blank, '\n'); at >= 0 && strings.Trim(blank[at+1:], " \t") == "" && blank[at+1:] != "" {
			d.indent = blank[at+1:]
		}
	}
	d.root = root
	if err := change(&d); err != nil {
		return nil, err
	}
	return d.root.Pack(), nil
}

// member is where an object has a name, or -1.
func member(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return m.Name.Value.(hujson.Literal).String() == name })
}

// errAbsent: nothing is at a path.
var errAbsent = errors.New("hosts: absent")

// object is the object at a path. It is made where it is not there, if things are made.
func (d *document) object(path []string) (*hujson.Object, error) {
	at := d.root.Value.(*hujson.Object)
	for depth, name := range path {
		i := member(at, name)
		if i < 0 {
			if !d.makes {
				return nil, errAbsent
			}
			if err := d.set(at, depth, name, struct{}{}); err != nil {
				return nil, err
			}
			i = member(at, name)
		}
		next, ok := at.Members[i].Value.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%w: %s is no object", ErrMalformed, strings.Join(path[:depth+1], "."))
		}
		at = next
	}
	return at, nil
}

// value is a value as text at a depth of the file.
func (d *document) value(v any, depth int) (hujson.ValueTrimmed, error) {
	text, err := marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, strings.Repeat(d.indent, depth), d.indent); err != nil {
		return nil, err
	}
	parsed, err := hujson.Parse(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte(d.eol)))
	return parsed.Value, err
}

// set gives an object at a depth a member, the last if it is new.
func (d *document) set(o *hujson.Object, depth int, name string, v any) error {
	value, err := d.value(v, depth+1)
	if err != nil {
		return err
	}
	if i := member(o, name); i >= 0 {
		o.Members[i].Value.Value = value
		return nil
	}
	added := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: value}}
	var last *hujson.Value
	if n := len(o.Members); n > 0 {
		last = &o.Members[n-1].Value
	}
	d.append(depth+1, last, &o.AfterExtra, &added.Name, &added.Value)
	o.Members = append(o.Members, added)
	return nil
}

// append makes room at the end of a list at a depth for what begins with head and ends
// with tail: what stood behind the last element stays behind it, and so does a trailing
// comma.
func (d *document) append(depth int, last *hujson.Value, after *hujson.Extra, head, tail *hujson.Value) {
	before := bytes.TrimRight(*after, " \t\r\n")
	head.BeforeExtra = append(slices.Clone(before), d.eol+strings.Repeat(d.indent, depth)...)
	*after = hujson.Extra(d.eol + strings.Repeat(d.indent, depth-1))
	if last != nil && last.AfterExtra != nil {
		tail.AfterExtra = hujson.Extra{}
	}
}

// remove takes away what is at a path, or the elements of the list there that are ours,
// and the lists and objects that are empty then.
func (d *document) remove(path []string, ours func(hujson.Value) bool) error {
	depth, name := len(path)-1, path[len(path)-1]
	at, err := d.object(path[:depth])
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	i := member(at, name)
	if i < 0 {
		return nil
	}
	if ours != nil {
		list, ok := at.Members[i].Value.Value.(*hujson.Array)
		if !ok || !slices.ContainsFunc(list.Elements, ours) {
			return nil
		}
		if rest := len(list.Elements) - 1; rest > 0 {
			at := slices.IndexFunc(list.Elements, ours)
			list.Elements = cut(list.Elements, at, func(v *hujson.Value) *hujson.Value { return v })
			return nil
		}
	}
	at.Members = cut(at.Members, i, func(m *hujson.ObjectMember) *hujson.Value { return &m.Value })
	if len(at.Members) == 0 && depth > 0 && len(bytes.TrimSpace(at.AfterExtra)) == 0 {
		return d.remove(path[:depth], nil)
	}
	return nil
}

// cut takes an element out. Where it was the last, there is a trailing comma behind the
// new last one exactly if there was one.
func cut[T any](all []T, at int, value func(*T) *hujson.Value) []T {
	if at == len(all)-1 && at > 0 {
		trailing, before := value(&all[at]).AfterExtra, value(&all[at-1])
		switch {
		case trailing == nil:
			before.AfterExtra = nil
		case before.AfterExtra == nil:
			before.AfterExtra = hujson.Extra{}
		}
	}
	return slices.Delete(all, at, at+1)
}
