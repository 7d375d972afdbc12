package recall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// agentsWait bounds how long a prompt waits for another server.
	agentsWait = time.Second
	// agentsFresh is how long the place of a workspace and another server's answer are
	// cached: prompts may show changes by that much later.
	agentsFresh = 2 * time.Second
	// maxAgentsKept bounds the workspaces of which that is remembered.
	maxAgentsKept = 256
)

// Head is the beginning of what the rule files of a workspace say: AGENTS.md, and the others
// behind it.
type Head struct {
	Text []byte
	// Size is that of all of them; negative where there is none.
	Size int64
	// Names are theirs.
	Names []string
}

// RemoteRead reads at the server that has the workspace of an agent, or says that it is here. It
// is asked for asked, the same scope.
type RemoteRead func(ctx context.Context, scope, asked kv.Scope) (head Head, here bool, err error)

// AgentsFiles reads the AGENTS.md of workspaces, at the server that has them. All methods
// are safe for concurrent use.
type AgentsFiles struct {
	workspaces Workspaces
	files      *native.Reader

	mu        sync.Mutex
	elsewhere RemoteRead              // guarded by mu; nil where all workspaces are here
	kept      map[kv.Scope]keptAgents // guarded by mu
	rules     map[kv.Scope]rules      // guarded by mu
}

// keptAgents is what was found out about an agent's workspace.
type keptAgents struct {
	until time.Time
	here  bool // so the file is read each time
	head  Head
	err   error
}

// NewAgentsFiles returns what reads in the workspaces of this server, until Join.
func NewAgentsFiles(workspaces Workspaces, files *native.Reader) *AgentsFiles {
	return &AgentsFiles{workspaces: workspaces, files: files, kept: make(map[kv.Scope]keptAgents), rules: make(map[kv.Scope]rules)}
}

// Join reads at other servers from now on.
func (a *AgentsFiles) Join(elsewhere RemoteRead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.elsewhere = elsewhere
}

// Known reports whether Head asks no other server, nor the store.
func (a *AgentsFiles) Known(scope kv.Scope) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.elsewhere == nil || time.Now().Before(a.kept[scope].until)
}

// Head returns the beginning of the AGENTS.md of an agent's workspace.
func (a *AgentsFiles) Head(ctx context.Context, scope kv.Scope) (Head, error) {
	a.mu.Lock()
	elsewhere, kept := a.elsewhere, a.kept[scope]
	a.mu.Unlock()
	switch {
	case elsewhere == nil:
		return a.Here(ctx, scope)
	case !time.Now().Before(kept.until):
		if kept = a.look(ctx, elsewhere, scope); ctx.Err() != nil {
			return Head{}, ctx.Err() // it is no word of the other server
		}
		kept.until = time.Now().Add(agentsFresh)
		a.keep(scope, kept)
	}
	if kept.here {
		return a.Here(ctx, scope)
	}
	return kept.head, kept.err
}

func (a *AgentsFiles) keep(scope kv.Scope, kept keptAgents) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.kept) >= maxAgentsKept {
		clear(a.kept)
	}
	a.kept[scope] = kept
}

// look finds out where a workspace is, and asks the server that has it.
func (a *AgentsFiles) look(ctx context.Context, elsewhere RemoteRead, scope kv.Scope) (kept keptAgents) {
	ctx, cancel := context.WithTimeout(ctx, agentsWait)
	defer cancel()
	kept.head, kept.here, kept.err = elsewhere(ctx, scope, scope)
	if errors.Is(kept.err, context.DeadlineExceeded) {
		kept.err = fmt.Errorf("the server that has the workspace does not answer within %v", agentsWait)
	}
	kept.head.Text = kept.head.Text[:min(len(kept.head.Text), settings.MaxAgentsBytes)]
	return kept
}

// Here reads in the workspaces of this server.
func (a *AgentsFiles) Here(ctx context.Context, scope kv.Scope) (Head, error) {
	root, err := a.workspaces.RootIn(ctx, scope)
	if err != nil {
		return Head{}, errors.New("the workspace can't be opened")
	}
	var agents Head
	said, info, err := a.files.Head(ctx, root, agentsFile, settings.MaxAgentsBytes)
	var failed *tools.Error
	switch {
	case errors.As(err, &failed) && failed.Code == tools.NotFound:
		agents.Size = -1
	case err != nil:
		return Head{}, err
	default:
		agents = Head{Text: said, Size: info.Size(), Names: []string{agentsFile}}
	}
	return a.withRules(ctx, scope, root, agents), nil
}

// withRules is an AGENTS.md with what it imports, and the other rule files behind it.
func (a *AgentsFiles) withRules(ctx context.Context, scope kv.Scope, root *os.Root, agents Head) Head {
	if bytes.IndexByte(agents.Text, 0) >= 0 {
		return agents
	}
	if bytes.HasPrefix(agents.Text, []byte("@")) || bytes.Contains(agents.Text, []byte("\n@")) {
		r := newRuleReader(ctx, a.files, root)
		r.seen[agentsFile] = true
		expanded := r.expand(string(agents.Text), agentsFile, 0)
		agents.Size += int64(len(expanded) - len(agents.Text))
		agents.Text, agents.Names = []byte(expanded), append(agents.Names, r.names...)
	}
	others := a.rulesOf(ctx, scope, root, string(agents.Text))
	if others.text != "" {
		agents.Size = max(agents.Size, 0) + int64(len(others.text))
		if len(agents.Text) > 0 {
			others.text = "\n" + others.text
		}
		agents.Text, agents.Names = append(agents.Text, others.text...), append(agents.Names, others.names...)
	}
	agents.Text = agents.Text[:min(len(agents.Text), settings.MaxAgentsBytes)]
	return agents
}
