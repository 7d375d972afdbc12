package egress

import (
	"bufio"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Serve is the proxy of a process: it answers CONNECT and plain requests (RFC 9110, 9.3.6
// and 7.2) that come to a listener, until the listener or the session is closed. It closes both,
// and returns when every connection is in the audit.
func (s *Session) Serve(l net.Listener) {
	stop := context.AfterFunc(s.ctx, func() { _ = l.Close() })
	defer stop()
	limited := &limitedListener{Listener: l, places: make(chan struct{}, DefaultMaxPerCall), closed: make(chan struct{})}
	server := s.server(http.HandlerFunc(s.proxy))
	_ = server.Serve(limited) // it ends with the listener
	_ = server.Close()
	_ = l.Close()
	_ = s.Close()
}

// server is one for requests of processes.
func (s *Session) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: DefaultMaxTime, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return s.ctx }, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
}

// limitedListener accepts so many connections at a time; others wait.
type limitedListener struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type placedConn struct {
	net.Conn
	leave func()
}

func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// proxy answers one request to the proxy.
func (s *Session) proxy(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "The call has ended", http.StatusServiceUnavailable)
		return
	}
	defer s.running.Done()
	if !s.knows(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="loom"`)
		http.Error(w, "Permission denied: the proxy serves one call of a tool, and this is another", http.StatusProxyAuthRequired)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		s.connectTo(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		t, err := targetOf(r.URL.Scheme, r.URL.Host)
		if err != nil {
			http.Error(w, "Bad request: "+err.Error(), http.StatusBadRequest)
			return
		}
		s.forward(w, r, t)
	default:
		http.Error(w, "Bad request: this is a proxy: send CONNECT host:port, or a request with a whole URL of http", http.StatusBadRequest)
	}
}

// knows reports whether a request comes from the process of the call.
func (s *Session) knows(r *http.Request) bool {
	s.mu.Lock()
	shared := s.shared
	s.mu.Unlock()
	if !shared {
		return true
	}
	_, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	plain, _ := base64.StdEncoding.DecodeString(encoded) // what is none is not the token
	_, token, _ := strings.Cut(string(plain), ":")
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// forward sends one request on and its answer back.
func (s *Session) forward(w http.ResponseWriter, r *http.Request, t destination) {
	resp, err := s.roundTrip(r, t)
	if err != nil {
		fail(w, t, err)
		return
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return // the process is gone
			}
			_ = flusher.Flush() // events come as they are sent
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // so that the process sees that the answer is not whole
		}
	}
}

// fail answers with an error.
func fail(w http.ResponseWriter, t destination, err error) {
	status, text := failure(t, err)
	w.Header().Set("Proxy-Status", "loom-bridge")
	http.Error(w, text, status)
}

// failure is the status and the text of an error.
func failure(t destination, err error) (int, string) {
	switch {
	case errors.Is(err, ErrDenied):
		var denied *DeniedError
		errors.As(err, &denied)
		return http.StatusForbidden, denied.Text
	case errors.Is(err, ErrLimit):
		return http.StatusTooManyRequests, "Too many connections or bytes: " + err.Error()
	}
	return http.StatusBadGateway, fmt.Sprintf("No connection to %s: %v", t, err)
}

// connectTo answers CONNECT: with a tunnel, or by looking into it.
func (s *Session) connectTo(w http.ResponseWriter, r *http.Request) {
	t, err := destination{port: 443}.parse(r.Host)
	if err != nil {
		http.Error(w, "Bad request: "+err.Error(), http.StatusBadRequest)
		return
	}
	e, err := s.begin(t, r.Method, "")
	if err != nil {
		fail(w, t, err)
		return
	}
	rules, err := s.decide(r.Context(), t)
	var upstream net.Conn
	look := inspect(rules)
	if err == nil && !look {
		upstream, err = s.connect(r.Context(), t, rules)
	}
	if err != nil {
		e.end(err)
		s.refuse(w, t, err)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		if upstream != nil {
			_ = upstream.Close() // nothing was sent
		}
		e.end(err)
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(DefaultMaxTime)) // pipes and sockets have them
	client := &peeked{Conn: conn, reader: buffered.Reader}
	switch _, gone := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); {
	case gone != nil && upstream != nil:
		_ = upstream.Close() // nothing was sent
	case gone != nil:
	case look:
		err = s.lookInto(client, t)
	default:
		err = s.tunnel(client, upstream.(*counted), t, e, rules)
	}
	e.end(err)
}

// refuse answers a CONNECT with an error: most clients show the reason and not the body.
func (s *Session) refuse(w http.ResponseWriter, t destination, err error) {
	status, text := failure(t, err)
	conn, _, e := http.NewResponseController(w).Hijack()
	if e != nil {
		http.Error(w, text, status)
		return
	}
	defer conn.Close()
	line := strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", status, line, len(text)+1, text)
}

// inspect reports whether the requests of a tunnel have to be looked at.
func inspect(rules []Rule) bool {
	free := false
	for _, r := range rules {
		if r.Secret != nil {
			return true
		}
		free = free || !(r.Secret != nil || len(r.Methods) > 0 || len(r.Paths) > 0)
	}
	return !free
}

// peeked is a connection whose first bytes were read already.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.reader.Read(b) }

func (p *peeked) CloseWrite() error { return closeWrite(p.Conn) }

func closeWrite(c net.Conn) error {
	switch half := c.(type) {
	case *placedConn:
		return closeWrite(half.Conn)
	case *counted:
		return closeWrite(half.Conn)
	case interface{ CloseWrite() error }:
		return half.CloseWrite()
	}
	return nil
}
