package excerpt_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
)

func TestIdentifiersByClass(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		class      excerpt.Class
		want       []string
	}{
		{"paths", "./setup.py src/a/b.py:12: x /etc/hosts. and/ //c", excerpt.Path, []string{"./setup.py", "src/a/b.py", "etc/hosts"}},
		{"an empty name ends a path", "a//b/c d/e//", excerpt.Path, []string{"b/c", "d/e"}},
		{"failures", "ValueError: x\nFAILED tests\nDeprecationWarning no_error", excerpt.Failure, []string{"ValueError", "FAILED", "DeprecationWarning"}},
		{"numbers", "took 3.4s, 12 passed, 45% of 1.5MB, 250 ms v2 12x 100s1", excerpt.Number, []string{"3.4s", "12 passed", "45%", "1.5MB", "250 ms"}},
		{"links", "see https://example.org/a/b?c=1&d=e, or ftp://h/x. done", excerpt.Link, []string{"https://example.org/a/b?c=1&d=e", "ftp://h/x"}},
		{"symbols", "def run(self):\nclass Parser: parse_date DateField v1.2.3 the and", excerpt.Symbol, []string{"run", "Parser", "parse_date", "DateField", "v1.2.3"}},
		{"names with two colons", "tests/a.py::TestA::test_b std::vector a:12:std::map", excerpt.Symbol, []string{"tests/a.py::TestA::test_b", "std::vector"}},
		{"addresses and what is built", "0x7f23b2e4edd8 0x00100010 0x8000000000000000 " + strings.Repeat("a1-", 21) + "b " + strings.Repeat("a1-", 21) + "bc", excerpt.Symbol, []string{"0x00100010", "0x8000000000000000", strings.Repeat("a1-", 21) + "b"}},
		{"no symbols", "12:def ____ 34-return :: ... --- 7: a.b", excerpt.Symbol, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, id := range excerpt.Identifiers(tt.text) {
				if id.Class == tt.class {
					got = append(got, id.Text)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", tt.class, tt.text, diff)
			}
		})
	}
}

// What is named more often, or brought in by its definition, comes first.
func TestIdentifiersByScore(t *testing.T) {
	ids := excerpt.Identifiers("once_here twice_here func Defined() twice_here some/path.go")
	var got []string
	for _, id := range ids {
		got = append(got, id.Text)
	}
	want := []string{"Defined", "some/path.go", "twice_here", "once_here"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEachIdentifier(t *testing.T) {
	var got []string
	excerpt.EachIdentifier("a.b the parse_date x/y.go:12: DateField documents 1.5 (abc_) ./setup.py: Words", func(id string) { got = append(got, id) })
	want := []string{"parse_date", "x/y.go:12", "DateField", "documents", "abc_", "setup.py"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Hostile text takes no more time than other text.
func TestIdentifiersHostile(t *testing.T) {
	const size = 1 << 20
	for name, part := range map[string]string{
		"letters": "a", "slashes": "/", "paths": "a/", "colons": "a:", "urls": "a://b?", "schemes": "://",
		"digits": "1 ", "units": "1 a", "definitions": "def ", "blank lines": "from\n\n\n", "dots": ".", "broken": "\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			excerpt.Identifiers(strings.Repeat(part, size/len(part)))
			// A hundred times of what it takes; quadratic code takes hours.
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("a megabyte took %v", took)
			}
		})
	}
}

func FuzzIdentifiers(f *testing.F) {
	for _, seed := range []string{"", "./a/b.py:12 ValueError 3.4s https://x/y", "a//b//", "1.", "def \xff", "12 \u00b5s", "_-/.:", "from\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, id := range excerpt.Identifiers(text) {
			if id.Text == "" || id.Score <= 0 {
				t.Errorf("identifier %+v", id)
			}
			if !strings.Contains(text, strings.TrimPrefix(id.Text, "./")) {
				t.Errorf("%q is not in the text", id.Text)
			}
		}
	})
}
