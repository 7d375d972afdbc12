package egress

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// ForCall returns the policy of a tool call: its profile's network, if it has one, else
// otherwise. A person may be asked about other hosts.
func ForCall(in tools.Input, otherwise Policy) Policy {
	p := otherwise
	switch in.Profile.Mode {
	case sandbox.ModeNet, sandbox.ModeOpen, sandbox.ModeOff:
		p = FromProfile(in.Profile)
	}
	p.Ask = func(ctx context.Context, host string) error {
		return in.Need(ctx, policy.Capability{Kind: policy.KindHost, Name: host})
	}
	return p
}

// CallerOf is whose a call of a tool is.
func CallerOf(in tools.Input) Caller {
	return Caller{Tenant: in.Scope.Tenant, Agent: in.Scope.Owner, Session: in.SessionID, CallID: in.CallID, Tool: in.Tool}
}

// FromProfile is what a profile lets calls reach: the hosts of mode net, every public host
// in mode open, and otherwise nothing.
func FromProfile(p policy.Profile) Policy {
	out := Policy{Name: p.Name}
	switch p.Mode {
	case sandbox.ModeOpen, sandbox.ModeOff:
		out.Open = true
	case sandbox.ModeNet:
	default:
		return out
	}
	for _, h := range p.Hosts {
		r := Rule{Host: h.Host, Ports: h.Ports, Methods: h.Methods, Paths: h.Paths, Address: h.Address}
		if h.Secret != nil {
			r.Secret = &Secret{Env: h.Secret.Env, From: h.Secret.From, Header: h.Secret.Header}
		}
		out.Rules = append(out.Rules, r)
	}
	return out
}

// Know passes the secret value of a variable, as it was read, to Secrets.
func (o *Options) Know(env, from, value string) {
	o.Secrets.Put("", "secret of egress, "+from, map[string]string{env: value})
}

// unsealed is the policy with the values of its secrets.
func (g *Gate) unsealed(p Policy) (Policy, error) {
	p.Rules = slices.Clone(p.Rules)
	for i, r := range p.Rules {
		if r.Secret == nil || r.Secret.Value != "" || r.Secret.From == "" {
			continue
		}
		if g.opts.Secret == nil {
			return p, fmt.Errorf("%w: the secret %s can't be read here", ErrPolicy, r.Secret.Env)
		}
		value, err := g.opts.Secret(r.Secret.From)
		if err != nil {
			return p, fmt.Errorf("%w: the secret %s can't be read: %w", ErrPolicy, r.Secret.Env, err)
		}
		g.opts.Know(r.Secret.Env, r.Secret.From, value)
		s := *r.Secret
		s.Value = value
		p.Rules[i].Secret = &s
	}
	return p, nil
}
