package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/passage"
)

// Options are what the sources of prompts work on. Store, Tiers and Terms are required.
type Options struct {
	Store PlaybookStore
	Tiers Tiers
	// Messages has the direct messages of agents. Nil: there are none.
	Messages *messages.Box
	Terms    Terms
	// Workspaces are where AGENTS.md is. Nil: it is not read.
	Workspaces Workspaces
	// StoreDir is the directory of the store, which is never read; empty is none.
	StoreDir string
	// Parent returns the agent that started another. Nil: no agent has one.
	Parent func(ctx context.Context, scope kv.Scope) string
	// Base is asked for knowledge in place of records. Nil: records are.
	Base *Endpoint
	// Logger logs what fails in the background. Default silent.
	Logger *slog.Logger
}

// Refusal says why prompts must not show the memory of their user: the agent may not read
// it, or that can't be found out.
func Refusal(from *grants.Store) func(ctx context.Context, a *gather.Ask) string {
	return func(ctx context.Context, a *gather.Ask) string {
		scope, named := userScope(a)
		if !named {
			return ""
		}
		_, err := from.Need(ctx, scope, a.Scope.Owner, grants.Read)
		switch {
		case err == nil:
			return ""
		case errors.Is(err, grants.ErrDenied):
			return fmt.Sprintf("agent %q has no read access to the memory of user %q (ACCESS_DENIED), so nothing of it is shown", a.Scope.Owner, scope.Owner)
		}
		return "whether the agent may read the memory of the user can't be found out, so nothing of it is shown"
	}
}

// Sources are all sources of prompts. Close them after their users.
type Sources struct {
	all       []gather.Source
	playbooks *Playbooks
	tasks     *Tasks
	base      *Endpoint
	agents    *AgentsFiles // nil where AGENTS.md is not read
}

// New returns the sources.
func New(o Options) (*Sources, error) {
	files, err := native.NewReader(o.StoreDir)
	if err != nil {
		return nil, err
	}
	playbooks := NewPlaybooks(o.Store, o.Logger)
	tasks := &Tasks{Tiers: o.Tiers, Messages: o.Messages, Parent: o.Parent, Terms: o.Terms}
	var agents *AgentsFiles
	if o.Workspaces != nil {
		agents = NewAgentsFiles(o.Workspaces, files)
	}
	return &Sources{playbooks: playbooks, tasks: tasks, base: o.Base, agents: agents, all: []gather.Source{
		&Skills{Store: o.Store},
		&Notes{Store: o.Store, Terms: o.Terms, Agents: agents},
		&UserMemory{Store: o.Store, Terms: o.Terms, Memo: passage.NewMemo()},
		&Knowledge{Store: o.Store, Terms: o.Terms, Base: o.Base},
		playbooks,
		tasks,
	}}, nil
}

// AgentsFiles are the AGENTS.md that the sources read; nil where they read none.
func (s *Sources) AgentsFiles() *AgentsFiles { return s.agents }

// All are the sources, in the order in which what they find is registered.
func (s *Sources) All() []gather.Source { return s.all }

// Foresee adds what the sources read for a session's prompt, at the least.
func (s *Sources) Foresee(along *kv.Reads, scope kv.Scope, sessionID string) {
	s.playbooks.store.Foresee(along, scope)
	s.tasks.foresee(along, scope, sessionID)
}

// Close ends the work in the background, and closes the base.
func (s *Sources) Close() error {
	err := s.playbooks.Close()
	if s.base != nil {
		err = errors.Join(err, s.base.Close())
	}
	return err
}
