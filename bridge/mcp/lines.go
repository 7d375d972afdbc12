package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxSkipped bounds the lines without a message between two messages of a program.
	maxSkipped = 10_000
	// maxToldSkipped is how many of them are logged, for the life of the program.
	maxToldSkipped = 5
)

// errNoise: a program writes lines without end that are no messages.
var errNoise = errors.New("mcp: the program writes no messages of the protocol to its standard output")

// messages reads the lines of a program that are messages. Many programs also write a word of
// welcome or of their log to standard output, which should not cost the tools.
type messages struct {
	from *bufio.Reader
	// end is what from reads.
	end io.Closer
	// skipped is called for each of the first lines that are left out.
	skipped func(line string)

	rest []byte // of the line that is read
	told int
}

func newMessages(from io.ReadCloser, skipped func(line string)) *messages {
	return &messages{from: bufio.NewReaderSize(from, 64<<10), end: from, skipped: skipped}
}

// Close ends the reading: what the program writes after it is refused, and holds nothing up.
func (m *messages) Close() error { return m.end.Close() }

// Read gives whole lines that are messages, in parts.
func (m *messages) Read(p []byte) (int, error) {
	for skipped := 0; len(m.rest) == 0; skipped++ {
		line, err := m.line()
		if isMessage(line) {
			m.rest = line
			break
		}
		if err != nil {
			return 0, err
		}
		if skipped >= maxSkipped {
			return 0, errNoise
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// line reads a line that may be a message, at most maxMessage bytes; of any other one it
// returns nothing.
func (m *messages) line() (line []byte, err error) {
	for {
		part, err := m.from.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, fmt.Errorf("mcp: a line of the program is longer than %d bytes", maxMessage)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line = bytes.TrimLeft(line, "\uFEFF \t\r")
		if bare := bytes.TrimSpace(line); len(bare) > 0 && !isMessage(line) && m.told < maxToldSkipped {
			m.told++
			m.skipped(string(bare[:min(len(bare), maxSaid)]))
		}
		return line, err
	}
}

// isMessage reports whether a line is a JSON-RPC message, or several in a list.
func isMessage(line []byte) bool {
	return len(line) > 0 && (line[0] == '{' || line[0] == '[') && bytes.Contains(line, []byte(`"jsonrpc"`)) && json.Valid(line)
}
