//go:build cgo && !norocksdb

package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// bridge is a server with a connection for each client.
type bridge struct {
	command *exec.Cmd
	conns   []*grpc.ClientConn
}

// start starts a server on a store.
func (s Settings) start(ctx context.Context, name, store string, more ...string) (*bridge, error) {
	dir := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	args := []string{"--addr", "127.0.0.1:0", "--workspace", dir, "--log-level", "error", "--data-dir", filepath.Join(dir, "store")}
	if store != "" {
		args = append(args, "--store", store)
	}
	b := &bridge{command: exec.CommandContext(ctx, s.Server, append(args, more...)...)}
	b.command.Stderr = os.Stderr
	b.command.Cancel = func() error { return b.command.Process.Signal(syscall.SIGTERM) }
	out, err := b.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.command.Start(); err != nil {
		return nil, fmt.Errorf("bench: start %s: %w", s.Server, err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("bench: %s said %q", s.Server, line), b.command.Wait())
	}
	for range s.Clients {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		b.conns = append(b.conns, conn)
	}
	return b, nil
}

func (b *bridge) stop() {
	for _, conn := range b.conns {
		_ = conn.Close() // nothing is left to send
	}
	_ = b.command.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = b.command.Wait()
}

func (b *bridge) api(client int) loombridgev1.BridgeServiceClient {
	return loombridgev1.NewBridgeServiceClient(b.conns[client])
}

// textOf is what the n-th save of a client says.
func textOf(client, n int) string {
	return fmt.Sprintf("The tide of day %d at pier %d follows the moon, as the log of ship %d says, and the wind turned to %d degrees before noon.", n%365, client, n%97, n*7%360)
}

func save(of func(client int) *bridge) func(ctx context.Context, client, n int) error {
	return func(ctx context.Context, client, n int) error {
		_, err := of(client).api(client).MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: fmt.Sprint("agent-", client), Text: textOf(client, n)})
		return err
	}
}

func query(of func(client int) *bridge) func(ctx context.Context, client, n int) error {
	return func(ctx context.Context, client, n int) error {
		_, err := of(client).api(client).MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: fmt.Sprint("agent-", client), Query: fmt.Sprintf("tide of day %d", n%365)})
		return err
	}
}

// storeIn is a --store in a schema.
func storeIn(address, schema string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // the server says what is wrong
	}
	q := u.Query()
	q.Set("schema", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// calls compares saves and queries of servers: on RocksDB, one on PostgreSQL, two that share
// a store.
func (s Settings) calls(ctx context.Context, address string) error {
	var bridges []*bridge
	defer func() {
		for _, b := range bridges {
			b.stop()
		}
	}()
	for _, of := range [][2]string{{"rocks", ""}, {"one", storeIn(address, "one")}, {"first", storeIn(address, "two")}, {"second", storeIn(address, "two")}} {
		b, err := s.start(ctx, of[0], of[1])
		if err != nil {
			return err
		}
		bridges = append(bridges, b)
	}
	who := []func(client int) *bridge{
		func(int) *bridge { return bridges[0] },
		func(int) *bridge { return bridges[1] },
		func(client int) *bridge { return bridges[2+client%2] },
	}
	for _, measured := range []struct {
		title string
		call  func(of func(client int) *bridge) func(ctx context.Context, client, n int) error
	}{{"MemorySave", save}, {"MemoryQuery", query}} {
		var all []*contestant
		for i, name := range []string{"RocksDB", "PostgreSQL", "two servers on one PostgreSQL"} {
			all = append(all, &contestant{name: name, call: measured.call(who[i])})
		}
		if err := s.measure(ctx, all); err != nil {
			return err
		}
		if err := s.show(measured.title+" through the server", all, 0, 1); err != nil {
			return err
		}
	}
	return nil
}

// tripCalls are how often a call is made to count its round trips.
const tripCalls = 200

// trips counts the round trips that calls of a lone client cause, by a proxy, and the
// statements, by pg_stat_statements. What the server does by itself is among them.
func (s Settings) trips(ctx context.Context, address string) error {
	trace, err := pgtest.StartTrace(storeIn(address, "trips"))
	if err != nil {
		return err
	}
	defer trace.Close()
	s.Clients = 1
	b, err := s.start(ctx, "trips", trace.Address)
	if err != nil {
		return err
	}
	defer b.stop()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "\nRound trips and statements of a call: means of %d by one client\n", tripCalls)
	table := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tround trips\tof them ROLLBACK, behind the answer\tstatements\t")
	to := contexts.New(b.conns[0])
	this := func(int) *bridge { return b }
	for _, c := range []struct {
		name string
		call func(ctx context.Context, client, n int) error
	}{
		{"MemorySave", save(this)},
		{"MemoryQuery", query(this)},
		{"Emit", func(ctx context.Context, _, _ int) error {
			_, err := b.api(0).Emit(ctx, &loombridgev1.EmitRequest{AgentId: "agent-0", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("news")}})
			return err
		}},
		{"RecordStep", func(ctx context.Context, _, n int) error {
			_, err := to.RecordStep(ctx, &loombridgev1.RecordStepRequest{
				AgentId: "agent-0", SessionId: "s", ToolName: "web:search", Success: true,
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"query":"%d"}`, n)},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputText{OutputText: "short"},
			})
			return err
		}},
		{"Assemble", func(ctx context.Context, _, _ int) error {
			_, err := to.Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: "agent-0", SessionId: "s", Goal: "tides"})
			return err
		}},
	} {
		for n := range 10 { // warms up
			if err := c.call(ctx, 0, n); err != nil {
				return err
			}
		}
		if _, err := conn.Exec(ctx, `SELECT pg_stat_statements_reset()`); err != nil {
			return err
		}
		trace.Take()
		for n := range tripCalls {
			if err := c.call(ctx, 0, 10+n); err != nil {
				return fmt.Errorf("bench: %s: %w", c.name, err)
			}
		}
		trips := trace.Take()
		var statements int64
		if err := conn.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::int8 FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' AND toplevel`).Scan(&statements); err != nil {
			return err
		}
		behind := 0
		for _, trip := range trips {
			if trip == "ROLLBACK" {
				behind++
			}
		}
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t\n", c.name, float64(len(trips))/tripCalls, float64(behind)/tripCalls, float64(statements)/tripCalls)
	}
	return table.Flush()
}
