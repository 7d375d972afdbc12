package progress

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// On a terminal a check shows how far it is, in one line that goes before anything
// else is written; elsewhere it shows nothing.
func TestLine(t *testing.T) {
	var terminal bytes.Buffer
	p := &Line{to: &terminal}
	p.Show("files: %d of %d MiB", 1, 9)
	p.Show("files: %d of %d MiB", 2, 9) // too soon
	p.Clear()
	if got, want := terminal.String(), "\r\x1b[Kfiles: 1 of 9 MiB\r\x1b[K"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, elsewhere := range []io.Writer{io.Discard, file} {
		if New(elsewhere).to != nil {
			t.Errorf("%T is taken for a terminal", elsewhere)
		}
	}
}
