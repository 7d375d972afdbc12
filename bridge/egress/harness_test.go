package egress_test

import (
	"io"
	"sync"
)

// lockedBuffer lets several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}
