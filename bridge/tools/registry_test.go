package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func nothing(context.Context, tools.Input) (tools.Output, error) { return tools.Output{}, nil }

// MustRegistry returns a registry that holds tools of the given names.
func MustRegistry(tb testing.TB, names ...string) *tools.Registry {
	tb.Helper()
	r := tools.NewRegistry(nil)
	for _, name := range names {
		if err := r.Add(tools.Descriptor{Name: name, Level: tools.LevelFunction}, nothing); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

func TestAddRefusesBadDescriptors(t *testing.T) {
	// E02
	schema := func(text string) tools.Descriptor {
		return tools.Descriptor{Name: "x", Level: 1, Schema: json.RawMessage(text)}
	}
	tests := []struct {
		name      string
		d         tools.Descriptor
		wantField string
	}{
		{"no name", tools.Descriptor{Level: 1}, "name"},
		{"long name", tools.Descriptor{Name: strings.Repeat("x", tools.MaxNameBytes+1), Level: 1}, "name"},
		{"space in the name", tools.Descriptor{Name: "read file", Level: 1}, "name"},
		{"level 0", tools.Descriptor{Name: "x"}, "level"},
		{"level 4", tools.Descriptor{Name: "x", Level: 4}, "level"},
		{"description not UTF-8", tools.Descriptor{Name: "x", Level: 1, Description: "\xff"}, "description"},
		{"long description", tools.Descriptor{Name: "x", Level: 1, Description: strings.Repeat("x", tools.MaxDescriptionBytes+1)}, "description"},
		{"schema no JSON", schema("{"), "schema"},
		{"schema no object", schema("[]"), "schema"},
		{"schema true", schema("true"), "schema"},
		{"schema with an unknown type", schema(`{"type":"objekt"}`), "schema"},
		{"schema of a string", schema(`{"type":"string"}`), "schema"},
		{"schema with a bad pattern", schema(`{"properties":{"a":{"pattern":"("}}}`), "schema"},
		{"schema that refers to the network", schema(`{"$ref":"https://example.com/schema.json"}`), "schema"},
		{"schema that refers to a file", schema(`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`), "schema"},
		{"schema that refers to nothing", schema(`{"$ref":"#/$defs/missing"}`), "schema"},
		{"long schema", schema(`{"description":"` + strings.Repeat("x", tools.MaxSchemaBytes) + `"}`), "schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tools.NewRegistry(nil)
			err := r.Add(tt.d, nothing)
			bad, ok := errors.AsType[*tools.DescriptorError](err)
			if !ok || bad.Field != tt.wantField || !errors.Is(err, tools.ErrBadDescriptor) {
				t.Fatalf("Add: got %v, want a DescriptorError about %s", err, tt.wantField)
			}
			if got := r.List(); len(got) != 0 {
				t.Errorf("the refused tool is listed: %v", got)
			}
		})
	}
}

func TestAddAcceptsLocalReferences(t *testing.T) {
	r := tools.NewRegistry(nil)
	schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"p":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`
	if err := r.Add(tools.Descriptor{Name: "x", Level: 3, Schema: json.RawMessage(schema)}, nothing); err != nil {
		t.Fatal(err)
	}
	if err := check(r, "x", map[string]any{"a": true}); !errors.Is(err, tools.ErrInvalidArguments) {
		t.Errorf("Check: got %v, want ErrInvalidArguments", err)
	}
}

func TestAddKeepsNamesAndLimits(t *testing.T) {
	r := tools.NewRegistry(&tools.Options{MaxTools: 1})
	d := tools.Descriptor{Name: "x", Level: 1}
	if err := r.Add(d, nothing); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(d, nothing); !errors.Is(err, tools.ErrToolExists) {
		t.Errorf("same name again: got %v", err)
	}
	d.Name = "y"
	if err := r.Add(d, nothing); !errors.Is(err, tools.ErrTooManyTools) {
		t.Errorf("one too many: got %v", err)
	}
}

// The level of a tool is that of its registered name in the options, if there is one.
func TestLevelsOfOptions(t *testing.T) {
	r := tools.NewRegistry(&tools.Options{Levels: map[string]int{"a:b": 2, "a:c": 3, "a:x": 0}})
	for _, name := range []string{"a:b", "a:d"} {
		if err := r.Add(tools.Descriptor{Name: name, Level: 1}, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.List(); got[0].Level != 2 || got[1].Level != 1 {
		t.Errorf("levels %d and %d, want 2 and 1", got[0].Level, got[1].Level)
	}
	if e, ok := errors.AsType[*tools.NotFoundError](r.CheckLevels()); !ok || e.Name != "a:c" {
		t.Errorf("a level of no tool: %v", r.CheckLevels())
	}
	if err := r.Add(tools.Descriptor{Name: "a:c", Level: 1}, nothing); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(tools.Descriptor{Name: "a:x", Level: 1}, nothing); err == nil {
		t.Error("a level of 0 is taken")
	}
}

func TestLookupKnowsAliases(t *testing.T) {
	// A02
	plain := MustRegistry(t, "fs:read_file", "fs:write_file", "fs:list_dir", "fs:stat", "web:search")
	exact := MustRegistry(t, "fs:read_file", "read_file", "fs_read_file")
	tests := []struct {
		name     string
		registry *tools.Registry
		ask      string
		want     string
	}{
		{"exact", plain, "fs:read_file", "fs:read_file"},
		{"underscore", plain, "fs_read_file", "fs:read_file"},
		{"underscore elsewhere", plain, "web_search", "web:search"},
		{"short read", plain, "read_file", "fs:read_file"},
		{"short write", plain, "write_file", "fs:write_file"},
		{"short list", plain, "list_dir", "fs:list_dir"},
		{"no short stat", plain, "stat", ""},
		{"exact wins over short", exact, "read_file", "read_file"},
		{"exact wins over underscore", exact, "fs_read_file", "fs_read_file"},
		{"short of what is not there", exact, "list_dir", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool, err := tt.registry.Lookup(tt.ask)
			got := ""
			if err == nil {
				got = tool.Descriptor().Name
			}
			if got != tt.want || (err != nil) != errors.Is(err, tools.ErrToolNotFound) {
				t.Errorf("Lookup(%q): got %q, %v; want %q", tt.ask, got, err, tt.want)
			}
		})
	}
}

func TestLookupNamesTheNearest(t *testing.T) {
	r := MustRegistry(t, "fs:read_file", "fs:write_file", "fs:list_dir", "fs:search", "fs:delete", "fs:stat")
	tests := []struct{ ask, want string }{
		{"fs:read", "fs:read_file"},
		{"fs:raed_file", "fs:read_file"},
		{"FS:READ_FILE", "fs:read_file"},
		{"fs.read_file", "fs:read_file"},
		{"fs:serch", "fs:search"},
		{"fs:lst_dir", "fs:list_dir"},
		{"search", "fs:search"},
		{"fs:remove", ""},
		{"weather:get", ""},
		{"", ""},
		{"x", ""},
		{strings.Repeat("fs:read_file", 1000), ""},
	}
	for _, tt := range tests {
		_, err := r.Lookup(tt.ask)
		missing, ok := errors.AsType[*tools.NotFoundError](err)
		if !ok || missing.Nearest != tt.want {
			t.Errorf("Lookup(%.40q): got %v, want nearest %q", tt.ask, err, tt.want)
		}
		if len(err.Error()) > 400 {
			t.Errorf("Lookup(%.40q): the error has %d bytes", tt.ask, len(err.Error()))
		}
	}
}

func TestListSortsAndNarrows(t *testing.T) {
	r := tools.NewRegistry(nil)
	for name, level := range map[string]int{"b": 1, "a": 2, "c": 3, "d": 1} {
		if err := r.Add(tools.Descriptor{Name: name, Level: level}, nothing); err != nil {
			t.Fatal(err)
		}
	}
	names := func(levels ...int) (list []string) {
		for _, d := range r.List(levels...) {
			list = append(list, d.Name)
		}
		return list
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names()); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "c", "d"}, names(1, 3)); diff != "" {
		t.Errorf("levels 1 and 3 (-want +got):\n%s", diff)
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	r := MustRegistry(t, "fs:read_file")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				_ = r.Add(tools.Descriptor{Name: fmt.Sprintf("t%d:%d", i, j), Level: 1}, nothing)
				if err := check(r, "fs_read_file", map[string]any{}); err != nil {
					t.Error(err)
				}
				r.List(1)
			}
		})
	}
	all.Wait()
	if got := len(r.List()); got != 401 {
		t.Errorf("got %d tools, want 401", got)
	}
}

func ExampleRegistry_Lookup() {
	r := tools.NewRegistry(nil)
	_ = r.Add(tools.Descriptor{Name: "fs:read_file", Level: tools.LevelFunction}, nothing)
	_, err := r.Lookup("fs:read")
	fmt.Println(err)
	// Output: tools: tool not found: fs:read (did you mean fs:read_file?)
}

// An alias finds its tool and is not listed; a tool of that name wins over it.
func TestAlias(t *testing.T) {
	r := tools.NewRegistry(nil)
	for _, name := range []string{"a:one", "a:two"} {
		if err := r.Add(tools.Descriptor{Name: name, Level: tools.LevelFunction}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.Alias("short", "a:one"), r.Alias("short", "a:one")); err != nil {
		t.Fatal(err)
	}
	if err := r.Alias("short", "a:two"); !errors.Is(err, tools.ErrToolExists) {
		t.Errorf("taken: %v", err)
	}
	if err := r.Alias("x", "a:three"); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("no tool: %v", err)
	}
	if found, err := r.Lookup("short"); err != nil || found.Descriptor().Name != "a:one" || len(r.List()) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
	if err := r.Add(tools.Descriptor{Name: "short", Level: tools.LevelFunction}, nil); err != nil {
		t.Fatal(err)
	}
	if found, err := r.Lookup("short"); err != nil || found.Descriptor().Name != "short" {
		t.Errorf("found %v, %v", found, err)
	}
}

// check looks a tool up and checks arguments for it.
func check(r *tools.Registry, name string, args map[string]any) error {
	t, err := r.Lookup(name)
	if err != nil {
		return err
	}
	return t.Check(args)
}
