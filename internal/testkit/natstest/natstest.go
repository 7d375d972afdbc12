// Package natstest starts a server of NATS that no bridge carries, for tests.
package natstest

import (
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startTimeout bounds how long a server may take until it answers.
const startTimeout = time.Minute

// Start starts a server on a free port of 127.0.0.1 and returns its URL, and what stops it.
func Start() (url string, stop func(), err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		return "", nil, err
	}
	s.Start()
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	if !s.ReadyForConnections(startTimeout) {
		stop()
		return "", nil, errors.New("natstest: the server is not ready")
	}
	return s.ClientURL(), stop, nil
}
