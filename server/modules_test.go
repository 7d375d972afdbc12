package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module is one of the parts that the documents name, the package that is it, and what of it
// others use.
type namedModule struct{ document, dir, uses string }

// Each module that the documents name is a package of its own, with what it is there for.
//
// M19, N06, N09
func TestNamedModules(t *testing.T) {
	for _, m := range []namedModule{
		// The stages of steps, isolation, and the hierarchy of tools and memories.
		{"step", "context/step", "Step"},
		{"reducer", "context/step", "Reducer"},
		{"compactor", "context/history", "Compactor"},
		{"offloader", "context/blob", "Store"},
		{"tools", "bridge/tools", "Registry"},
		{"isolation", "context/session", "Log"},
		{"hierarchy", "bridge/tools", "Catalogue"},
		{"scripts", "bridge/native", "Register"},
		{"semantic", "memory", "Store"},
		// The context of tasks.
		{"task context manager", "context/assemble", "Assembler"},
		{"task context sources", "context/assemble/gather", "Source"},
		{"task context converter", "context/assemble/converter", "Reader"},
		{"tokenizer", "context/tokens", "Counter"},
		{"task", "context/session", "Task"},
		{"event bus", "bridge/events", "Bus"},
		{"knowledge", "bridge/recall", "Knowledge"},
		// Three phases.
		{"phase 1", "context/assemble/inject", "Phase"},
		{"phase 2", "context/assemble/inject", "Injection"},
		{"orchestrator", "context/assemble/inject", "Prepare"},
		{"compaction", "context/history", "Compactor"},
		{"decay", "context/history/decay", "Conversation"},
		{"result compression", "context/compress", "Compressor"},
		// What they build upon.
		{"memory tiers", "bridge/tiers", "Tiers"},
		{"agents", "bridge/agents", "Directory"},
		{"external knowledge", "bridge/recall", "Endpoint"},
		{"playbooks", "context/assemble/inject/playbook", "Entry"},
	} {
		if !declares(t, m.dir, m.uses) {
			t.Errorf("%s: package %s has no %s", m.document, m.dir, m.uses)
		}
	}
}

// declares reports whether a package declares a name on its top.
func declares(tb testing.TB, dir, name string) bool {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	must(tb, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		must(tb, err)
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		must(tb, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}
