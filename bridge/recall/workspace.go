package recall

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// methodAgents is the method of the calls that read AGENTS.md at another server.
	methodAgents = "agents.md"
	// agentsWait bounds how long a prompt waits for another server.
	agentsWait = time.Second
	// agentsFresh is how long it is remembered where a workspace is, and what another server
	// said: a prompt may show what was written there by so much later.
	agentsFresh = 2 * time.Second
	// maxAgentsKept bounds the workspaces of which that is remembered.
	maxAgentsKept = 256
)

// Head is the beginning of a file.
type Head struct {
	Text []byte
	// Size is that of the whole file; negative where there is none.
	Size int64
}

// AgentsFiles reads the AGENTS.md of workspaces, at the server that has them. All methods
// are safe for concurrent use.
type AgentsFiles struct {
	workspaces Workspaces
	files      *native.Reader

	mu     sync.Mutex
	places *places.Places          // guarded by mu; nil where all workspaces are here
	kept   map[kv.Scope]keptAgents // guarded by mu
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
	return &AgentsFiles{workspaces: workspaces, files: files, kept: make(map[kv.Scope]keptAgents)}
}

// Join reads from now on at other servers, too, and answers them. A nil Places changes
// nothing.
func (a *AgentsFiles) Join(p *places.Places) {
	if p == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.places = p
	p.Serve(methodAgents, a.answer)
}

// Known reports whether Head asks no other server, nor the store.
func (a *AgentsFiles) Known(scope kv.Scope) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.places == nil || time.Now().Before(a.kept[scope].until)
}

// Head returns the beginning of the AGENTS.md of an agent's workspace.
func (a *AgentsFiles) Head(ctx context.Context, scope kv.Scope) (Head, error) {
	a.mu.Lock()
	p, kept := a.places, a.kept[scope]
	a.mu.Unlock()
	switch {
	case p == nil:
		return a.here(ctx, scope)
	case !time.Now().Before(kept.until):
		if kept = a.look(ctx, p, scope); ctx.Err() != nil {
			return Head{}, ctx.Err() // it is no word of the other server
		}
		kept.until = time.Now().Add(agentsFresh)
		a.keep(scope, kept)
	}
	if kept.here {
		return a.here(ctx, scope)
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
func (a *AgentsFiles) look(ctx context.Context, p *places.Places, scope kv.Scope) keptAgents {
	ctx, cancel := context.WithTimeout(ctx, agentsWait)
	defer cancel()
	at, err := p.Look(ctx, scope)
	if err != nil {
		return keptAgents{err: err}
	}
	if at.IsZero() {
		return keptAgents{here: true}
	}
	head, err := a.ask(ctx, p, at, scope)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the server that has the workspace does not answer within %v", agentsWait)
	}
	return keptAgents{head: head, err: err}
}

// here reads in the workspaces of this server.
func (a *AgentsFiles) here(ctx context.Context, scope kv.Scope) (Head, error) {
	root, err := a.workspaces.RootIn(ctx, scope)
	if err != nil {
		return Head{}, errors.New("the workspace can't be opened")
	}
	text, info, err := a.files.Head(ctx, root, agentsFile, settings.MaxAgentsBytes)
	var failed *tools.Error
	switch {
	case errors.As(err, &failed) && failed.Code == tools.NotFound:
		return Head{Size: -1}, nil
	case err != nil:
		return Head{}, err
	}
	return Head{Text: text, Size: info.Size()}, nil
}

// Fields of a call, and of its answer.
const (
	fieldTenant = iota + 1
	fieldAgent
	fieldText
	fieldSize // plus one, so that zero is a file that is not there
	fieldProblem
)

// ask reads at another server.
func (a *AgentsFiles) ask(ctx context.Context, p *places.Places, at mesh.Peer, scope kv.Scope) (head Head, err error) {
	call := wire.AppendText(wire.AppendText(nil, fieldTenant, scope.Tenant), fieldAgent, scope.Owner)
	answer, err := p.Forward(ctx, scope, at, methodAgents, call)
	if err != nil {
		return Head{}, err
	}
	head.Size = -1
	for f, err := range wire.Fields(answer) {
		switch {
		case err != nil:
			return Head{}, fmt.Errorf("recall: answer: %w", err)
		case f.Number == fieldProblem:
			return Head{}, errors.New(string(f.Bytes))
		case f.Number == fieldText:
			head.Text = f.Bytes[:min(len(f.Bytes), settings.MaxAgentsBytes)]
		case f.Number == fieldSize:
			head.Size = int64(min(f.Value, 1<<62)) - 1
		}
	}
	return head, nil
}

// answer does what another server asks.
func (a *AgentsFiles) answer(ctx context.Context, call []byte) []byte {
	var tenant, agent string
	for f, err := range wire.Fields(call) {
		if err != nil {
			return wire.AppendItem(nil, fieldProblem, err.Error())
		}
		switch f.Number {
		case fieldTenant:
			tenant = string(f.Bytes)
		case fieldAgent:
			agent = string(f.Bytes)
		}
	}
	head, err := a.here(ctx, kv.AgentScope(tenant, agent))
	if err != nil {
		return wire.AppendItem(nil, fieldProblem, err.Error())
	}
	return wire.AppendUint(wire.AppendItem(nil, fieldText, head.Text), fieldSize, uint64(head.Size+1))
}
