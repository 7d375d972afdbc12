package loomv1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// The file tools clause by clause: results, errors and limits.
func TestConformance31Files(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	w.write("notes.txt", "one\ntwo\nthree\n")
	w.write("full/x", "x")
	w.write("bytes", "\x00\x01\xff")
	w.must(os.Mkdir(filepath.Join(w.folder, "empty"), 0o755))
	w.must(os.Symlink("nowhere", filepath.Join(w.folder, "dangling")))
	for _, tt := range []struct {
		name, tool, arguments string
		status                loomv1pb.ToolStatus
		want                  string // the output, or a part of the error's message
	}{
		{"a missing path", "fs:read_file", `{}`, statusInvalid, "Invalid arguments: path: is required"},
		{"null counts as missing", "fs:read_file", `{"path":null}`, statusInvalid, "Invalid arguments: path: is required"},
		{"a missing file", "fs:read_file", `{"path":"gone"}`, statusNotFound, "Tool not found: File not found: gone"},
		{"a folder", "fs:read_file", `{"path":"full"}`, statusError, "Execution failed: full: is a directory"},
		{"further keys", "fs:read_file", `{"path":"notes.txt","colour":"red"}`, statusOK, `{"content":"one\ntwo\nthree\n"}`},
		{"lines, as the SDK's list has them", "fs:read_file", `{"path":"notes.txt","start_line":2,"end_line":2}`, statusOK, `"content":"two\n"`},
		{"to the last line", "fs:read_file", `{"path":"notes.txt","start_line":2,"end_line":-1}`, statusOK, `"content":"two\nthree\n"`},

		{"folders are made", "fs:write_file", `{"path":"p/q/new","content":"é"}`, statusOK, `{"bytes_written":2,"path":"p/q/new","success":true}`},
		{"overwritten", "fs:write_file", `{"path":"p/q/new","content":""}`, statusOK, `{"bytes_written":0,"path":"p/q/new","success":true}`},
		{"append", "fs:write_file", `{"path":"p/q/new","content":"ab","append":true}`, statusOK, `{"bytes_written":2,"path":"p/q/new","success":true}`},
		{"no content", "fs:write_file", `{"path":"p/q/new"}`, statusInvalid, "Invalid arguments: content: is required"},
		{"onto a folder", "fs:write_file", `{"path":"full","content":"x"}`, statusError, "Execution failed: full: is a directory"},

		{"the default folder", "fs:list_dir", `{}`, statusOK, `"path":"."`},
		{"an empty folder", "fs:list_dir", `{"path":"empty"}`, statusOK, `{"entries":[],"path":"empty"}`},
		{"a missing folder", "fs:list_dir", `{"path":"gone"}`, statusNotFound, "Tool not found: File not found: gone"},
		{"links are not followed", "fs:list_dir", `{}`, statusOK, `{"is_dir":false,"name":"dangling","size":7}`},

		{"a folder that is not empty", "fs:delete", `{"path":"full"}`, statusError, "Execution failed: full: "},
		{"an empty folder goes", "fs:delete", `{"path":"empty"}`, statusOK, `{"path":"empty","success":true,"was_directory":true}`},
		{"what is missing", "fs:delete", `{"path":"gone"}`, statusNotFound, "Tool not found: File not found: gone"},
		{"a wrong type is an error", "fs:delete", `{"path":["x"]}`, statusInvalid, "Invalid arguments: path: must be string, not array"},

		{"search", "fs:search", `{"query":"two","path":".","include":"*.txt"}`, statusOK, `"notes.txt"`},
		{"an edit", "fs:edit_file", `{"path":"notes.txt","old_string":"two","new_string":"2"}`, statusOK, `"replacements":1`},
		{"an edit of what is not there", "fs:edit_file", `{"path":"notes.txt","old_string":"tow","new_string":"2"}`, statusError, "Execution failed: notes.txt: old_string was not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.call(&loomv1pb.ToolCall{Id: "1", Name: tt.tool, Arguments: tt.arguments})
			if said := got.GetOutput() + got.GetError().GetMessage(); got.GetStatus() != tt.status || !strings.Contains(said, tt.want) {
				t.Errorf("got %v %s, want %v %s", got.GetStatus(), said, tt.status, tt.want)
			}
		})
	}
	if got, err := os.ReadFile(filepath.Join(w.folder, "p/q/new")); err != nil || string(got) != "ab" {
		t.Errorf("the file is %q, %v", got, err)
	}
}
