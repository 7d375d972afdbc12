package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// The command says what watches a server wants to know: by its exit whether it can serve.
func TestHealthCommand(t *testing.T) {
	t.Parallel()
	ask := func(address string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), []string{"health", "--addr", address}, noEnvironment, &out, &out)
		return out.String(), err
	}
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir(), "--log-level", "off")
	if said, err := ask(p.Address); err != nil || said != "SERVING\n" {
		t.Errorf("a server that serves: %q, %v", said, err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	state, server := health.NewServer(), grpc.NewServer()
	state.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	healthv1.RegisterHealthServer(server, state)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	if said, err := ask(listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "NOT_SERVING") || said != "" {
		t.Errorf("a server that can't write: %q, %v", said, err)
	}
}
