package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustCallers writes a credentials file with one token for each tenant.
func MustCallers(tb testing.TB, dir string, tenants ...string) string {
	tb.Helper()
	path := filepath.Join(dir, "callers.toml")
	must(tb, os.WriteFile(path, []byte(callersText(tenants...)), 0o600))
	return path
}

// callersText has a caller for each tenant, whose token is the tenant's name.
func callersText(tenants ...string) string {
	var text strings.Builder
	for _, tenant := range tenants {
		fmt.Fprintf(&text, "[[credential]]\ntoken_sha256 = %q\ntenant = %q\nagents = [\"*\"]\n", hashOf(tenant), tenant)
	}
	return text.String()
}

// With authentication on, loom.v1 has an address of its own that serves one
// tenant and nothing else; the main address does not serve it.
func TestLoomAddressWithCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "loom.sock")
	p := MustRun(t, dir, "--credentials", MustCallers(t, dir, "acme", "umbrella"),
		"--loom-addr", "unix:"+socket, "--loom-tenant", "acme")
	asUmbrella := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer umbrella")
	asAcme := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer acme")
	_, err := loomv1pb.NewBridgeClient(p.conn).Heartbeat(asAcme, &loomv1pb.HeartbeatRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("loom.v1 on the main address: %v", err)
	}

	loom := MustDial(t, "unix:"+socket)
	_, err = loomv1pb.NewEventBusClient(loom).Publish(t.Context(), &loomv1pb.PublishRequest{
		Topic: "news", Event: &loomv1pb.Event{Id: "e1", Type: "t"},
	})
	must(t, err)
	_, err = loombridgev1.NewAdminServiceClient(loom).GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("the native API without a credential: %v", err)
	}
	// What was published belongs to the one tenant: there, the topic has it.
	for tenant, ctx := range map[string]struct{ last int64 }{"acme": {1}, "umbrella": {0}} {
		call := asAcme
		if tenant == "umbrella" {
			call = asUmbrella
		}
		stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(call, &loombridgev1.SubscribeRequest{
			AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
		})
		must(t, err)
		ready, err := stream.Recv()
		must(t, err)
		if got := ready.GetReady().GetPositions()[0].GetAfterSequence(); got != ctx.last {
			t.Errorf("%s: the topic ends at %d, want %d", tenant, got, ctx.last)
		}
	}
}

// Without authentication everything is on the one address.
func TestLoomOnTheMainAddress(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	got, err := loomv1pb.NewBridgeClient(p.conn).Heartbeat(t.Context(), &loomv1pb.HeartbeatRequest{TimestampMs: 12345})
	must(t, err)
	if got.GetTimestampMs() != 12345 || got.GetStatus() != "ok" {
		t.Errorf("heartbeat %v", got)
	}
}

func TestBadLoomAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	callers := MustCallers(t, dir, "acme")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no credentials": {[]string{"--loom-addr", "127.0.0.1:0", "--loom-tenant", "acme"}, "needs --credentials"},
		"tenant alone":   {[]string{"--loom-tenant", "acme"}, "--loom-addr"},
		"no tenant":      {[]string{"--credentials", callers, "--loom-addr", "127.0.0.1:0"}, "--loom-tenant"},
		"open to all":    {[]string{"--credentials", callers, "--loom-addr", "0.0.0.0:0", "--loom-tenant", "acme"}, "other machines"},
	} {
		args := append([]string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store")}, test.args...)
		if err := runBriefly(t, args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A table of models that can't be used stops the start and says why.
func TestModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	MustRun(t, dir, "--models", MustFile(t, "[models.\"my-model\"]\nwindow = 4096\n"))
	for name, path := range map[string]string{"missing": filepath.Join(dir, "none.toml"), "unknown key": MustFile(t, "[models.\"m\"]\ncolour = 1\n")} {
		err := runBriefly(t, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--models", path)
		if err == nil || !strings.Contains(err.Error(), "--models") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
