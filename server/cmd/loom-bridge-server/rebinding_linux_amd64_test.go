package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// asInternet is set for a process that has a network of its own, in which it plays the
// internet, too.
const asInternet = "LOOM_TEST_INTERNET"

// publicAddress is one of the public internet. In the network of the test it is a local one.
const publicAddress = "93.184.215.14"

const rebindingFile = `
[profile.web]
extends = "builtin:net"
[[profile.web.allow]]
host = "*.rebind.test"
[[profile.web.allow]]
host = "*.mixed.test"
ports = [81]

[[bind]]
agent = "web"
profile = "web"
`

// Names that lead to one place when they are looked at and to another when they are used, and
// names that lead to several: what a tool is connected to is the address that was checked. The
// server asks the system's resolver, as it does for users; the network is one that the test
// has for itself, with a server of names and a host at a public address.
func TestRebinding(t *testing.T) {
	t.Parallel()
	if os.Getenv(asInternet) == "" {
		inItsOwnNetwork(t, []string{"curl", "python3"}, asInternet+"=1")
		return
	}
	names := &fakeNames{asked: map[string]int{}}
	canary := names.internet(t)
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "loom.toml")
			must(t, os.WriteFile(file, []byte(rebindingFile), 0o600))
			p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--workspace", t.TempDir(),
				"--sandbox-tier", tier, "--config", file)
			w := &shellWorld{t, p, tier}
			if s := w.status().GetSandbox(); s.GetTier() != tier {
				t.Skipf("tier %s does not work in a network of its own here: %v", tier, s.GetProblems())
			}
			const inside = "not on the public internet"
			for _, c := range []struct{ what, line, want string }{
				{"public, then this machine", "curl -sS http://then-inside-1." + tier + ".rebind.test/", "the public site"},
				{"the second time", "curl -sS http://then-inside-1." + tier + ".rebind.test/", inside},
				{"two requests of one program", "curl -sS http://then-inside-2." + tier + ".rebind.test/a; curl -sS http://then-inside-2." + tier + ".rebind.test/b", "the public site the public site"}, // by a connection that is kept
				{"this machine, then public", "curl -sS http://then-public-1." + tier + ".rebind.test/", inside},
				{"the first time does not count", "curl -sS http://then-public-1." + tier + ".rebind.test/", "the public site"},
				{"a tunnel", "curl -sSk https://then-inside-3." + tier + ".rebind.test/ || echo; curl -sSk https://then-inside-3." + tier + ".rebind.test/ || echo failed", "failed"},
				{"by another program", `python3 -c "import urllib.request as u; print(u.urlopen('http://inside-4.` + tier + `.rebind.test/').read())"`, "403"},
				{"a redirect", "curl -sSL http://then-inside-5." + tier + ".rebind.test/to-inside", `"exit_code":`}, // whatever is said: the canary counts
				{"two addresses, one of them here", "curl -sS http://both." + tier + ".mixed.test:81/", "No connection"},
				{"mapped", "curl -sS http://mapped." + tier + ".rebind.test/", inside},
				{"loopback of IPv6", "curl -sS http://loopback6." + tier + ".rebind.test/", inside},
				{"metadata", "curl -sS http://metadata." + tier + ".rebind.test/", inside},
				{"private", "curl -sS http://private." + tier + ".rebind.test/", inside},
				{"NAT64", "curl -sS http://nat64." + tier + ".rebind.test/", inside},
				{"another name for it", "curl -sS http://alias." + tier + ".rebind.test/", inside},
			} {
				got := saidOf(w.callAs("web", "s1", "shell:run", object{"command": c.line}))
				if !strings.Contains(got, c.want) {
					t.Errorf("%s: %s, want %q", c.what, got, c.want)
				}
			}
			for i, want := range []string{"the public site", inside} {
				if got := saidOf(w.callAs("web", "s1", "web:fetch", object{"url": "http://then-inside-6." + tier + ".rebind.test/"})); !strings.Contains(got, want) {
					t.Errorf("web:fetch, %d: %s", i, got)
				}
			}
			if n := canary.Load(); n > 0 {
				t.Errorf("%d connections to this machine", n)
			}
		})
	}
}

// inItsOwnNetwork runs the test again, in a network that leads nowhere. It needs programs, and
// the variables tell the test what it is.
func inItsOwnNetwork(t *testing.T, programs []string, variables ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	self, err := os.Executable()
	must(t, err)
	name, _, _ := strings.Cut(t.Name(), "/")
	again := exec.CommandContext(t.Context(), self, "-test.run", "^"+name+"$", "-test.v")
	again.Env = append(os.Environ(), variables...)
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		again.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	out, err := again.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skipf("there is no network of its own to be had here: %v", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	default:
		t.Logf("%s", out)
	}
}

// fakeNames answers questions of DNS.
type fakeNames struct {
	mu    sync.Mutex
	asked map[string]int // for an address of IPv4, by name; guarded by mu
}

// internet makes a network that has names and a public site, and counts the connections to
// this machine, which nobody may make.
func (n *fakeNames) internet(t *testing.T) *atomic.Int64 {
	t.Helper()
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(socket)
	up, err := unix.NewIfreq("lo")
	must(t, err)
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	must(t, unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, up))
	public, err := unix.NewIfreq("lo:1")
	must(t, err)
	must(t, public.SetInet4Addr(net.ParseIP(publicAddress).To4()))
	must(t, unix.IoctlIfreq(socket, unix.SIOCSIFADDR, public))
	// Without the file the resolver asks this machine.
	if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		mine := filepath.Join(t.TempDir(), "resolv.conf")
		must(t, os.WriteFile(mine, []byte("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n"), 0o644))
		must(t, unix.Mount(mine, real, "", unix.MS_BIND, ""))
	}
	questions, err := net.ListenPacket("udp4", "127.0.0.1:53")
	must(t, err)
	t.Cleanup(func() { _ = questions.Close() })
	go n.serve(questions)
	serve := func(address string, h http.HandlerFunc) {
		l, err := net.Listen("tcp", address)
		must(t, err)
		server := &http.Server{Handler: h}
		t.Cleanup(func() { _ = server.Close() })
		go func() { _ = server.Serve(l) }()
	}
	serve(publicAddress+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to-inside" {
			http.Redirect(w, r, "http://127.0.0.1/", http.StatusFound)
			return
		}
		fmt.Fprint(w, "the public site ")
	})
	canary := &atomic.Int64{}
	for _, address := range []string{"127.0.0.1:80", "127.0.0.1:81", "127.0.0.1:443", "[::1]:80"} {
		l, err := net.Listen("tcp", address)
		if err != nil && strings.HasPrefix(address, "[") {
			continue // there is no IPv6
		}
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				canary.Add(1)
				_ = conn.Close()
			}
		}()
	}
	return canary
}

func (n *fakeNames) serve(c net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		size, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		q := m.Questions[0]
		for _, text := range n.addresses(q) {
			head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
			address, err := netip.ParseAddr(text)
			switch {
			case err != nil: // another name
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(text)}})
				head.Name = dnsmessage.MustNewName(text)
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}})
			case address.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: address.As4()}})
			default:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
			}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = c.WriteTo(answer, from)
		}
	}
}

// addresses are what a name leads to now, by its first label.
func (n *fakeNames) addresses(q dnsmessage.Question) []string {
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	label, _, _ := strings.Cut(name, ".")
	const here = "127.0.0.1"
	if q.Type == dnsmessage.TypeAAAA {
		return map[string][]string{"mapped": {"::ffff:127.0.0.1"}, "loopback6": {"::1"}, "nat64": {"64:ff9b::7f00:1"}}[label]
	}
	if q.Type != dnsmessage.TypeA {
		return nil
	}
	n.mu.Lock()
	n.asked[name]++
	first := n.asked[name] == 1
	n.mu.Unlock()
	switch {
	case strings.HasPrefix(label, "then-inside-") && first, strings.HasPrefix(label, "then-public-") && !first:
		return []string{publicAddress}
	case strings.HasPrefix(label, "then-"), strings.HasPrefix(label, "inside-"):
		return []string{here}
	}
	return map[string][]string{
		"both": {publicAddress, here}, "metadata": {"169.254.169.254"}, "private": {"10.0.0.1", "192.168.1.1", "100.100.100.200"}, "alias": {"localhost."},
	}[label]
}
