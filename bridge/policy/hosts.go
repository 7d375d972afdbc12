package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// anyHost is the rule of mode open.
var anyHost = Host{Host: "*"}

// rules returns the rules of a profile, including its mode's.
func (p Profile) rules() []Host {
	switch rank(p.Mode) {
	case rankNet:
		return p.Hosts
	case rankOpen, rankOff:
		return append(slices.Clone(p.Hosts), anyHost)
	}
	return nil
}

// ports returns the ports of a rule.
func (h Host) ports() []int {
	if len(h.Ports) == 0 {
		return []int{80, 443}
	}
	return h.Ports
}

// HostMatches reports whether a name, in lower case, is one that a pattern means: the name
// itself, *. and the end of it, or * alone for all.
func HostMatches(pattern, name string) bool {
	if end, ok := strings.CutPrefix(pattern, "*"); ok {
		return end == "" || strings.HasSuffix(name, end) && len(name) > len(end)
	}
	return pattern == name
}

// covers reports whether all that another rule allows is allowed here, its secret aside.
func (h Host) covers(other Host) bool {
	within := func(wide, narrow []string, covers func(wide, narrow string) bool) bool {
		if len(wide) == 0 {
			return true
		}
		return len(narrow) > 0 && !slices.ContainsFunc(narrow, func(one string) bool {
			return !slices.ContainsFunc(wide, func(w string) bool { return covers(w, one) })
		})
	}
	ports := h.Host == "*" || !slices.ContainsFunc(other.ports(), func(port int) bool { return !slices.Contains(h.ports(), port) })
	return ports && (h.Host == other.Host || HostMatches(h.Host, other.Host)) && within(h.Methods, other.Methods, same) && within(h.Paths, other.Paths, begins)
}

func same(wide, narrow string) bool   { return wide == narrow }
func begins(wide, narrow string) bool { return strings.HasPrefix(narrow, wide) }

// both is the rule for what two rules allow; false for nothing.
func both(a, b Host) (Host, bool) {
	out := Host{}
	switch {
	case a.Host == b.Host, HostMatches(a.Host, b.Host):
		out.Host = b.Host
	case HostMatches(b.Host, a.Host):
		out.Host = a.Host
	default:
		return Host{}, false
	}
	// Mode open names no ports: the rule next to it does.
	switch {
	case a.Host == "*":
		out.Ports = b.Ports
	case b.Host == "*":
		out.Ports = a.Ports
	default:
		out.Ports = slices.DeleteFunc(slices.Clone(b.ports()), func(port int) bool { return !slices.Contains(a.ports(), port) })
		if len(out.Ports) == 0 {
			return Host{}, false
		}
	}
	if a.Address != "" && b.Address != "" && a.Address != b.Address {
		return Host{}, false
	}
	out.Address = cmp.Or(a.Address, b.Address)
	var ok bool
	if out.Methods, ok = narrower(a.Methods, b.Methods, same); !ok {
		return Host{}, false
	}
	if out.Paths, ok = narrower(a.Paths, b.Paths, begins); !ok {
		return Host{}, false
	}
	if a.Secret != nil && b.Secret != nil && *a.Secret == *b.Secret {
		out.Secret = a.Secret
	}
	return out, true
}

// narrower is what two lists allow, of which an empty one allows everything; false for
// nothing.
func narrower(a, b []string, covers func(wide, narrow string) bool) ([]string, bool) {
	if len(a) == 0 {
		return b, true
	}
	if len(b) == 0 {
		return a, true
	}
	var out []string
	for _, list := range [][2][]string{{b, a}, {a, b}} {
		for _, one := range list[0] {
			if !slices.Contains(out, one) && slices.ContainsFunc(list[1], func(wide string) bool { return covers(wide, one) }) {
				out = append(out, one)
			}
		}
	}
	return out, len(out) > 0
}

// commonHosts are the rules for what the rules of two profiles allow.
func commonHosts(a, b Profile) []Host {
	var out []Host
	for _, x := range a.rules() {
		for _, y := range b.rules() {
			if one, ok := both(y, x); ok && one.Host != "*" && len(out) < MaxHosts {
				out = append(out, one)
			}
		}
	}
	return out
}

// host reads a rule.
func (d document) host(key string, a allow) (Host, *FileError) {
	h := Host{Host: strings.ToLower(a.Host), Ports: a.Ports, Paths: a.Paths, Address: a.Address}
	name := strings.TrimPrefix(h.Host, "*.")
	if name == "" || strings.ContainsAny(name, "*/:@? \t") || !strings.Contains(name, ".") && name != "localhost" {
		return Host{}, d.fault(key+".host", "%q is not a name, such as api.github.com, or *. and the end of names", a.Host)
	}
	for _, port := range a.Ports {
		if port < 1 || port > 65535 {
			return Host{}, d.fault(key+".ports", "%d is not 1 to 65535", port)
		}
	}
	if a.Address != "" && !isAddress(a.Address) {
		return Host{}, d.fault(key+".address", "%q is not an address, such as 10.1.2.3 or 10.1.2.3:8443", a.Address)
	}
	for _, path := range a.Paths {
		if !strings.HasPrefix(path, "/") {
			return Host{}, d.fault(key+".paths", "%q does not begin with /", path)
		}
	}
	for _, method := range a.Methods {
		if method == "" || strings.ContainsFunc(method, func(c rune) bool { return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') }) {
			return Host{}, d.fault(key+".methods", "%q is not a method, such as GET", method)
		}
		h.Methods = append(h.Methods, strings.ToUpper(method))
	}
	if a.Secret != nil {
		s := Secret(*a.Secret)
		if problem := s.check(); problem != "" {
			return Host{}, d.fault(key+".secret", "%s", problem)
		}
		h.Secret = &s
	}
	return h, nil
}

// isAddress reports whether a text is an address, with a port or without.
func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	if err != nil {
		_, err = netip.ParseAddrPort(text)
	}
	return err == nil
}

func (s Secret) check() string {
	kind, rest, _ := strings.Cut(s.From, ":")
	switch {
	case !isVariable(s.Env):
		return fmt.Sprintf("env %q is not the name of a variable", s.Env)
	case kind != "env" && kind != "file" || rest == "" || kind == "file" && !strings.HasPrefix(rest, "/"):
		return fmt.Sprintf("from %q is not env:NAME or file:/path", s.From)
	case s.Header == "" || strings.ContainsAny(s.Header, ": \t\r\n"):
		return fmt.Sprintf("header %q is not the name of a header", s.Header)
	}
	return ""
}

// isVariable reports whether a name can be that of a variable.
func isVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) && (name[0] < '0' || name[0] > '9')
}
