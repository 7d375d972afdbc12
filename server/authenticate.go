package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// authorizationKey is the metadata key of a bearer token.
const authorizationKey = "authorization"

// authenticate puts the caller's identity into ctx.
func (s *Server) authenticate(ctx context.Context) (context.Context, error) {
	if s.credentials == nil {
		return withIdentity(ctx, s.anyone), nil
	}
	return s.credentials.authenticate(ctx)
}

// authenticate puts the identity of a credential into ctx. A token that is
// given decides, even beside a certificate.
func (c *Credentials) authenticate(ctx context.Context) (context.Context, error) {
	if values := metadata.ValueFromIncomingContext(ctx, authorizationKey); len(values) > 0 {
		return c.authenticateToken(ctx, values)
	}
	if g, ok := c.bySubject(certificateNames(ctx)); ok {
		return g.admit(ctx)
	}
	return nil, fmt.Errorf("%w: give a bearer token in the %q metadata", ErrUnauthenticated, authorizationKey)
}

func (c *Credentials) authenticateToken(ctx context.Context, values []string) (context.Context, error) {
	if len(values) > 1 {
		return nil, fmt.Errorf("%w: more than one %q value", ErrUnauthenticated, authorizationKey)
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return nil, fmt.Errorf("%w: the %q metadata is not `Bearer <token>`", ErrUnauthenticated, authorizationKey)
	}
	g, ok := c.byToken(token)
	if !ok {
		return nil, fmt.Errorf("%w: the token is not known", ErrUnauthenticated)
	}
	return g.admit(ctx)
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

// reachableByOthers tells whether other machines can reach a listener.
func reachableByOthers(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
