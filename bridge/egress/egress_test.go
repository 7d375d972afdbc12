package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

// get fetches a URL in a session of the world.
func (w *world) get(tb testing.TB, address string, header ...string) (status int, body string, err error) {
	tb.Helper()
	s := w.session(tb)
	defer func() { must(tb, s.Close()) }()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address, nil)
	must(tb, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], strings.ReplaceAll(header[i+1], "$API_TOKEN", placeholder(s)))
	}
	resp, err := (&http.Client{Transport: s}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// placeholder is what a process finds in API_TOKEN; empty for none.
func placeholder(s *egress.Session) (found string) {
	for _, set := range s.Env("127.0.0.1:1", false) {
		if value, ok := strings.CutPrefix(set, "API_TOKEN="); ok {
			found = value
		}
	}
	return found
}

// A tool in the server goes by the same rules: its redirects, its secrets and their echoes.
func TestRoundTrip(t *testing.T) {
	w := newWorld(t)
	if status, body, err := w.get(t, "http://plain.test/x"); status != 200 || body != "hello plain.test" || err != nil {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
	for _, address := range []string{
		"http://other.test/", "http://plain.test/to?http://other.test/", "http://plain.test/to?http://127.0.0.1:" + w.plainPort + "/", "http://127.0.0.1:" + w.plainPort + "/",
		"https://example.com:" + w.lookedPort + "/secret", "http://plain.test:82/", "http://[::ffff:7f00:1]:" + w.plainPort + "/",
	} {
		if _, _, err := w.get(t, address); !errors.Is(err, egress.ErrDenied) {
			t.Errorf("%s gave %v", address, err)
		}
	}
	api := "https://api.example.com:" + w.lookedPort
	if _, body, err := w.get(t, api+"/seen", "Authorization", "Bearer $API_TOKEN"); body != "seen 1" {
		t.Errorf("the secret was not sent: %q, %v", body, err)
	}
	if _, body, err := w.get(t, api+"/echo/body", "Authorization", "Bearer $API_TOKEN"); !strings.Contains(body, "***") || strings.Contains(body, secretValue) {
		t.Errorf("the echo is %q, %v", body, err)
	}
	w.wantDialled(t)
}

// Every connection is a line of the audit, with its outcome, and is counted.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.get(t, "http://plain.test/x?token=hidden")
	must(t, err)
	if _, _, err := w.get(t, "http://other.test/y"); err == nil {
		t.Error("other.test was reached")
	}
	if _, _, err := w.get(t, "http://plain.test/to?http://other.test/"); err == nil {
		t.Error("other.test was reached")
	}
	var got []string
	for _, r := range w.records {
		if r.Tenant != "default" || r.Agent != "tester" || r.Session != "s1" || r.CallID != "c1" || r.Profile != "web" || r.Tool != egress.ToolName {
			t.Errorf("got %+v", r)
		}
		got = append(got, fmt.Sprint(r.Outcome, " ", string(r.Args)))
	}
	want := []string{
		`ok {"host":"plain.test:80","method":"GET","path":"/x","tool":"system:shell"}`,
		`denied {"host":"other.test:80","method":"GET","path":"/y","tool":"system:shell"}`,
		`ok {"host":"plain.test:80","method":"GET","path":"/to","tool":"system:shell"}`,
		`denied {"host":"other.test:80","method":"GET","path":"/","tool":"system:shell"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if w.records[0].Outcome != audit.OutcomeOK || w.records[0].BytesOut != int64(len("hello plain.test")) {
		t.Errorf("got %+v", w.records[0])
	}
	if s := w.gate.Stats(); s.Allowed != 2 || s.Denied != 2 || s.Failed != 0 || s.Open != 0 || s.Sent == 0 || s.Received == 0 {
		t.Errorf("counted %+v", s)
	}
}

// A person is asked once in a call about each host, and what they say holds.
func TestAsk(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var asked []string
	w.policy.Ask = func(_ context.Context, host string) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, host)
		if host == "asked.test:80" {
			return nil
		}
		return errors.New("Permission denied: host " + host + " needs the approval of a person, who said no")
	}
	w.resolve = func(host string) []netip.Addr {
		if host == "asked.test" {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	s := w.session(t)
	defer func() { must(t, s.Close()) }()
	client := &http.Client{Transport: s}
	for range 2 {
		if _, err := client.Get("http://asked.test/"); err == nil || errors.Is(err, egress.ErrDenied) {
			t.Errorf("asked.test gave %v, want that nobody answers there", err)
		}
		if _, err := client.Get("http://refused.test/"); !errors.Is(err, egress.ErrDenied) || !strings.Contains(err.Error(), "who said no") || strings.Count(err.Error(), "Permission denied") != 1 {
			t.Errorf("refused.test gave %v", err)
		}
	}
	if strings.Join(asked, " ") != "asked.test:80 refused.test:80" {
		t.Errorf("asked about %q", asked)
	}
	// An approval of a name is none of a private address.
	w.resolve = func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} }
	w.policy.Ask = func(context.Context, string) error { return nil }
	if _, _, err := w.get(t, "http://inside.test/"); !errors.Is(err, egress.ErrDenied) {
		t.Errorf("a private address gave %v", err)
	}
}

// Limits of a call end it, not the server.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	gate := egress.New(&egress.Options{Resolver: w, Dial: w.dial, Dir: openFolder(t), Limits: egress.Limits{Requests: 3, Bytes: 2000}})
	defer func() { must(t, gate.Close()) }()
	session := func() *http.Client {
		s, err := gate.Session(egress.Caller{Tenant: "t", Agent: "a"}, w.policy)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return &http.Client{Transport: s}
	}
	fetch := func(c *http.Client, path string) error {
		resp, err := c.Get("http://plain.test" + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	c := session()
	for i := range 4 {
		if err := fetch(c, "/x"); (i == 3) != errors.Is(err, egress.ErrLimit) {
			t.Errorf("request %d gave %v", i, err)
		}
	}
	if err := fetch(session(), "/files/repo.git/hooks/pre-rebase.sample"); !errors.Is(err, egress.ErrLimit) {
		t.Errorf("too many bytes gave %v", err)
	}
	if err := fetch(session(), "/x"); err != nil {
		t.Errorf("the next call gave %v", err)
	}
}

// What is not public is refused whatever name leads there, but for rules that name it.
func TestAddresses(t *testing.T) {
	w := newWorld(t)
	private := []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "0.0.0.0", "255.255.255.255", "224.0.0.1",
		"192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "240.0.0.1", "168.63.129.16", "192.88.99.1",
		"::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
		"2001::1", "2001:db8::1", "2002:a9fe:a9fe::1", "100::1", "3fff::1", "5f00::1", "::ffff:0:7f00:1",
	}
	for _, address := range private {
		w.resolve = func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(address)} }
		for _, p := range []egress.Policy{{Open: true}, {Rules: []egress.Rule{{Host: "*.test"}}}, {Rules: []egress.Rule{{Host: "*"}}}} {
			w.policy = p
			if _, _, err := w.get(t, "http://a.test/"); !errors.Is(err, egress.ErrDenied) {
				t.Errorf("%s gave %v", address, err)
			}
		}
	}
	if got := w.dialled(); len(got) != 0 {
		t.Errorf("dialled %v", got)
	}
	allowed := func(address string, rules ...egress.Rule) {
		t.Helper()
		w.policy = egress.Policy{Rules: rules}
		w.resolve = func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(address)} }
		if _, _, err := w.get(t, "http://a.test/"); err == nil || errors.Is(err, egress.ErrDenied) {
			t.Errorf("%s gave %v, want that nobody answers", address, err)
		}
	}
	allowed("8.8.8.8", egress.Rule{Host: "a.test"})
	allowed("2606:4700::1", egress.Rule{Host: "*.test"})
	allowed("::ffff:8.8.8.8", egress.Rule{Host: "a.test"}) // how resolvers write it
	allowed("10.1.2.3", egress.Rule{Host: "a.test"}, egress.Rule{Host: "10.0.0.0/8"})
	allowed("10.1.2.3", egress.Rule{Host: "a.test", Private: true})
	allowed("127.0.0.1", egress.Rule{Host: "a.test", Private: true})
	w.policy = egress.Policy{Rules: []egress.Rule{{Host: "a.test", Private: true}}}
	w.resolve = func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("169.254.169.254")} }
	if _, _, err := w.get(t, "http://a.test/"); !errors.Is(err, egress.ErrDenied) {
		t.Errorf("metadata by a private name gave %v", err)
	}
}

// Rules that can't be kept are refused, not read as something else.
func TestCheck(t *testing.T) {
	secret := egress.Secret{Env: "A", Header: "X-Key", Value: secretValue}
	with := func(change func(s *egress.Secret)) egress.Rule {
		s := secret
		change(&s)
		return egress.Rule{Host: "a.test", Secret: &s}
	}
	for _, r := range []egress.Rule{
		{},
		{Host: "a*.test"},
		{Host: "*."},
		{Host: "*.*.test"},
		{Host: "a.test:80"},
		{Host: "http://a.test"},
		{Host: "a.test/x"},
		{Host: "::ffff:127.0.0.1"},
		{Host: "fe80::1%eth0"},
		{Host: "a b"},
		{Host: "a.test", Ports: []int{0}},
		{Host: "a.test", Ports: []int{70000}},
		{Host: "a.test", Paths: []string{"x"}},
		{Host: "a.test", Paths: []string{"/a/../b"}},
		{Host: "a.test", Methods: []string{""}},
		{Host: "a.test", Address: "b.test:80"},
		{Host: "*", Secret: &secret},
		with(func(s *egress.Secret) { s.Env = "A B" }), with(func(s *egress.Secret) { s.Header = "Host" }), with(func(s *egress.Secret) { s.Header = "Connection" }),
		with(func(s *egress.Secret) { s.Value = "short" }), with(func(s *egress.Secret) { s.Value = "a\r\nb: ccccc" }),
	} {
		if err := (egress.Policy{Rules: []egress.Rule{r}}).Check(); !errors.Is(err, egress.ErrPolicy) {
			t.Errorf("%+v gave %v", r, err)
		}
	}
	for _, r := range []egress.Rule{
		{Host: "a.test"},
		{Host: "*.test"},
		{Host: "*"},
		{Host: "127.0.0.1"},
		{Host: "10.0.0.0/8"},
		{Host: "::1"},
		{Host: "[2001:db8::1]"},
		{Host: "r3---sn-x.test"},
		{Host: "_a.test"},
		{Host: "A.Test"},
		with(func(*egress.Secret) {}),
	} {
		if err := (egress.Policy{Rules: []egress.Rule{r}}).Check(); err != nil {
			t.Errorf("%+v gave %v", r, err)
		}
	}
}

// A profile gives what its mode and hosts say; its secrets are read for each call.
func TestFromProfile(t *testing.T) {
	hosts := []policy.Host{{Host: "a.test", Ports: []int{1}, Paths: []string{"/p"}, Methods: []string{"GET"}, Secret: &policy.Secret{Env: "A", From: "env:B", Header: "X-Key"}}}
	for mode, want := range map[sandbox.Mode][2]bool{
		sandbox.ModeRead: {}, sandbox.ModeWork: {}, "": {}, sandbox.ModeNet: {false, true}, sandbox.ModeOpen: {true, true}, sandbox.ModeOff: {true, true},
	} {
		p := egress.FromProfile(policy.Profile{Name: "n", Mode: mode, Hosts: hosts})
		if p.Open != want[0] || (len(p.Rules) == 1) != want[1] || p.Name != "n" {
			t.Errorf("%s gave %+v", mode, p)
		}
	}
	p := egress.FromProfile(policy.Profile{Mode: sandbox.ModeNet, Hosts: hosts})
	gate := egress.New(&egress.Options{Dir: t.TempDir(), Secret: func(from string) (string, error) {
		if from == "env:B" {
			return secretValue, nil
		}
		return "", errors.New("there is none")
	}})
	defer func() { must(t, gate.Close()) }()
	s, err := gate.Session(egress.Caller{}, p)
	must(t, err)
	must(t, s.Close())
	p.Rules[0].Secret = &egress.Secret{Env: "A", From: "env:C", Header: "X-Key"}
	if _, err := gate.Session(egress.Caller{}, p); !errors.Is(err, egress.ErrPolicy) {
		t.Errorf("a secret that is not there gave %v", err)
	}
}
