package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/health/grpc_health_v1"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// openSilent opens an HTTP/2 connection on which nothing is ever called.
func openSilent(tb testing.TB, address string) net.Conn {
	tb.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	must(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(tb, err)
	must(tb, http2.NewFramer(conn, conn).WriteSettings())
	return conn
}

// closedWithin reports whether the server closes a connection within a time.
func closedWithin(tb testing.TB, conn net.Conn, within time.Duration) bool {
	tb.Helper()
	must(tb, conn.SetReadDeadline(time.Now().Add(within)))
	_, err := io.Copy(io.Discard, conn)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Connections on which nothing is called are closed, those that called something
// or watch the server's health are not.
func TestSilentConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	p := MustRunWith(t, t.TempDir(), func(c *Config) { c.Limits.SilentTimeout = 2 * time.Second })
	save(t, p, "a call")
	watcher := MustDial(t, p.Address)
	watch, err := grpc_health_v1.NewHealthClient(watcher).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	must(t, err)
	_, err = watch.Recv()
	must(t, err)
	if silent := openSilent(t, p.Address); !closedWithin(t, silent, waitTime) {
		t.Error("a silent connection stays open")
	}
	gone := make(chan error, 1)
	go func() {
		_, err := watch.Recv()
		gone <- err
	}()
	select {
	case err := <-gone:
		t.Errorf("a watch ended: %v", err)
	case <-time.After(3 * time.Second):
	}
	if state := p.conn.GetState().String(); state != "READY" {
		t.Errorf("a connection that made a call is %s", state)
	}
}

// Silent connections, however many, keep nobody out, neither of an address nor of a
// Unix socket; those with a call stay.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	const slots = 16
	for _, where := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "loom.sock")} {
		p := MustRunWith(t, t.TempDir(), func(c *Config) { c.Limits.SilentTimeout = time.Hour }, "--addr", where, "--max-connections", "16")
		save(t, p, "the first")
		first := openSilent(t, p.Address)
		for range 2 * slots {
			openSilent(t, p.Address)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range slots / 2 {
			_, err := loombridgev1.NewBridgeServiceClient(MustDial(t, p.Address)).MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "another"})
			must(t, err)
		}
		if !closedWithin(t, first, waitTime) {
			t.Errorf("%s: the oldest silent connection is still open", where)
		}
		if state := p.conn.GetState().String(); state != "READY" {
			t.Errorf("%s: a connection that made a call is %s", where, state)
		}
		must(t, p.Stop())
	}
}
