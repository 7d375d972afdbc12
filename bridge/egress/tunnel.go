package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// tlsHandshake is the first byte of a TLS connection (RFC 8446, 5.1).
const tlsHandshake = 0x16

// tunnel passes bytes between a process and a host, once the first ones show that they are
// for that host.
func (s *Session) tunnel(client *peeked, upstream *counted, t destination, e *auditEntry, rules []Rule) error {
	defer func() {
		_ = upstream.Close()
		e.sent.Store(upstream.sent.Load())
		e.received.Store(upstream.received.Load())
	}()
	raw := !slices.Contains(defaultPorts, t.port) && slices.ContainsFunc(rules, func(r Rule) bool { return slices.Contains(r.Ports, t.port) })
	if raw {
		// A port that a rule names may speak anything, and the host may speak first: ssh
		// does.
		return s.pass(client, upstream, func() error {
			if first, err := client.reader.Peek(1); err != nil || first[0] != tlsHandshake {
				return nil // copying finds the end
			}
			return s.hello(client, upstream, t)
		})
	}
	_ = client.SetReadDeadline(time.Now().Add(headerTime)) // sockets have them
	first, err := client.reader.Peek(1)
	if err != nil {
		return nil // the process closed it without a word
	}
	if first[0] != tlsHandshake {
		_ = upstream.Close() // requests have their own connections
		return s.serveOn(client, t)
	}
	if err := s.hello(client, upstream, t); err != nil {
		return err
	}
	_ = client.SetReadDeadline(time.Now().Add(DefaultMaxTime)) // as above
	return s.pass(client, upstream, func() error { return nil })
}

// hello passes the first message of TLS on, if it is for the tunnel's host.
func (s *Session) hello(client *peeked, upstream *counted, t destination) error {
	name, hello, err := serverName(client)
	if err != nil {
		return fmt.Errorf("the tunnel to %s begins with something that is not TLS: %w", t, err)
	}
	if err := s.sameName(name, t); err != nil {
		return err
	}
	_, err = upstream.Write(hello)
	return err
}

// sameName refuses a handshake that is for another host than the tunnel. Only a host that is
// an address has none.
func (s *Session) sameName(name string, t destination) error {
	if _, literal := t.addr(); name == "" && literal {
		return nil
	}
	if host, err := canonical(name); err == nil && host == t.host {
		return nil
	}
	return s.deny(t, fmt.Sprintf("the TLS handshake names another host, %q", name))
}

// pass copies both ways until both have ended. What the process sends goes through first
// at its beginning.
func (s *Session) pass(client *peeked, upstream *counted, first func() error) error {
	var both sync.WaitGroup
	var sent, received error
	both.Go(func() {
		if sent = first(); sent == nil {
			_, sent = io.Copy(upstream, client)
		}
		if sent != nil {
			_, _ = client.Close(), upstream.Close() // the other way ends too
			return
		}
		_ = closeWrite(upstream) // the host sees the end
	})
	if _, received = io.Copy(client, upstream); received != nil {
		_ = client.Close()
	}
	_ = closeWrite(client.Conn) // the process sees the end
	both.Wait()
	for _, err := range []error{sent, received} {
		if errors.Is(err, ErrLimit) || errors.Is(err, ErrDenied) {
			return err
		}
	}
	return nil // how hosts and processes end their connections is theirs
}

// serverName reads the first message of TLS, and returns the host it names and its bytes.
func serverName(client io.Reader) (name string, hello []byte, err error) {
	var seen bytes.Buffer
	found := errors.New("found")
	conn := tls.Server(readOnly{io.TeeReader(client, &seen)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name = h.ServerName
			return nil, found
		},
	})
	if err = conn.Handshake(); errors.Is(err, found) {
		err = nil
	}
	return name, seen.Bytes(), err
}

// readOnly is a connection that is only read from.
type readOnly struct{ from io.Reader }

func (c readOnly) Read(p []byte) (int, error)       { return c.from.Read(p) }
func (c readOnly) Write(p []byte) (int, error)      { return len(p), nil } // an alert
func (c readOnly) Close() error                     { return nil }
func (c readOnly) LocalAddr() net.Addr              { return nil }
func (c readOnly) RemoteAddr() net.Addr             { return nil }
func (c readOnly) SetDeadline(time.Time) error      { return nil }
func (c readOnly) SetReadDeadline(time.Time) error  { return nil }
func (c readOnly) SetWriteDeadline(time.Time) error { return nil }

// lookInto ends TLS here and answers the requests in a tunnel, each under the rules.
func (s *Session) lookInto(client *peeked, t destination) error {
	_ = client.SetReadDeadline(time.Now().Add(headerTime)) // sockets have them
	first, err := client.reader.Peek(1)
	if err != nil {
		return nil // the process closed it without a word
	}
	_ = client.SetReadDeadline(time.Now().Add(DefaultMaxTime)) // as above
	if first[0] != tlsHandshake {
		return s.serveOn(client, t)
	}
	var denied error
	conn := tls.Server(client, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if denied = s.sameName(h.ServerName, t); denied != nil {
				return nil, denied
			}
			return s.gate.authority.certificate(t.host, s.gate.now())
		},
	})
	ctx, cancel := context.WithTimeout(s.ctx, headerTime)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		if denied != nil {
			return denied
		}
		return fmt.Errorf("the process did not end the TLS handshake: %w", err)
	}
	t.tls = true
	return s.serveOn(conn, t)
}

// serveOn answers the requests on one connection, all of them for one target, until it is
// closed.
func (s *Session) serveOn(conn net.Conn, t destination) error {
	l := &oneListener{conn: conn, closed: make(chan struct{})}
	server := s.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.URL.Host != "" {
			http.Error(w, "Bad request: a request in a tunnel is for its host", http.StatusBadRequest)
			return
		}
		s.forward(w, r, t)
	}))
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			l.end()
		}
	}
	_ = server.Serve(l) // it ends with the connection
	return nil
}

// oneListener accepts one connection.
type oneListener struct {
	conn   net.Conn
	once   sync.Once
	ended  sync.Once
	closed chan struct{}
}

func (l *oneListener) Accept() (conn net.Conn, err error) {
	l.once.Do(func() { conn = l.conn })
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneListener) end() { l.ended.Do(func() { close(l.closed) }) }

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return l.conn.LocalAddr() }
