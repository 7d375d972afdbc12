package pairing

import (
	"reflect"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Groups of the same entries are the same, however often they are made, and whatever waits; an
// entry more, less, or in another place or memory makes another group, and so does another
// field of a turn or a call. A field that is added later has to be compared, or named here.
func TestSameGroups(t *testing.T) {
	said := &session.Message{Role: session.Assistant, ToolCalls: []session.ToolCall{{ID: "a", Name: "n", Arguments: "{}"}, {ID: "b", Name: "n", Arguments: "{}"}}}
	gave := &step.Step{Number: 1, ToolName: "n", CallID: "a", Inline: "out"}
	all := []session.Entry{{Position: 1, Message: said}, {Position: 2, Step: gave}}
	group := func(all ...session.Entry) *Group {
		t.Helper()
		p := &Pairer{}
		for _, e := range all {
			if err := p.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		groups := p.Done()
		if len(groups) != 1 {
			t.Fatalf("%d groups", len(groups))
		}
		return groups[0]
	}
	g := group(all...)
	if !g.Same(group(all...)) {
		t.Error("a group made twice is another one")
	}
	copied, later := *gave, &step.Step{Number: 2, ToolName: "n", CallID: "b", Inline: "out"}
	for name, other := range map[string]*Group{
		"an equal step that is another one": group(all[0], session.Entry{Position: 2, Step: &copied}),
		"one more result":                   group(all[0], all[1], session.Entry{Position: 3, Step: later}),
		"one result less":                   group(all[0]),
		"another place":                     group(session.Entry{Position: 2, Message: said}, session.Entry{Position: 3, Step: gave}),
	} {
		if g.Same(other) {
			t.Errorf("%s: the same group", name)
		}
	}
	// What waits is asked of the group itself; thoughts only say whether a turn takes one more.
	beside := []string{"Open", "Awaited", "thoughts"}
	for what, part := range map[string]func(g *Group) reflect.Value{
		"Group": func(g *Group) reflect.Value { return reflect.ValueOf(g).Elem() },
		"Turn":  func(g *Group) reflect.Value { return reflect.ValueOf(g.Turns[0]).Elem() },
		"Call":  func(g *Group) reflect.Value { return reflect.ValueOf(&g.Turns[0].Calls[1]).Elem() },
	} {
		for i := range part(g).NumField() {
			own := g.Copied()
			own.Members = slices.Clone(own.Members)
			change(t, part(own).Field(i))
			if name := part(g).Type().Field(i).Name; g.Same(own) != slices.Contains(beside, name) {
				t.Errorf("a %s with another %s: the same %v", what, name, g.Same(own))
			}
		}
	}
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // it may be unexported
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
	case reflect.Struct:
		change(t, v.Field(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	default:
		t.Fatalf("no other value of a %s", v.Kind())
	}
}
