package loomv1

import (
	"strings"
	"sync"
)

// codeUnserved is the error code of features that this server does not have.
const codeUnserved = "UNIMPLEMENTED"

// maxTold bounds the agents that were told. Further agents are not told.
const maxTold = 4096

// unserved tells each agent once which requested features this server does not have.
// Users of `loom run` don't see the server's log, but they see what agents log.
type unserved struct {
	text string // empty when there is nothing to tell

	mu   sync.Mutex
	told map[string]bool // guarded by mu; by tenant and agent
}

func newUnserved(what []string) *unserved {
	return &unserved{text: strings.Join(what, "; "), told: map[string]bool{}}
}

// tell returns what an agent has not been told yet; empty for nothing.
func (u *unserved) tell(tenant, agent string) string {
	if u.text == "" {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	key := tenant + "\x00" + agent
	if u.told[key] || len(u.told) >= maxTold {
		return ""
	}
	u.told[key] = true
	return u.text
}
