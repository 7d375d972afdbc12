package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// waitTime is how long a test waits for what happens in the background.
const waitTime = 3 * time.Minute

// credentialOf is the table of a caller whose token is its name.
func credentialOf(token, agents, more string) string {
	return "[[credential]]\ntoken_sha256 = \"" + hashOf(token) + "\"\ntenant = \"acme\"\nagents = " + agents + "\n" + more + "\n"
}

// as makes calls those of who has a token.
func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// hangUp sends SIGHUP and waits until the log has a new line about it.
func (p *process) hangUp(tb testing.TB, line string) {
	tb.Helper()
	before := strings.Count(p.Log.String(), line)
	must(tb, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	eventually(tb, waitTime, func() error {
		if strings.Count(p.Log.String(), line) == before {
			return errors.New("the log has no new line: " + line)
		}
		return nil
	})
}

func (p *process) list(ctx context.Context, token, agent string) error {
	_, err := loombridgev1.NewToolServiceClient(p.conn).ListTools(as(ctx, token), &loombridgev1.ListToolsRequest{AgentId: agent})
	return err
}

// open opens a subscription and waits until it is ready.
func (p *process) open(tb testing.TB, token string) grpc.ServerStreamingClient[loombridgev1.SubscribeResponse] {
	tb.Helper()
	stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(as(tb.Context(), token), &loombridgev1.SubscribeRequest{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
	})
	must(tb, err)
	_, err = stream.Recv()
	must(tb, err)
	return stream
}

// refused tells what an UNAUTHENTICATED call was told.
func refused(tb testing.TB, err error, want string) {
	tb.Helper()
	if status.Code(err) != codes.Unauthenticated || reasonOf(err) != "UNAUTHENTICATED" || !strings.Contains(err.Error(), want) {
		tb.Errorf("%v, want UNAUTHENTICATED with %q", err, want)
	}
}

// SIGHUP reads the credentials again: new callers are served, those taken away are
// refused and their streams end; the streams of all others go on. A file that can't
// be used changes nothing.
func TestCredentialsAreReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "callers.toml")
	write := func(text string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(credentialOf("stays", `["a"]`, "") + credentialOf("goes", `["*"]`, ""))
	p := MustRun(t, t.TempDir(), "--credentials", path)
	staying, going := p.open(t, "stays"), p.open(t, "goes")
	refused(t, p.list(t.Context(), "comes", "a"), "not known")

	write("[[credential]")
	p.hangUp(t, "the credentials stay as they were")
	must(t, p.list(t.Context(), "goes", "a"))
	p.told(t, "bad credentials file")

	write(credentialOf("stays", `["a", "b"]`, "") + credentialOf("comes", `["*"]`, ""))
	p.hangUp(t, "credentials were read again")
	must(t, p.list(t.Context(), "comes", "a"))
	must(t, p.list(t.Context(), "stays", "b"))
	refused(t, p.list(t.Context(), "goes", "a"), "not known")
	_, err := going.Recv()
	refused(t, err, "taken away")
	_, err = p.bridge().Emit(as(t.Context(), "comes"), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news"})
	must(t, err)
	if got, err := staying.Recv(); err != nil || got.GetEvent().GetTopic() != "news" {
		t.Errorf("the stream of a caller that stays: %v, %v", got, err)
	}
	write(credentialOf("stays", `["b"]`, ""))
	p.hangUp(t, "credentials were read again")
	_, err = staying.Recv()
	refused(t, err, "changed")
}

// A credential counts until it expires; then its streams end. The time may be
// moved while a stream is open.
func TestCredentialsExpire(t *testing.T) {
	t.Parallel()
	const soon = 10 * time.Second // far more than reading them again and one call take
	path := filepath.Join(t.TempDir(), "callers.toml")
	until := func(at time.Time) string { return "expires = " + at.UTC().Format(time.RFC3339Nano) }
	write := func(text string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }
	past := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	write(credentialOf("past", `["a"]`, until(past)) + credentialOf("extended", `["a"]`, until(time.Now().Add(time.Hour))) +
		credentialOf("never", `["a"]`, ""))
	p := MustRun(t, t.TempDir(), "--credentials", path)
	refused(t, p.list(t.Context(), "past", "a"), "expired at 2020-01-02T03:04:05Z")
	stream, other := p.open(t, "extended"), p.open(t, "never")
	write(credentialOf("extended", `["a"]`, until(time.Now().Add(soon))) + credentialOf("never", `["a"]`, ""))
	p.hangUp(t, "credentials were read again")
	must(t, p.list(t.Context(), "extended", "a"))
	_, err := stream.Recv()
	refused(t, err, "expired at")
	refused(t, p.list(t.Context(), "extended", "a"), "expired at")
	_, err = p.bridge().Emit(as(t.Context(), "never"), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news"})
	must(t, err)
	_, err = other.Recv()
	must(t, err)
}

// newCertificate makes a certificate for localhost, signed by itself, and its key.
func newCertificate(name string) (cert, key []byte) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// MustCertificate writes a certificate and returns how a client trusts it.
func MustCertificate(tb testing.TB, dir, name string) *x509.CertPool {
	tb.Helper()
	cert, key := newCertificate(name)
	must(tb, os.WriteFile(filepath.Join(dir, name+".pem"), cert, 0o600))
	must(tb, os.WriteFile(filepath.Join(dir, name+".key"), key, 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// greet makes one call over TLS on a connection of its own.
func (p *process) greet(tb testing.TB, config *tls.Config) error {
	tb.Helper()
	config.ServerName = "localhost"
	conn, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(tb, err)
	defer conn.Close()
	_, err = loombridgev1.NewAdminServiceClient(conn).GetStatus(tb.Context(), &loombridgev1.GetStatusRequest{})
	return err
}

// SIGHUP reads the certificate again; a broken file keeps the old one.
func TestCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := MustCertificate(t, dir, "server")
	cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	p := MustRun(t, t.TempDir(), "--tls-cert", cert, "--tls-key", key)
	must(t, p.greet(t, &tls.Config{RootCAs: first}))
	must(t, os.WriteFile(cert, []byte("nonsense"), 0o600))
	p.hangUp(t, "the certificates stay as they were")
	must(t, p.greet(t, &tls.Config{RootCAs: first}))
	second := MustCertificate(t, dir, "server")
	p.hangUp(t, "certificates were read again")
	must(t, p.greet(t, &tls.Config{RootCAs: second}))
	if err := p.greet(t, &tls.Config{RootCAs: first}); status.Code(err) != codes.Unavailable {
		t.Errorf("with the certificate from before: %v", err)
	}
}
