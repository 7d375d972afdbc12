package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// WriterKey is the metadata key by which a caller says that it passes on what a model's tool
// asks for, as `model`. It takes rights away and gives none.
const WriterKey = "loom-writer"

// Written returns the context of a call with who writes what the call says.
func Written(ctx context.Context) context.Context {
	if values := metadata.ValueFromIncomingContext(ctx, WriterKey); len(values) > 0 && values[0] == writer.Model.String() {
		return writer.As(ctx, writer.Model)
	}
	return ctx
}

// authorizationKey is the metadata key of a bearer token.
const authorizationKey = "authorization"

// Authenticate returns the identity of the caller behind ctx, and a context that ends, with
// the cause, once the credential is no longer valid. A token takes precedence over a
// certificate.
func (c *Credentials) Authenticate(ctx context.Context) (caller Identity, over context.Context, err error) {
	if values := metadata.ValueFromIncomingContext(ctx, authorizationKey); len(values) > 0 {
		return c.authenticateToken(values)
	}
	if g, ok := c.bySubject(certificateNames(ctx)); ok {
		return g.identity()
	}
	return Identity{}, nil, fmt.Errorf("%w: give a bearer token in the %q metadata", ErrUnauthenticated, authorizationKey)
}

func (c *Credentials) authenticateToken(values []string) (Identity, context.Context, error) {
	if len(values) > 1 {
		return Identity{}, nil, fmt.Errorf("%w: more than one %q value", ErrUnauthenticated, authorizationKey)
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return Identity{}, nil, fmt.Errorf("%w: the %q metadata is not `Bearer <token>`", ErrUnauthenticated, authorizationKey)
	}
	// The lookup goes by hash, so its time reveals nothing about the tokens that are
	// known.
	g, ok := c.known.Load().tokens[sha256.Sum256([]byte(token))]
	if !ok {
		return Identity{}, nil, fmt.Errorf("%w: the token is not known", ErrUnauthenticated)
	}
	return g.identity()
}

// certificateNames are the names of the client certificate that the TLS layer
// has verified: the common name first, then the alternative names.
func certificateNames(ctx context.Context) []string {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return namesOf(info.State.VerifiedChains[0][0])
}

func namesOf(cert *x509.Certificate) []string {
	names := append([]string{cert.Subject.CommonName}, cert.DNSNames...)
	names = append(names, cert.EmailAddresses...)
	for _, uri := range cert.URIs {
		names = append(names, uri.String())
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
