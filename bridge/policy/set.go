package policy

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Limits of what an operator writes: calls go through it.
const (
	MaxProfiles = 1000
	MaxBindings = 1000
	// MaxHosts bounds the rules of one profile, MaxPlaces each of its lists of places.
	MaxHosts  = 1000
	MaxPlaces = 256
)

// The keys of an operator's file that are of this package.
const (
	profileKey = "profile"
	bindKey    = "bind"

	builtinPrefix = "builtin:"
)

// Keys are the tables of an operator's file that Parse reads. It leaves the others alone.
func Keys() []string { return []string{profileKey, bindKey} }

// Options says what profiles may hold. Zero fields mean the defaults.
type Options struct {
	// Forbidden are absolute places that no profile may give: what of the server is there,
	// such as its data and its credentials. Default: none.
	Forbidden []string
	// Read are further places that every profile gives.
	Read []string
	// Protect are further paths of the workspace that no profile changes.
	Protect []string
	// AllowOff lets profiles have the mode off.
	AllowOff bool
	// Home is what ~ stands for. Default: it has no meaning.
	Home string
	// Getenv reads a variable of the server, for environment = { NAME = "env:NAME" }.
	// Default: it has none.
	Getenv func(name string) string
}

// Set is what an operator wrote. It does not change.
type Set struct {
	profiles  map[string]Profile
	bindings  []Binding
	forbidden []string
	asks      bool // a binding says something of approval
}

// Refuses says why no person can allow a capability; empty when a person may.
func (s *Set) Refuses(c Capability) string {
	if c.Kind != KindRead && c.Kind != KindWrite {
		return ""
	}
	return gives(c.Name, s.forbidden)
}

// NewSet is the Set of an operator who wrote nothing.
func NewSet() *Set {
	set, err := Parse("", nil, nil)
	if err != nil {
		panic(err) // there is nothing in it that could be wrong
	}
	return set
}

// Names are the names of the profiles, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.profiles)) }

// Profile is the profile of a name; false for none.
func (s *Set) Profile(name string) (Profile, bool) {
	p, ok := s.profiles[name]
	return p, ok
}

// Bindings returns the operator's bindings, in their order. Callers must not change them.
func (s *Set) Bindings() []Binding { return s.bindings }

// Parse reads the profiles and bindings of a settings file. All errors are *FileError: they
// name file, line and key, and the allowed values.
func Parse(file string, written []byte, opts *Options) (*Set, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	var read struct {
		Profile map[string]rawProfile `toml:"profile"`
		Bind    []binding             `toml:"bind"`
	}
	d := newDocument(file, written)
	if err := d.decode(&read, func(key []string) bool { return slices.Contains(Keys(), key[0]) }); err != nil {
		return nil, err
	}
	if len(read.Profile) > MaxProfiles {
		return nil, d.fault(profileKey, "has %d profiles, at most %d are taken", len(read.Profile), MaxProfiles)
	}
	r := resolver{document: d, opts: o, tables: read.Profile, done: Builtin(), open: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(read.Profile)) {
		delete(r.done, name)
	}
	for _, name := range slices.Sorted(maps.Keys(read.Profile)) {
		if _, err := r.profile(name); err != nil {
			return nil, err
		}
	}
	for name, p := range r.done {
		p.Read, p.Protect = added(p.Read, o.Read...), added(p.Protect, o.Protect...)
		r.done[name] = p
	}
	s := &Set{profiles: r.done, forbidden: o.Forbidden}
	if err := s.bind(d, read.Bind); err != nil {
		return nil, err
	}
	return s, nil
}

// bind takes the bindings over.
func (s *Set) bind(d document, list []binding) error {
	if len(list) > MaxBindings {
		return d.fault(bindKey, "has %d bindings, at most %d are taken", len(list), MaxBindings)
	}
	for i, one := range list {
		b, key := Binding(one), fmt.Sprintf("%s[%d]", bindKey, i)
		if problem := b.Approval.check(); problem != "" {
			return d.fault(key+".approval", "%s", problem)
		}
		if _, ok := s.profiles[b.Profile]; b.Profile != "" && !ok {
			return d.fault(key+".profile", "there is no profile %q, nearest is %q; there are %s", b.Profile, text.Nearest(b.Profile, s.Names()), strings.Join(s.Names(), ", "))
		}
		for field, pattern := range map[string]string{"tenant": b.Tenant, "agent": b.Agent, "tool": b.Tool} {
			if at := strings.IndexByte(pattern, '*'); at >= 0 && at != len(pattern)-1 {
				return d.fault(key+"."+field, "pattern %q has a * that is not its end", pattern)
			}
		}
		s.bindings, s.asks = append(s.bindings, b), s.asks || b.Approval != ""
	}
	return nil
}

// resolver resolves the profiles of a file.
type resolver struct {
	document
	opts   Options
	tables map[string]rawProfile
	done   map[string]Profile
	open   map[string]bool // profiles being resolved
	chain  []string        // in their order
}

// profile resolves a profile, after the one that it extends.
func (r *resolver) profile(name string) (Profile, error) {
	if p, ok := r.done[name]; ok {
		return p, nil
	}
	key := joined(profileKey, name)
	t := r.tables[name]
	if name == "" || strings.ContainsAny(name, ":&. ") {
		return Profile{}, r.fault(key, "%q is no name for a profile: it must not be empty or hold : & . or a space", name)
	}
	if r.open[name] {
		at := slices.Index(r.chain, name)
		return Profile{}, r.fault(key+".extends", "goes in a circle: %s", strings.Join(append(slices.Clone(r.chain[at:]), name), " extends "))
	}
	r.open[name], r.chain = true, append(r.chain, name)
	base, err := r.base(key, name, t.Extends)
	if err != nil {
		return Profile{}, err
	}
	p, err := r.extend(base, key, t)
	if err != nil {
		return Profile{}, err
	}
	p.Name = name
	r.done[name], r.open[name], r.chain = p, false, r.chain[:len(r.chain)-1]
	return p, nil
}

// base is what a profile extends. Default builtin:work.
func (r *resolver) base(key, name, extends string) (Profile, error) {
	if extends == "" {
		extends = builtinPrefix + Default
	}
	if short, ok := strings.CutPrefix(extends, builtinPrefix); ok {
		if p, ok := Builtin()[short]; ok {
			return p, nil
		}
	} else if _, ok := r.tables[extends]; ok {
		return r.profile(extends)
	} else if p, ok := r.done[extends]; ok {
		return p, nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.tables)), func(other string) bool { return other == name })
	for _, short := range slices.Sorted(maps.Keys(Builtin())) {
		names = append(names, builtinPrefix+short)
	}
	return Profile{}, r.fault(key+".extends", "there is no profile %q, nearest is %q; there are %s", extends, text.Nearest(extends, names), strings.Join(names, ", "))
}

// extend lays a table over a profile: lists are added to, all else replaces what was there.
func (r *resolver) extend(p Profile, key string, t rawProfile) (Profile, error) {
	if err := r.mode(&p, key, t); err != nil {
		return p, err
	}
	for field, to := range map[string]*[]string{"read": &p.Read, "write": &p.Write} {
		list := map[string][]string{"read": t.Read, "write": t.Write}[field]
		for _, written := range list {
			place, problem := absolute(written, r.opts.Home)
			if problem == "" {
				problem = gives(place, r.opts.Forbidden)
			}
			if problem != "" {
				return p, r.fault(key+"."+field, "%q %s", written, problem)
			}
			*to = added(*to, place)
		}
		if len(*to) > MaxPlaces {
			return p, r.fault(key+"."+field, "has more than %d places", MaxPlaces)
		}
	}
	if len(t.Write) > 0 && p.Mode == sandbox.ModeRead {
		return p, r.fault(key+".write", "means nothing in mode read")
	}
	if err := r.inside(&p, key, t); err != nil {
		return p, err
	}
	for i, one := range t.Allow {
		h, err := r.host(fmt.Sprintf("%s.allow[%d]", key, i), one)
		if err != nil {
			return p, err
		}
		p.Hosts = append(slices.Clone(p.Hosts), h)
	}
	if len(p.Hosts) > MaxHosts {
		return p, r.fault(key+".allow", "has more than %d rules", MaxHosts)
	}
	if err := r.environment(&p, key, t.Environment); err != nil {
		return p, err
	}
	if t.Limits != nil {
		for _, b := range bounds(*t.Limits, &p) {
			if err := b.set(r.document, key+".limits", false); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// mode reads the mode. Rules for hosts need one that has a network: without a word they
// bring net.
func (r *resolver) mode(p *Profile, key string, t rawProfile) error {
	if t.Mode == nil {
		if len(t.Allow) > 0 && rank(p.Mode) < rankNet {
			p.Mode = sandbox.ModeNet
		}
		return nil
	}
	p.Mode = sandbox.Mode(*t.Mode)
	switch {
	case rank(p.Mode) == 0:
		return r.fault(key+".mode", "%q is not read, work, net, open or off", *t.Mode)
	case p.Mode == sandbox.ModeOff && !r.opts.AllowOff:
		return r.fault(key+".mode", "off leaves the sandbox, which the operator must allow: start the server with --sandbox-allow-off")
	case len(t.Allow) > 0 && rank(p.Mode) < rankNet:
		return r.fault(key+".allow", "means nothing in mode %s: it needs net or open", p.Mode)
	}
	return nil
}

// inside reads the lists of paths in the workspace.
func (r *resolver) inside(p *Profile, key string, t rawProfile) error {
	lists := []struct {
		field   string
		written []string
		to      *[]string
	}{{"protect", t.Protect, &p.Protect}, {"hide", t.Hide, &p.Hide}}
	for _, l := range lists {
		for _, written := range l.written {
			path, problem := within(written)
			if problem != "" {
				return r.fault(key+"."+l.field, "%q %s", written, problem)
			}
			*l.to = added(*l.to, path)
		}
		if len(*l.to) > MaxPlaces {
			return r.fault(key+"."+l.field, "has more than %d paths", MaxPlaces)
		}
	}
	if t.HideBestEffort != nil {
		p.HideBestEffort = *t.HideBestEffort
	}
	return nil
}

// environment reads variables. env:NAME is that of the server.
func (r *resolver) environment(p *Profile, key string, written map[string]string) error {
	if len(written) == 0 {
		return nil
	}
	all := maps.Clone(p.Environment)
	if all == nil {
		all = map[string]string{}
	}
	for name, value := range written {
		at := key + ".environment." + name
		if !isVariable(name) {
			return r.fault(at, "%q is not the name of a variable", name)
		}
		if from, ok := strings.CutPrefix(value, "env:"); ok {
			if value = r.opts.Getenv(from); value == "" {
				return r.fault(at, "the server has no variable %s", from)
			}
		}
		if strings.IndexByte(value, 0) >= 0 {
			return r.fault(at, "holds NUL")
		}
		all[name] = value
	}
	p.Environment = all
	return nil
}

// gives returns the forbidden path that a place would expose; empty for none.
func gives(place string, forbidden []string) string {
	for _, mine := range forbidden {
		if real, err := filepath.EvalSymlinks(mine); err == nil {
			mine = real
		}
		if below(mine, place) || below(place, mine) {
			return "would give away what is the server's own"
		}
	}
	return ""
}
