package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// MustTime sets a file's time.
func MustTime(tb testing.TB, path, when string) {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, when)
	if err == nil {
		err = os.Chtimes(path, at, at)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func TestListDir(t *testing.T) {
	b := MustBench(t, map[string]string{"d/b": "12", "d/a": "1", "d/C": "123", "d/sub/x": "x"}, nil)
	b.link("../../outside", "d/link")
	info, err := os.Stat(filepath.Join(b.dir, "d/sub"))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(name string, dir bool, size int64) any {
		return map[string]any{"name": name, "is_dir": dir, "size": size}
	}
	want := map[string]any{"path": "d/", "entries": []any{
		entry("C", false, 3), entry("a", false, 1), entry("b", false, 2),
		entry("link", false, 13), entry("sub", true, info.Size()),
	}}
	if diff := cmp.Diff(want, b.must("fs:list_dir", args{"path": "d/"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, a := range []args{{}, {"path": "."}, {"path": ""}, {"path": nil}} {
		if diff := cmp.Diff([]string{".loom", "d"}, entryNames(b.must("fs:list_dir", a))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", a, diff)
		}
	}
	_, err = b.try("fs:list_dir", args{"path": "none"})
	wantFailure(t, err, tools.NotFound, "File not found: none")
	_, err = b.try("fs:list_dir", args{"path": "d/a"})
	wantFailure(t, err, tools.Failed, "not a directory: d/a")
	if err := os.WriteFile(filepath.Join(b.dir, "d/sub/\xff"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "\uFFFD"}, entryNames(b.must("fs:list_dir", args{"path": "d/sub"}))); diff != "" {
		t.Errorf("a name that is not UTF-8 (-want +got):\n%s", diff)
	}
}

func TestListDirOfManyEntries(t *testing.T) {
	const many = 100_000
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // making the files is what takes long
	}
	b := MustBench(t, map[string]string{"many/first": ""}, nil)
	// Hard links are the cheapest entries there are.
	source := filepath.Join(b.dir, "many", "first")
	for i := range many - 1 {
		path := filepath.Join(b.dir, "many", fmt.Sprintf("f%06d", i))
		if err := os.Link(source, path); err != nil {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			source = path // the file system's limit of links was met
		}
	}
	start := time.Now()
	out := b.must("fs:list_dir", args{"path": "many"})
	if took := time.Since(start); took > time.Minute/2 {
		t.Errorf("listing took %v", took)
	}
	names := entryNames(out)
	if len(names) != native.MaxListEntries || names[0] != "f000000" || names[len(names)-1] != "f009999" {
		t.Errorf("got %d entries from %s to %s", len(names), names[0], names[len(names)-1])
	}
	if out["truncated"] != true || out["total"] != int64(many) {
		t.Errorf("truncated %v, total %v", out["truncated"], out["total"])
	}
}

func TestSearch(t *testing.T) {
	b := MustBench(t, map[string]string{
		"a.go":               "package a\n// Needle (1)\r\nend",
		"src/b.go":           "needle here\nand needle there\n",
		"src/deep/c.ts":      "needle",
		"src/deep/d.txt":     "nothing",
		".git/config":        "needle",
		"bin":                "needle\x00needle",
		".loom/store/x":      "needle",
		".loom/cache/x":      "needle",
		"long.txt":           strings.Repeat("é", 40_000) + "needle" + strings.Repeat("é", 40_000) + "\nneedle\n",
		"src/[odd] name.txt": "needle",
	}, nil)
	b.link("src", "linked")
	b.link("../outside/secret", "out")
	tests := []struct {
		name string
		args args
		want []string
	}{
		{"by name", args{"query": "needle", "include": "*.go"}, []string{"src/b.go: and needle there", "src/b.go: needle here"}},
		{"by path", args{"query": "needle", "include": "src/**/*.{ts,js}"}, []string{"src/deep/c.ts: needle"}},
		{"in a folder", args{"query": "needle", "path": "src/deep"}, []string{"src/deep/c.ts: needle"}},
		{"in a file", args{"query": "needle", "path": "src/deep/c.ts"}, []string{"src/deep/c.ts: needle"}},
		{"in the cache", args{"query": "needle", "path": ".loom"}, []string{".loom/cache/x: needle"}},
		{"ignore case", args{"query": "NEEDLE (", "ignore_case": true}, []string{"a.go: // Needle (1)"}},
		{"regex", args{"query": `^and\s|\(\d\)$`, "regex": true}, []string{"a.go: // Needle (1)", "src/b.go: and needle there"}},
		{"odd name", args{"query": "needle", "include": `\[odd\]*`}, []string{"src/[odd] name.txt: needle"}},
		{"set", args{"query": "needle", "include": "[!a-b].ts"}, []string{"src/deep/c.ts: needle"}},
		{"nothing", args{"query": "outside"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := b.must("fs:search", tt.args)
			if diff := cmp.Diff(tt.want, matchLines(out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if out["query"] != tt.args["query"] || out["count"] != int64(len(tt.want)) || out["truncated"] != false {
				t.Errorf("query %v, count %v, truncated %v", out["query"], out["count"], out["truncated"])
			}
		})
	}
	first := b.must("fs:search", args{"query": "needle", "path": "src"})["matches"].([]any)[0]
	if diff := cmp.Diff(map[string]any{"path": "src/[odd] name.txt", "line": int64(1), "text": "needle"}, first); diff != "" {
		t.Errorf("first match (-want +got):\n%s", diff)
	}
	long := b.must("fs:search", args{"query": "needle", "path": "long.txt"})["matches"].([]any)
	if text := long[0].(map[string]any)["text"].(string); len(long) != 2 || len(text) > native.MaxMatchBytes || long[1].(map[string]any)["line"] != int64(2) {
		t.Errorf("long lines: got %d matches, first of %d bytes", len(long), len(text))
	}
}

func TestSearchKeepsItsLimits(t *testing.T) {
	files := map[string]string{"many": strings.Repeat("needle\n", 3000)}
	deep := strings.Repeat("d/", native.MaxSearchDepth)
	files[deep+"x"] = "deep needle"
	b := MustBench(t, files, nil)
	MustSparse(t, b, "huge", 1<<30)
	for _, tt := range []struct {
		limit any
		want  int64
	}{{nil, native.DefaultSearchMatches}, {7, 7}, {1_000_000, native.MaxSearchMatches}} {
		out := b.must("fs:search", args{"query": "needle", "path": "many", "limit": tt.limit})
		if out["count"] != tt.want || out["truncated"] != true {
			t.Errorf("limit %v: count %v, truncated %v", tt.limit, out["count"], out["truncated"])
		}
	}
	b.put("long.log", strings.Repeat("x\n", native.MaxSearchFileBytes/2)+"the needle of a log\n")
	out := b.must("fs:search", args{"query": "needle of a log"})
	if note, _ := out["note"].(string); out["count"] != int64(0) || out["truncated"] != true || !strings.Contains(note, "files over 16 MiB were not searched, the first is ") {
		t.Errorf("files that are too long: got %v", out)
	}
	if out := b.must("fs:search", args{"query": "needle of a log", "path": "long.log"}); out["count"] != int64(1) || out["truncated"] != false || out["note"] != nil {
		t.Errorf("a long file by its path: count %v, note %v", out["count"], out["note"])
	}
	if out := b.must("fs:search", args{"query": "deep"}); out["count"] != int64(0) || out["truncated"] != true {
		t.Errorf("too deep and too long: got %v", out)
	}
	for _, bad := range []args{
		{"query": ""},
		{"query": "("},
		{"query": "x", "include": "[a"},
		{"query": "x", "include": "{a"},
		{"query": "x", "limit": 0},
		{"query": strings.Repeat("x", native.MaxQueryBytes+1)},
		// A minute for 64 KiB, and no deadline would end it.
		{"query": strings.Repeat("(a?){1000}", 90)},
		{"query": `(?i)(\pL?\w?[^x]?){300}`, "ignore_case": true},
	} {
		bad["regex"] = true
		if _, err := b.try("fs:search", bad); err == nil {
			t.Errorf("%.60v: want an error", bad)
		}
	}
	b.must("fs:search", args{"query": strings.Repeat("x", native.MaxQueryBytes), "regex": true, "ignore_case": true})
	_, err := b.try("fs:search", args{"query": "x", "path": "none"})
	wantFailure(t, err, tools.NotFound, "File not found: none")
}

// The time that a glob takes grows with the name it is compared with, not with the ways
// to read it: a matcher that tries one alternative after the other never ends here.
func TestGlobsOfManyAlternatives(t *testing.T) {
	b := MustBench(t, nil, nil)
	name := strings.Repeat("a", 200)
	b.put(name+"b", "needle\n")
	for include, want := range map[string]int{
		strings.Repeat("{a,a}", 200):       0,
		strings.Repeat("{a,a}", 199) + "*": 1,
		strings.Repeat("*a", 200) + "*c":   0,
		strings.Repeat("**a", 200) + "**":  1,
	} {
		out := b.must("fs:search", args{"query": "needle", "include": include})
		if got := len(matchLines(out)); got != want {
			t.Errorf("%.20s…: %d matches, want %d", include, got, want)
		}
	}
}
