package loomv1

import (
	"strings"
	"sync"
)

// codeUnserved is of what was asked for and is not served.
const codeUnserved = "UNIMPLEMENTED"

// maxTold bounds the agents that are remembered as told; more are not told.
const maxTold = 4096

// unservedTools are names that loom-py knows and this server does not have, by
// what serves them.
var unservedTools = map[string]string{
	"web:search":   "web tools",
	"web:fetch":    "web tools",
	"weather:get":  "web tools",
	"llm:generate": "models",
	"shell:run":    "shell tools",
}

// explained is what to say of a tool that there is not: its name and, where loom-py
// itself offers such a tool to models, why it is missing.
func explained(tool string) string {
	if kind, known := unservedTools[tool]; known {
		return tool + " (loom-bridge-server does not serve " + kind + " yet)"
	}
	return tool
}

// unserved tells each agent once what somebody asked for and does not get: whoever
// starts the server by `loom run` sees nothing of its log, but what agents log.
type unserved struct {
	text string // empty when there is nothing to tell

	mu   sync.Mutex
	told map[string]bool // guarded by mu; by tenant and agent
}

func newUnserved(what []string) *unserved {
	return &unserved{text: strings.Join(what, "; "), told: map[string]bool{}}
}

// tell returns what an agent is still to be told, or nothing.
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
