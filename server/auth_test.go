package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// MustCredentials loads a credentials file with that text.
func MustCredentials(tb testing.TB, text string) *auth.Credentials {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "callers.toml")
	must(tb, os.WriteFile(path, []byte(text), 0o600))
	loaded, err := auth.LoadCredentials(path)
	must(tb, err)
	return loaded
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// callers are two tenants: one token by hash, one in the open, one certificate.
func callers() string {
	return `
[[credential]]
token_sha256 = "` + hashOf("acme-token") + `"
tenant = "acme"
agents = ["research-*", "lead"]

[[credential]]
token = "umbrella-token"
tenant = "umbrella"
agents = ["*"]

[[credential]]
subject = "robot.acme.example"
tenant = "acme"
agents = ["robot"]
`
}

func withToken(ctx context.Context, value string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", value)
}

func TestTokens(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	for _, test := range []struct {
		name, header, agent string
		code                codes.Code
		reason              string
	}{
		{"no token", "", "lead", codes.Unauthenticated, "UNAUTHENTICATED"},
		{"wrong token", "Bearer nonsense", "lead", codes.Unauthenticated, "UNAUTHENTICATED"},
		{"the hash itself", "Bearer " + hashOf("acme-token"), "lead", codes.Unauthenticated, "UNAUTHENTICATED"},
		{"no scheme", "acme-token", "lead", codes.Unauthenticated, "UNAUTHENTICATED"},
		{"other scheme", "Basic acme-token", "lead", codes.Unauthenticated, "UNAUTHENTICATED"},
		{"agent not owned", "Bearer acme-token", "billing", codes.PermissionDenied, "AGENT_NOT_OWNED"},
		{"only a beginning", "Bearer acme-token", "research", codes.PermissionDenied, "AGENT_NOT_OWNED"},
		{"exact agent", "Bearer acme-token", "lead", codes.OK, ""},
		{"longer than exact", "Bearer acme-token", "lead-2", codes.PermissionDenied, "AGENT_NOT_OWNED"},
		{"agent by beginning", "bearer acme-token", "research-7", codes.OK, ""},
		{"any agent", "Bearer umbrella-token", "lead", codes.OK, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			if test.header != "" {
				ctx = withToken(ctx, test.header)
			}
			_, err := s.Tools.ListTools(ctx, &loombridgev1.ListToolsRequest{AgentId: test.agent})
			MustFail(t, err, test.code, test.reason)
			stream, err := s.Events.Subscribe(ctx, &loombridgev1.SubscribeRequest{
				AgentId: test.agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
			})
			must(t, err)
			_, err = stream.Recv()
			MustFail(t, err, test.code, test.reason)
		})
	}
}

// The tenant comes from the credential alone: equal agent ids of two tenants
// share nothing.
func TestTenantsAreApart(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	acme, umbrella := withToken(t.Context(), "Bearer acme-token"), withToken(t.Context(), "Bearer umbrella-token")
	_, err := s.Context.AppendMessages(acme, &loombridgev1.AppendMessagesRequest{AgentId: "lead", Messages: conversation()})
	must(t, err)
	_, err = s.Bridge.Emit(acme, &loombridgev1.EmitRequest{AgentId: "lead", Topic: "news"})
	must(t, err)
	prompt, err := s.Context.Assemble(umbrella, &loombridgev1.AssembleRequest{AgentId: "lead", WithoutTools: true, Goal: "x"})
	must(t, err)
	if len(prompt.GetMessages()) != 1 {
		t.Errorf("another tenant's messages: %v", prompt.GetMessages())
	}
	_, ready := MustSubscribe(t, umbrella, s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "lead", Topics: []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64(0))}},
	})
	if after := ready.GetPositions()[0].GetAfterSequence(); after != 0 {
		t.Errorf("another tenant's topic is at %d", after)
	}
}

// describe asks on a stream of reflection.
func describe(stream grpc_reflection_v1.ServerReflection_ServerReflectionInfoClient, symbol string) (string, error) {
	_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol},
	})
	got, err := stream.Recv()
	return got.String(), err
}

// What load balancers and grpcurl ask first needs no credential: whether the server
// is well, and what it can be asked.
func TestHealthAndReflectionAreOpen(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	for _, service := range []string{"", "loombridge.v1.BridgeService"} {
		got, err := grpc_health_v1.NewHealthClient(s.Conn()).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		must(t, err)
		if got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q is %v", service, got.GetStatus())
		}
	}
	for _, header := range []string{"", "Bearer acme-token", "Bearer nonsense"} {
		stream, err := grpc_reflection_v1.NewServerReflectionClient(s.Conn()).ServerReflectionInfo(withToken(t.Context(), header))
		must(t, err)
		if got, err := describe(stream, "grpc.health.v1.Health"); err != nil || !strings.Contains(got, "HealthCheckRequest") {
			t.Errorf("reflection with %q: %v, %v", header, got, err)
		}
	}
}

// Reflection needs no credential, so what it can make the server do is bounded: the
// length of a question, questions of a stream, streams.
func TestReflectionIsBounded(t *testing.T) {
	const questions, streams = 256, 64
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	reflection := grpc_reflection_v1.NewServerReflectionClient(s.Conn())
	stream, err := reflection.ServerReflectionInfo(t.Context())
	must(t, err)
	_, err = describe(stream, strings.Repeat("x", 4<<10))
	MustFail(t, err, codes.ResourceExhausted, "TOO_LARGE")

	stream, err = reflection.ServerReflectionInfo(t.Context())
	must(t, err)
	for range questions {
		_, err := describe(stream, "x")
		must(t, err)
	}
	_, err = describe(stream, "x")
	MustFail(t, err, codes.Unavailable, "OVERLOADED")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range streams {
		stream, err := reflection.ServerReflectionInfo(ctx)
		must(t, err)
		_, err = describe(stream, "x")
		must(t, err)
	}
	stream, err = reflection.ServerReflectionInfo(t.Context())
	must(t, err)
	_, err = describe(stream, "x")
	MustFail(t, err, codes.Unavailable, "OVERLOADED")
	// Those who have a credential are served.
	_, err = s.Tools.ListTools(withToken(t.Context(), "Bearer acme-token"), &loombridgev1.ListToolsRequest{AgentId: "lead"})
	must(t, err)
}

// pki is a certificate authority made for one test.
type pki struct {
	tb   testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func MustPKI(tb testing.TB) *pki {
	tb.Helper()
	p := &pki{tb: tb, dir: tb.TempDir()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	p.cert, p.key = p.sign("ca", template, nil, nil)
	return p
}

// sign writes name.pem and name.key.
func (p *pki) sign(name string, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	p.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(p.tb, err)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(p.tb, err)
	cert, err := x509.ParseCertificate(der)
	must(p.tb, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(p.tb, err)
	must(p.tb, os.WriteFile(p.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(p.tb, os.WriteFile(p.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// issue makes a certificate of the authority.
func (p *pki) issue(name, subject string, names ...string) {
	p.tb.Helper()
	p.sign(name, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: subject}, DNSNames: names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, p.cert, p.key)
}

// client are dial options for a client with a certificate, or without.
func (p *pki) client(name string) grpc.DialOption {
	p.tb.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(p.cert)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if name != "" {
		cert, err := tls.LoadX509KeyPair(p.file(name+".pem"), p.file(name+".key"))
		must(p.tb, err)
		config.Certificates = []tls.Certificate{cert}
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(config))
}

func TestClientCertificates(t *testing.T) {
	p := MustPKI(t)
	p.issue("server", "server", "localhost")
	p.issue("common", "robot.acme.example")
	p.issue("alternative", "something", "other.example", "robot.acme.example")
	p.issue("stranger", "stranger.example")
	config, err := auth.LoadTLS(p.file("server.pem"), p.file("server.key"), p.file("ca.pem"))
	must(t, err)
	s := servertest.Start(t, &servertest.Options{
		Server: server.Options{TLS: config, Credentials: MustCredentials(t, callers())},
		Dial:   []grpc.DialOption{p.client("common")},
	})
	for _, test := range []struct {
		name, cert, header, agent string
		code                      codes.Code
	}{
		{"common name", "common", "", "robot", codes.OK},
		{"alternative name", "alternative", "", "robot", codes.OK},
		{"agent not owned", "common", "", "lead", codes.PermissionDenied},
		{"unknown subject", "stranger", "", "robot", codes.Unauthenticated},
		{"unknown subject with a token", "stranger", "Bearer acme-token", "lead", codes.OK},
		{"the token decides", "common", "Bearer acme-token", "robot", codes.PermissionDenied},
		{"a wrong token is not made good", "common", "Bearer nonsense", "robot", codes.Unauthenticated},
		{"no certificate", "", "Bearer acme-token", "lead", codes.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			if test.header != "" {
				ctx = withToken(ctx, test.header)
			}
			tools := loombridgev1.NewToolServiceClient(s.Dial(t, p.client(test.cert)))
			_, err := tools.ListTools(ctx, &loombridgev1.ListToolsRequest{AgentId: test.agent})
			if codeOf(err) != test.code {
				t.Errorf("err = %v, want %v", err, test.code)
			}
		})
	}
}

func TestTLSWithoutClientCertificates(t *testing.T) {
	p := MustPKI(t)
	p.issue("server", "server", "localhost")
	config, err := auth.LoadTLS(p.file("server.pem"), p.file("server.key"), "")
	must(t, err)
	s := servertest.Start(t, &servertest.Options{Server: server.Options{TLS: config}, Dial: []grpc.DialOption{p.client("")}})
	status, err := s.Admin.GetStatus(t.Context(), &loombridgev1.GetStatusRequest{})
	must(t, err)
	tools, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent})
	if must(t, err); status.GetAuthentication() || int(status.GetTools()) != len(tools.GetTools()) {
		t.Errorf("status = %v, of %d tools", status, len(tools.GetTools()))
	}
}

func TestLoadTLSErrors(t *testing.T) {
	p := MustPKI(t)
	p.issue("server", "server", "localhost")
	must(t, os.WriteFile(p.file("empty.pem"), nil, 0o600))
	for _, files := range [][3]string{
		{"missing.pem", "server.key", ""}, {"server.pem", "ca.key", ""}, {"server.pem", "server.key", "missing.pem"}, {"server.pem", "server.key", "empty.pem"},
	} {
		ca := files[2]
		if ca != "" {
			ca = p.file(ca)
		}
		if _, err := auth.LoadTLS(p.file(files[0]), p.file(files[1]), ca); !errors.Is(err, auth.ErrTLS) {
			t.Errorf("%v: %v", files, err)
		}
	}
}

// Without authentication only addresses of this machine are served.
func TestNoAuthenticationOnlyOnLoopback(t *testing.T) {
	face := server.New(server.Services{Tools: tools.NewCatalogue(tools.NewRegistry(nil), nil)}, nil)
	defer func() { must(t, face.Shutdown(context.Background())) }()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	if err := face.Serve(listener); !errors.Is(err, server.ErrOpenToAll) {
		t.Errorf("err = %v", err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}
