package policy

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/stamp"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxParents bounds the agents above one.
	maxParents = 64
	// maxWorkspaces bounds the workspaces whose files are kept as they were read.
	maxWorkspaces = 10_000
)

// ErrFile: a workspace's file can't be used. Nothing may be done in it until it is mended.
var ErrFile = errors.New("policy: the workspace's " + File + " can't be used")

// ResolverOptions adjusts a Resolver. Nil and zero fields mean the defaults.
type ResolverOptions struct {
	// Parent is the agent above another one of its tenant; empty for none. Default: no
	// agent has one.
	Parent func(tenant, agent string) string
	// Bound is the name of a profile that bounds an agent in addition to what is bound to it; empty
	// for none. Where no profile has that name, ReadOnly bounds it. Default: there is none.
	Bound func(tenant, agent string) string
	// Logger logs keys that were refused. Default silent.
	Logger *slog.Logger
}

// Resolver finds the profiles of calls. It is safe for concurrent use.
type Resolver struct {
	set    *Set
	parent func(tenant, agent string) string
	bound  func(tenant, agent string) string
	logger *slog.Logger

	mu    sync.Mutex
	files map[string]file // by the name of the workspace; guarded by mu
}

// file is that of a workspace, as it was read last.
type file struct {
	stamp stamp.Stamp
	table rawProfile
	doc   document
	err   error
}

// NewResolver returns a resolver for what an operator wrote.
func NewResolver(set *Set, opts *ResolverOptions) *Resolver {
	r := &Resolver{
		set: set, parent: nobody, bound: nobody, logger: slog.New(slog.DiscardHandler), files: map[string]file{},
	}
	if opts != nil && opts.Parent != nil {
		r.parent = opts.Parent
	}
	if opts != nil && opts.Bound != nil {
		r.bound = opts.Bound
	}
	if opts != nil && opts.Logger != nil {
		r.logger = opts.Logger
	}
	return r
}

func nobody(string, string) string { return "" }

// Set is what the operator wrote.
func (r *Resolver) Set() *Set { return r.set }

// Approvals say which calls of an agent's tool need approval: a child's rules are at least as
// strict as its ancestors' rules.
func (r *Resolver) Approvals(scope kv.Scope, tool string) Approvals {
	all := Approvals{r.set.Approval(scope.Tenant, scope.Owner, tool)}
	if !r.set.asks {
		return all // no agent is bound to another profile: agents above make no difference
	}
	for _, parent := range r.Above(scope) {
		if theirs := r.set.Approval(scope.Tenant, parent, tool); !slices.Contains(all, theirs) {
			all = append(all, theirs)
		}
	}
	return all
}

// Above are the agents above one, the nearest first.
func (r *Resolver) Above(scope kv.Scope) []string {
	chain := []string{scope.Owner}
	for len(chain) <= maxParents {
		parent := r.parent(scope.Tenant, chain[len(chain)-1])
		if parent == "" || slices.Contains(chain, parent) {
			break
		}
		chain = append(chain, parent)
	}
	return chain[1:]
}

// Resolve returns what a call of an agent's tool may do in a workspace. The error is an
// ErrFile.
func (r *Resolver) Resolve(scope kv.Scope, tool string, root *os.Root) (Profile, error) {
	p, _, err := r.Explain(scope, tool, root)
	return p, err
}

// Explain is Resolve, and says which keys of the workspace's file were refused.
func (r *Resolver) Explain(scope kv.Scope, tool string, root *os.Root) (Profile, []Refusal, error) {
	p := r.operators(scope, tool)
	f, fresh := r.workspace(root)
	if f.err != nil || f.stamp == (stamp.Stamp{}) {
		return p, nil, f.err
	}
	n := narrowing{document: f.doc, p: p}
	if err := n.narrow(f.table); err != nil {
		return Profile{Name: p.Name}, nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if fresh {
		for _, one := range n.refused {
			r.logger.Warn("a key of a workspace's file gives more than the operator, and changes nothing",
				"workspace", root.Name(), "line", one.Line, "key", one.Key, "reason", one.Reason, "profile", p.Name)
		}
	}
	return n.p, n.refused, nil
}

// operators is the profile that the operator gives: at most that of every agent above.
func (r *Resolver) operators(scope kv.Scope, tool string) Profile {
	p := r.bounded(scope.Tenant, scope.Owner, r.set.For(scope.Tenant, scope.Owner, tool))
	for _, parent := range r.Above(scope) {
		if theirs := r.set.For(scope.Tenant, parent, tool); theirs.Name != p.Name {
			p = p.AtMost(theirs)
		}
		p = r.bounded(scope.Tenant, parent, p)
	}
	return p
}

// bounded is at most what an agent was bounded to, say when it was spawned.
func (r *Resolver) bounded(tenant, agent string, p Profile) Profile {
	name := r.bound(tenant, agent)
	if name == "" || name == p.Name {
		return p
	}
	bound, ok := r.set.Profile(name)
	if !ok {
		bound, _ = r.set.Profile(ReadOnly)
	}
	return p.AtMost(bound)
}

// workspace is the file of a workspace as it is now, and whether it was read just now.
func (r *Resolver) workspace(root *os.Root) (file, bool) {
	if root == nil {
		return file{}, false
	}
	seen, err := look(root)
	if err != nil {
		return file{err: fmt.Errorf("%w: it %w", ErrFile, err)}, true
	}
	if seen == (stamp.Stamp{}) {
		return file{}, false
	}
	r.mu.Lock()
	known, ok := r.files[root.Name()]
	r.mu.Unlock()
	if ok && known.stamp == seen {
		return known, false
	}
	f := readFile(root, seen)
	if f.err != nil {
		r.logger.Warn("a workspace's file can't be used: its tools are denied", "workspace", root.Name(), "error", f.err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.files) >= maxWorkspaces {
		clear(r.files)
	}
	r.files[root.Name()] = f
	return f, true
}

func readFile(root *os.Root, seen stamp.Stamp) file {
	written, err := read(root, seen)
	if err != nil {
		return file{err: fmt.Errorf("%w: it %w", ErrFile, err)} // not kept: it may be mended meanwhile
	}
	f := file{stamp: seen, doc: newDocument(File, written)}
	if err := f.doc.decode(&f.table, func([]string) bool { return true }); err != nil {
		f.err = fmt.Errorf("%w: %w", ErrFile, err)
	}
	return f
}
