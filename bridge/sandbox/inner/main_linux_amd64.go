package inner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// maxMessage bounds a message between server and stages.
const maxMessage = 4 << 20

// A program becomes a stage before anything else of it starts: its other packages may
// take longer than a tool.
func init() { Main() }

// Main runs a stage and ends the process, if it was started as one. Else it returns.
func Main() {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case Launcher:
		os.Exit(launcher())
	case FirstStage:
		runtime.LockOSThread()
		os.Exit(firstStage())
	case SecondStage:
		runtime.LockOSThread()
		os.Exit(secondStage())
	}
}

// WriteMessage writes a value as JSON behind its length.
func WriteMessage(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("message of %d bytes, at most %d are allowed", len(text), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// ReadMessage reads what WriteMessage wrote.
func ReadMessage(r io.Reader, value any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		return fmt.Errorf("message of %d bytes, at most %d are allowed", size, maxMessage)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// fdReader reads a blocking descriptor.
type fd int

func (f fd) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (f fd) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := unix.Write(int(f), p[written:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}
