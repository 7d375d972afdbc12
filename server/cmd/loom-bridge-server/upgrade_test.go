package main

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Stores that earlier versions wrote are read as those read them, before and after this one has
// served them: each file that their own export had is the same, byte for byte. .ci/store.py made them.
func TestStoresOfEarlierVersions(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("testdata/stores/*.zip")
	must(t, err)
	if len(found) < 5 {
		t.Fatalf("there are only %v", found)
	}
	for _, name := range found {
		version := strings.TrimSuffix(filepath.Base(name), ".zip")
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			archive, err := zip.OpenReader(name)
			must(t, err)
			defer archive.Close()
			must(t, os.CopyFS(dir, archive))
			told := filesIn(t, filepath.Join(dir, "export"))
			compare := func(out string) {
				t.Helper()
				_, _, err := exportTo(t, filepath.Join(dir, "store"), filepath.Join(dir, out))
				must(t, err)
				got := filesIn(t, filepath.Join(dir, out))
				for file, text := range told {
					if got[file] != text {
						t.Errorf("%s: %s is %q, and was %q", out, file, got[file], text)
					}
				}
			}
			before := formatOf(t, dir)
			compare("before")

			p := MustRun(t, dir)
			for query, want := range map[string]string{
				"Where did Bitcoin close?": "Bitcoin closed at 46,500", "hamster": "My hamster is Krümel", "仓鼠": "我有一只仓鼠", "second start": "The second start saved this",
			} {
				got, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: query, Limit: 1})
				must(t, err)
				if len(got.GetHits()) != 1 || got.GetHits()[0].GetRecord().GetText() != want {
					t.Errorf("%s: %v, want %q", query, got.GetHits(), want)
				}
			}
			p.MustRecord(t, "s3", "my:tool", `{}`, "done")
			must(t, p.Stop())

			delete(told, "steps.jsonl") // it has one more
			compare("after")
			// A program refuses a higher format. Only releases may share one.
			if after := formatOf(t, dir); after != kv.Format || before == kv.Format && !strings.Contains(version, ".") {
				t.Errorf("format %d, and was %d", after, before)
			}
		})
	}
}

// formatOf is the number in the marker of a directory's store.
func formatOf(t *testing.T, dir string) (number int) {
	t.Helper()
	marker, err := os.ReadFile(filepath.Join(dir, "store", "LOOM-FORMAT"))
	must(t, err)
	_, err = fmt.Sscanf(string(marker), "loom-bridge store\nformat %d\n", &number)
	must(t, err)
	return number
}
