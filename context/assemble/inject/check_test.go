package inject_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func TestCheck(t *testing.T) {
	// I05, I06
	well := inject.Injection{Name: "rules", Phase: inject.System, Priority: inject.DefaultPriority, Text: "x"}
	for _, test := range []struct {
		field  string // empty: it is well
		change func(in *inject.Injection)
	}{
		{"", func(*inject.Injection) {}},
		{"", func(in *inject.Injection) { in.Name = strings.Repeat("n", inject.MaxNameBytes-1) }},
		{"", func(in *inject.Injection) { in.Name = strings.Repeat("n", inject.MaxNameBytes) }},
		{"name", func(in *inject.Injection) { in.Name = strings.Repeat("n", inject.MaxNameBytes+1) }},
		{"name", func(in *inject.Injection) { in.Name = "" }},
		{"name", func(in *inject.Injection) { in.Name = "9th" }},
		{"name", func(in *inject.Injection) { in.Name = "Rules" }},
		{"name", func(in *inject.Injection) { in.Name = inject.NameSystem }},
		{"name", func(in *inject.Injection) { in.Name = inject.NameStamps }},
		{"phase", func(in *inject.Injection) { in.Phase = 0 }},
		{"phase", func(in *inject.Injection) { in.Phase = inject.Runtime + 1 }},
		{"cache", func(in *inject.Injection) { in.Cache = inject.Dynamic + 1 }},
		{"priority", func(in *inject.Injection) { in.Priority = -1 }},
		{"", func(in *inject.Injection) { in.Priority = 0 }},
		{"", func(in *inject.Injection) { in.Priority = inject.MaxPriority }},
		{"priority", func(in *inject.Injection) { in.Priority = inject.MaxPriority + 1 }},
		{"max_tokens", func(in *inject.Injection) { in.MaxTokens = -1 }},
		{"max_tokens", func(in *inject.Injection) { in.MaxTokens = inject.MaxCap + 1 }},
		{"xml_tag", func(in *inject.Injection) { in.Tag = "a b" }},
		{"", func(in *inject.Injection) { in.Tag = "a-b_9" }},
		{"", func(in *inject.Injection) { in.Text = strings.Repeat("x", inject.MaxTextBytes) }},
		{"content", func(in *inject.Injection) { in.Text = strings.Repeat("x", inject.MaxTextBytes+1) }},
		{"content", func(in *inject.Injection) { in.Text = "\xff" }},
	} {
		in := well
		test.change(&in)
		wantField(t, inject.Check([]inject.Injection{in}), "injections[0].", test.field)
	}
	wantField(t, inject.Check([]inject.Injection{well, well}), "injections[1].", "name")
	many := make([]inject.Injection, inject.MaxInjections+1)
	for i := range many {
		many[i] = well
		many[i].Name = fmt.Sprint("n", i)
	}
	wantField(t, inject.Check(many), "", "injections")
	wantField(t, inject.Check(many[1:]), "", "")
	large := many[:5]
	for i := range large {
		large[i].Text = strings.Repeat("x", inject.MaxTextBytes)
	}
	wantField(t, inject.Check(large), "", "injections")
	wantField(t, inject.Check(large[1:]), "", "")
}

func wantField(t *testing.T, err error, within, field string) {
	t.Helper()
	bad, ok := errors.AsType[*invalid.Error](err)
	switch {
	case field == "" && err != nil:
		t.Errorf("got %v, want none", err)
	case field != "" && (!ok || bad.Field != within+field || !errors.Is(err, inject.ErrInvalid)):
		t.Errorf("got %v, want one of %s%s", err, within, field)
	}
}
