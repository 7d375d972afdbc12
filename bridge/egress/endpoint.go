package egress

import (
	"fmt"
	"net/netip"
	"net/url"
)

// Endpoint is the policy for an address that the operator chose: its host and port alone,
// in a private network too, through a proxy of the operator's if there is one.
func Endpoint(u, via *url.URL) (Policy, error) {
	t, err := targetOf(u.Scheme, u.Host)
	if err != nil {
		return Policy{}, err
	}
	return Policy{Name: "endpoint", Rules: []Rule{{Host: t.host, Ports: []int{t.port}, Private: true}}, Via: via}, nil
}

// PublicEndpoint is Endpoint for an address that somebody else chose: no private network is
// reached, by a name or by an address. An address of one is an error.
func PublicEndpoint(u *url.URL) (Policy, error) {
	t, err := targetOf(u.Scheme, u.Host)
	if err != nil {
		return Policy{}, err
	}
	if a, err := netip.ParseAddr(t.host); err == nil && !public(a) {
		return Policy{}, fmt.Errorf("egress: %s is not a public address", a)
	}
	return Policy{Name: "endpoint", Rules: []Rule{{Host: t.host, Ports: []int{t.port}}}}, nil
}
