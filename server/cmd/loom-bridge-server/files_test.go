package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A file is changed by exact replacement: shown first, then made, refused once it has
// changed, and told in words where the text is not there. It keeps its encoding.
func TestEditFile(t *testing.T) {
	t.Parallel()
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir())
	w := &shellWorld{t, p, ""}
	w.put("letter.txt", "Sch\xf6ne Gr\xfc\xdfe\r\nvon Anna\r\n")
	read := w.call(t.Context(), "fs:read_file", object{"path": "letter.txt"})
	if got := read.GetOutputJson(); got != `{"content":"Schöne Grüße\r\nvon Anna\r\n","encoding":"windows-1252","encoding_guessed":true}` {
		t.Errorf("read %s", got)
	}
	edit := object{"path": "letter.txt", "old_string": "Grüße\nvon Anna", "new_string": "Grüße\nvon Berta", "dry_run": true}
	if got := w.call(t.Context(), "fs:edit_file", edit); !got.GetSuccess() || !strings.Contains(got.GetOutputJson(), `-von Anna\r\n+von Berta\r\n`) {
		t.Errorf("the dry run gave %v", got)
	}
	edit["dry_run"] = false
	stat := w.call(t.Context(), "fs:stat", object{"path": "letter.txt"}).GetOutputJson()
	_, sum, _ := strings.Cut(stat, `"sha256":"`)
	edit["expected_sha256"], _, _ = strings.Cut(sum, `"`)
	if got := w.call(t.Context(), "fs:edit_file", edit); !got.GetSuccess() {
		t.Errorf("the edit gave %v", got)
	}
	if got, err := os.ReadFile(filepath.Join(w.Workspace, "letter.txt")); err != nil || string(got) != "Sch\xf6ne Gr\xfc\xdfe\r\nvon Berta\r\n" {
		t.Errorf("the file is %q, %v", got, err)
	}
	if got := w.call(t.Context(), "fs:edit_file", edit); got.GetSuccess() || !strings.Contains(got.GetErrorMessage(), "was changed since it was read") {
		t.Errorf("another edit of the old file gave %v", got)
	}
	delete(edit, "expected_sha256")
	got := w.call(t.Context(), "fs:edit_file", edit)
	if got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_FAILED || !strings.Contains(got.GetErrorMessage(), "1\tSchöne Grüße\n2\tvon Berta") {
		t.Errorf("an edit of what is not there gave %v", got)
	}
}
