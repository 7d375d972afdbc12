package egress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"
)

// Limits of a policy.
const (
	// MaxRules bounds the rules of a policy: each request goes through them.
	MaxRules = 500
	// MaxRuleTexts bounds each list of a rule, and MaxRuleBytes each text in it.
	MaxRuleTexts = 200
	MaxRuleBytes = 1024
)

// defaultPorts are the ports of a rule without any.
var defaultPorts = []int{80, 443}

// Rule allows a host. Where it says nothing about ports, methods or paths, it allows ports
// 80 and 443, all methods and all paths.
type Rule struct {
	// Host is a name (api.example.com), all names below one (*.example.com), an address
	// (192.0.2.1), a range of them (10.0.0.0/8), or every public host (*). Required.
	Host string
	// Ports are the allowed ports. Default 80 and 443.
	Ports []int
	// Methods are the allowed methods of requests, such as GET. Default: all.
	Methods []string
	// Paths are beginnings of paths that requests may have, such as /repos/acme/.
	// Default: all.
	Paths []string
	// Address is the address to connect to instead of looking the name up, with or without
	// a port. It may be non-public.
	Address string
	// Private lets the name lead to a private network, or to this machine. Addresses that are
	// local to a link, where clouds serve secrets, are refused all the same.
	Private bool
	// Secret is what requests to the host carry. Default: none.
	Secret *Secret
}

// Secret is a value that a process never sees.
type Secret struct {
	// Env is the variable in which the process finds the placeholder.
	Env string
	// From says where the value is: env:NAME or file:/path. It is read for each session
	// that has no Value.
	From string
	// Header is the header in which a placeholder becomes the value.
	Header string
	// Value is the real one.
	Value string
}

// Policy is what a call may reach.
type Policy struct {
	// Name is that of the profile, for texts and the audit.
	Name string
	// Rules are what it allows. The first that matches a request decides about its secret
	// and its address.
	Rules []Rule
	// Open also allows every public host.
	Open bool
	// Ask asks a person about a host, such as api.example.com:443, that no rule allows. An
	// error says for a model why it is refused. Default nil: none is asked.
	Ask func(ctx context.Context, host string) error
	// Via is a proxy of the operator's through which requests of this process go. Names are
	// then looked up there. Default: none.
	Via *url.URL
	// AnswerTime is how long requests of this process wait for the header of an answer. Default
	// 5 minutes.
	AnswerTime time.Duration
}

// Allows reports whether a rule names the host and the port of a URL.
func (p Policy) Allows(u *url.URL) bool {
	t, err := targetOf(u.Scheme, u.Host)
	return err == nil && slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.allows(t) })
}

// ErrPolicy: a policy can't be kept.
var ErrPolicy = errors.New("egress: the policy is not well formed")

// Check returns an ErrPolicy that names what is wrong with the policy first.
func (p Policy) Check() error {
	if len(p.Rules) > MaxRules {
		return fmt.Errorf("%w: %d rules, at most %d are taken", ErrPolicy, len(p.Rules), MaxRules)
	}
	for i, r := range p.Rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("%w: allow[%d]: %w", ErrPolicy, i, err)
		}
	}
	return nil
}

func (r Rule) check() error {
	if err := checkPattern(r.Host); err != nil {
		return err
	}
	for _, list := range [][]string{r.Methods, r.Paths} {
		if len(list) > MaxRuleTexts {
			return fmt.Errorf("a list of %d, at most %d are taken", len(list), MaxRuleTexts)
		}
		for _, text := range list {
			if text == "" || len(text) > MaxRuleBytes {
				return fmt.Errorf("%q is empty or longer than %d bytes", text, MaxRuleBytes)
			}
		}
	}
	for _, port := range r.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("port %d is none", port)
		}
	}
	for _, path := range r.Paths {
		if !strings.HasPrefix(path, "/") || path != clean(path) {
			return fmt.Errorf("path %q does not begin with / or is not in its shortest form", path)
		}
	}
	if r.Address != "" {
		if _, err := parseAddress(r.Address); err != nil {
			return err
		}
	}
	return r.Secret.check(r.Host)
}

func (s *Secret) check(host string) error {
	switch {
	case s == nil:
		return nil
	case host == "*":
		return errors.New("a secret needs the name of a host")
	case !validEnv(s.Env):
		return fmt.Errorf("secret: env %q is not the name of a variable", s.Env)
	case !httpguts.ValidHeaderFieldName(s.Header) || hopByHop(s.Header) || strings.EqualFold(s.Header, "Host"):
		return fmt.Errorf("secret: header %q can't carry one", s.Header)
	case s.Value != "" && (len(s.Value) < MinSecretBytes || len(s.Value) > MaxSecretBytes):
		return fmt.Errorf("secret: the value of %s has %d bytes, %d to %d are taken", s.Env, len(s.Value), MinSecretBytes, MaxSecretBytes)
	case !httpguts.ValidHeaderFieldValue(s.Value):
		return fmt.Errorf("secret: the value of %s can't stand in a header", s.Env)
	}
	return nil
}

func validEnv(name string) bool {
	for i, c := range name {
		if c != '_' && (c > unicode.MaxASCII || !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c))) {
			return false
		}
	}
	return name != ""
}

// checkPattern takes what a rule may say for a host.
func checkPattern(pattern string) error {
	if pattern == "*" {
		return nil
	}
	if _, ok := parsePrefix(pattern); ok {
		return nil
	}
	name := strings.TrimPrefix(pattern, "*.")
	host, err := canonical(name)
	_, literal := netip.ParseAddr(name) // of a form that is not taken
	if err != nil || literal == nil || strings.Contains(name, "*") || host != strings.ToLower(name) {
		return fmt.Errorf("host %q is not a name, *. and a name, an address, a range of addresses or *", pattern)
	}
	return nil
}

// parsePrefix reads an address or a range of them.
func parsePrefix(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), p.Addr().Zone() == "" && !p.Addr().Is4In6()
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// parseAddress reads an address, with a port or without, which is 0 then.
func parseAddress(text string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap, nil
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address, such as 192.0.2.1 or 127.0.0.1:8080", text)
	}
	return netip.AddrPortFrom(a, 0), nil
}

// names normalizes names. It accepts underscores and several hyphens in a row, since real
// servers have such names.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.CheckHyphens(false), idna.StrictDomainName(false))

// canonical is the one spelling of a host: lower case, without the dot at its end, in
// ASCII, or an address as Go writes it.
func canonical(host string) (string, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if a.Zone() != "" {
			return "", fmt.Errorf("host %q has a zone", host)
		}
		return a.String(), nil
	}
	name, err := names.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || name == "" || len(name) > 253 || strings.ContainsAny(name, "/@:%*? \\#[]") {
		return "", fmt.Errorf("%q is not the name of a host", host)
	}
	return name, nil
}

// destination is what a request is for.
type destination struct {
	host string // canonical
	port int
	tls  bool
}

func (t destination) String() string {
	if strings.Contains(t.host, ":") {
		return "[" + t.host + "]:" + strconv.Itoa(t.port)
	}
	return t.host + ":" + strconv.Itoa(t.port)
}

// addr is the host as an address; false for a name.
func (t destination) addr() (netip.Addr, bool) {
	a, err := netip.ParseAddr(t.host)
	return a, err == nil
}

// allows reports whether the rule allows a connection to a host and a port.
func (r Rule) allows(t destination) bool {
	ports := r.Ports
	if len(ports) == 0 {
		ports = defaultPorts
		// A rule that names an address names its port.
		if ap, err := parseAddress(r.Address); err == nil && ap.Port() != 0 {
			ports = append([]int{int(ap.Port())}, defaultPorts...)
		}
	}
	return slices.Contains(ports, t.port) && r.names(t)
}

// names reports whether the rule is about a host.
func (r Rule) names(t destination) bool {
	if r.Host == "*" {
		return true
	}
	if prefix, ok := parsePrefix(r.Host); ok {
		a, is := t.addr()
		return is && prefix.Contains(a)
	}
	pattern := strings.ToLower(r.Host)
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(t.host, below) && len(t.host) > len(below)
	}
	return t.host == pattern
}

// takes reports whether the rule allows a request to a host that it allows. Path is the
// decoded one.
func (r Rule) takes(method, path string) bool {
	if len(r.Methods) > 0 && !slices.ContainsFunc(r.Methods, func(m string) bool { return strings.ToUpper(m) == method }) {
		return false
	}
	return len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
	})
}

// hopByHop are headers that are between two neighbours only (RFC 9110, 7.6.1).
func hopByHop(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
