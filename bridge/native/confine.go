package native

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// maxNeeds bounds the places that one command asks for.
const maxNeeds = 16

// guard is what a call may not touch where it works.
type guard struct {
	hide []string
	// protect is what stays as it is; nil for nothing.
	protect *commands.Set
	// closed returns names of the workspace that belong to another agent; nil for none.
	closed func(name string) bool
	// room is what the call may add; nil for any amount.
	room *tools.Room
	// only is the one name that it may; empty for all.
	only string
}

type guardKey struct{}

// guardOf is the guard of a call; the zero guard for none.
func guardOf(ctx context.Context) guard {
	g, _ := ctx.Value(guardKey{}).(guard)
	return g
}

// check returns why a path, links resolved, can't be touched.
func (g guard) check(rel string) error {
	switch {
	case g.only != "" && rel != g.only:
		return errTraversal()
	case !g.sees(rel):
		return errHidden(rel)
	case g.protect.Covers(rel):
		return tools.Errorf(tools.PermissionDenied, "Permission denied: %s is protected from changes", rel)
	}
	return nil
}

func errHidden(rel string) *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "Permission denied: %s is hidden", rel)
}

// sees reports whether a name of a folder is to be seen.
func (g guard) sees(rel string) bool {
	if g.closed != nil {
		if top, _, _ := strings.Cut(rel, "/"); top != "." && g.closed(top) {
			return false
		}
	}
	return !lies(rel, g.hide)
}

// guarding is a tool that sees of its workspace what its calls may see.
func guarding(run tools.Func) tools.Func {
	return func(ctx context.Context, c tools.Input) (tools.Output, error) {
		return run(context.WithValue(ctx, guardKey{}, guard{hide: c.Profile.Hide, closed: c.Closed, room: c.Room}), c)
	}
}

// lies reports whether a path is one of some, or lies in one.
func lies(rel string, paths []string) bool {
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(rel, p); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// confined is a file tool that keeps to the profiles of its calls.
func (f *files) confined(t tool) tool {
	run := t.run
	t.run = func(ctx context.Context, c tools.Input) (tools.Output, error) {
		g := guard{hide: c.Profile.Hide, closed: c.Closed, room: c.Room}
		if t.Mutates {
			if c.Profile.Mode == sandbox.ModeRead {
				return tools.Output{}, tools.Errorf(tools.PermissionDenied, "Permission denied: the profile %s lets nothing be changed", c.Profile.Name)
			}
			g.protect = f.follow.Set(c.Root, c.Profile.Protect)
		}
		name := c.String("path", "")
		if _, inside := inside(c.Root, name); inside || !path.IsAbs(name) || strings.IndexByte(name, 0) >= 0 || len(name) > MaxPathBytes {
			return run(context.WithValue(ctx, guardKey{}, g), c)
		}
		return elsewhere(ctx, c, name, t.Mutates, g, run)
	}
	return t
}

// elsewhere runs a file tool on a place outside of the workspace, if the profile gives it or
// a person does. home is what the call may not touch within.
func elsewhere(ctx context.Context, c tools.Input, name string, write bool, home guard, run tools.Func) (tools.Output, error) {
	place, err := real(name)
	if err != nil {
		return tools.Output{}, errTraversal()
	}
	if rel, ok := inside(c.Root, place); ok { // a link led back: hidden and protected paths there stay so from everywhere
		c.Args = maps.Clone(c.Args)
		c.Args["path"] = rel
		return run(context.WithValue(ctx, guardKey{}, home), c)
	}
	if err := reach(ctx, c, place, write); err != nil {
		return tools.Output{}, err
	}
	folder, base := place, "."
	if info, err := os.Lstat(place); err != nil || !info.IsDir() {
		folder, base = filepath.Split(place)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return tools.Output{}, failure(name, err)
	}
	defer root.Close()
	// A person may have taken their time, and the names may lead elsewhere by now.
	if !still(root, filepath.Clean(folder)) || !leads(name, place) {
		return tools.Output{}, errMoved(name)
	}
	g := guard{}
	if base != "." {
		g.only = base
	}
	c.Root, c.Args = root, maps.Clone(c.Args)
	c.Args["path"] = base
	out, err := run(context.WithValue(ctx, guardKey{}, g), c)
	if _, ok := out.Values["path"]; ok {
		out.Values["path"] = name
	}
	out.File, out.Written = "", nil // they speak of the workspace
	return out, err
}

// real is a place without links in its name. What is not there yet must lie in a folder that
// is.
func real(name string) (string, error) {
	place := filepath.Clean(name)
	found, err := filepath.EvalSymlinks(place)
	if errors.Is(err, fs.ErrNotExist) {
		var folder string
		if folder, err = filepath.EvalSymlinks(filepath.Dir(place)); err == nil {
			found = filepath.Join(folder, filepath.Base(place))
		}
	}
	return found, err
}

// still reports whether an open folder is the one at a path without links.
func still(root *os.Root, folder string) bool {
	opened, err := root.Stat(".")
	if err != nil {
		return false
	}
	there, err := os.Lstat(folder)
	return err == nil && os.SameFile(opened, there) && leads(folder, folder)
}

// leads reports whether a name leads to a place.
func leads(name, place string) bool {
	found, err := real(name)
	return err == nil && found == place
}

func errMoved(name string) *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "Permission denied: %s leads elsewhere than it did when it was asked for", name)
}

// reach returns nil when a call may read, or change, a place outside of the workspace: by its
// profile, or because a person allows it now.
func reach(ctx context.Context, c tools.Input, place string, write bool) error {
	what := policy.Capability{Kind: policy.KindRead, Name: place}
	switch {
	case c.Profile.Gives(place, write):
		return nil
	case write && c.Profile.Mode == sandbox.ModeRead:
		return tools.Errorf(tools.PermissionDenied, "Permission denied: the profile %s lets nothing be changed", c.Profile.Name)
	case write:
		what.Kind = policy.KindWrite
	}
	err := c.Need(ctx, what)
	if errors.Is(err, policy.ErrUnattended) {
		return errTraversal()
	}
	return err
}

// needs adds what a command asks for to what it may do: argument `needs`, whose lists read
// and write hold absolute places.
func needs(ctx context.Context, c tools.Input, p *sandbox.Policy) error {
	asked, _ := c.Args["needs"].(map[string]any)
	for _, l := range []struct {
		key string
		to  *[]string
	}{{policy.KindRead, &p.Read}, {policy.KindWrite, &p.Write}} {
		list, _ := asked[l.key].([]any)
		if len(list) > maxNeeds {
			return refuse("needs."+l.key, "has too many places")
		}
		for _, one := range list {
			name, _ := one.(string)
			if !path.IsAbs(name) || strings.IndexByte(name, 0) >= 0 || len(name) > MaxPathBytes {
				return refuse("needs."+l.key, "must hold absolute paths")
			}
			place, err := filepath.EvalSymlinks(name)
			if err != nil {
				return tools.Errorf(tools.NotFound, "File not found: %s", name)
			}
			if err := reach(ctx, c, place, l.key == policy.KindWrite); err != nil {
				return err
			}
			if !leads(name, place) {
				return errMoved(name)
			}
			*l.to = append((*l.to)[:len(*l.to):len(*l.to)], place)
		}
	}
	return nil
}
