package hand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// sheet is what a person is shown of a call: the arguments as the tool gets them, how and where
// it runs, and what the tool will use. It is read anew each time. The error is a *tools.Error
// where the call can't be shown, or could not run.
func (h *Hand) sheet(ctx context.Context, c *call, root *os.Root) (approval.Sheet, error) {
	s := approval.Sheet{Args: text.CanonicalJSON(c.args), Secrets: h.secrets.For(c.Scope.Tenant)}
	if _, own := h.Tools.Own(c.name()); !own || c.asItCame {
		s.Parts = []tools.PreviewPart{{Name: "call", Content: []byte("tool: " + c.name() + "\nruns: outside of this server, which does not confine it\n")}}
		if c.asItCame && !bytes.Equal(s.Args, c.Args) {
			s.Parts = append(s.Parts, tools.PreviewPart{Name: "arguments as they go out", Content: c.Args})
		}
		return s, s.Check()
	}
	if root == nil {
		var err error
		if root, err = h.Workspaces.Root(c.Scope); err != nil {
			return s, err
		}
	}
	profile, err := h.Policies.Resolve(c.Scope, c.name(), root)
	if err != nil {
		return s, &tools.Error{Code: tools.PermissionDenied, Message: "Permission denied: " + err.Error(), Cause: err}
	}
	s.Parts = []tools.PreviewPart{{Name: "call", Content: []byte(describe(c, root, profile))}}
	in := h.input(c, root)
	in.Profile = profile
	parts, err := c.tool.Preview(ctx, in)
	if err != nil {
		return s, err
	}
	s.Parts = append(s.Parts, parts...)
	return s, s.Check()
}

// describe says how and where a call of a tool of the server runs.
func describe(c *call, root *os.Root, p policy.Profile) string {
	var b strings.Builder
	line := func(name string, values ...string) {
		if len(values) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(values, ", "))
		}
	}
	quoted := func(list []string) (out []string) {
		for _, one := range list {
			out = append(out, fmt.Sprintf("%q", one))
		}
		return out
	}
	line("tool", c.name())
	line("workspace", fmt.Sprintf("%q", root.Name()))
	if c.tool.Descriptor().Workspace {
		line("profile", fmt.Sprintf("%q, mode %s", p.Name, p.Mode))
		line("may read", quoted(p.Read)...)
		line("may change", quoted(p.Write)...)
		line("environment", slices.Sorted(maps.Keys(p.Environment))...)
		line("network", network(p)...)
	}
	return b.String()
}

// network is what a profile lets programs reach without asking.
func network(p policy.Profile) []string {
	switch p.Mode {
	case sandbox.ModeOpen:
		return []string{"every public host"}
	case sandbox.ModeOff:
		return []string{"everything that this machine reaches"}
	case sandbox.ModeNet:
	default:
		return []string{"none"}
	}
	var hosts []string
	for _, rule := range p.Hosts {
		host := rule.Host
		if len(rule.Ports) > 0 {
			host += fmt.Sprintf(" ports %v", rule.Ports)
		}
		if len(rule.Methods) > 0 {
			host += " " + strings.Join(rule.Methods, "/")
		}
		if len(rule.Paths) > 0 {
			host += fmt.Sprintf(" paths %q", rule.Paths)
		}
		if rule.Secret != nil {
			host += " with the secret " + rule.Secret.Env
		}
		hosts = append(hosts, host)
	}
	return append(hosts, "others ask a person")
}

// unchanged returns why a call that a person approved may not run: something of what they were
// shown is no longer the same. Nil for one without a question.
func (h *Hand) unchanged(ctx context.Context, c *call, root *os.Root) *tools.Error {
	if c.shown == nil {
		return nil
	}
	differs, again := "workspace", "; call again to ask anew"
	s, err := h.sheet(ctx, c, root)
	if failure, ok := errors.AsType[*tools.Error](err); ok {
		again = ": " + failure.Message + again
	}
	if err == nil {
		if differs = c.shown.Differs(s); differs == "" {
			return nil
		}
	}
	return tools.Errorf(tools.PermissionDenied, "Permission denied: the approved content has changed since it was shown (%s)%s", differs, again)
}
