package compress_test

import (
	"encoding/json"
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/compress"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is made")

// call is the line about a result in a golden file.
type call struct {
	Tool, Kind, Hint, Path string
	Exit                   int
}

func (c call) result(content string) compress.Result {
	hints := map[string]compress.Hint{"skip": compress.HintSkip, "force": compress.HintForce, "search": compress.HintSearch}
	r := result(content)
	r.Tool, r.Kind, r.Hint = c.Tool, compress.Strategy(c.Kind), hints[c.Hint]
	r.Path, r.ExitCode = c.Path, c.Exit
	return r
}

// The short form of each sort of result: prose, the call, the content, and what
// a prompt shows.
func TestGolden(t *testing.T) {
	// J03, J04, J05, J06, J07, P41
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	c := MustCompressor(t, nil)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, rest, _ := strings.Cut(string(text), "-- content --\n")
			content, want, found := strings.Cut(rest, "-- want --\n")
			_, about, _ := strings.Cut(head, "-- result --\n")
			var one call
			if err := json.Unmarshal([]byte(about), &one); err != nil || !found {
				t.Fatalf("%s is no golden file: %v", file, err)
			}
			got := c.Compress(one.result(strings.TrimSuffix(content, "\n")))
			shown := "(" + string(got.Strategy) + ", " + got.ContentKind + ")\n" + got.Text + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(head+"-- content --\n"+content+"-- want --\n"+shown), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, shown); diff != "" {
				t.Errorf("differs (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}
