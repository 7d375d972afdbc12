package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Resolver looks names up. *net.Resolver is one.
type Resolver interface {
	// LookupNetIP returns the addresses of a name; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// special are non-public address ranges, in addition to the ones that netip knows. Source: the
// IANA special-purpose address registries (RFC 6890), and the addresses under which clouds give
// machines their metadata, where these are public by number.
var special = prefixes(
	"0.0.0.0/8",        // this network
	"100.64.0.0/10",    // carriers' NAT (RFC 6598); 100.100.100.200 is Alibaba's metadata
	"168.63.129.16/32", // Azure's wire server
	"192.0.0.0/24",     // IETF protocols; 192.0.0.192 is Oracle's metadata
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"240.0.0.0/4",      // reserved, and broadcast

	"::/96",           // IPv4-compatible
	"::ffff:0:0/96",   // IPv4-mapped
	"::ffff:0:0:0/96", // IPv4-translated
	"64:ff9b::/96",    // NAT64
	"64:ff9b:1::/48",  // NAT64, local
	"100::/64",        // discard
	"2001::/23",       // IETF protocols, Teredo among them
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fec0::/10",       // site-local
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// public reports whether an address is one of the public internet. Forms of IPv6 that hold an
// address of IPv4 are not: what they lead to depends on the network.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

var carriers = netip.MustParsePrefix("100.64.0.0/10")

// refusedError says why an address was refused.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// addresses returns where a target may be connected to. The name is looked up here, and
// nowhere else.
func (s *Session) addresses(ctx context.Context, t destination, rule *Rule) ([]netip.AddrPort, error) {
	if rule != nil && rule.Address != "" {
		ap, err := parseAddress(rule.Address)
		if err != nil {
			return nil, err
		}
		if ap.Port() == 0 {
			ap = netip.AddrPortFrom(ap.Addr(), uint16(t.port))
		}
		return []netip.AddrPort{ap}, nil
	}
	found := []netip.Addr{}
	if a, ok := t.addr(); ok {
		found = append(found, a)
	} else {
		var err error
		if found, err = s.gate.resolver.LookupNetIP(ctx, "ip", t.host); err != nil {
			return nil, fmt.Errorf("look up %s: %w", t.host, err)
		}
	}
	var out []netip.AddrPort
	for _, a := range found {
		if _, literal := t.addr(); !literal {
			a = a.Unmap() // resolvers write addresses of IPv4 so
		}
		if public(a) || s.named(a, t.port) || rule != nil && rule.Private && (a.IsPrivate() || a.IsLoopback() || carriers.Contains(a)) {
			out = append(out, netip.AddrPortFrom(a, uint16(t.port)))
		}
	}
	if len(out) == 0 {
		return nil, &refusedError{fmt.Sprintf("%s is not on the public internet, and no rule names its address", t)}
	}
	return out, nil
}

// named reports whether a rule names an address itself.
func (s *Session) named(a netip.Addr, port int) bool {
	return slices.ContainsFunc(s.policy.Rules, func(r Rule) bool {
		_, literal := parsePrefix(r.Host)
		return literal && r.allows(destination{host: a.String(), port: port})
	})
}

// dial connects to the first of some addresses that answers.
func (s *Session) dial(ctx context.Context, list []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultDialTime)
	defer cancel()
	var errs []error
	for _, to := range list[:min(len(list), maxAddresses)] {
		conn, err := s.gate.dial(ctx, "tcp", to.String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// maxAddresses bounds how many addresses of one host are tried.
const maxAddresses = 8
