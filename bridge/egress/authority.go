package egress

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// systemRoots are where systems keep the certificates that programs trust, as
// crypto/x509 looks for them.
var systemRoots = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

const (
	// bundleName is the file of certificates that processes trust.
	bundleName = "certificates.pem"
	// maxRootsBytes bounds the certificates of a system.
	maxRootsBytes = 16 << 20
	// maxLeaves bounds the certificates that are kept.
	maxLeaves = 1024
	// leafTime is how long one is good for; CAs of public hosts give less.
	leafTime = 30 * 24 * time.Hour
)

// authority signs certificates for hosts whose tunnels are looked into. It is made when the
// server starts, and its key is never written.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	leaf crypto.Signer // of all leaves

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // guarded by mu; by host
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Loom Bridge tools, of this server's start"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, leaf: leaf, leaves: map[string]*tls.Certificate{}}, nil
}

func serial() *big.Int {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // it never fails
	raw[0] &= 0x7f
	return new(big.Int).SetBytes(raw[:])
}

// certificate returns one for a host.
func (a *authority) certificate(host string, now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil && now.Before(c.Leaf.NotAfter.Add(-time.Hour)) {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: host}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(leafTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	if len(host) > 64 { // the bound of a common name
		template.Subject.CommonName = ""
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("egress: certificate for %s: %w", host, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("egress: certificate for %s: %w", host, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf, Leaf: leaf}
	a.leaves[host] = c
	return c, nil
}

// makeAuthority makes the authority, and the file of certificates that processes trust: those
// of the system, further ones, and the authority's.
func (g *Gate) makeAuthority() (err error) {
	if g.authority, err = newAuthority(g.now()); err != nil {
		return fmt.Errorf("egress: certificate authority: %w", err)
	}
	var roots []byte
	for _, path := range systemRoots {
		if roots != nil {
			break
		}
		if info, err := os.Stat(path); err == nil && info.Size() <= maxRootsBytes {
			roots, _ = os.ReadFile(path) // the next one may be readable
		}
	}
	trusted := bytes.Join([][]byte{roots, g.opts.ExtraRoots}, []byte("\n"))
	g.roots = x509.NewCertPool()
	g.roots.AppendCertsFromPEM(trusted)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.authority.cert.Raw})
	if g.folder, err = os.MkdirTemp(g.opts.Dir, "loom-egress-"); err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	// Tools may run as another user than the server.
	if err := os.Chmod(g.folder, 0o755); err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	if err := os.WriteFile(g.bundle(), bytes.Join([][]byte{trusted, own}, []byte("\n")), 0o644); err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	return nil
}

func (g *Gate) bundle() string { return filepath.Join(g.folder, bundleName) }
