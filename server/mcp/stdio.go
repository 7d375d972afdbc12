package mcp

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/mcp"
)

// Stdio is the transport of a host that writes a message a line. A line that is none is answered with
// an error of JSON-RPC, and the next one is read: the library alone would end the session, and with it
// all that the host waits for. Closing it leaves to open.
func Stdio(from io.ReadCloser, to io.Writer) sdk.Transport {
	out := &lineWriter{to: to}
	return &sdk.IOTransport{Reader: mcp.NewMessages(from, out.refuse), Writer: out}
}

// lineWriter writes whole lines, of the session and of errors.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}

func (w *lineWriter) Close() error { return nil }

// refuse answers a line that has no id to answer to. A host that has left does not hear it.
func (w *lineWriter) refuse(_ string, why *jsonrpc.Error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": why})
	if err == nil {
		_, _ = w.Write(append(body, '\n'))
	}
}
