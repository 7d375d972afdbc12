package egress

import "net/url"

// Endpoint is the policy for an address that the operator chose: its host and port alone,
// in a private network too, through a proxy of the operator's if there is one.
func Endpoint(u, via *url.URL) (Policy, error) {
	t, err := targetOf(u.Scheme, u.Host)
	if err != nil {
		return Policy{}, err
	}
	return Policy{Name: "endpoint", Rules: []Rule{{Host: t.host, Ports: []int{t.port}, Private: true}}, Via: via}, nil
}
