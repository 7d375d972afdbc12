package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxMessage bounds one message of a server.
	maxMessage = 16 << 20
	// maxSaid is how much of what a program writes to its error output is kept.
	maxSaid = 4 << 10
	// programTime bounds the processor time of a program, which lives as long as the
	// bridge; programOutput all that it ever says.
	programTime   = 30 * 24 * time.Hour
	programOutput = 1 << 50
)

// Errors of servers that can't be reached here.
var (
	errNoSandbox = errors.New("mcp: no program runs, because nothing here confines it")
	errNoNetwork = errors.New("mcp: servers on networks are not reached here")
)

// transport is the way to the server; closing ends it, and everything started for it.
func (c *client) transport(ctx context.Context) (way sdk.Transport, closing func(), err error) {
	switch {
	case c.URL != "":
		return c.overNetwork()
	case c.Command == "":
		return nil, nil, errSealed
	}
	return c.program(ctx)
}

func (c *client) overNetwork() (sdk.Transport, func(), error) {
	if c.set.opts.Network == nil {
		return nil, nil, errNoNetwork
	}
	way, closing, err := c.set.opts.Network(c.tenant, c.Server, c.configured)
	if err != nil {
		return nil, nil, err
	}
	return &sdk.StreamableClientTransport{
		Endpoint: c.URL, HTTPClient: &http.Client{Transport: withHeaders{way, c.Headers}}, MaxRetries: -1, MaxEventSize: maxMessage,
	}, closing, nil
}

// withHeaders adds headers to every request.
type withHeaders struct {
	way     http.RoundTripper
	headers map[string]string
}

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		r.Header.Set(name, value)
	}
	return h.way.RoundTrip(r)
}

// program starts the server in the sandbox, where it stays until closing.
func (c *client) program(ctx context.Context) (sdk.Transport, func(), error) {
	o := c.set.opts
	if o.Runner == nil || o.Root == nil {
		return nil, nil, errNoSandbox
	}
	root, err := o.Root(c.tenant)
	if err != nil {
		return nil, nil, err
	}
	found := installed{path: c.Command}
	if c.configured || o.Trusted {
		found = find(c.Command, o.Path, c.Args)
	}
	job := sandbox.Job{
		Scope: kv.AgentScope(c.tenant, "mcp"), Argv: append([]string{found.path}, c.Args...), Cwd: c.Cwd, Root: root, Policy: o.Policy,
	}
	job.Policy.Read = append(slices.Clone(job.Policy.Read), found.reads...)
	job.Policy.Limits.CPU, job.Policy.Limits.Output = programTime, programOutput
	for name, value := range c.Env {
		job.Env = append(job.Env, name+"="+value)
	}
	ctx, cancel := context.WithCancel(ctx)
	toProgram, fromUs := io.Pipe()
	fromProgram, toUs := io.Pipe()
	said := &tail{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		outcome, err := o.Runner.Run(ctx, job, sandbox.Streams{Stdin: toProgram, Stdout: toUs, Stderr: said})
		if err == nil {
			err = fmt.Errorf("mcp: the program ended with %d", outcome.Exit)
		}
		if s := said.String(); s != "" {
			err = fmt.Errorf("%w: it said: %s", err, s)
		}
		_ = toUs.CloseWithError(err)
		_ = toProgram.CloseWithError(err)
	}()
	closing := func() {
		_ = fromUs.Close()
		_ = fromProgram.Close() // there is no reader, and a program that writes on would never be done
		cancel()
		<-ended
	}
	told := 0
	lines := NewMessages(fromProgram, func(line string, _ *jsonrpc.Error) {
		if told++; told > maxToldSkipped {
			return
		}
		o.Logger.Warn("an MCP server wrote a line to its standard output that is no message; it is left out", "server", c.Name, "line", text.OneLine(text.Valid(line)))
	})
	return &sdk.IOTransport{Reader: lines, Writer: fromUs, MaxLineLength: maxMessage}, closing, nil
}

// maxToldSkipped is how many lines that are no messages are logged, for the life of a program.
const maxToldSkipped = 5

// tail keeps the last bytes written to it. One goroutine writes, and reads after the last
// write.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxSaid; over > 0 {
		t.kept = bytes.Clone(t.kept[over:])
	}
	return len(p), nil
}

func (t *tail) String() string { return text.OneLine(text.Valid(string(t.kept))) }
