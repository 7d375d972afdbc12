package pgtest

import (
	"bytes"
	"net"
	"net/url"
)

// Standby stands before a server and makes it look like a hot standby to who connects: it says
// that it recovers, and answers nothing.
type Standby struct {
	// Address is the server's address through it.
	Address string

	target   string
	listener net.Listener
}

// StartStandby starts one. The address must not ask for TLS.
func StartStandby(address string) (*Standby, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Standby{target: u.Host, listener: l}
	u.Host = l.Addr().String()
	s.Address = u.String()
	go s.serve()
	return s, nil
}

// Host is where it listens.
func (s *Standby) Host() string { return s.listener.Addr().String() }

// Close refuses further connections.
func (s *Standby) Close() error { return s.listener.Close() }

func (s *Standby) serve() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.session(client)
	}
}

// What a server reports when a session begins: message, length, name, value.
const (
	reportPrimary = "S\x00\x00\x00\x17in_hot_standby\x00off\x00"
	reportStandby = "S\x00\x00\x00\x16in_hot_standby\x00on\x00"
	// messagePassword is what a client sends to say who it is.
	messagePassword = 'p'
)

func (s *Standby) session(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", s.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		for buffer := make([]byte, 64<<10); ; { // a report comes in one piece
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			if _, err := client.Write(bytes.Replace(buffer[:n], []byte(reportPrimary), []byte(reportStandby), 1)); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for first := true; ; first = false {
		n, err := client.Read(buffer)
		if err != nil || !first && buffer[0] != messagePassword {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}
