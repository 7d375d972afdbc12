package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxSkipped bounds the lines without a message between two messages of a program.
	maxSkipped = 10_000
)

// errNoise: lines come without end that are no messages.
var errNoise = errors.New("mcp: the lines that come are no messages of the protocol")

// Messages reads the lines of a program that are messages. Many programs also write a word of
// welcome or of their log to standard output, which should not cost the tools.
type Messages struct {
	from *bufio.Reader
	// end is what from reads.
	end io.Closer
	// skipped is called for each line that is left out.
	skipped func(line string, why *jsonrpc.Error)

	rest []byte // of the line that is read
}

// NewMessages reads from, which it closes with itself. skipped is called for each line that is left
// out, of which it gets the beginning, and why.
func NewMessages(from io.ReadCloser, skipped func(line string, why *jsonrpc.Error)) *Messages {
	return &Messages{from: bufio.NewReaderSize(from, 64<<10), end: from, skipped: skipped}
}

// Close ends the reading: what the program writes after it is refused, and holds nothing up.
func (m *Messages) Close() error { return m.end.Close() }

// Read gives whole lines that are messages, in parts.
func (m *Messages) Read(p []byte) (int, error) {
	for skipped := 0; len(m.rest) == 0; skipped++ {
		line, err := m.line()
		if len(line) > 0 {
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

// line reads a line that is a message, at most maxMessage bytes; of any other one it returns
// nothing.
func (m *Messages) line() (line []byte, err error) {
	for {
		part, err := m.from.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, fmt.Errorf("mcp: a line is longer than %d bytes", maxMessage)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line = bytes.TrimLeft(line, "\uFEFF \t\r")
		bare := bytes.TrimSpace(line)
		if len(bare) == 0 {
			return nil, err
		}
		if why := noMessage(bare); why != nil {
			m.skipped(string(bare[:min(len(bare), maxSaid)]), why)
			return nil, err
		}
		return line, err
	}
}

// noMessage is why a line is no JSON-RPC message, nor several in a list; nil for one.
func noMessage(line []byte) *jsonrpc.Error {
	if line[0] == '[' && json.Valid(line) {
		return nil
	}
	_, err := jsonrpc.DecodeMessage(line)
	switch {
	case err == nil:
		return nil
	case json.Valid(line):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a line is no message: " + err.Error()}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a line is no JSON; each line is one whole message"}
}
