package pgtest

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
)

// Trace is a proxy to a server that notes what it is asked: a line for each round trip, with
// the statements that go in it, separated by "; ".
type Trace struct {
	// Address is that of the server by way of the proxy.
	Address string

	target   string
	rewrite  map[string]string
	listener net.Listener

	mu    sync.Mutex
	trips []string // guarded by mu
}

// StartTrace starts one. The address must not ask for TLS.
func StartTrace(address string) (*Trace, error) { return StartRewriting(address, nil) }

// StartRewriting is StartTrace for one that puts other statements in the place of some, each
// by its whole text.
func StartRewriting(address string, rewrite map[string]string) (*Trace, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &Trace{target: u.Host, listener: l, rewrite: rewrite}
	u.Host = l.Addr().String()
	t.Address = u.String()
	go t.serve()
	return t, nil
}

// Close refuses further connections.
func (t *Trace) Close() error { return t.listener.Close() }

// Take returns the round trips since the last time.
func (t *Trace) Take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	trips := t.trips
	t.trips = nil
	return trips
}

func (t *Trace) serve() {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", t.target)
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				defer client.Close()
				_, _ = io.Copy(client, server)
			}()
			t.forward(server, client)
		}()
	}
}

// Messages of a client, as the protocol of PostgreSQL numbers them.
const (
	messageParse = 'P'
	messageBind  = 'B'
	messageQuery = 'Q'
	messageSync  = 'S'
)

// forward passes messages of a client on and reads the statements in them.
func (t *Trace) forward(server io.Writer, client io.Reader) {
	prepared := make(map[string]string)
	var trip []string
	for first := true; ; first = false {
		// All but the first message of a connection begin with their type.
		head := make([]byte, 5)
		if first {
			head = head[:4]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if !first {
			switch head[0] {
			case messageParse:
				name, rest, _ := strings.Cut(string(body), "\x00")
				statement, types, _ := strings.Cut(rest, "\x00")
				if other, ok := t.rewrite[statement]; ok {
					statement, body = other, []byte(name+"\x00"+other+"\x00"+types)
					binary.BigEndian.PutUint32(head[1:], uint32(len(body)+4)) //nolint:gosec // a test's statement is short
				}
				prepared[name] = statement
			case messageBind:
				_, rest, _ := strings.Cut(string(body), "\x00")
				name, _, _ := strings.Cut(rest, "\x00")
				trip = append(trip, prepared[name])
			case messageQuery:
				t.note(strings.TrimRight(string(body), "\x00"))
			case messageSync:
				if len(trip) > 0 { // otherwise a statement was prepared
					t.note(strings.Join(trip, "; "))
				}
				trip = nil
			}
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

func (t *Trace) note(trip string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trips = append(t.trips, trip)
}
