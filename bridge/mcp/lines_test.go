package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func TestMessagesLeaveOutOtherLines(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"jsonrpc":"2.0","id":2}]`
	tests := []struct {
		name, given, want string
		told              int
	}{
		{"nothing else", one + "\n" + two + "\n", one + "\n" + two + "\n", 0},
		{"a banner", "Demo MCP Server v1.0 started\n" + one + "\n", one + "\n", 1},
		{"between", one + "\nworking…\n\n" + two + "\n", one + "\n" + two + "\n", 1},
		{"a log in JSON", `{"level":"info","msg":"up"}` + "\n" + one + "\n", one + "\n", 1},
		{"braces", "{debug} on\n[1] started\n" + one + "\n", one + "\n", 2},
		{"no UTF-8", "caf\xe9\n" + one + "\n", one + "\n", 1},
		{"no message", `{}` + "\n" + `{"jsonrpc":"2.0"}` + "\n7\n" + one + "\n", one + "\n", 3},
		{"a mark", "\uFEFF" + one + "\n", one + "\n", 0},
		{"Windows", "up\r\n" + one + "\r\n", one + "\r\n", 1},
		{"without an end", "up\n" + one, one, 1},
		{"a long one", strings.Repeat("x", 1<<20) + "\n" + one + "\n", one + "\n", 1},
		{"many", strings.Repeat("x\n", 100) + one + "\n", one + "\n", 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, from := range []io.Reader{strings.NewReader(tt.given), iotest.HalfReader(strings.NewReader(tt.given))} {
				var told []string
				got, err := io.ReadAll(NewMessages(io.NopCloser(from), func(line string, _ *jsonrpc.Error) { told = append(told, line) }))
				if string(got) != tt.want || err != nil || len(told) != tt.told {
					t.Errorf("got %.200q, %v, told of %d", got, err, len(told))
				}
				if slices.ContainsFunc(told, func(line string) bool { return len(line) > maxSaid }) {
					t.Error("told of a whole long line")
				}
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	if _, err := io.ReadAll(NewMessages(io.NopCloser(bytes.NewReader(bytes.Repeat([]byte("x\n"), 2*maxSkipped))), func(string, *jsonrpc.Error) {})); !errors.Is(err, errNoise) {
		t.Errorf("lines without end: %v", err)
	}
	if _, err := io.ReadAll(NewMessages(io.NopCloser(bytes.NewReader(make([]byte, maxMessage+1))), func(string, *jsonrpc.Error) {})); err == nil {
		t.Error("a line without end is taken")
	}
}

// talker is a program that writes until nobody takes it, whatever else ends.
type talker struct {
	sandbox.Runner
	begun chan struct{}
}

func (p talker) Run(_ context.Context, _ sandbox.Job, streams sandbox.Streams) (sandbox.RunOutcome, error) {
	close(p.begun)
	for {
		if _, err := io.WriteString(streams.Stdout, "x"); err != nil {
			return sandbox.RunOutcome{}, err
		}
	}
}

// A program that writes on holds up neither the end of its connection nor the transport's.
func TestProgramsThatWriteOnEnd(t *testing.T) {
	for name, before := range map[string]func(*testing.T, sdk.Transport){
		"never read": func(*testing.T, sdk.Transport) {},
		"read, closed": func(t *testing.T, way sdk.Transport) {
			conn, err := way.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close() // the program ends by it
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				program := talker{begun: make(chan struct{})}
				root := func(string) (*os.Root, error) { return nil, nil } //nolint:nilnil // the runner uses none
				one := &client{set: &Clients{opts: Options{Runner: program, Root: root, Logger: slog.New(slog.DiscardHandler)}}}
				way, closing, err := one.program(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				<-program.begun
				before(t, way)
				closing()
			})
		})
	}
}

// polite is a program that serves no tools and ends its connection in order when it is told.
type polite struct {
	sandbox.Runner
	leave chan struct{}
}

func (p polite) Run(ctx context.Context, _ sandbox.Job, streams sandbox.Streams) (sandbox.RunOutcome, error) {
	out, ok := streams.Stdout.(io.WriteCloser)
	if !ok {
		return sandbox.RunOutcome{}, errors.ErrUnsupported
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "polite", Version: "1"}, nil)
	session, err := server.Connect(ctx, &sdk.IOTransport{Reader: io.NopCloser(streams.Stdin), Writer: out}, nil)
	if err != nil {
		return sandbox.RunOutcome{}, err
	}
	<-p.leave
	_ = out.Close()
	return sandbox.RunOutcome{}, session.Wait()
}

// A server that ends its connection in order leaves a problem that says so.
func TestConnectionThatEndsInOrderHasAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := polite{leave: make(chan struct{})}
		root := func(string) (*os.Root, error) { return nil, nil } //nolint:nilnil // the runner uses none
		engine := memkv.New(nil)
		writer := kv.NewWriter(engine, nil)
		clients, err := Start(t.Context(), map[string][]Server{"t": {{Name: "p", Command: "polite"}}}, Options{Engine: engine, Writer: writer, Runner: program, Root: root})
		if err != nil {
			t.Fatal(err)
		}
		clients.Settle(t.Context(), "t")
		if s := clients.List("t")[0]; s.State != Ready {
			t.Fatalf("at first %+v", s)
		}
		close(program.leave)
		synctest.Wait()
		if s := clients.List("t")[0]; s.State != Away || s.Problem != "mcp: the connection ended: EOF" {
			t.Errorf("%s: %q", s.State, s.Problem)
		}
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
		_ = writer.Close()
	})
}
