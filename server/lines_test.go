package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
)

// Up to three steps stand in full, with nothing above them; from the fourth on the
// first ones are lines.
//
// B06, B07
func TestThreeStepsStandInFull(t *testing.T) {
	r := MustRows(t)
	for n := 1; n <= 5; n++ {
		r.record("fs:stat", fmt.Sprintf(`{"path":"f%d"}`, n), `"ok"`, "")
		for style, heads := range map[string][2]string{"design": {"Previous steps:\n  • ", "\n\nRecent steps:\nStep "}, "reduction": {"Earlier steps:\n• ", "\n\nRecent steps:\n\nStep "}} {
			named := design
			if style == "reduction" {
				named = reduction
			}
			text, _ := r.text(named, 3)
			if n <= 3 {
				if !strings.HasPrefix(text, "Step 1:\n") || strings.Contains(text, "steps:") || inFull(text) != n {
					t.Errorf("%s, %d steps:\n%s", style, n, text)
				}
				continue
			}
			first := fmt.Sprint(heads[1], n-2, ":\n")
			if !strings.HasPrefix(text, heads[0]) || !strings.Contains(text, first) || asLines(text) != n-3 || inFull(text) != 3 {
				t.Errorf("%s, %d steps:\n%s", style, n, text)
			}
		}
	}
}

// In the style `reduction` a section of lines of more than 500 tokens becomes the
// number of its steps; one of exactly 500 stays.
//
// B07
func TestSectionsOf500Tokens(t *testing.T) {
	s := servertest.Start(t, nil)
	text := func(words int) string {
		c := as(t, s, fmt.Sprint("agent", words))
		for i := range 8 {
			path := fmt.Sprintf("some/rather/long/path/of/a/file/in/a/folder/number_%d.txt", i)
			if i == 0 {
				path = strings.TrimSpace(strings.Repeat("word ", words))
			}
			c.report("fs:read_file", `{"path":`+quoted(t, path)+`}`, `{"content":"short"}`)
		}
		return shownIn(c.prompt(literally("reduction")))
	}
	section := func(text string) string {
		older, _, _ := strings.Cut(text, "\n\nRecent steps:")
		return older
	}
	c := as(t, s, agent)
	probe := section(text(100))
	rest := 500 - c.tokens(probe)
	for more, stays := range map[int]bool{-1: true, 0: true, 1: false} {
		got := section(text(100 + rest + more))
		if stays {
			if c.tokens(got) != 500+more || asLines(got) != 5 {
				t.Errorf("%d tokens:\n%s", c.tokens(got), got)
			}
			continue
		}
		if got != "Earlier: 5 steps completed" {
			t.Errorf("%d tokens become\n%s", 500+more, got)
		}
	}
}

// The line of a failure is at most 100 characters of one line, in every style.
//
// B02
func TestLinesOfFailures(t *testing.T) {
	r := MustRows(t)
	const frame = "✗ db:query failed: "
	for _, problem := range []string{"no such\n\n  table", strings.Repeat("é", 81), strings.Repeat("é", 82), strings.Repeat("é", 400)} {
		r.record("db:query", `{}`, "", problem)
	}
	for range 3 {
		r.record("fs:stat", `{}`, `"ok"`, "")
	}
	for _, style := range []string{"design", "reduction"} {
		named, bullet := design, "  • "
		if style == "reduction" {
			named, bullet = reduction, "• "
		}
		text, _ := r.text(named, 3)
		for i, line := range strings.Split(text, "\n")[1:5] {
			got := strings.TrimPrefix(line, bullet)
			if n := len([]rune(got)); n > 100 || !strings.HasPrefix(got, frame) || i == 0 && got != frame+"no such table" || i == 1 && got != frame+strings.Repeat("é", 81) {
				t.Errorf("%s, failure %d, %d characters: %q", style, i+1, n, got)
			}
		}
	}
}
