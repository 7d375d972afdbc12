package tools_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// supplier has tools of one tenant.
type supplier struct {
	id, tenant string
	names      []string
}

func (s supplier) Find(tenant, name string) (*tools.Tool, bool) {
	if tenant != s.tenant || !slices.Contains(s.names, name) {
		return nil, false
	}
	t, err := tools.NewRemote(tools.Descriptor{Name: name, Description: s.id, Level: tools.LevelFunction}, nothing)
	return t, err == nil
}

func (s supplier) Offers(tenant string) iter.Seq[tools.Offer] {
	return func(yield func(tools.Offer) bool) {
		for _, name := range slices.Sorted(slices.Values(s.names)) {
			if tenant == s.tenant && !yield(tools.Offer{Descriptor: tools.Descriptor{Name: name, Level: 1 + len(name)%2}, AgentID: s.id}) {
				return
			}
		}
	}
}

// short is a form that writes every name in lower case, and takes none over ten bytes.
func short(name string) (string, bool) {
	return strings.ToLower(strings.ReplaceAll(name, ":", "_")), len(name) <= 10
}

// MustCatalogue has tools of the server, of two suppliers of the tenant acme, and one
// that answers for system:shell.
func MustCatalogue(tb testing.TB) *tools.Catalogue {
	tb.Helper()
	r := tools.NewRegistry(nil)
	for _, name := range []string{"fs:read_file", "sum"} {
		if err := r.Add(tools.Descriptor{Name: name, Description: "own", Level: tools.LevelFunction}, nothing); err != nil {
			tb.Fatal(err)
		}
	}
	shell, err := tools.New(tools.Descriptor{Name: "system:shell", Description: "absent", Level: tools.LevelFunction}, nothing)
	if err != nil {
		tb.Fatal(err)
	}
	c := tools.NewCatalogue(r, &tools.CatalogueOptions{Form: short, Absent: func(name string) *tools.Tool {
		if name == "system:shell" {
			return shell
		}
		return nil
	}})
	long := strings.Repeat("long", 40)
	c.Add(supplier{"one", "acme", []string{"sum", "read_file", "ab:c", "AB:C", "abcd", "eleven:long", long}})
	c.Add(supplier{"two", "acme", []string{"abcd", "wxyz"}})
	return c
}

func TestCatalogueFinds(t *testing.T) {
	c := MustCatalogue(t)
	for _, tt := range []struct{ tenant, name, whose string }{
		{"acme", "sum", "own"},
		{"acme", "read_file", "own"}, // an alias of the server's before an agent's name
		{"acme", "ab:c", "one"},
		{"acme", "abcd", "one"},
		{"acme", "wxyz", "two"},
		{"acme", "system:shell", "absent"},
		{"other", "sum", "own"},
		{"other", "abcd", ""},
	} {
		found, err := c.Lookup(tt.tenant, tt.name)
		if tt.whose == "" {
			if !errors.Is(err, tools.ErrToolNotFound) {
				t.Errorf("%s of %s: %v", tt.name, tt.tenant, err)
			}
			continue
		}
		if err != nil || found.Descriptor().Description != tt.whose {
			t.Errorf("%s of %s: %v %+v", tt.name, tt.tenant, err, found)
		}
		if remote := tt.whose == "one" || tt.whose == "two"; found.Remote() != remote {
			t.Errorf("%s of %s: remote is %v", tt.name, tt.tenant, !remote)
		}
	}
	missing, ok := errors.AsType[*tools.NotFoundError](second(c.Lookup("acme", "fs:read")))
	if !ok || missing.Nearest != "fs:read_file" {
		t.Errorf("nearest: %+v", missing)
	}
}

func second(_ *tools.Tool, err error) error { return err }

func names(list iter.Seq[tools.Offer]) string {
	var out []string
	for o := range list {
		out = append(out, o.AgentID+"/"+o.Name)
	}
	return strings.Join(out, " ")
}

func TestCatalogueLists(t *testing.T) {
	c := MustCatalogue(t)
	for what, tt := range map[string]struct {
		got  iter.Seq[tools.Offer]
		want string
	}{
		"of another tenant": {slices.Values(c.List("other", "")), "/fs:read_file /sum"},
		"all":               {slices.Values(c.List("acme", "")), "one/AB:C one/ab:c one/abcd one/eleven:long /fs:read_file /sum two/wxyz"},
		"behind a name":     {slices.Values(c.List("acme", "eleven:long")), "/fs:read_file /sum two/wxyz"},
		"of one level":      {slices.Values(c.List("acme", "", tools.LevelShell)), "one/eleven:long"},
		"in a prompt":       {slices.Values(c.Offered("acme", short)), "one/AB:C one/abcd /fs:read_file /sum two/wxyz"},
	} {
		if got := names(tt.got); got != tt.want {
			t.Errorf("%s: %s\nwant %s", what, got, tt.want)
		}
	}
	// Aliases hide nothing where each face finds a tool by its exact name.
	all := names(c.All("acme"))
	if !strings.Contains(all, "one/read_file") || strings.Contains(all, "one/sum") || strings.Contains(all, "two/abcd") {
		t.Errorf("by exact name: %s", all)
	}
}

func TestCatalogueTakesNames(t *testing.T) {
	c := MustCatalogue(t)
	for name, want := range map[string]bool{
		"sum": false, "fs:read_file": false, "read_file": false, "FS:Read_File": false, "abcd": true, "summary": true,
	} {
		if c.Takes(name) != want {
			t.Errorf("takes %s: %v", name, !want)
		}
	}
}
