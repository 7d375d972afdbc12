package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// ErrTLS: a certificate or key file can't be used. Found at start, and when they
// are read again.
var ErrTLS = errors.New("server: bad TLS file")

// TLS is the server's certificate and the authorities of its clients, as the files
// had them when they were read last. All methods are safe for concurrent use.
type TLS struct {
	certFile, keyFile, clientCAFile string
	current                         atomic.Pointer[tls.Config]
}

// LoadTLS reads the server's certificate chain and key, both PEM. With a file
// of client authorities every client must show a certificate that one of them
// signed. All errors are ErrTLS.
func LoadTLS(certFile, keyFile, clientCAFile string) (*TLS, error) {
	t := &TLS{certFile: certFile, keyFile: keyFile, clientCAFile: clientCAFile}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the files again, for connections from then on; those there are stay.
// If a file can't be used, the error says why and everything stays as it was.
func (t *TLS) Reload() error {
	config, err := readTLS(t.certFile, t.keyFile, t.clientCAFile)
	if err != nil {
		return err
	}
	t.current.Store(config)
	return nil
}

// Config is what connections are secured with.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current.Load(), nil },
	}
}

func readTLS(certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	// gRPC is spoken over HTTP/2 only.
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if clientCAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(clientCAFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: %s holds no certificate", ErrTLS, clientCAFile)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
