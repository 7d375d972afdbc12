package formats

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestEmptyFiles: programs that were killed leave files in which nothing was written; a folder with
// such files is read all the same.
func TestEmptyFiles(t *testing.T) {
	t.Parallel()
	for format, name := range map[string]string{"cursor": "state.vscdb", "claude-code": "a.jsonl", "markdown": "a.md"} {
		f, err := Find(format)
		if err != nil {
			t.Fatal(err)
		}
		files, err := f.filesOf(sample(format))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(files[len(files)-1].path)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for folder, bytes := range map[string][]byte{"a": nil, "b": whole} {
			path := filepath.Join(dir, folder, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, bytes, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if said, _, err := read(t, format, Records, dir); err != nil || len(said) == 0 {
			t.Errorf("%s: %q, %v", format, said, err)
		}
	}
}

// TestBubbles: a conversation of Cursor has its messages, or their ids.
func TestBubbles(t *testing.T) {
	t.Parallel()
	var got []bubble
	err := json.Unmarshal([]byte(`["a", {"bubbleId": "b", "type": 2, "text": "Hens"}]`), &got)
	if want := []bubble{{ID: "a"}, {ID: "b", Type: 2, Text: "Hens"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
