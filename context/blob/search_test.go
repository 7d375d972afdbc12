package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// grep is the slow and plain way to the same matches.
func grep(body []byte, matches func(line []byte) []int) []blob.Match {
	var found []blob.Match
	offset := 0
	for i, line := range bytes.SplitAfter(body, []byte{'\n'}) {
		if len(line) == 0 {
			break
		}
		text := bytes.TrimSuffix(line, []byte{'\n'})
		if at := matches(text); at != nil {
			m := blob.Match{Line: int64(i + 1), Offset: int64(offset + at[0]), Length: int64(at[1] - at[0]), Text: text}
			if len(text) > blob.MaxShownBytes {
				from := max(min(at[0]-128, len(text)-blob.MaxShownBytes), 0)
				m.Text = text[from : from+blob.MaxShownBytes]
			}
			found = append(found, m)
		}
		offset += len(line)
	}
	return found
}

func literal(text string) func(line []byte) []int {
	return func(line []byte) []int {
		if at := bytes.Index(line, []byte(text)); at >= 0 {
			return []int{at, at + len(text)}
		}
		return nil
	}
}

func (f *fixture) mustSearch(tb testing.TB, e blob.Entry, p *blob.LinePattern, from blob.From) []blob.Match {
	tb.Helper()
	var found []blob.Match
	for m, err := range f.Search(tb.Context(), alice, e, p, from) {
		if err != nil {
			tb.Fatal(err)
		}
		found = append(found, m)
	}
	return found
}

// differ says where matches differ; cmp.Diff takes too long for so many.
func differ(want, got []blob.Match) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("match %d is missing: %+v", i, want[i])
		case i >= len(want):
			return fmt.Sprintf("match %d is too many: %+v", i, got[i])
		case !same(want[i], got[i]):
			return fmt.Sprintf("match %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	return ""
}

func same(a, b blob.Match) bool {
	return a.Line == b.Line && a.Offset == b.Offset && a.Length == b.Length && bytes.Equal(a.Text, b.Text)
}

// searched are bodies that are hard to search.
func searched() map[string][]byte {
	const c = blob.ChunkBytes
	longLine := bytes.Repeat([]byte("x"), 100<<10)
	return map[string][]byte{
		"empty":              nil,
		"one line":           []byte("needle"),
		"empty lines":        []byte("\n\n\nneedle\n\n"),
		"no end":             []byte("a\nNeedle b\nneedle"),
		"several in a line":  []byte("needle needle\nneedleneedle\n"),
		"long lines":         slicesOf(longLine, []byte("needle"), longLine, []byte("\nneedle\n"), longLine, []byte("needle")),
		"binary":             []byte("\x00\xffneedle\xfe\n\xff\n\x80needle"),
		"other alphabets":    []byte("ſtraße KELVIN \u212a\nnaïve needle Ünïcode\n"),
		"text":               textOf(c + 77777),
		"across chunks":      slicesOf(bytes.Repeat([]byte("y\n"), c/2-1), []byte("nee"), []byte("dle end\nz\n"), textOf(1000)),
		"end at a chunk":     slicesOf(bytes.Repeat([]byte("y"), c-7), []byte("needle\n"), []byte("needle")),
		"feed opens a chunk": slicesOf(bytes.Repeat([]byte("y"), c-6), []byte("needle"), []byte("\nneedle\n")),
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Every way to search finds what the plain way finds, line by line.
func TestSearchFindsWhatIsThere(t *testing.T) {
	f := newMemory(t)
	expressions := []string{
		`needle`, `^needle`, `needle$`, `n[aeiou]+dle\b`, `(line|needle) (7|b)`, `^$`, `x*`, `line \d+9 of`, `\bof some\b`,
		`[^a-z\n]{3}`, `nee(dle)?`, `(?i)NEEDLE`, `foo|bar|needle`, `\x{e4}|ï`, `(?s).needle.`, `straße|(?i:kelvin)`, `.`,
	}
	// In a large body not every expression: the plain way takes its time.
	large, every := rounds(blob.ChunkBytes/2, 64<<10), rounds(6, len(expressions))
	for name, body := range searched() {
		e := f.mustStage(t, alice, body, blob.Entry{Path: "b/" + name})
		for _, text := range []string{"needle", "line 7", "e", "\xff", "ü"} {
			p, err := blob.Literal(text, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := differ(grep(body, literal(text)), f.mustSearch(t, e, p, blob.From{})); diff != "" {
				t.Errorf("%s, %q: %s", name, text, diff)
			}
		}
		for i, text := range expressions {
			if len(body) > large && i%every != 0 {
				continue
			}
			for _, fold := range []bool{false, true} {
				plain := text
				if fold {
					plain = "(?i)" + text
				}
				p, err := blob.Regexp(text, fold)
				if err != nil {
					t.Fatal(err)
				}
				want := grep(body, regexp.MustCompile(plain).FindIndex)
				if diff := differ(want, f.mustSearch(t, e, p, blob.From{})); diff != "" {
					t.Errorf("%s, %s: %s", name, plain, diff)
				}
			}
		}
	}
}

// Case folds as RE2 folds it.
func TestSearchInEitherCase(t *testing.T) {
	f := newMemory(t)
	e := f.mustStage(t, alice, []byte("Sky\nſky\nSKY\ns\u212ay\nskies\nÉté\néTÉ\n"), blob.Entry{Path: "a"})
	for text, want := range map[string][]int64{"sky": {1, 2, 3, 4}, "été": {6, 7}, "k": {1, 2, 3, 4, 5}, "(": nil} {
		p, err := blob.Literal(text, true)
		if err != nil {
			t.Fatal(err)
		}
		var lines []int64
		for _, m := range f.mustSearch(t, e, p, blob.From{}) {
			lines = append(lines, m.Line)
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// A search goes on behind any match as if it had never stopped.
func TestSearchGoesOn(t *testing.T) {
	f := newMemory(t)
	for name, body := range searched() {
		e := f.mustStage(t, alice, body, blob.Entry{Path: "b/" + name})
		for _, text := range []string{`needle`, `^$`, `9`} {
			p, err := blob.Regexp(text, false)
			if err != nil {
				t.Fatal(err)
			}
			all := f.mustSearch(t, e, p, blob.From{})
			for i := 0; i < len(all); i += 1 + len(all)/7 {
				if diff := differ(all[i+1:], f.mustSearch(t, e, p, all[i].After())); diff != "" {
					t.Errorf("%s, %s behind match %d: %s", name, text, i, diff)
				}
			}
		}
	}
}

// A line longer than any buffer is looked through in parts: what is short
// enough is found wherever it lies, once.
func TestSearchInAnEndlessLine(t *testing.T) {
	f := newMemory(t)
	random := rand.New(rand.NewPCG(1, 9))
	for range rounds(20, 3) {
		body := bytes.Repeat([]byte("x"), 5*blob.ChunkBytes)
		at := random.IntN(len(body) - 4096)
		needle := bytes.Repeat([]byte("needle "), 500)
		copy(body[at:], needle)
		copy(body[min(at+10_000, len(body)-10):], "needle")
		body = append(body, "\nneedle\n"...)
		e := f.mustStage(t, alice, body, blob.Entry{Path: "a"})
		p, err := blob.Regexp(`(needle ){100}`, false)
		if err != nil {
			t.Fatal(err)
		}
		got := f.mustSearch(t, e, p, blob.From{})
		if len(got) != 1 || got[0].Line != 1 || got[0].Offset != int64(at) || got[0].Length != 700 || len(got[0].Text) != blob.MaxShownBytes {
			t.Fatalf("needle at %d: %+v", at, got)
		}
		if p, err = blob.Literal("needle", false); err != nil {
			t.Fatal(err)
		}
		got = f.mustSearch(t, e, p, blob.From{})
		if len(got) != 2 || got[0].Offset != int64(at) || got[1].Line != 2 || got[1].Offset != int64(5*blob.ChunkBytes+1) {
			t.Fatalf("needle at %d: %+v", at, got)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	for text, field := range map[string]string{
		"": "regexp", "(": "regexp", "[z-a]": "regexp", strings.Repeat("x", blob.MaxPatternBytes+1): "regexp",
		"((x{10}){10}){10}": "regexp", `\pX`: "regexp",
	} {
		_, err := blob.Regexp(text, false)
		var bad *invalid.Error
		if !errors.As(err, &bad) || bad.Field != field || !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for _, text := range []string{"", "a\nb", strings.Repeat("x", blob.MaxPatternBytes+1)} {
		for _, fold := range []bool{false, true} {
			if _, err := blob.Literal(text, fold); !errors.Is(err, blob.ErrInvalid) && (!fold || text != "a\nb") {
				t.Errorf("%.20q: %v", text, err)
			}
		}
	}
}

// A search ends with its context, with its caller, and at damage, and leaves
// nothing running: the bubble would not end.
func TestSearchEnds(t *testing.T) {
	f := newMemory(t)
	body := textOf(4 * blob.ChunkBytes)
	e := f.mustStage(t, alice, body, blob.Entry{Path: "a"})
	p, err := blob.Literal("line", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	var last error
	for _, err := range f.Search(ctx, alice, e, p, blob.From{}) {
		if last = err; err != nil {
			break
		}
		if seen++; seen == 10 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("after %d matches: %v", seen, last)
	}
	for _, err := range f.Search(t.Context(), alice, e, p, blob.From{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	for _, from := range []blob.From{{Offset: -1}, {Offset: e.Size + 1}, {Lines: -1}} {
		for _, err := range f.Search(t.Context(), alice, e, p, from) {
			if !errors.Is(err, blob.ErrInvalid) {
				t.Errorf("from %+v: %v", from, err)
			}
		}
	}
	broken := f.keys(t, alice)['c'][0].Key
	f.overwrite(t, alice, func(tx *kv.Tx) { tx.Delete(kv.Blobs, broken) })
	last = nil
	for _, err := range f.Search(t.Context(), alice, e, p, blob.From{}) {
		last = err
	}
	if !errors.Is(last, blob.ErrDamaged) {
		t.Errorf("damage: %v", last)
	}
}

// Characters beyond ASCII, and bytes that are none, are passed over quickly, and
// nothing is passed over that matches.
func TestSearchBeyondASCII(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	signs := []string{"a", "k", "1", " ", "_", "é", "世", "\u212a", "ſ", "\U0001F600", "\uFFFD", "\xff", "\xc3", "\x80", "\xe4\xb8", "\n"}
	var body bytes.Buffer
	for range 20_000 {
		body.WriteString(signs[random.IntN(len(signs))])
	}
	f := newMemory(t)
	e := f.mustStage(t, alice, body.Bytes(), blob.Entry{Path: "a"})
	for _, text := range []string{
		`[^a]{4}`, `\W\b.`, `(?i)[jkl]{2}`, `(?i)[k1]\W`, `(?i)s|1{2}`, `é{2}|\d\d`, `^.{3}$`, `\pL{3}`, `[\x{FFFD}]{2}`, `\b..$`, `[a1].?[a1]$`,
		`(?s).{7}`, `^\W*$`, `[é世]\x{80}?[a1]`, `\B[\x{10000}-\x{10FFFF}]\B`, `[^\x00-\x7f]{5}`, `^$`, `[a-é]{3}`,
	} {
		p, err := blob.Regexp(text, false)
		if err != nil {
			t.Fatal(err)
		}
		want := grep(body.Bytes(), regexp.MustCompile(text).FindIndex)
		if diff := differ(want, f.mustSearch(t, e, p, blob.From{})); diff != "" || len(want) == 0 {
			t.Errorf("%s, %d lines: %.500s", text, len(want), diff)
		}
	}
}

// Search agrees with the plain way on anything.
func FuzzSearch(f *testing.F) {
	f.Add([]byte("some needle\nin hay\n"), "n[a-z]+", true)
	f.Add([]byte("a\xffb\n\n"), "^$|b", false)
	f.Add([]byte("Kk\u212a\nſ"), "k|s", true)
	f.Fuzz(func(t *testing.T, body []byte, text string, fold bool) {
		p, err := blob.Regexp(text, fold)
		if err != nil {
			return
		}
		if fold {
			text = "(?i)" + text
		}
		store := newMemory(t)
		e := store.mustStage(t, alice, body, blob.Entry{Path: "a"})
		want := grep(body, regexp.MustCompile(text).FindIndex)
		if diff := differ(want, store.mustSearch(t, e, p, blob.From{})); diff != "" {
			t.Errorf("%q in %q: %s", text, body, diff)
		}
	})
}

// Archived blobs are found by words, category and all given tags, five by
// default.
//
// P17
func TestFindInTheArchive(t *testing.T) {
	f := newMemory(t)
	archive := func(n int, text, category string, tags ...string) {
		step := fmt.Sprintf("step_%03d", n)
		f.mustStage(t, alice, []byte(text), blob.Entry{StepID: step, Category: "read"})
		f.mustArchive(t, step, blob.Archiving{Category: category, Tags: tags})
		f.now = f.now.Add(1e9)
	}
	archive(1, "quarterly revenue of the Berlin office\nrevenue grew\n", "reports", "finance", "2026")
	archive(2, "nothing but revenue", "reports", "finance")
	archive(3, "the weather in Berlin", "general", "2026")
	archive(4, `{"timeout": 30}`, "config")
	archive(5, "x,y\n1,2\n", "datasets", "finance", "2026")
	f.mustStage(t, alice, []byte("revenue, not archived"), blob.Entry{StepID: "step_006", Category: "read"})
	for i := 7; i < 15; i++ {
		archive(i, "filler number "+fmt.Sprint(i), "general")
	}
	for name, tt := range map[string]struct {
		q    blob.Query
		want []string
	}{
		"words, the best first":  {blob.Query{Words: "Revenue, BERLIN"}, []string{"step_001", "step_002", "step_003"}},
		"a rare word":            {blob.Query{Words: "timeout"}, []string{"step_004"}},
		"a tag as a word":        {blob.Query{Words: "finance", Category: "datasets"}, []string{"step_005"}},
		"words and category":     {blob.Query{Words: "berlin", Category: "general"}, []string{"step_003"}},
		"words and tags":         {blob.Query{Words: "berlin", Tags: []string{"2026", "finance"}}, []string{"step_001"}},
		"nothing":                {blob.Query{Words: "absent"}, nil},
		"all tags":               {blob.Query{Tags: []string{"finance", "2026"}}, []string{"step_005", "step_001"}},
		"category":               {blob.Query{Category: "reports"}, []string{"step_002", "step_001"}},
		"the newest five":        {blob.Query{}, []string{"step_014", "step_013", "step_012", "step_011", "step_010"}},
		"a limit":                {blob.Query{Words: "filler", Limit: 7}, []string{"step_014", "step_013", "step_012", "step_011", "step_010", "step_009", "step_008"}},
		"a pattern":              {blob.Query{Pattern: mustRegexp(t, `^\d,\d$`)}, []string{"step_005"}},
		"a pattern and category": {blob.Query{Pattern: mustRegexp(t, "revenue"), Category: "reports"}, []string{"step_002", "step_001"}},
	} {
		r, err := f.Find(t.Context(), alice, tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, found := range r.Found {
			steps = append(steps, found.Entry.StepID)
		}
		if diff := cmp.Diff(tt.want, steps); diff != "" || r.Incomplete {
			t.Errorf("%s: %s", name, diff)
		}
	}
	r, err := f.Find(t.Context(), alice, blob.Query{Words: "revenue", Matches: 1})
	if err != nil {
		t.Fatal(err)
	}
	if found := r.Found[0]; found.Entry.StepID != "step_002" || found.More || string(found.Matches[0].Text) != "nothing but revenue" {
		t.Errorf("%+v", found)
	}
	if found := r.Found[1]; len(found.Matches) != 1 || !found.More || found.Matches[0].Line != 1 || found.Score <= 0 {
		t.Errorf("%+v", found)
	}
	if r, err = f.Find(t.Context(), bob, blob.Query{Words: "revenue"}); err != nil || len(r.Found) != 0 {
		t.Errorf("bob finds %+v, %v", r, err)
	}
	for name, q := range map[string]blob.Query{
		"category": {Category: "none"}, "limit": {Limit: blob.MaxFound + 1}, "matches": {Matches: -1},
		"both": {Words: "a", Pattern: mustRegexp(t, "a")}, "words": {Words: strings.Repeat("w", blob.MaxQueryBytes+1)},
	} {
		if _, err := f.Find(t.Context(), alice, q); !errors.Is(err, blob.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustRegexp(tb testing.TB, text string) *blob.LinePattern {
	tb.Helper()
	p, err := blob.Regexp(text, false)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Pictures are found by their names and tags; what they hold are no words.
func TestFindPictures(t *testing.T) {
	f := newMemory(t)
	f.mustStage(t, alice, []byte("\x89PNG\r\n\x1a\n\x00 berlin"), blob.Entry{StepID: "step_001", Category: "page"})
	f.mustArchive(t, "step_001", blob.Archiving{Name: "skyline.png", Tags: []string{"night"}})
	for words, want := range map[string]int{"skyline": 1, "night": 1, "berlin": 0} {
		r, err := f.Find(t.Context(), alice, blob.Query{Words: words})
		if err != nil || len(r.Found) != want {
			t.Errorf("%s: %d found, %v", words, len(r.Found), err)
		}
	}
}
