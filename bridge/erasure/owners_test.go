package erasure_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// owner is the package that owns a sort of entries; empty for none.
func owner(ks kv.Keyspace, scope kv.Scope, tag byte) string {
	for _, o := range erasure.Owners() {
		for _, s := range o.Sorts {
			if s.Has(ks, scope, tag) {
				return o.Name
			}
		}
	}
	return ""
}

// entry is a row of a table of keys in FORMAT.md.
type entry struct {
	keyspace kv.Keyspace
	section  string
	lists    []string // of the server's own; none: in scopes of owners
	tag      byte
}

var (
	row      = regexp.MustCompile("^\\| `(.)`")
	ownScope = regexp.MustCompile("\\(?(?:tenant|`\\*`), `y`, `([a-z/-]+)")
	oneList  = regexp.MustCompile("[Tt]he list `([a-z-]+)`")
)

// format reads the tables of keys of FORMAT.md.
func format(t *testing.T) (all []entry) {
	t.Helper()
	text, err := os.ReadFile("../../memory/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	keyspaces := make(map[string]kv.Keyspace)
	for _, ks := range kv.Keyspaces() {
		keyspaces[ks.String()] = ks
	}
	var at kv.Keyspace
	inKeyspace, inTable, section := false, false, ""
	var lists []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			at, inKeyspace = keyspaces[strings.TrimPrefix(line, "## Keyspace ")]
			section, lists, inTable = line, nil, false
		case strings.HasPrefix(line, "### "):
			section, lists, inTable = line, nil, false
		case !inKeyspace:
		case strings.HasPrefix(line, "| key after the prefix"), strings.HasPrefix(line, "| Tag | Key"):
			inTable = true
		case inTable && strings.HasPrefix(line, "|"):
			if found := row.FindStringSubmatch(line); found != nil {
				all = append(all, entry{at, section, lists, found[1][0]})
			}
		default:
			inTable = false
			for _, re := range []*regexp.Regexp{ownScope, oneList} {
				for _, found := range re.FindAllStringSubmatch(line, -1) {
					lists = append(lists, found[1])
				}
			}
			if strings.HasPrefix(line, "In the scope of") || strings.HasPrefix(line, "An agent that another") {
				lists = nil
			}
		}
	}
	return all
}

// Every key that FORMAT.md describes is owned by a package that says what becomes of it when a
// subject is erased.
func TestEveryKeyHasAnOwner(t *testing.T) {
	t.Parallel()
	all := format(t)
	if len(all) < 90 {
		t.Fatalf("FORMAT.md has %d rows of keys; is it read right?", len(all))
	}
	lists := make(map[string]bool)
	for _, e := range all {
		found := ""
		for _, kind := range []byte("aust") {
			if found == "" && (len(e.lists) == 0 || e.keyspace != kv.System) {
				found = owner(e.keyspace, kv.Scope{Tenant: "t", Kind: kv.OwnerKind(kind), Owner: "any"}, e.tag)
			}
		}
		for _, list := range e.lists {
			lists[list] = true
			if strings.HasSuffix(list, "/") {
				list += "any"
			}
			if name := owner(e.keyspace, kv.List(list).Part(kv.AgentScope("t", "any")), e.tag); name != "" {
				found = name
			}
			if name := owner(e.keyspace, kv.List(list).Whole("t"), e.tag); name != "" {
				found = name
			}
		}
		if found == "" {
			t.Errorf("%s: nobody owns the entries with tag %q of keyspace %s, lists %q", e.section, e.tag, e.keyspace, e.lists)
		}
	}
	for _, name := range []string{"intents", "expiry", "embeddings", "children", "erasures", "spaces", "workspaces", "audit", "approvals", "gaps", "mcp-servers", "lease/", "bridges"} {
		if !lists[name] {
			t.Errorf("FORMAT.md has no table of keys of %q; is it read right?", name)
		}
	}
}

var (
	namedList  = regexp.MustCompile(`kv\.List(?: *= *|\()"([a-z/-]+)"`)
	namedScope = regexp.MustCompile(`OwnerSystem, (?:Owner: )?"([a-z/-]+)"`)
	constant   = regexp.MustCompile(`OwnerSystem, (?:Owner: )?([a-zA-Z]+)\b`)
)

// Every list of the server's own that the code has is owned: one that is added without an
// owner fails here.
func TestEveryListHasAnOwner(t *testing.T) {
	t.Parallel()
	owned := make(map[string]bool)
	for _, o := range erasure.Owners() {
		for _, s := range o.Sorts {
			for _, list := range s.Lists {
				owned[list] = true
			}
		}
	}
	found := 0
	for _, root := range []string{"../../memory", "../../context", "../../bridge", "../../server"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "kvtest") || strings.Contains(path, "loom-bridge-bench") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			names := namedList.FindAllStringSubmatch(string(text), -1)
			names = append(names, namedScope.FindAllStringSubmatch(string(text), -1)...)
			for _, c := range constant.FindAllStringSubmatch(string(text), -1) {
				value := regexp.MustCompile(`(?m)\b` + c[1] + ` *(?:kv\.List *)?= *"([a-z/-]+)"`)
				names = append(names, value.FindAllStringSubmatch(string(text), -1)...)
			}
			for _, name := range names {
				if name[1] == "prompts" { // of the gate of erasures: nothing of it is stored
					continue
				}
				if found++; !owned[name[1]] && !owned[name[1]+"/"] {
					t.Errorf("%s: nobody owns the list %q; its package registers what becomes of its entries in erasure.Owners", path, name[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 12 {
		t.Errorf("the code has %d lists; is it read right?", found)
	}
}

// No two packages own the same entries.
func TestOwnersAreApart(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, o := range erasure.Owners() {
		for _, s := range o.Sorts {
			lists := s.Lists
			for _, kind := range s.Kinds {
				if kind != rune(kv.OwnerSystem) {
					lists = []string{""}
				}
				for _, list := range lists {
					for _, tag := range s.Tags {
						key := fmt.Sprintf("%s %c %s %c", s.Keyspace, kind, list, tag)
						if before := seen[key]; before != "" {
							t.Errorf("%s is owned by %s and %s", key, before, o.Name)
						}
						seen[key] = o.Name
					}
				}
			}
		}
	}
}
