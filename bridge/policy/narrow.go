package policy

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

// The modes in the order of what they give.
const (
	rankRead = iota + 1
	rankWork
	rankNet
	rankOpen
	rankOff
)

// rank is the place of a mode in that order; 0 for none.
func rank(m sandbox.Mode) int {
	return 1 + slices.Index([]sandbox.Mode{sandbox.ModeRead, sandbox.ModeWork, sandbox.ModeNet, sandbox.ModeOpen, sandbox.ModeOff}, m)
}

// AtMost is what two profiles both give: what a child of an agent with the other one has.
func (p Profile) AtMost(other Profile) Profile {
	out := p
	if p.Name != other.Name {
		out.Name = p.Name + "&" + other.Name
	}
	if rank(other.Mode) < rank(p.Mode) {
		out.Mode = other.Mode
	}
	out.Write = shared(p.Write, other.Write)
	out.Read = nil
	for _, place := range shared(added(p.Read, p.Write...), added(other.Read, other.Write...)) {
		if !coveredBy(place, out.Write) {
			out.Read = append(out.Read, place)
		}
	}
	out.Protect, out.Hide = added(p.Protect, other.Protect...), added(p.Hide, other.Hide...)
	out.HideBestEffort = p.HideBestEffort && other.HideBestEffort
	out.Hosts = commonHosts(p, other)
	out.Environment = map[string]string{}
	for name, value := range p.Environment {
		if theirs, ok := other.Environment[name]; ok && theirs == value {
			out.Environment[name] = value
		}
	}
	out.Limits, out.Wall = least(p.Limits, other.Limits), shorter(p.Wall, other.Wall)
	return out
}

// narrowing lays a workspace's file over a profile.
type narrowing struct {
	document
	p       Profile
	refused []Refusal
}

// Refusal is a key of a workspace's file that would have given more. It changes nothing.
type Refusal struct {
	// Line is that of the key, from 1.
	Line int
	Key  string
	// Reason says what it would have given.
	Reason string
}

func (n *narrowing) refuse(key, reason string, args ...any) {
	e := n.fault(key, reason, args...)
	n.refused = append(n.refused, Refusal{e.Line, key, e.Problem})
}

// narrow returns what is left of a profile, and which keys were refused. An error is a
// *FileError about what is no narrowing at all.
func (n *narrowing) narrow(t rawProfile) error {
	if t.Extends != "" {
		n.refuse("extends", "a workspace's file has no profiles to extend")
	}
	if len(t.Environment) > 0 {
		n.refuse("environment", "sets variables, which gives programs more")
	}
	if t.HideBestEffort != nil && *t.HideBestEffort && !n.p.HideBestEffort {
		n.refuse("hide_best_effort", "lets programs run where nothing is hidden from them")
	} else if t.HideBestEffort != nil {
		n.p.HideBestEffort = *t.HideBestEffort
	}
	if t.Mode != nil {
		mode := sandbox.Mode(*t.Mode)
		switch {
		case rank(mode) == 0:
			return n.fault("mode", "%q is not read, work, net, open or off", *t.Mode)
		case rank(mode) > rank(n.p.Mode):
			n.refuse("mode", "%s gives more than %s, the mode of the profile %s", mode, n.p.Mode, n.p.Name)
		default:
			n.p.Mode = mode
		}
	}
	if err := n.inside(t); err != nil {
		return err
	}
	n.places("write", t.Write, n.p.Write, &n.p.Write)
	n.places("read", t.Read, added(n.p.Read, n.p.Write...), &n.p.Read)
	if err := n.hosts(t.Allow); err != nil {
		return err
	}
	if t.Limits != nil {
		return n.limits(*t.Limits)
	}
	return nil
}

// inside adds protected and hidden paths.
func (n *narrowing) inside(t rawProfile) error {
	for _, l := range []struct {
		field   string
		written []string
		to      *[]string
	}{{"protect", t.Protect, &n.p.Protect}, {"hide", t.Hide, &n.p.Hide}} {
		for _, written := range l.written {
			path, problem := within(written)
			if problem != "" {
				return n.fault(l.field, "%q %s", written, problem)
			}
			*l.to = added(*l.to, path)
		}
		if len(*l.to) > MaxPlaces {
			return n.fault(l.field, "has more than %d paths", MaxPlaces)
		}
	}
	return nil
}

// places limits the profile's places to the ones that the file names.
func (n *narrowing) places(key string, written, have []string, to *[]string) {
	if written == nil {
		return
	}
	var left []string
	for _, one := range written {
		place, problem := absolute(one, "")
		switch {
		case problem != "":
			n.refuse(key, "%q %s", one, problem)
			return
		case !coveredBy(place, have):
			n.refuse(key, "%q is no place that the profile %s gives", one, n.p.Name)
			return
		}
		left = added(left, place)
	}
	*to = left
}

// hosts limits the profile's hosts to the ones that the file names.
func (n *narrowing) hosts(list []allow) error {
	if list == nil {
		return nil
	}
	var left []Host
	for i, one := range list {
		key := fmt.Sprintf("allow[%d]", i)
		h, err := n.host(key, one)
		if err != nil {
			return err
		}
		switch {
		case h.Secret != nil:
			n.refuse(key+".secret", "a workspace's file gives no secrets")
			return nil
		case h.Address != "":
			n.refuse(key+".address", "a workspace's file does not say where a name leads")
			return nil
		case len(n.p.rules()) == 0 || !slices.ContainsFunc(n.p.rules(), func(have Host) bool { return have.covers(h) }):
			n.refuse(key, "%s is no host that the profile %s gives, or not in this way", h.Host, n.p.Name)
			return nil
		}
		left = append(left, h)
	}
	if rank(n.p.Mode) > rankNet {
		n.p.Hosts, n.p.Mode = commonHosts(n.p, Profile{Mode: sandbox.ModeNet, Hosts: left}), sandbox.ModeNet
		return nil
	}
	for i := range left { // what is left keeps the secrets of the profile
		for _, have := range n.p.Hosts {
			if left[i].Secret == nil && have.covers(left[i]) {
				left[i].Secret = have.Secret
			}
		}
	}
	n.p.Hosts = left
	return nil
}

// limits lowers limits.
func (n *narrowing) limits(l limits) error {
	for _, b := range bounds(l, &n.p) {
		wide := b.set(n.document, "limits", true)
		if wide == nil {
			continue
		}
		if wide.Problem != widensLimit {
			return wide
		}
		n.refused = append(n.refused, Refusal{wide.Line, wide.Key, wide.Problem})
	}
	return nil
}
