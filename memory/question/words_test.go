package question

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

func TestCut(t *testing.T) {
	type plain struct {
		Text, Lower     string
		Capital, Begins bool
		Joint           string
	}
	text := "Where's Ann? (Bob) on 2023-05-08, ÉTÉ—été 7"
	var got []plain
	for _, w := range cut(nil, text) {
		got = append(got, plain{text[w.from:w.to], w.lower, w.capital, w.begins, strings.TrimRight(string(w.joint), "\x00")})
	}
	if diff := cmp.Diff([]plain{
		{"Where", "where", true, true, "'"},
		{"s", "s", false, false, " "},
		{"Ann", "ann", true, false, ""},
		{"Bob", "bob", true, true, ""},
		{"on", "on", false, false, " "},
		{"2023", "2023", false, false, "-"},
		{"05", "05", false, false, "-"},
		{"08", "08", false, false, ""},
		{"ÉTÉ", "été", true, false, ""},
		{"été", "été", false, false, " "},
		{"7", "7", false, false, ""},
	}, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}

// Names are found in the words of a question as segment.FoldName finds them in its
// whole text.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"What did Caroline's sister Ann-Marie say?", "JOSÉ and Jose\u0301, Foo™ ½ ﬁne", "", "  ", "x",
		strings.Repeat("long ", 100), strings.Repeat("é ", 200), "田中さん は何 हिन्दी ไทย",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > MaxTextBytes || isOdd(text) {
			t.Skip()
		}
		got, want := names(text, cut(nil, text)), strings.Fields(segment.FoldName(text))
		if len(want) > len(got) { // a name that the bound cuts through is none
			want = want[:len(want)-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}

// isOdd tells whether a text has symbols that the normal form makes letters of, or an
// accent on nothing.
func isOdd(text string) bool {
	before := ' '
	for _, r := range text {
		onWord := isWordRune(before) || unicode.IsMark(before)
		if r >= utf8.RuneSelf && !isWordRune(r) && !unicode.IsSpace(r) && (!unicode.IsMark(r) || !onWord) {
			return true
		}
		before = r
	}
	return false
}

// The text of a question is cut into words in one place and made into terms in one
// place; all that wants words takes those.
func TestTextIsCutOnce(t *testing.T) {
	callers := callersIn(t, ".")
	for call, want := range map[string][]string{
		"cut":                {"Clauses", "Read", "Tells"}, // Clauses say where Read begins, Tells is of what is saved
		"Asked":              {"terms"},
		"terms":              {"Read"},
		"Spans":              nil,
		"runeAt":             {"cut"},
		"FoldName":           {"names"}, // of one word
		"Fields":             {"names"}, // of one word
		"FieldsFunc":         nil,
		"Split":              nil,
		"DecodeRuneInString": {"runeAt"},
	} {
		if got := callers[call]; !slices.Equal(got, want) {
			t.Errorf("%s is called by %v, want %v", call, got, want)
		}
	}
	if _, ok := reflect.TypeFor[rank.Query]().FieldByName("Text"); ok {
		t.Error("the index is handed a text, which it would have to cut again")
	}
	asked, whole := Question{Text: "Did Ann go on 8 May 2023?"}.Read(analysis.New(nil), time.Unix(0, 0), 0)
	if !whole || len(asked.Words) == 0 || len(asked.Names) == 0 || len(asked.Spans) == 0 {
		t.Errorf("read as %+v", asked)
	}
}

// callersIn returns the functions of a package that call each function or method, by
// its name.
func callersIn(tb testing.TB, dir string) map[string][]string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	callers := make(map[string]map[string]bool)
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			tb.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				name := ""
				switch f := call.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				if callers[name] == nil {
					callers[name] = make(map[string]bool)
				}
				callers[name][function.Name.Name] = true
				return true
			})
		}
	}
	sorted := make(map[string][]string)
	for name, functions := range callers {
		sorted[name] = slices.Sorted(maps.Keys(functions))
	}
	return sorted
}
