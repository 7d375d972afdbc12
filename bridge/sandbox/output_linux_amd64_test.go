package sandbox

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// What a program wrote arrives although nobody came to read it before the deadline, and a writer
// that stays does not hold up the end.
func TestOutputOutlastsItsDeadline(t *testing.T) {
	for _, size := range []int{0, 1, 40_000} { // the most is more than one read, and fits into a pipe
		from, into, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer into.Close()
		defer from.Close()
		want := bytes.Repeat([]byte{'x'}, size)
		if _, err := into.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := from.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		toEnd(from, func(p []byte) { got.Write(p) })
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes of %d arrived", got.Len(), size)
		}
	}
}

// Who writes on and on is not read for ever.
func TestEndlessOutputEnds(t *testing.T) {
	from, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for page := make([]byte, 4096); ; {
			if _, err := into.Write(page); err != nil {
				return
			}
		}
	}()
	_ = from.SetReadDeadline(time.Now().Add(-time.Second)) // pipes have them
	read := 0
	toEnd(from, func(p []byte) { read += len(p) })
	if read > maxHeld+32<<10 {
		t.Errorf("%d bytes were read", read)
	}
	_ = into.Close() // ends the writer
	<-ended
}
