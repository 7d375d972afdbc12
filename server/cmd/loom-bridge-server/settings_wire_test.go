package main

import (
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// rawWire is an HTTP/2 connection that answers no ping.
type rawWire struct {
	conn   net.Conn
	framer *http2.Framer
	pings  atomic.Int64
	over   atomic.Bool
}

// wire opens a connection and greets, as far as HTTP/2 asks for it.
func (s *stand) wire() *rawWire {
	s.tb.Helper()
	conn, err := net.Dial("tcp", s.Address)
	must(s.tb, err)
	s.tb.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte(http2.ClientPreface))
	must(s.tb, err)
	w := &rawWire{conn: conn, framer: http2.NewFramer(conn, conn)}
	must(s.tb, w.framer.WriteSettings())
	return w
}

// read counts what comes until the server closes the connection.
func (w *rawWire) read() {
	for {
		frame, err := w.framer.ReadFrame()
		if err != nil {
			w.over.Store(true)
			return
		}
		if ping, ok := frame.(*http2.PingFrame); ok && !ping.IsAck() {
			w.pings.Add(1)
		}
	}
}

// pingOften pings as often as a server that expects less ends the connection, and
// returns how it did.
func (w *rawWire) pingOften() string {
	const pings = 5
	for range pings {
		if err := w.framer.WritePing(false, [8]byte{1}); err != nil {
			return err.Error()
		}
		for answered := false; !answered; {
			frame, err := w.framer.ReadFrame()
			switch f := frame.(type) {
			case *http2.PingFrame:
				answered = f.IsAck()
			case *http2.GoAwayFrame:
				return f.ErrCode.String()
			}
			if err != nil {
				return err.Error()
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "answered"
}
