package native_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

type list = []any

func TestEditFile(t *testing.T) {
	const code = "def a():\n    return 1\n\ndef b():\n    return 1\n"
	for _, tt := range []struct {
		name, before string
		args         args
		after        string
		replaced     int64
		diff         string // part of it
	}{
		{"one", code, args{"old_string": "def a():\n    return 1", "new_string": "def a():\n    return 2"}, strings.Replace(code, "1", "2", 1), 1, "-    return 1\n+    return 2\n"},
		{"all", code, args{"old_string": "return 1", "new_string": "return 3", "replace_all": true}, strings.ReplaceAll(code, "1", "3"), 2, "+    return 3"},
		{"several, in order", code, args{"edits": list{
			object{"old_string": "def a", "new_string": "def c"}, object{"old_string": "def c():\n", "new_string": "def c(x):\n"},
		}}, strings.Replace(code, "def a()", "def c(x)", 1), 2, "+def c(x):"},
		{"taken out", code, args{"old_string": "\ndef b():\n    return 1\n", "new_string": ""}, "def a():\n    return 1\n", 1, "-def b():"},
		{"at the end", "a", args{"old_string": "a", "new_string": "a\nb"}, "a\nb", 1, "+b\n\\ No newline at end of file"},
		{"lines that end with CR LF", "a\r\nb\r\nc\r\n", args{"old_string": "a\nb", "new_string": "a\nx\ny"}, "a\r\nx\r\ny\r\nc\r\n", 1, ""},
		{"dollar signs mean nothing", "a", args{"old_string": "a", "new_string": "$0 \\1"}, "$0 \\1", 1, ""},
		{"into an empty file", "", args{"old_string": "", "new_string": "x"}, "x", 1, "+x"},
		{"a dry run", code, args{"old_string": "def a", "new_string": "def z", "dry_run": true}, code, 1, "+def z():"},
		{"by its hash", "old", args{"old_string": "old", "new_string": "new", "expected_sha256": strings.ToUpper(digest("old"))}, "new", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := MustBench(t, map[string]string{"f": tt.before}, nil)
			if err := os.Chmod(filepath.Join(b.dir, "f"), 0o751); err != nil {
				t.Fatal(err)
			}
			tt.args["path"] = "f"
			out := b.must("fs:edit_file", tt.args)
			if got := b.get("f"); got != tt.after {
				t.Errorf("the file is %q, want %q", got, tt.after)
			}
			if diff, _ := out["diff"].(string); out["replacements"] != tt.replaced || !strings.Contains(diff, tt.diff) || !strings.HasPrefix(diff, "--- a/f\n+++ b/f\n") {
				t.Errorf("got %v", out)
			}
			if _, dry := tt.args["dry_run"]; !dry && out["sha256"] != digest(tt.after) || (out["dry_run"] == true) != dry {
				t.Errorf("got %v", out)
			}
			if info, err := os.Stat(filepath.Join(b.dir, "f")); err != nil || info.Mode().Perm() != 0o751 {
				t.Errorf("the mode is %v, %v", info.Mode(), err)
			}
		})
	}
}

type object = map[string]any

func TestEditFileMakesAFile(t *testing.T) {
	b := MustBench(t, nil, nil)
	out := b.must("fs:edit_file", args{"path": "p/q/new", "old_string": "", "new_string": "one\n"})
	if b.get("p/q/new") != "one\n" || !strings.Contains(out["diff"].(string), "+one") {
		t.Errorf("got %v", out)
	}
	before := b.names()
	b.must("fs:edit_file", args{"path": "x/y/new", "old_string": "", "new_string": "one\n", "dry_run": true})
	wantSame(t, b, before)
}

func wantSame(t *testing.T, b *bench, before map[string]int64) {
	t.Helper()
	after := b.names()
	for name, size := range after {
		if was, ok := before[name]; !ok || was != size {
			t.Errorf("%s changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d names, had %d", len(after), len(before))
	}
}

// What can't be done says what to do, and changes nothing.
func TestEditFileRefuses(t *testing.T) {
	const code = "package a\n\nfunc one() int {\n\treturn 1\n}\n\nfunc two() int {\n\treturn 1\n}\n"
	b := MustBench(t, map[string]string{
		"a.go": code, "bin": "ab\x00c", "dir/x": "x", "long": strings.Repeat("x", native.MaxEditBytes+1), "latin": "caf\xe9\n",
	}, nil)
	b.link(filepath.Join(b.outside, "secret"), "out")
	before := b.names()
	for name, tt := range map[string]struct {
		args    args
		code    tools.Code
		message string // part of it
	}{
		"not there":          {args{"path": "a.go", "old_string": "func three()", "new_string": "x"}, tools.Failed, "a.go: old_string was not found; these lines are nearest to it:\n3\tfunc one() int {"},
		"nothing like it":    {args{"path": "a.go", "old_string": "zzzz qqqq", "new_string": "x"}, tools.Failed, "nothing in the file is like it"},
		"other white space":  {args{"path": "a.go", "old_string": "func two() int {\n    return 1\n}", "new_string": "x"}, tools.Failed, "differ from it in white space alone:\n7\tfunc two() int {\n8\t\treturn 1\n9\t}"},
		"done already":       {args{"path": "a.go", "old_string": "package b", "new_string": "package a"}, tools.Failed, "new_string stands at line 1 already"},
		"twice":              {args{"path": "a.go", "old_string": "return 1", "new_string": "return 2"}, tools.Failed, "old_string was found 2 times, at lines 4, 8: add the lines around"},
		"the second of two":  {args{"path": "a.go", "edits": list{object{"old_string": "package a", "new_string": "package b"}, object{"old_string": "gone", "new_string": ""}}}, tools.Failed, "edit 2 of 2: old_string was not found"},
		"changed before":     {args{"path": "a.go", "edits": list{object{"old_string": "package a", "new_string": "package b"}, object{"old_string": "package a", "new_string": ""}}}, tools.Failed, "edit 2 of 2: old_string was not found: an edit before this one has changed it"},
		"the same":           {args{"path": "a.go", "old_string": "x", "new_string": "x"}, "", "old_string: is the same as new_string"},
		"neither":            {args{"path": "a.go"}, "", "old_string: is required"},
		"both":               {args{"path": "a.go", "old_string": "x", "new_string": "y", "edits": list{object{"old_string": "x", "new_string": "y"}}}, "", "edits: must not be combined with"},
		"empty, not new":     {args{"path": "a.go", "old_string": "", "new_string": "x"}, tools.Failed, "a.go is there and not empty"},
		"changed meanwhile":  {args{"path": "a.go", "old_string": "package a", "new_string": "x", "expected_sha256": digest("other")}, tools.Failed, "was changed since it was read: its sha256 is " + digest(code)},
		"gone meanwhile":     {args{"path": "gone", "old_string": "a", "new_string": "x", "expected_sha256": digest("")}, tools.NotFound, "File not found: gone"},
		"missing":            {args{"path": "gone", "old_string": "a", "new_string": "x"}, tools.NotFound, "File not found: gone"},
		"binary":             {args{"path": "bin", "old_string": "ab", "new_string": "x"}, tools.Failed, "bin is binary, not text"},
		"a folder":           {args{"path": "dir", "old_string": "a", "new_string": "x"}, tools.Failed, "is a directory"},
		"too long":           {args{"path": "long", "old_string": "a", "new_string": "x"}, tools.TooLarge, "more than the limit of"},
		"would be too long":  {args{"path": "a.go", "edits": list{object{"old_string": "package", "new_string": strings.Repeat("y", 500_000)}, object{"old_string": "y", "new_string": strings.Repeat("z", 100), "replace_all": true}}}, tools.TooLarge, "would become longer than the limit"},
		"outside":            {args{"path": "../outside/secret", "old_string": "a", "new_string": "x"}, tools.PermissionDenied, "Path traversal detected"},
		"a link outside":     {args{"path": "out", "old_string": "outside", "new_string": "x"}, tools.PermissionDenied, "Path traversal detected"},
		"the store":          {args{"path": ".loom/store/CURRENT", "old_string": "the", "new_string": "x"}, tools.PermissionDenied, "the store's own directory"},
		"unknown encoding":   {args{"path": "a.go", "old_string": "a", "new_string": "x", "encoding": "klingon"}, "", "encoding: is not known"},
		"another encoding":   {args{"path": "latin", "old_string": "caf", "new_string": "x", "encoding": "utf-8"}, tools.Failed, "holds bytes that are not utf-8"},
		"a guess":            {args{"path": "latin", "old_string": "caf", "new_string": "ñ"}, tools.Failed, "nothing in it says so: name its encoding to write 'ñ'"},
		"not in an encoding": {args{"path": "latin", "old_string": "caf", "new_string": "日", "encoding": "latin-1"}, tools.Failed, "the encoding iso-8859-1 has no character '日'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.try("fs:edit_file", tt.args)
			bad, refused := errors.AsType[*tools.ArgumentsError](err)
			if refused && (tt.code != "" || !strings.Contains(bad.Detail(), tt.message)) {
				t.Fatalf("got %v", err)
			}
			if failed, ok := errors.AsType[*tools.Error](err); !refused && (!ok || failed.Code != tt.code || !strings.Contains(failed.Message, tt.message)) {
				t.Errorf("got %v (%+v), want %s %q", err, failed, tt.code, tt.message)
			}
			wantSame(t, b, before)
		})
	}
	if b.get("a.go") != code {
		t.Error("the file changed")
	}
}

func encode(t *testing.T, form *charmap.Charmap, text string) string {
	t.Helper()
	s, err := form.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A file stays in its encoding, mark and all, and is read as text.
func TestEncodings(t *testing.T) {
	const russian = "Привет, мир.\nСъешь же ещё этих мягких французских булок.\n"
	const greek = "Καλημέρα κόσμε, τι κάνεις σήμερα; Όλα είναι ωραία.\n"
	for name, tt := range map[string]struct {
		before   string // bytes
		text     string
		encoding string
		guessed  bool
		old, new string
		after    string
	}{
		"utf-8":             {before: "grün\n", text: "grün\n", old: "grün", new: "日本", after: "日本\n"},
		"utf-8 with a mark": {before: "\xef\xbb\xbfgrün\n", text: "grün\n", encoding: "utf-8-sig", old: "grün", new: "日", after: "\xef\xbb\xbf日\n"},
		"utf-16, little":    {before: "\xff\xfea\x00\xac\x20\n\x00", text: "a€\n", encoding: "utf-16", old: "a", new: "é", after: "\xff\xfe\xe9\x00\xac\x20\n\x00"},
		"utf-16, big":       {before: "\xfe\xff\x00a\x20\xac\x00\n", text: "a€\n", encoding: "utf-16", old: "a", new: "é", after: "\xfe\xff\x00\xe9\x20\xac\x00\n"},
		"utf-16, no mark":   {before: "a\x00b\x00\n\x00", text: "ab\n", encoding: "utf-16le", old: "a", new: "é", after: "\xe9\x00b\x00\n\x00"},
		"latin-1":           {before: "caf\xe9 cr\xe8me\n", text: "café crème\n", encoding: "windows-1252", guessed: true, old: "café", new: "thé", after: "th\xe9 cr\xe8me\n"},
		"windows-1251":      {before: encode(t, charmap.Windows1251, russian), text: russian, encoding: "windows-1251", guessed: true, old: "мир", new: "рим", after: encode(t, charmap.Windows1251, strings.Replace(russian, "мир", "рим", 1))},
		"koi8-r":            {before: encode(t, charmap.KOI8R, russian), text: russian, encoding: "koi8-r", guessed: true, old: "мир", new: "рим", after: encode(t, charmap.KOI8R, strings.Replace(russian, "мир", "рим", 1))},
		"windows-1253":      {before: encode(t, charmap.Windows1253, greek), text: greek, encoding: "windows-1253", guessed: true, old: "Όλα", new: "Όλη", after: encode(t, charmap.Windows1253, strings.Replace(greek, "Όλα", "Όλη", 1))},
	} {
		t.Run(name, func(t *testing.T) {
			b := MustBench(t, map[string]string{"f": tt.before}, nil)
			told := func(out map[string]any) {
				t.Helper()
				encoding, _ := out["encoding"].(string)
				if encoding != tt.encoding || (out["encoding_guessed"] == true) != tt.guessed {
					t.Errorf("told %v, want %s", out, tt.encoding)
				}
			}
			out := b.must("fs:read_file", args{"path": "f"})
			if told(out); out["content"] != tt.text {
				t.Errorf("read %q, want %q", out["content"], tt.text)
			}
			out = b.must("fs:read_file", args{"path": "f", "offset": 1, "limit": 1})
			if told(out); !strings.HasPrefix(tt.text, out["content"].(string)) {
				t.Errorf("the first line is %q", out["content"])
			}
			out = b.must("fs:read_file", args{"path": "f", "offset_bytes": 0, "limit_bytes": 4})
			if told(out); !strings.HasPrefix(tt.text, out["content"].(string)) || out["size"] != int64(len(tt.text)) {
				t.Errorf("the first bytes are %q of %v", out["content"], out["size"])
			}
			told(b.must("fs:edit_file", args{"path": "f", "old_string": tt.old, "new_string": tt.new}))
			if got := b.get("f"); got != tt.after {
				t.Errorf("the file is %q, want %q", got, tt.after)
			}
			b.must("fs:write_file", args{"path": "f", "content": "x", "append": true})
			unit := strings.TrimSuffix(strings.TrimPrefix(b.get("f"), tt.after), "\x00")
			if strings.TrimPrefix(unit, "\x00") != "x" {
				t.Errorf("%q was added", unit)
			}
		})
	}
}

// A named encoding is the one that counts.
func TestNamedEncoding(t *testing.T) {
	b := MustBench(t, map[string]string{"f": "\xcf\xf0\xe8\n"}, nil)
	if out := b.must("fs:read_file", args{"path": "f", "encoding": "koi8-r"}); out["content"] != "оПХ\n" || out["encoding"] != "koi8-r" {
		t.Errorf("got %v", out)
	}
	for name, want := range map[string]string{"latin-1": "\xe9", "utf-16": "\xff\xfe\xe9\x00", "utf-8-sig": "\xef\xbb\xbfé", "cp1252": "\xe9"} {
		out := b.must("fs:write_file", args{"path": "g", "content": "é", "encoding": name})
		if got := b.get("g"); got != want || out["bytes_written"] != int64(len(want)) {
			t.Errorf("%s: wrote %q, told %v", name, got, out)
		}
	}
	_, err := b.try("fs:write_file", args{"path": "g", "content": "日", "encoding": "latin-1"})
	wantFailure(t, err, tools.Failed, "g: the encoding iso-8859-1 has no character '日' (U+65E5)")
	if b.get("f") != "\xcf\xf0\xe8\n" {
		t.Error("reading changed the file")
	}
}

// A file that was changed meanwhile is not overwritten by who names what it saw.
func TestExpectedDigest(t *testing.T) {
	b := MustBench(t, map[string]string{"f": "0\n"}, nil)
	var wins, losses sync.Map
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			name := string(rune('a' + i))
			_, err := b.try("fs:write_file", args{"path": "f", "content": name, "expected_sha256": digest("0\n")})
			if err == nil {
				wins.Store(name, true)
			} else {
				losses.Store(name, err)
			}
		})
	}
	group.Wait()
	var names []string
	wins.Range(func(name, _ any) bool { names = append(names, name.(string)); return true })
	if len(names) != 1 || b.get("f") != names[0] {
		t.Errorf("%v wrote, the file is %q", names, b.get("f"))
	}
	losses.Range(func(name, err any) bool {
		if !strings.Contains(err.(error).Error(), "was changed since it was read") {
			t.Errorf("%v failed with %v", name, err)
		}
		return true
	})
}

// Edits of one file at once are all in it.
func TestEditsAtOnce(t *testing.T) {
	var lines []string
	for i := range 32 {
		lines = append(lines, "<"+string(rune('A'+i))+">")
	}
	b := MustBench(t, map[string]string{"f": strings.Join(lines, "\n")}, nil)
	var group sync.WaitGroup
	for i, line := range lines {
		group.Go(func() {
			b.must("fs:edit_file", args{"path": "f", "old_string": line, "new_string": strings.Repeat("x", i+1)})
		})
	}
	group.Wait()
	for i, line := range strings.Split(b.get("f"), "\n") {
		if line != strings.Repeat("x", i+1) {
			t.Errorf("line %d is %q", i+1, line)
		}
	}
}
